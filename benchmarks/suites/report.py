"""One self-contained page about a suite."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from nfsgeo.data.equations import EQUATIONS
from nfsgeo.evaluation.interpolation_memory import PARTS
from nfsgeo.measures import MEASURES
from nfsgeo.report.html import HERE, embedded, template
from nfsgeo.report.style import Picture, styled
from nfsgeo.report.text import bytes_text, count_text, error_text, seconds_text
from nfsgeo.training.artifacts import write_bytes
from nfsgeo.version import __version__
from nfsgeo_benchmarks.paper import Printed
from nfsgeo_benchmarks.published import published
from nfsgeo_benchmarks.suites.conditions import (
    collect_conditions,
    compared,
    write_conditions,
)
from nfsgeo_benchmarks.suites.curves import collect_curves, write_curves
from nfsgeo_benchmarks.suites.figures import (
    error_against_setting,
    error_against_time,
    field_figures,
)
from nfsgeo_benchmarks.suites.invariance import error_against_mesh
from nfsgeo_benchmarks.suites.results import memory_column
from nfsgeo_benchmarks.suites.states import state_figures
from nfsgeo_benchmarks.suites.suite import TRIVIAL, Scale, Suite
from nfsgeo_benchmarks.suites.table import (
    Means,
    SeedMean,
    best_of,
    judge,
    leader,
    seed_means,
)

TITLES = MEASURES | {
    "rel_l1_last_median": "relative L1, last step, median",
    "diff_begin_0": "Diff before blocks, untrained",
    "diff_begin": "trained",
    "diff_end_0": "Diff after blocks, untrained",
    "diff_end": "trained",
}
Row = Mapping[str, Any]


def problem_section(
    problem: str,
    suite: Suite,
    means: Means,
    rows: Sequence[Row],
    curves: Sequence[Row],
    conditions: Sequence[Row],
    folder: Path,
    paper: Mapping[tuple[str, str], Printed],
) -> dict[str, Any]:
    """The table of a problem and its pictures, as the template takes them."""
    here = {name: mean for (name, where), mean in means.items() if where == problem}
    best = {m: leader(means, problem, m, suite.rivals) for m in suite.measures}
    first = [
        row
        for row in rows
        if row["problem"] == problem
        and row["seed"] == 0
        and row["model"]
        # Of an earlier run there may be nothing but its row.
        and (row["status"] != "ok" or (folder / row["folder"]).exists())
    ]
    begun = any(mean.status != "missing" for mean in here.values())
    waiting = [] if begun else list(here)
    with styled():
        pictures = [
            _shown(caption, figure)
            for caption, figure in _figures(
                problem, suite, means, first, curves, folder
            )
        ]
    return {
        "name": problem,
        "waiting": waiting,
        "about": _about(here, suite.problems[problem].settings.get("data.n_in") == 0),
        "trivial": _over_best(problem, suite, means),
        "conditions": compared([e for e in conditions if e["problem"] == problem]),
        "rows": [
            _row(name, mean, best)
            | {
                "paper": _printed(paper.get((name, problem))),
                "reference": bool(suite.rivals) and name not in suite.rivals,
            }
            for name, mean in here.items()
        ],
        "paper": any(where == problem for _, where in paper),
        "published": _published(problem) if suite.published else [],
        "pictures": pictures,
    }


def measure_title(measure: str) -> str:
    """Title of a column of errors."""
    name, _, factor = measure.partition("_")
    return TITLES.get(measure) or f"{TITLES[name]} at {factor} n"


def _figures(
    problem: str,
    suite: Suite,
    means: Means,
    rows: Sequence[Row],
    curves: Sequence[Row],
    folder: Path,
) -> Iterator[tuple[str, Figure]]:
    """Captions and figures of the first seed's runs, and errors over all seeds."""
    leading = next(iter(suite.variants))
    if suite.against:
        label, values = suite.against.label, suite.abscissae
        if along := error_against_setting(means, problem, values, label):
            yield f"Test MAE against {label}; dashed: variants without it.", along
    here = [row for row in curves if row["problem"] == problem]
    if course := error_against_time(here, leading):
        yield "Validation MAE after each epoch, first seed.", course
    if suite.states:
        yield from state_figures(folder, rows)
    rivals = [row for row in rows if row["variant"] in suite.rivals]
    yield from field_figures(folder, rivals or rows)


def _about(here: Mapping[str, SeedMean], steady: bool) -> str | None:
    first = next((mean.first for mean in here.values() if mean.values), None)
    if first is None:
        return None
    points = f"{count_text(first['n_s'])} points"
    known = EQUATIONS.get(first["equation"])
    if steady or (known is not None and known.records == 1):
        return f"{points}, the solution from the coefficient"
    steps = "time steps" if first["n_t"] > 1 else "time step"
    return f"{points}, {first['n_t']} {steps} in and {first['n_t_out']} out"


