"""One self-contained page about a suite."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from nfsgeo.data.pde import EQUATIONS, find_equation
from nfsgeo.errors import UserError
from nfsgeo.evaluation.interpolation_memory import PARTS
from nfsgeo.measures import MEASURES
from nfsgeo.report.figures import curves
from nfsgeo.report.html import RUNS, template
from nfsgeo.report.style import Picture, as_source, styled
from nfsgeo.report.text import bytes_text, count_text, seconds_text
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_bytes
from nfsgeo_benchmarks.sources import printed, published
from nfsgeo_benchmarks.suites.results import SETTINGS_COLUMNS
from nfsgeo_benchmarks.suites.runs import DataFiles, runs_of
from nfsgeo_benchmarks.suites.suite import (
    TRIVIAL,
    Scale,
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
    "mae_unobserved": "MAE, unobserved",
    "rmse_unobserved": "RMSE, unobserved",
    "diff_begin_0": "Diff before blocks, untrained",
    "diff_begin": "Diff before blocks, trained",
    "diff_end_0": "Diff after blocks, untrained",
    "diff_end": "Diff after blocks, trained",
}


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
    about, scales = json.loads((folder / ABOUT).read_text()), shipped_scales()
    suite = read_suite(find_suite(about["suite"]))
    paper, means = paper_values(suite, scales), seed_means(rows)
    page = _Page(suite, means, rows, paper, folder)
    failures = {
        f"{row['problem']} {row['variant']}, seed {row['seed']}": [
            row["status"],
            row["message"],
        ]
        for row in rows
        if row["message"]
    }
    text = template("suite.html.j2", Path(__file__).parent).render(
        suite=suite,
        scale=scales[about["scale"]].title,
        command=about["command"],
        status=[row["status"] for row in rows if learns(row["variant"])],
        paper=bool(paper),
        claims=_claims(suite, means),
        sections=[page.section(problem) for problem in means.first.index.unique(0)],
        failures=_table(failures),
    )
    path = folder / "report.html"
    write_bytes(path, text.encode())
    return path


def paper_values(
    suite: Suite, scales: Mapping[str, Scale]
) -> dict[tuple[str, str], str]:
    """The MAE that the paper prints, as text by problem and variant of a suite.

    None for other equations than the paper's, such as those of another viscosity.
    """
    entries: dict[tuple[str, str], str] = {}
    runs = runs_of(suite, "paper", scales) if "paper" in suite.scales else []
    for run in {run.problem: run for run in runs}.values():
        if isinstance(run.data, DataFiles) or run.data.options:
            continue
        equation = find_equation(run.data.equation)
        side = run.settings.get("data.grid")
        steady = equation.num_steps == 1
        found = printed(
            equation.name,
            n_s=side**equation.domain.dim
            if side
            else run.settings.get("data.points", 0),
            n_t=0 if steady else run.settings.get("data.n_in", 10),
            n_t_out=1 if steady else run.settings.get("data.n_out", 10),
            grid=side is not None,
        )
        entries |= {(run.problem, name): text for name, text in found.items()}
    return entries


def measure_title(measure: str) -> str:
    """Title of a column of errors."""
    name, _, factor = measure.partition("_")
    return TITLES.get(measure) or f"{TITLES[name]} at {factor} n"


def _claims(suite: Suite, means: Means) -> dict[str, pd.DataFrame]:
    """A table for each claim: problems, ratios, and whether it holds."""
    found: dict[str, dict[str, list[str]]] = {}
    for each in judge(suite.claims, means):
        title = f"{each.claim.title}: at most {each.claim.at_most:g}"
        ratio = "–" if math.isnan(each.ratio) else f"{each.ratio:.3g}"
        row = [ratio, each.text, ""]
        if each.text == "does not hold":
            tried = each.claim.tried.get(each.problem, "")
            row[1:] = Markup("<b>does not hold</b>"), tried
        found.setdefault(title, {})[each.problem] = row
    return {title: _table(rows) for title, rows in found.items()}


@dataclass(frozen=True)
class _Page:
    suite: Suite
    means: Means
    rows: Sequence[Row]
    paper: Mapping[tuple[str, str], str]
    folder: Path

    def section(self, problem: str) -> dict[str, Any]:
        """What the template shows of a problem."""
        suite, means, first = self.suite, self.means, self.means.first.loc[problem]
        done = [
            row
            for row in self.rows
            if (row["problem"], row["seed"], row["status"]) == (problem, 0, "ok")
            and learns(row["variant"])
        ]
        settings = first.loc[first["status"] == "ok", SETTINGS_COLUMNS].dropna(
            how="all"
        )
        settings = settings.map(lambda v: v if isinstance(v, str) else f"{v:g}")
        alike = settings.nunique() == 1
        trivial = means.least(problem, list(TRIVIAL.values()))
        trivial /= means.least(problem, list(suite.variants))
        return {
            "name": problem,
            "waiting": list(first.index) if set(first["status"]) == {"missing"} else [],
            "about": _about(done[0], suite) if done else "",
            "errors": self.errors(problem),
            "meshes": self.meshes(problem),
            "trivial": "" if math.isnan(trivial) else f"{trivial:.2g}",
            "alike": [
                f"{k}={settings[k].iloc[0]}" for k in SETTINGS_COLUMNS if alike[k]
            ],
            "settings": settings.loc[:, ~alike].iloc[
                : len(settings) if len(settings) > 1 else 0
            ],
            "published": _published(problem) if suite.published else pd.DataFrame(),
            "pictures": list(self.pictures(problem, done)),
        }

    def errors(self, problem: str) -> pd.DataFrame:
        """Errors, sizes and costs of all variants, as text."""
        suite, means, rows = self.suite, self.means, {}
        of_paper = any(problem == where for where, _ in self.paper)
        best = {m: means.leader(problem, suite.rivals, m) for m in suite.measures}
        for variant, first in means.first.loc[problem].iterrows():
            unknown = "–" if first["status"] == "ok" else first["status"]
            row: dict[str, str] = {}
            for measure in suite.measures:
                value = means.error(problem, variant, measure)
                text = escape(unknown if math.isnan(value) else f"{value:.2e}")
                if variant == best[measure]:
                    text = Markup("<b>{}</b>").format(text)
                if measure in means.std and not math.isnan(
                    spread := means.std.at[(problem, variant), measure]
                ):
                    text += Markup('<span class="spread"> ± {:.0e}</span>').format(
                        spread
                    )
                row[measure_title(measure)] = text
                if measure == "mae" and of_paper:
                    row["paper's"] = self.paper.get((problem, variant), "")
            row |= {name: count_text(first[name]) for name in ("epochs", "parameters")}
            row["time per epoch"] = seconds_text(first["seconds_per_epoch"])
            spent = first[["epochs", "seconds_per_epoch"]].astype(float)
            row["training"] = seconds_text(spent.prod(skipna=False))
            row["peak memory"] = bytes_text(first["peak_memory_bytes"])
            for part in PARTS if suite.memory else ():
                row[part] = bytes_text(first.get(f"{part}_bytes"))
            rows[variant] = row
        return _table(rows)

    def meshes(self, problem: str) -> pd.DataFrame:
        """MAE on every mesh, at observed and at unobserved points, as text."""
        here = self.means.mean.loc[problem]
        titles = {
            f"{prefix}_{mesh}": mesh + title
            for mesh in ("equispaced", *self.suite.meshes)
            for prefix, title in (("mae", ""), ("mae_unobserved", ", unobserved"))
        }
        here = here[[name for name in titles if name in here]].rename(columns=titles)
        table = here.dropna(how="all").dropna(axis="columns", how="all").T
        return table.map(lambda value: "–" if math.isnan(value) else f"{value:.2e}")

    def pictures(self, problem: str, done: Sequence[Row]) -> Iterator[Any]:
        """Names, captions and sources of the pictures of a problem."""
        table = pd.DataFrame(read_table(self.folder / CURVES))
        here = table[table["problem"] == problem] if len(table) else table
        if len(here):
            lines = {}
            runs = here.groupby("variant", sort=False)
            for look, (variant, of) in zip(cycle(RUNS), runs, strict=False):
                if variant == next(iter(self.suite.variants)):
                    look = {**look, "zorder": 3, "lw": 2.5}
                lines[str(variant)] = of["minutes"], of["valid_mae"], look
            with styled():
                figure = curves({"validation MAE": lines}, "minutes of training")
                figure.axes[0].set_xscale("log")
            caption = "Validation MAE after each epoch, first seed."
            yield Picture(f"curves-{problem}", "errors", caption, figure)
        rivals = [row for row in done if row["variant"] in self.suite.rivals] or done
        for row in sorted(rivals, key=lambda row: row["mae"])[:2]:
            figures = RunPaths(self.folder / row["folder"]).figures
            for path in sorted(figures.glob("fields-*.png"))[:1]:
                name = row["variant"]
                caption = f"A test sample, by {name}: one of the smallest errors."
                source = as_source(path.read_bytes())
                about = {"name": f"{problem}-{name}", "caption": caption}
                yield {**about, "source": source}


def _table(rows: Mapping[Any, Any]) -> pd.DataFrame:
    return pd.DataFrame.from_dict(rows, orient="index", dtype=object)  # keeps markup


def _about(row: Row, suite: Suite) -> str:
    equation = EQUATIONS.get(row["equation"])
    steady = suite.problems[row["problem"]].settings.get("data.n_in") == 0
    if steady or (equation is not None and equation.num_steps == 1):
        return f"{count_text(row['n_s'])} points, the solution from the coefficient"
    steps = f"{row['n_t']} time step{'s' if row['n_t'] > 1 else ''} in"
    return f"{count_text(row['n_s'])} points, {steps}, {row['n_t_out']} out"


def _published(problem: str) -> pd.DataFrame:
    """What others printed, as text by method."""
    table = published(problem).set_index("method").drop(columns="problem")
    value = table.pop("value").astype(float).map("{:.2e}".format)
    highest = pd.to_numeric(table.pop("highest")).map(" to {:.2e}".format)
    table["measure"] = table["measure"].map(TITLES)
    table.insert(1, "error", value + highest.where(~highest.str.contains("nan"), ""))
    return table
