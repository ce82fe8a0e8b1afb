"""One self-contained page about a suite."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from PIL import Image

from nfsgeo.data.pde import EQUATIONS
from nfsgeo.errors import UserError
from nfsgeo.evaluation.grid_states import PARTS
from nfsgeo.measures import MEASURES
from nfsgeo.report.curves import Curve, curves
from nfsgeo.report.html import RUNS, template
from nfsgeo.report.style import Picture, as_source
from nfsgeo.report.text import bytes_text, count_text, error_text, seconds_text
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_bytes
from nfsgeo_benchmarks.suites.printed_errors import paper_values, published
from nfsgeo_benchmarks.suites.ratios import ratio_interval, ratio_text, read_samples
from nfsgeo_benchmarks.suites.suite import (
    BAND_COLUMNS,
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
    SETTINGS,
    Means,
    Row,
    learns,
    read_table,
    seed_means,
)

TITLES = MEASURES | {
    "rel_l1_last_median": "relative L1, last step, median",
    "mae_unobserved": "MAE, unobserved",
    "rmse_unobserved": "RMSE, unobserved",
    "gmean_nrmse": "geometric mean of nRMSE",
    "nrmse_1": "nRMSE, step 1",
    "nrmse_100": "nRMSE, step 100",
    "diff_begin_0": "Diff before blocks, untrained",
    "diff_begin": "Diff before blocks, trained",
    "diff_end_0": "Diff after blocks, untrained",
    "diff_end": "Diff after blocks, trained",
}


def write_suite_report(folder: Path) -> Path:
    """Draw ``report.html`` from the tables in the folder of a suite.

    It is a page that loads nothing. Pictures of predictions and states are those of
    the runs whose folders are there.
    """
    rows = read_table(folder / RESULTS)
    if not rows or not (folder / ABOUT).exists():
        given, expected = f"{folder}", f"a folder with {RESULTS} and {ABOUT}"
        raise UserError(given, expected, "give the folder of a suite")
    about = json.loads((folder / ABOUT).read_text())
    suite = read_suite(find_suite(about["suite"]))
    paper, means = paper_values(suite), seed_means(rows)
    samples = read_samples(rows, folder, apart=suite.data_seeds)
    page = _Page(suite, means, rows, paper, samples, folder)
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
        scale=shipped_scales()[about["scale"]].title,
        command=about["command"],
        status=[row["status"] for row in rows if learns(row["variant"])],
        paper=bool(paper),
        overview=page.overview(),
        measure=measure_title(suite.measures[0]),
        sections=[page.section(problem) for problem in means.first.index.unique(0)],
        failures=_table(failures),
    )
    path = folder / "report.html"
    write_bytes(path, text.encode())
    return path


def measure_title(measure: str) -> str:
    """Title of a column of errors."""
    name, _, factor = measure.partition("_")
    return TITLES.get(measure) or f"{TITLES[name]} at {factor} n"


@dataclass(frozen=True)
class _Page:
    suite: Suite
    means: Means
    rows: Sequence[Row]
    paper: Mapping[tuple[str, str], str]
    samples: pd.DataFrame
    folder: Path

    def overview(self) -> pd.DataFrame:
        """Errors of every variant on every problem, by the suite's first measure."""
        errors = self.means.mean.reindex(columns=[self.suite.measures[0]])
        return errors.iloc[:, 0].dropna().unstack("problem", sort=False)

    def section(self, problem: str) -> dict[str, Any]:
        """Values for the template's section about a problem."""
        suite, first = self.suite, self.means.first.loc[problem]
        done = [
            row
            for row in self.rows
            if (row["problem"], row["seed"], row["status"]) == (problem, 0, "ok")
            and learns(row["variant"])
        ]
        settings = first.loc[first["status"] == "ok", [*SETTINGS]]
        settings = settings.dropna(how="all")
        settings = settings.map(lambda v: v if isinstance(v, str) else f"{v:g}")
        alike = settings.nunique() == 1
        trivial, best = (
            self.means.errors(problem, [*names], suite.measures[0]).min()
            for names in (TRIVIAL.values(), suite.variants)
        )
        return {
            "name": problem,
            "waiting": list(first.index) if set(first["status"]) == {"missing"} else [],
            "about": _about(done[0], suite) if done else "",
            "errors": self.errors(problem),
            "meshes": self.further(problem, self.mesh_titles()),
            "bands": self.further(problem, BAND_COLUMNS),
            "measure": measure_title(suite.measures[0]),
            "trivial": f"{trivial / best:.3g}".replace("nan", ""),
            "alike": [f"{k}={settings[k].iloc[0]}" for k in SETTINGS if alike[k]],
            "settings": settings.loc[:, ~alike] if len(settings) > 1 else settings[:0],
            "published": _published(problem) if suite.published else pd.DataFrame(),
            "pictures": list(self.pictures(problem, done)),
        }

    def errors(self, problem: str) -> pd.DataFrame:
        """Errors, sizes and costs of all variants, as text."""
        suite, means, first = self.suite, self.means, self.means.first.loc[problem]
        table = pd.DataFrame(index=first.index, dtype=object)
        for measure in suite.measures:
            values = means.errors(problem, [*first.index], measure)
            spread = means.std.reindex(columns=[measure]).loc[problem, measure]
            best = means.leader(problem, suite.rivals, measure)
            column = []
            for variant, status in first["status"].items():
                text = escape(error_text(values[variant]))
                if math.isnan(values[variant]):
                    text = escape("–" if status == "ok" else status)
                if variant == best:
                    text = Markup("<b>{}</b>").format(text)
                if not math.isnan(std := spread[variant]):
                    text += Markup('<span class="spread"> ± {:.1g}</span>').format(std)
                column.append(text)
            cells = pd.Series(column, first.index, dtype=object)  # keeps markup
            table[measure_title(measure)] = cells
            if measure == "mae" and any(where == problem for where, _ in self.paper):
                printed = [self.paper.get((problem, name), "") for name in first.index]
                table["paper's"] = printed
            if measure == suite.measures[0]:
                table[f"over {suite.base}"] = self.ratios(problem, values)
        for name in ("epochs", "parameters"):
            table[name] = first[name].map(count_text)
        seconds = first["seconds_per_epoch"].astype(float)
        table["time per epoch"] = seconds.map(seconds_text)
        table["training"] = (seconds * first["epochs"].astype(float)).map(seconds_text)
        table["peak memory"] = first["peak_memory_bytes"].map(bytes_text)
        for part in PARTS if suite.memory else ():
            table[part] = first.get(f"{part}_bytes", seconds * math.nan).map(bytes_text)
        return table

    def ratios(self, problem: str, errors: pd.Series[float]) -> list[str]:
        """Format errors over that of the suite's first variant.

        Those of MAE have an interval where the errors of test samples are known.
        """
        base, texts = self.suite.base, []
        for variant, ratio in (errors / errors.get(base, math.nan)).items():
            interval = None
            if variant != base and self.suite.measures[0] == "mae":
                interval = ratio_interval(self.samples, problem, str(variant), base)
            texts.append(ratio_text(ratio, interval))
        return texts

    def mesh_titles(self) -> dict[str, str]:
        """Titles of the columns of MAE on every mesh."""
        return {
            f"{prefix}_{mesh}": mesh + title
            for mesh in ("equispaced", *self.suite.meshes)
            for prefix, title in (("mae", ""), ("mae_unobserved", ", unobserved"))
        }

    def further(self, problem: str, titles: Mapping[str, str]) -> pd.DataFrame:
        """Format the columns that exist among ``titles`` as rows of a table."""
        here = self.means.mean.loc[problem]
        here = here[[name for name in titles if name in here]].rename(columns=titles)
        table = here.dropna(how="all").dropna(axis="columns", how="all").T
        return table.map(lambda value: "–" if math.isnan(value) else f"{value:.3g}")

    def pictures(self, problem: str, done: Sequence[Row]) -> Iterator[Any]:
        """Names, captions and sources of the pictures of a problem."""
        table = pd.DataFrame(read_table(self.folder / CURVES))
        here = table[table["problem"] == problem] if len(table) else table
        if len(here):
            lines = {}
            runs = here.groupby("variant", sort=False)
            for look, (variant, curve) in zip(cycle(RUNS), runs, strict=False):
                if variant == self.suite.base:
                    look = {**look, "zorder": 3, "lw": 2.5}
                seconds = 60 * curve["minutes"].astype(float)
                lines[str(variant)] = seconds, curve["valid_mae"], look
            caption = "The curves show the validation MAE of the first seed."
            draw = partial(_over_time, lines)
            yield Picture(f"curves-{problem}", "errors", caption, draw)
        rivals = [row for row in done if row["variant"] in self.suite.rivals] or done
        for row in sorted(rivals, key=lambda row: row[self.suite.measures[0]])[:2]:
            figures = RunPaths(self.folder / row["folder"]).figures
            for path in sorted(figures.glob("fields-*.png"))[:1]:
                name = row["variant"]
                caption = f"{name} has one of the smallest errors of test samples."
                with Image.open(path) as image:
                    source = as_source(image.convert("RGB"))
                about = {"name": f"{problem}-{name}", "caption": caption}
                yield {**about, "source": source}


