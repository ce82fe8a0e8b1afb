"""One self-contained page about a suite."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from PIL import Image

from nfsgeo.data.pde import EQUATIONS
from nfsgeo.errors import UserError
from nfsgeo.evaluation.interpolation_memory import PARTS
from nfsgeo.measures import MEASURES
from nfsgeo.report.html import HERE, template
from nfsgeo.report.style import COLOURS, styled
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_bytes
from nfsgeo.version import __version__
from nfsgeo_benchmarks.sources import Printed, published
from nfsgeo_benchmarks.suites.results import SETTINGS
from nfsgeo_benchmarks.suites.runs import paper_values
from nfsgeo_benchmarks.suites.suite import (
    TRIVIAL,
    Suite,
    find_suite,
    read_suite,
    shipped_scales,
)
from nfsgeo_benchmarks.suites.tables import (
    ABOUT,
    CURVES,
    RESULTS,
    Means,
    Row,
    judge,
    learns,
    read_table,
    seed_means,
)

TITLES = MEASURES | {
    "rel_l1_last_median": "relative L1, last step, median",
    "diff_begin_0": "Diff before blocks, untrained",
    "diff_begin": "Diff before blocks, trained",
    "diff_end_0": "Diff after blocks, untrained",
    "diff_end": "Diff after blocks, trained",
}
SIZE = (4.4, 3.0)  # inches; text large enough for a phone
Pictures = Iterator[tuple[str, Figure | Path]]


def write_suite_report(folder: Path) -> Path:
    """Draws ``report.html`` from the tables in the folder of a suite.

    It is a page that loads nothing. Pictures of predictions and states are those of
    the runs whose folders are there.

    Raises:
        UserError: The folder has no such tables.
    """
    rows = read_table(folder / RESULTS)
    if not rows or not (folder / ABOUT).exists():
        given, expected = f"{folder}", f"a folder with {RESULTS} and {ABOUT}"
        raise UserError(given, expected, "give the folder of a suite")
    about = json.loads((folder / ABOUT).read_text())
    scales, curves = shipped_scales(), read_table(folder / CURVES)
    suite = read_suite(find_suite(about["suite"]))
    means, paper = seed_means(rows), paper_values(suite, scales)
    runs = [row for row in rows if learns(row["variant"])]
    claims: dict[str, list[list[Any]]] = {}
    for each in judge(suite.claims, means):
        title = f"{each.claim.title}: at most {each.claim.at_most:g}"
        ratio = "–" if math.isnan(each.ratio) else f"{each.ratio:.3g}"
        text = each.text
        if text == "does not hold":
            text = Markup("<b>{}</b>").format(text)
        row = [each.problem, ratio, text, each.tried or ""]
        claims.setdefault(title, []).append(row)
    page = template("suite.html.j2", Path(__file__).parent, HERE).render(
        title=suite.title,
        scale=scales[about["scale"]].title,
        command=about["command"],
        version=__version__,
        done=sum(row["status"] == "ok" for row in runs),
        total=len(runs),
        references=suite.references if suite.rivals else (),
        paper=bool(paper),
        published=suite.published,
        claims={title: _html(*rows) for title, rows in claims.items()},
        sections=[
            _section(problem, suite, means, rows, curves, folder, paper)
            for problem in dict.fromkeys(row["problem"] for row in rows)
        ],
        failures=_html(
            *(
                [
                    f"{r['problem']} {r['variant']}, seed {r['seed']}",
                    r["status"],
                    r["message"],
                ]
                for r in rows
                if r["message"]
            )
        ),
    )
    path = folder / "report.html"
    write_bytes(path, page.encode())
    return path


def _section(
    problem: str,
    suite: Suite,
    means: Means,
    rows: Sequence[Row],
    curves: Sequence[Row],
    folder: Path,
    paper: Mapping[tuple[str, str], Printed],
) -> dict[str, Any]:
    """What the template shows of a problem."""
    first = means.first.loc[problem]
    here = [row for row in rows if row["problem"] == problem and row["seed"] == 0]
    done = [row for row in here if row["status"] == "ok" and learns(row["variant"])]
    settings = first.loc[first["status"] == "ok", list(SETTINGS)].dropna(how="all")
    settings = settings.map(_text)
    alike = settings.nunique() == 1
    trivial = means.least(problem, list(TRIVIAL.values()))
    best = means.least(problem, list(suite.variants))
    others = published(problem).drop(columns="problem") if suite.published else None
    return {
        "name": problem,
        "waiting": [] if (first["status"] != "missing").any() else list(first.index),
        "about": _about(done[0], suite) if done else "",
        "errors": _error_table(problem, suite, means, paper),
        "meshes": _mesh_table(problem, suite, means) if suite.meshes else "",
        "trivial": "" if math.isnan(trivial / best) else f"{trivial / best:.2g}",
        "alike": [f"{k}={settings[k].iloc[0]}" for k in SETTINGS if alike[k]],
        "settings": _frame_html(settings.loc[:, ~alike]) if len(settings) > 1 else "",
        "published": "" if others is None else _published(others),
        "pictures": _sources(_pictures(problem, suite, done, curves, folder)),
    }


def measure_title(measure: str) -> str:
    """Title of a column of errors."""
    name, _, factor = measure.partition("_")
    return TITLES.get(measure) or f"{TITLES[name]} at {factor} n"


def _error_table(
    problem: str,
    suite: Suite,
    means: Means,
    paper: Mapping[tuple[str, str], Printed],
) -> Markup:
    best = {m: means.leader(problem, suite.rivals, m) for m in suite.measures}
    rows = {}
    for variant, first in means.first.loc[problem].iterrows():
        missing = "–" if first["status"] == "ok" else first["status"]
        row: dict[str, Any] = {}
        for measure in suite.measures:
            value = means.error(problem, variant, measure)
            text = missing if math.isnan(value) else f"{value:.2e}"
            cell = (
                Markup("<b>{}</b>").format(text) if variant == best[measure] else text
            )
            if (
                not math.isnan(value)
                and means.std.notna().at[(problem, variant), measure]
            ):
                spread = f" ± {means.std.at[(problem, variant), measure]:.0e}"
                cell += Markup('<span class="spread">{}</span>').format(spread)
            row[measure_title(measure)] = cell
            if measure == "mae" and any(where == problem for _, where in paper):
                row["paper's"] = _printed(paper.get((variant, problem)))
        row["epochs"], row["parameters"] = map(_count, first[["epochs", "parameters"]])
        row["time per epoch"] = _count(first["seconds_per_epoch"], "{:.3g} s")
        row["peak memory"] = _mebibytes(first["peak_memory_bytes"])
        for part in PARTS if suite.memory else ():
            row[part] = _mebibytes(first.get(f"{part}_bytes"))
        rows[variant] = row
    return _frame_html(pd.DataFrame.from_dict(rows, orient="index", dtype=object))


def _mesh_table(problem: str, suite: Suite, means: Means) -> Markup:
    """MAE on every mesh, at observed and at unobserved points."""
    here = means.mean.loc[problem]
    found = {}
    for mesh in ("equispaced", *suite.meshes):
        for prefix, title in (("mae", ""), ("mae_unobserved", ", unobserved")):
            if (name := f"{prefix}_{mesh}") in here and here[name].notna().any():
                found[mesh + title] = here[name]
    table = pd.DataFrame(found).dropna(how="all").T
    return _frame_html(table.map("{:.2e}".format).replace("nan", "–"))


def _about(row: Row, suite: Suite) -> str:
    equation = EQUATIONS.get(row["equation"])
    steady = suite.problems[row["problem"]].settings.get("data.n_in") == 0
    if steady or (equation is not None and equation.num_steps == 1):
        return f"{_count(row['n_s'])} points, the solution from the coefficient"
    steps = "time steps" if row["n_t"] > 1 else "time step"
    return f"{_count(row['n_s'])} points, {row['n_t']} {steps} in, {row['n_t_out']} out"


def _printed(entry: Printed | None) -> str:
    """An error of the paper, in brackets where it cannot be right."""
    if entry is None:
        return ""
    text = "OOM" if entry.value is None else f"{entry.value:.2e}"
    return f"({text})" if entry.doubt else text


def _published(table: pd.DataFrame) -> Markup:
    table = table.set_index("method").rename_axis(None)
    value = table.pop("value").astype(float).map("{:.2e}".format)
    highest = pd.to_numeric(table.pop("highest")).map(" to {:.2e}".format)
    table["measure"] = table["measure"].map(TITLES)
    table.insert(1, "error", value + highest.where(~highest.str.contains("nan"), ""))
    return _frame_html(table)


def _count(value: Any, form: str = "{:,.0f}") -> str:
    return "–" if pd.isna(value) else form.format(value).replace(",", "\u202f")


def _mebibytes(value: Any) -> str:
    return "–" if pd.isna(value) else f"{value / 2**20:.4g} MiB"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _html(*rows: Sequence[Any]) -> Markup:
    frame = pd.DataFrame([r[1:] for r in rows], [r[0] for r in rows], dtype=object)
    return _frame_html(frame, header=False) if rows else Markup()


def _frame_html(frame: pd.DataFrame, *, header: bool = True) -> Markup:
    """A table whose texts are escaped, but for those that are markup already."""
    if frame.empty:
        return Markup()
    shown = frame.map(lambda cell: str(escape(cell)))
    shown = shown.set_axis(frame.index.map(escape)).rename_axis(None)
    with pd.option_context("display.max_colwidth", None):
        made = shown.to_html(
            header=header, escape=False, border=0, classes="numbers narrow"
        )
    return Markup(made)


def _sources(pictures: Pictures) -> list[dict[str, str]]:
    """Pictures as the page holds them: WebP takes a tenth of the size of PNG."""
    found = []
    with styled():
        for caption, picture in pictures:
            buffer = io.BytesIO()
            if isinstance(picture, Figure):
                picture.savefig(buffer, format="webp", dpi=160)
            else:
                with Image.open(picture) as image:
                    image.convert("RGB").save(buffer, "WEBP", quality=85)
            source = base64.b64encode(buffer.getvalue()).decode()
            source = f"data:image/webp;base64,{source}"
            found.append({"caption": caption, "source": source})
    return found


def _pictures(
    problem: str,
    suite: Suite,
    done: Sequence[Row],
    curves: Sequence[Row],
    folder: Path,
) -> Pictures:
    """Captions and pictures of a problem."""
    here = [row for row in curves if row["problem"] == problem]
    if here:
        figure = error_against_time(here, next(iter(suite.variants)))
        yield "Validation MAE after each epoch, first seed.", figure
    rivals = [row for row in done if row["variant"] in suite.rivals] or done
    for row in sorted(rivals, key=lambda row: row["mae"])[:2]:
        drawn = sorted(RunPaths(folder / row["folder"]).figures.glob("fields-*.png"))
        if drawn:
            caption = f"A test sample, by {row['variant']}: one of the smallest errors."
            yield caption, drawn[0]


def error_against_time(curves: Sequence[Row], leading: str) -> Figure:
    """Validation MAE of one problem against minutes, the leading variant in front."""
    figure = Figure((1.4 * SIZE[0], SIZE[1]), layout="constrained")
    ax = figure.subplots()
    styles = cycle(["-", "--", ":", "-."])
    for variant, of in pd.DataFrame(curves).groupby("variant", sort=False):
        look: dict[str, Any] = {"ls": next(styles)}
        if variant == leading:
            look = {"color": COLOURS["model"], "zorder": 3, "lw": 2.5}
        look["marker"] = "o" if len(of) < 3 else None
        ax.plot(of["minutes"], of["valid_mae"], label=str(variant), **look)
    ax.set(xlabel="minutes of training", ylabel="validation MAE")
    ax.set(xscale="log", yscale="log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.grid(True)
    figure.legend(loc="outside right upper", fontsize=7)
    return figure
