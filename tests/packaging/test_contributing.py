"""What CONTRIBUTING.md, SECURITY.md and the pre-commit hooks say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
# Calls that would run what a file holds, unless told not to.
UNSAFE = {
    r"torch\.load\(": "weights_only=True",
    r"np\.load\(": "allow_pickle=False",
    r"yaml\.(?:unsafe_|full_)?load\(": None,
    r"pickle\.loads?\(": None,
}


def test_named_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    lines = re.findall(r"^ {4}make ([a-z ]+?) +#", GUIDE, re.MULTILINE)
    targets = " ".join(lines).split()
    assert len(targets) > 3
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_named_folders_exist() -> None:
    folders = re.findall(r"^\| (`.*`) \|.*\|.*\|$", GUIDE, re.MULTILINE)
    names = re.findall(r"`([^`]+)`", " ".join(folders))
    assert len(names) > 7 and all((ROOT / name).is_dir() for name in names)


def test_hooks_use_tools_that_are_set_up() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tools = {Requirement(r).name for r in project["optional-dependencies"]["dev"]}
    for repository in config["repos"]:
        for hook in repository["hooks"]:
            program = Path(hook["entry"].split()[0])
            assert program.parts[:2] == (".venv", "bin")
            assert program.name in tools | {"python"}
            for path in re.findall(r"\S+\.py", hook["entry"]):
                assert (ROOT / path).exists()


@pytest.mark.parametrize("call", UNSAFE)
def test_nothing_runs_what_a_file_holds(call: str) -> None:
    wrong = []
    for folder in ("nfsgeo", "cli", "benchmarks"):
        for module in (ROOT / folder).rglob("*.py"):
            text = module.read_text()
            for found in re.finditer(call, text):
                around = text[found.start() : found.start() + 200]
                if UNSAFE[call] is None or UNSAFE[call] not in around:
                    wrong.append(f"{module}: {around.splitlines()[0]}")
    assert not wrong
