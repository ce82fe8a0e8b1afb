"""Generated parts of pages, and formulas and notebooks of the site.

``make pages`` writes the tables of models, settings, formats and errors and the cards
of trained models into the pages, each between ``<!-- begin NAME -->`` and
``<!-- end NAME -->``. The site build calls the functions ``on_...``.
"""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from nfsgeo.data.io import ARRAYS, FORMATS
from nfsgeo.data.writers import WRITERS
from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS, PAPER_PARAMETERS, Model, Problem
from nfsgeo.pretrained import FOLDER, NAMES
from nfsgeo_benchmarks.suites.ratios import ratio_interval, ratio_text, read_samples
from nfsgeo_benchmarks.suites.suite import find_suite, read_suite, shipped_results
from nfsgeo_benchmarks.suites.tables import RESULTS, learns, read_table

__all__ = ["mathml", "on_files", "on_page_content", "on_page_markdown"]
__all__ += ["with_generated_parts"]

PAGES = Path(__file__).parents[1]
PART = re.compile(r"(<!-- begin ([\w ]+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)
# The output of pymdownx.arithmatex for $...$ and $$...$$.
FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[\[(](.+?)\\[\])]</\1>', re.DOTALL
)


def with_generated_parts(markdown: str) -> str:
    """Return a page whose generated parts are current."""
    return PART.sub(
        lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n\n{part[3]}", markdown
    )


def on_files(files: Any, config: Any) -> Any:
    """Replace each notebook by a page of its text, code and outputs."""
    from mkdocs.structure.files import File
    from nbconvert import MarkdownExporter

    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        page = PurePosixPath(notebook.src_uri)
        content, more = MarkdownExporter().from_filename(
            notebook.abs_src_path, {"unique_key": page.stem}
        )
        made = {page.with_suffix(".md").name: content, **more["outputs"]}
        files.remove(notebook)
        for name, part in made.items():
            uri = str(page.with_name(name))
            files.append(File.generated(config, uri, content=part))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Link to the pages that replace notebooks."""
    return markdown.replace(".ipynb)", ".md)")


def on_page_content(content: str, **_: Any) -> str:
    """Turn the formulas of a page into MathML, when MkDocs has rendered it."""
    return FORMULA.sub(
        lambda formula: mathml(html.unescape(formula[2]), block=formula[1] == "div"),
        content,
    )


def model_table() -> str:
    """One row per model: the meshes it takes, the size of the paper's, its source."""
    heads = ["name", "any points", "unseen meshes", "parameters in the paper", "source"]
    rows = []
    for name, model in MODELS.items():
        takes = model.points, model.unseen_meshes
        marks = ["yes" if each else "no" for each in takes]
        size = PAPER_PARAMETERS.get(name)
        count = "" if size is None else f"{size:,}"
        rows.append([f"`{name}`", *marks, count, model.source])
    return _table(heads, rows)


def _defaults(model: type[Model]) -> dict[str, str]:
    """Defaults of the settings of a model, for problems in time where they differ."""
    completed = {
        f"{dim}-D": model.Settings().completed(
            Problem(Domain.unit(dim), num_points=1024)
        )
        for dim in (1, 2)
    }
    texts = {}
    for key in model.Settings.model_fields:
        values = {title: getattr(s, key) for title, s in completed.items()}
        if len({*values.values()}) == 1:
            texts[key] = f"`{values['1-D']}`"
        else:
            texts[key] = ", ".join(f"`{v}` ({title})" for title, v in values.items())
    return texts


def model_settings() -> str:
    """A folded table per model: its settings and their defaults."""
    parts = []
    for name, model in MODELS.items():
        defaults = _defaults(model)
        rows = [
            [
                f"`{key}`",
                defaults[key],
                f"`{model.paper[key]}`" if key in model.paper else "",
            ]
            for key in model.Settings.model_fields
        ]
        table = _table(["setting", "default", "preset `paper`"], rows)
        summary = f'<details markdown="1">\n<summary>{name}</summary>'
        parts.append(f"{summary}\n\n{table}\n\n</details>")
    return "\n\n".join(parts)


