"""Imports go one way: geometry -> nn -> models, and so on up to the command line."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What each layer may import besides itself, the leaves and what these may import.
BELOW: dict[str, set[str]] = {
    "nfsgeo.config": set(),
    "nfsgeo.geometry": {"nfsgeo.config"},
    "nfsgeo.pretrained": set(),
    "nfsgeo.nn": {"nfsgeo.geometry"},
    "nfsgeo.models": {"nfsgeo.nn"},
    "nfsgeo.data": {"nfsgeo.geometry"},
    "nfsgeo.testing": {"nfsgeo.geometry"},
    "nfsgeo.forecast": {"nfsgeo.models", "nfsgeo.data"},
    "nfsgeo.training": {"nfsgeo.forecast", "nfsgeo.pretrained"},
    "nfsgeo.evaluation": {"nfsgeo.training"},
    # Nothing names these two but nfsgeo.extensions.
    "nfsgeo.stations": {"nfsgeo.evaluation"},
    "nfsgeo.uncertainty": {"nfsgeo.evaluation"},
    "nfsgeo.report": {"nfsgeo.evaluation"},
    "nfsgeo_benchmarks": {"nfsgeo.report"},
    "nfsgeo_cli": {"nfsgeo_benchmarks"},
}
# Import nothing of nfsgeo but one another, so anything may import them.
LEAVES = {
    "nfsgeo.errors",
    "nfsgeo.extensions",
    "nfsgeo.files",
    "nfsgeo.measures",
    "nfsgeo.plugins",
    "nfsgeo.progress",
    "nfsgeo.version",
}


def below(layer: str) -> set[str]:
    return BELOW[layer].union(*map(below, BELOW[layer]))


def imported_names(module: Path, package: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import, also those inside functions.

    But not those for types alone.
    """
    tree = ast.parse(module.read_text())
    typed = [
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    ]
    for node in (node for node in ast.walk(tree) if node not in typed):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: 1 - node.level or None]
                base = ".".join([*parents, base]).rstrip(".")
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def layer_of(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "nfsgeo" else parts[0]


@pytest.mark.parametrize("layer", BELOW)
def test_a_layer_imports_only_what_lies_below(layer):
    allowed = below(layer) | LEAVES | {layer, "nfsgeo.__version__"}
    folder = ROOT.joinpath(*layer.removeprefix("nfsgeo_").split("."))
    wrong = []
    for module in folder.rglob("*.py"):
        package = ".".join([layer, *module.parent.relative_to(folder).parts])
        for line, name in imported_names(module, package):
            if name.startswith("nfsgeo") and layer_of(name) not in allowed:
                wrong.append(f"{module.relative_to(ROOT)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_every_sub_package_has_a_layer():
    found = {f"nfsgeo.{p.parent.name}" for p in (ROOT / "nfsgeo").glob("*/__init__.py")}
    assert found | {"nfsgeo_cli", "nfsgeo_benchmarks"} == set(BELOW)


def test_leaves_import_only_leaves():
    for leaf in LEAVES:
        module = ROOT.joinpath(*leaf.split(".")).with_suffix(".py")
        names = [name for _, name in imported_names(module, "nfsgeo")]
        ours = {layer_of(name) for name in names if name.startswith("nfsgeo")}
        assert ours <= LEAVES


def test_no_modules_import_each_other():
    """Not even inside functions, within a folder or across folders."""
    folders = {
        "nfsgeo": "nfsgeo",
        "nfsgeo_cli": "cli",
        "nfsgeo_benchmarks": "benchmarks",
    }
    modules = {}
    for package, folder in folders.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join([package, *parts]).removesuffix(".__init__")
            modules[name] = path
    graph = {}
    for name, path in modules.items():
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        names = {found for _, found in imported_names(path, package)}
        names |= {found.rpartition(".")[0] for found in names - modules.keys()}
        graph[name] = (names & modules.keys()) - {name}
    TopologicalSorter(graph).prepare()  # raises CycleError, which has the modules


def test_files_have_400_lines_at_most():
    for folder in ("nfsgeo", "cli", "benchmarks", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            assert len(path.read_text("utf-8").splitlines()) <= 400, path