def _table(rows: Mapping[Any, Any]) -> pd.DataFrame:
    return pd.DataFrame.from_dict(rows, orient="index", dtype=object)  # keeps markup


def _over_time(lines: Mapping[str, Curve]) -> Figure:
    """Validation errors over the seconds of training."""
    figure = curves({"validation MAE": lines}, "seconds of training")
    axis = figure.axes[0].xaxis
    figure.axes[0].set_xscale("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")
    return figure


def _about(row: Row, suite: Suite) -> str:
    equation = EQUATIONS.get(row["equation"])
    steady = suite.problems[row["problem"]].settings.get("data.n_in") == 0
    if steady or (equation is not None and equation.num_steps == 1):
        return f"{count_text(row['n_s'])} points, the solution from the coefficient"
    steps = f"{row['n_t']} time step{'s' if row['n_t'] > 1 else ''} in"
    return f"{count_text(row['n_s'])} points, {steps}, {row['n_t_out']} out"


def _published(problem: str) -> pd.DataFrame:
    """Published errors as text, a row for each method."""
    table = published(problem).set_index("method").drop(columns="problem")
    ends = zip(table.pop("value"), table.pop("highest"), strict=True)
    errors = [" to ".join(error_text(float(e)) for e in pair if e) for pair in ends]
    table["measure"] = table["measure"].map(TITLES)
    table.insert(1, "error", errors)
    return table