# Options by reader, which commands need where files do not tell.
ANSWERS = {"at": "points", "columns": "...", "time_axis": "1", "times": "0:9:1"}


def formats_read() -> str:
    """One row per format: the content of a file, and the command that reads it."""
    rows = []
    for each in (*FORMATS, ARRAYS):
        answers = [
            f" [--{name.replace('_', '-')} {answer}]"
            for name, answer in ANSWERS.items()
            if name in each.options
        ]
        ending = re.search(r"\.\w+", each.name)
        command = f"nfsgeo convert FILE{ending[0] if ending else ''} --out NAME.nc"
        command += "".join(answers)
        needs = ", ".join(each.needs)
        content = _content(each.read).removeprefix("Read ")
        content = content[:1].upper() + content[1:]
        rows.append([each.name, content, f"`{command}`", needs])
    return _table(["format", "what is read", "command", "packages"], rows)


def formats_written() -> str:
    """One row per format: the endings that choose it, and its content."""
    rows = [
        [
            each.name,
            _code("", each.endings),
            _content(each.write),
            ", ".join(each.needs),
        ]
        for each in WRITERS
    ]
    return _table(["format", "endings", "content", "packages"], rows)


def mathml(latex: str, block: bool = False) -> str:
    """A formula as MathML, within a line or as a block, which Markdown leaves alone."""
    from latex2mathml.converter import convert  # of the extra docs

    rows = " ".join(latex.split())
    if "&" in rows:
        rows = rf"\begin{{align}}{rows}\end{{align}}"
    made = convert(rows, display="block" if block else "inline")
    made = made.replace("*", "&#42;").replace("_", "&#95;").replace("\n", "")
    # At the start of a line, a bare <math> would be a paragraph of its own.
    return f'<div class="formula">{made}</div>' if block else f"<span>{made}</span>"


# Rows of tables of errors: titles of problems.
EVEN = {
    "steep Burgers": "burgers-steep",
    "long KdV": "kdv-long",
    "rough Navier–Stokes": "navier-stokes-rough",
    "rough Navier–Stokes, 5 % of noise on the inputs": "navier-stokes-rough-noise-5",
    "compressible flow with shocks": "euler",
    "lognormal Darcy": "darcy-lognormal",
}
GRADED = {
    "`heat`": "heat",
    "`elasticity`": "elasticity",
    "`wake`": "wake",
    "`ellipsoids`": "ellipsoids",
}


# Problems and models whose first epoch takes longer than the time of a run.
UNFINISHED = [("ellipsoids", "rigno")]


# Rows of the table of the README: titles of problems of the suite ``accuracy``.
README = {
    "flow around bodies, graded meshes": "heat",
    "vortex shedding, graded meshes": "wake",
    "pressure on surfaces in space": "ellipsoids",
    "elasticity, a mesh per sample": "elasticity",
    "rough Navier–Stokes, scattered points": "navier-stokes-rough",
}


# Rows of the table of ablations: what each variant of the suite leaves out or changes.
CHANGED = {
    "nfs-no-messages": "no learned messages, `neighbours=0`",
    "nfs-no-path": "no [path past the grid](how-nfs-works.md#past-the-grid), "
    "`point_channels=0` and `neighbours=0`",
    "nfs-no-latent": "no [latent coordinates]"
    "(how-nfs-works.md#latent-coordinates), `latent=false`",
    "fno-spline": "none of these three, nor a learned kernel: `fno-spline`",
    "nfs-kernel": "a learned kernel, `kernel=channel`",
    "nfs-no-margin": "no margin beyond the grid, `margin=0`",
    "nfs-no-skip": "no skips of the Fourier blocks, `skip=false`",
    "nfs-full-modes": "no modes factorised by axis, `factorised=false`",
    "nfs-norm": "Layer-Norm, `norm=channel`",
    "nfs-no-norm": "no Layer-Norm, `norm=none`",
    "nfs-mean": "the mean of the neighbours as base interpolation, `base=mean`",
    "nfs-all-points": "no subsets of the points in training, `data.least_fraction=1`",
    "nfs-one-mesh": "no mesh augmentation: one sampled mesh, no query points, uniform "
    "weights",
    "nfs-4-point-sets": "four sampled meshes, `data.point_sets=4`",
    "nfs-uniform": "uniform weights in the loss, `loss.weighting=uniform`",
    "nfs-direct": "`model.prediction=direct`",
    "nfs-damped": "`model.prediction=damped`",
}