def _over_best(problem: str, suite: Suite, means: Means) -> str | None:
    """The smallest error of what learns nothing, over that of the best model."""
    trivial = best_of(means, problem, "mae", tuple(TRIVIAL.values()))
    best = best_of(means, problem, "mae", tuple(suite.variants))
    return f"{trivial / best:.2g}" if trivial < math.inf and best < math.inf else None


def _row(
    variant: str, mean: SeedMean, best: Mapping[str, str | None]
) -> dict[str, Any]:
    errors = []
    for measure, leading in best.items():
        value = mean.values.get(measure)
        spread = mean.spread.get(measure, math.nan)
        # Runs of earlier versions may lack an error.
        missing = "–" if mean.values else mean.status
        errors.append(
            {
                "text": missing if value is None else f"{value:.2e}",
                "spread": "" if math.isnan(spread) else f"{spread:.0e}",
                "best": variant == leading,
            }
        )
    known = mean.first
    return {
        "name": variant,
        "errors": errors,
        "epochs": count_text(known["epochs"]),
        "parameters": count_text(known["parameters"]),
        "time": seconds_text(known["seconds_per_epoch"]),
        "memory": bytes_text(known["peak_memory_bytes"]),
        "parts": [
            bytes_text(known[column])
            for column in map(memory_column, PARTS)
            if column in known
        ],
    }


def _printed(entry: Printed | None) -> str:
    """An error of the paper, in brackets where it cannot be right."""
    if entry is None:
        return ""
    text = "OOM" if entry.value is None else f"{entry.value:.2e}"
    return f"({text})" if entry.doubt else text


def _published(problem: str) -> list[dict[str, str]]:
    """What others print of a problem, a row for each figure."""
    return [
        {
            "method": each.method,
            "measure": TITLES[each.measure],
            "value": f"{each.value:.2e}"
            + (f" to {each.highest:.2e}" if each.highest else ""),
            "source": each.source,
        }
        for each in published(problem)
    ]


def mesh_picture(suite: Suite, means: Means) -> dict[str, str] | None:
    """The picture of errors against meshes; None for a suite without meshes."""
    if not suite.meshes:
        return None
    caption = (
        "MAE against the mesh on which test samples are observed, one panel per "
        "problem: at observed points (filled) and at unobserved ones (open), mean and "
        "standard deviation over seeds."
    )
    with styled():
        figure = error_against_mesh(means, suite.meshes)
        return None if figure is None else _shown(caption, figure)


def _shown(caption: str, figure: Figure) -> dict[str, str]:
    picture = Picture("", "errors", caption, figure)
    return embedded(picture, picture.png())


def write_suite_report(
    suite: Suite,
    scale: Scale,
    command: str,
    rows: Sequence[Row],
    folder: Path,
    paper: Mapping[tuple[str, str], Printed] | None = None,
) -> Path:
    """Writes ``report.html``, a page that loads nothing, and two tables beside it.

    They are ``curves.csv`` and ``conditions.csv``: errors in the course of training and
    settings of the first seed's runs.

    Args:
        suite: The suite.
        scale: The scale at which it ran.
        command: The command that makes the page again.
        rows: From :func:`~nfsgeo_benchmarks.suites.results.collect`.
        folder: Folder of the suite.
        paper: Errors in the paper, by variant and problem.
    """
    means, curves = seed_means(rows), collect_curves(rows, folder)
    conditions = collect_conditions(rows, folder)
    write_curves(curves, folder)
    write_conditions(conditions, folder)
    runs = [row for row in rows if row["model"]]
    done = sum(row["status"] == "ok" for row in runs)
    page = template("suite.html.j2", Path(__file__).parent, HERE).render(
        title=suite.title,
        scale=scale.title,
        command=command,
        version=__version__,
        done=done,
        total=len(runs),
        references=suite.references if suite.rivals else (),
        parts=PARTS if suite.memory else (),
        measures=[measure_title(measure) for measure in suite.measures],
        sections=[
            problem_section(
                problem, suite, means, rows, curves, conditions, folder, paper or {}
            )
            for problem in dict.fromkeys(row["problem"] for row in rows)
        ],
        claims=_claims(suite, means),
        overview=mesh_picture(suite, means),
        failures=[row for row in rows if row["message"]],
    )
    path = folder / "report.html"
    write_bytes(path, page.encode())
    return path


def _claims(suite: Suite, means: Means) -> list[dict[str, Any]]:
    """Each claim with its verdict on every problem."""
    shown: dict[str, dict[str, Any]] = {}
    for verdict in judge(suite.claims, means):
        claim = verdict.claim
        new = {"title": claim.title, "at_most": f"{claim.at_most:g}", "verdicts": []}
        shown.setdefault(claim.title, new)["verdicts"].append(
            {
                "problem": verdict.problem,
                "ratio": error_text(verdict.ratio),
                "text": verdict.text,
                "tried": verdict.tried,
            }
        )
    return list(shown.values())