def ablation_table() -> str:
    """One row per variant: its relative L2 error over that of ``nfs``, by problem.

    Both are means over the seeds that the variant has.
    """
    table = _results("ablations").astype({"rel_l2": float})
    errors = table.set_index(["problem", "variant", "seed"])["rel_l2"].unstack(1)
    there = errors.reindex(columns=[*CHANGED]).dropna(how="all").index.unique(0)
    problems = {t: name for t, name in (GRADED | EVEN).items() if name in there}
    rows = []
    for variant, title in CHANGED.items():
        pairs = (
            errors.reindex(columns=["nfs", variant]).dropna().groupby("problem").mean()
        )
        ratios = (pairs[variant] / pairs["nfs"]).map("{:.2f}".format)
        cells = [str(ratios.get(problem, "–")) for problem in problems.values()]
        if {*cells} != {"–"}:
            rows.append([title, *cells])
    return _table(["changed", *problems], rows, numbers=True)


def error_table(suite: str, problems: Mapping[str, str], variants: str) -> str:
    """One row per problem: relative L2 errors of variants, and of the best baseline.

    The smallest of those of variants is bold. Problems on which not even two of these
    have run are left out.
    """
    return _table(*_error_rows(suite, problems, variants.split()), numbers=True)


def accuracy_table() -> str:
    """Errors after equal time, and the ratio of that of ``nfs`` to the best of others.

    Problems and variants that have not run yet are left out. The ratio is of the means
    over the seeds that both have.
    """
    folder, (problems, names) = shipped_results("accuracy", "cpu"), _ran()
    heads, lines = _error_rows("accuracy", problems, names)
    suite = read_suite(find_suite("accuracy"))
    samples = read_samples(read_table(folder / RESULTS), folder, apart=suite.data_seeds)
    table = _results("accuracy").astype({"mae": float})
    errors = table.set_index(["problem", "seed", "variant"])["mae"].unstack()
    for problem, line in zip(problems.values(), lines, strict=True):
        best = _best_other(errors.loc[problem].mean(), trained=True)
        both = errors.loc[problem, ["nfs", best]].dropna().mean()
        interval = ratio_interval(samples, problem, "nfs", best)
        for column, name in enumerate(names, 1):
            if name not in suite.problems[problem].variants:
                line[column] = "needs time"
            if (problem, name) in UNFINISHED:
                line[column] = "no epoch"
        line.append(f"{ratio_text(both['nfs'] / both[best], interval)}, `{best}`")
    return _table([*heads, "MAE of `nfs` over the best other"], lines, numbers=True)


def cost_table() -> str:
    """Parameters, and epochs in the time of a run, by problem and variant."""
    problems, names = _ran()
    table, rows = _results("accuracy"), []
    keys = ["parameters", "epochs"]
    means = table.astype(dict.fromkeys(keys, float)).groupby(["problem", "variant"])
    cost = means[keys].mean()
    for title, problem in problems.items():
        texts = {
            name: f"{one.parameters / 1e6:.2g} M, {one.epochs:.0f}"
            for name, one in cost.loc[problem].iterrows()
        }
        rows.append([title, *(texts.get(name, "–") for name in names)])
    heads = ["parameters, epochs", *(f"`{name}`" for name in names)]
    return _table(heads, rows, numbers=True)


def readme_table() -> str:
    """Errors of ``nfs``, of it without learned layers, and of the best of others."""
    heads = ["relative L2 error", "`nfs`", "`fno-spline`", "best other model"]
    heads, rows = [*heads, "best trivial baseline"], []
    for title, problem in README.items():
        mean, texts = _errors("accuracy", problem)
        others = [_best_other(mean, trained=t) for t in (True, False)]
        cells = [texts["nfs"], texts["fno-spline"]]
        cells += [f"{texts[name]} (`{name}`)" for name in others]
        best = mean.loc[["nfs", "fno-spline", *others]].argmin()
        cells[best] = f"**{cells[best]}**"
        rows.append([title, *cells])
    return _table(heads, rows, numbers=True)


def _ran() -> tuple[dict[str, str], list[str]]:
    """Problems by title and variants of the suite ``accuracy`` that have run."""
    table = _results("accuracy")
    there = {*table["problem"]}
    problems = {
        t: problem for t, problem in (GRADED | EVEN).items() if problem in there
    }
    return problems, [name for name in table["variant"].unique() if learns(name)]


def _best_other(mean: pd.Series[float], trained: bool) -> str:
    """The variant with the smallest error that is not ours, or the best baseline."""
    others = [n for n in mean.index if not n.startswith(("nfs", "fno-spline"))]
    return str(mean[[n for n in others if learns(n) == trained]].idxmin())


def _error_rows(
    suite: str, problems: Mapping[str, str], names: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    rows = []
    for title, problem in problems.items():
        mean, texts = _errors(suite, problem)
        if len(mean.index.intersection(names)) < 2:
            continue
        best = mean.reindex(names).idxmin()
        texts[best] = f"**{texts[best]}**"
        base = _best_other(mean, trained=False)
        cells = [texts.get(name, "–") for name in names]
        rows.append([title, *cells, f"{texts[base]} ({base.replace('-', ' ')})"])
    return ["relative L2", *(f"`{name}`" for name in names), "best baseline"], rows


def _results(suite: str) -> pd.DataFrame:
    table = pd.DataFrame(read_table(shipped_results(suite, "cpu") / RESULTS))
    return table[table["status"] == "ok"]


def _errors(
    suite: str, problem: str, measure: str = "rel_l2"
) -> tuple[pd.Series[float], dict[str, str]]:
    """Mean errors over seeds by variant, and their texts; a star marks one seed."""
    table = _results(suite)
    table = table[table["problem"] == problem]
    errors = table.astype({measure: float}).groupby("variant")[measure]
    mean, count = errors.mean(), errors.count()
    stars = {name: "\\*" * bool(count[name] == 1) for name in mean.index}
    return mean, {name: f"{mean[name]:#.3g}{stars[name]}" for name in mean.index}


def _cards() -> str:
    """The cards of the trained models, one section each."""
    cards = [(FOLDER / name / "card.md").read_text() for name in NAMES]
    return "\n\n".join(re.sub(r"^# ", "## ", card.strip()) for card in cards)


def _table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = False
) -> str:
    rule = ["---", *["--:" if numbers else "---"] * (len(heads) - 1)]
    lines = [heads, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(before: str, names: Iterable[str]) -> str:
    return ", ".join(f"`{before}{name}`" for name in names)


def _content(function: Callable[..., Any]) -> str:
    """The first paragraph of its docstring, as Markdown in one line."""
    text = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    return text.replace("|", "\\|")


PARTS: dict[str, Callable[[], str]] = {
    "models": model_table,
    "settings": model_settings,
    "formats read": formats_read,
    "formats written": formats_written,
    "cards": _cards,
    "errors in short": readme_table,
    "errors": accuracy_table,
    "cost": cost_table,
    "ablations": ablation_table,
    "errors graded": partial(
        error_table, "ablations", GRADED, "nfs fno-spline dse dse-skip transolver"
    ),
}

if __name__ == "__main__":
    for page in (PAGES.parent / "README.md", *PAGES.rglob("*.md")):
        page.write_text(with_generated_parts(page.read_text("utf-8")), "utf-8")
