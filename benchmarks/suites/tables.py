"""Tables of results: from the folders of runs, or else from the tables themselves.

So a suite goes on from its tables: on another machine, or without the folders of its
runs, which hold checkpoints and predictions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nfsgeo.data.pde import find_equation
from nfsgeo.evaluation import kept_states, relative_difference
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_bytes, write_json, write_rows
from nfsgeo.training.trainer import read_history
from nfsgeo_benchmarks import shipped_suites
from nfsgeo_benchmarks.suites.suite import BANDS, TRIVIAL, Suite

if TYPE_CHECKING:
    from nfsgeo_benchmarks.suites.runs import Run

RESULTS, CURVES, CHOICES = "results.csv", "curves.csv", "tuned.csv"
SAMPLES = "samples.csv"  # MAE of each run, by its folder, on each test sample
ABOUT = "suite.json"  # what the tables of a folder are of
# In the folder of a run: what it has come to, and states of its network.
RESULT, STATES = "result.json", "states"

OF_SUMMARY = (
    *("n_s", "n_t", "n_t_out", "epochs"),
    *("parameters", "seconds_per_epoch", "cpu_seconds", "peak_memory_bytes"),
)
COLUMNS = (
    *("problem", "variant", "model", "equation", *OF_SUMMARY[:4], "seed"),
    *("mae", "rmse", "rel_l2", "rel_l1", "rel_l1_last_median"),
    *(*OF_SUMMARY[4:], "status", "message", "folder"),
)
# Settings of training that are not the model's; each is a column, too.
SETTINGS = (
    *("model.prediction", "data.point_sets", "data.query_points", "data.batch_size"),
    *("loss.name", "loss.weighting", "optimiser.name", "optimiser.lr"),
    *("optimiser.weight_decay", "optimiser.schedule", "trainer.epochs"),
)
# How the names of the columns to average begin.
ERRORS = ("mae", "rmse", "rel_l", "diff", "gmean", "nrmse", *BANDS)

Row = Mapping[str, Any]


def read_table(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a table, None in empty cells; no rows without a file."""
    if not path.exists():
        return []
    table = pd.read_csv(path, dtype_backend="numpy_nullable")
    return table.astype(object).where(table.notna(), None).to_dict("records")


def result_of(run: Run, folder: Path) -> dict[str, Any]:
    """The result of a run, with an empty row if it has not ended in ``folder``."""
    path = folder / "runs" / run.name / RESULT
    return json.loads(path.read_text()) if path.exists() else {"row": {}}


def finished(runs: Iterable[Run], folder: Path) -> set[str]:
    """Names of the runs with results, in their folders or in a table of ``folder``."""
    measures = {RESULTS: ("mae", "gmean_nrmse"), CHOICES: ("valid_rmse",)}
    tabulated = {
        row["folder"]
        for table, names in measures.items()
        for row in read_table(folder / table)
        if any(row.get(name) is not None for name in names)
    }
    return {
        run.name
        for run in runs
        if f"runs/{run.name}" in tabulated
        or result_of(run, folder)["row"].get("status") == "ok"
    }


def collect(runs: Sequence[Run], folder: Path) -> list[dict[str, Any]]:
    """A row for each run, and after those of a problem and seed the references.

    Columns are :data:`COLUMNS` and :data:`SETTINGS`, with a gap for what is not
    known, and those that keys of the suite add, such as ``mae_half``, ``kernel_bytes``
    or ``crps_gaps``, see ``docs/extending/suite.md``. The references are those of the
    first of the runs with the most of them. ``status`` is ``ok``, ``failed``, ``OOM``
    or ``missing``.
    """
    table, rows = read_table(folder / RESULTS), list[dict[str, Any]]()
    earlier = {row["folder"]: row for row in table if row["status"] == "ok"}
    empty = dict.fromkeys((*COLUMNS, *SETTINGS)) | {"status": "missing"}
    for at, group in groupby(runs, key=lambda run: (run.problem, run.seed)):
        references: list[dict[str, Any]] = []
        for run in group:
            result, name = result_of(run, folder), f"runs/{run.name}"
            place: dict[str, Any] = {"problem": run.problem, "seed": run.seed}
            place["equation"] = run.data.equation
            row = empty | place | {"variant": run.variant, "folder": name}
            row["model"] = run.settings["model.name"]
            new = result["row"]
            row |= new if new.get("status") == "ok" else earlier.get(name, new)
            if run.states and new.get("status") == "ok":
                row |= _differences(run, runs, folder)
            rows.append(row)
            references = max(references, result.get("references", ()), key=len)
        rows += [empty | place | row for row in references] or [
            row
            for row in table
            if (row["problem"], row["seed"]) == at and not learns(row["variant"])
        ]
    return rows


def write_tables(
    suite: Suite, runs: Sequence[Run], folder: Path, scale: str, command: str
) -> None:
    """Write the tables from which the report is drawn, ``results.csv`` and others.

    ``curves.csv`` has the errors of the first seed's runs in the course of training:
    ``minutes`` are those up to the end of the epoch, ``valid_mae`` is the MAE on
    validation samples. ``samples.csv`` has the MAE of each run, by its folder, on each
    test sample; their mean is that of ``results.csv``. Of runs without a folder the
    rows of both stay as they are. ``suite.json`` says what the tables are about.

    Args:
        suite: The suite; one that is not shipped is stored by the path of its file.
        runs: Its runs.
        folder: Where the folders of runs are, and the tables are written.
        scale: Name of the scale.
        command: The command that makes the tables again.
    """
    rows, path = collect(runs, folder), suite.path
    assert path is not None
    shipped = path == shipped_suites().get(path.stem)
    about = {
        "suite": path.stem if shipped else str(path.absolute()),
        "scale": scale,
        "command": command,
    }
    columns = dict.fromkeys(name for row in rows for name in row)
    write_rows(folder / RESULTS, list(columns), rows)
    write_json(folder / ABOUT, about)
    names = ["problem", "variant", "epoch", "minutes", "valid_mae"]
    earlier = pd.DataFrame(read_table(folder / CURVES), columns=names)
    curves = [earlier[:0]]
    stored = {row.pop("folder"): row for row in read_table(folder / SAMPLES)}
    samples: dict[str, Row] = {}
    for row in rows:
        if row["status"] != "ok" or not learns(row["variant"]):
            continue
        paths = RunPaths(folder / row["folder"])
        samples[row["folder"]] = stored.get(row["folder"], {})
        if paths.evaluation.exists():
            with np.load(paths.evaluation, allow_pickle=False) as arrays:
                errors = arrays.get("mae_by_sample", ())  # none of earlier versions
            samples[row["folder"]] = {str(i): error for i, error in enumerate(errors)}
        if row["seed"] == 0:
            keys = {name: row[name] for name in ("problem", "variant")}
            curve = pd.DataFrame(read_history(paths.metrics))
            if len(curve):
                curve = curve.assign(minutes=curve["seconds"].cumsum() / 60, **keys)
            else:
                curve = earlier[(earlier[[*keys]] == pd.Series(keys)).all(axis=1)]
            curves.append(curve[names])
    table = pd.concat(curves).astype({"minutes": float, "valid_mae": float})
    text = table.to_csv(index=False, float_format="%.4g")
    write_bytes(folder / CURVES, text.encode())
    table = pd.DataFrame.from_dict(samples, orient="index").dropna(how="all")
    text = table.rename_axis("folder").to_csv(float_format="%.4g")
    write_bytes(folder / SAMPLES, text.encode())


def _differences(run: Run, runs: Sequence[Run], folder: Path) -> dict[str, float]:
    """Differences of a run's states from those of all other finished variants.

    Before training and after it, before the blocks and after them; the mean over runs
    is the paper's Diff.
    """
    alike = [
        other
        for other in runs
        if (other.problem, other.seed) == (run.problem, run.seed)
        and other.variant != run.variant
        and result_of(other, folder)["row"].get("status") == "ok"
    ]
    if not alike:
        return {}
    states = [kept_states(folder / "runs" / r.name / STATES) for r in (run, *alike)]
    epochs = set.intersection(*map(set, states))
    differences = {}
    for when, epoch in (("_0", min(epochs)), ("", max(epochs))):
        first, *others = (by_epoch[epoch] for by_epoch in states)
        for place in ("begin", "end"):
            name, theirs = f"diff_{place}{when}", [other[place] for other in others]
            differences[name] = relative_difference(first[place], theirs)
    return differences


def write_choices(
    suite: Suite, runs: Sequence[Run], folder: Path
) -> list[dict[str, Any]]:
    """Write ``tuned.csv``: a row for each trial, and which of them are chosen.

    The smallest validation RMSE of the epochs counts. The best finished trial of a
    variant on a problem is its choice for all problems in as many space dimensions.
    Returns the rows of the file.
    """
    assert suite.search is not None
    earlier = {row["folder"]: row for row in read_table(folder / CHOICES)}
    rows = []
    for run in runs:
        name, new = f"runs/{run.name}", result_of(run, folder)["row"]
        row: dict[str, Any] = {"dim": find_equation(run.data.equation).domain.dim}
        row |= {key: getattr(run, key) for key in ("problem", "variant", "trial")}
        row["settings"] = json.dumps(suite.trials(run.variant)[run.trial])
        measured = new if new.get("status") == "ok" else earlier.get(name, {})
        row |= {key: measured.get(key) for key in ("epochs", "seconds", "valid_rmse")}
        rows.append(row | {"chosen": 0, "folder": name})
    table = pd.DataFrame(rows).astype({"valid_rmse": float}).dropna(subset="valid_rmse")
    for best in table.groupby(["problem", "variant"])["valid_rmse"].idxmin():
        rows[best]["chosen"] = 1
    write_rows(folder / CHOICES, list(rows[0]), rows)
    return rows


@dataclass(frozen=True)
class Means:
    """Results over the seeds, a row for each problem and variant, in their order."""

    mean: pd.DataFrame  # errors by measure, of the seeds that finished; NaN without any
    std: pd.DataFrame  # NaN for a single seed
    # The row of the first seed that finished, or else of the first seed; its status is
    # that of the last where no seed finished.
    first: pd.DataFrame

    def errors(
        self, problem: str, variants: Sequence[str], measure: str = "mae"
    ) -> pd.Series[float]:
        """Mean errors by variant, NaN where they are not known."""
        index = pd.MultiIndex.from_product([[problem], variants])
        errors = self.mean.reindex(index=index, columns=[measure])
        return errors[measure].astype(float).droplevel(0)

    def leader(
        self, problem: str, variants: Sequence[str], measure: str = "mae"
    ) -> str | None:
        """The variant whose lead over all others exceeds two standard deviations.

        Those of the two are compared, the larger one counts; None where there is no
        such lead, or a single seed.
        """
        best = self.errors(problem, variants, measure).dropna().sort_values()[:2]
        if len(best) < 2:
            return None
        spread = self.std.loc[problem].loc[best.index, measure].max(skipna=False)
        return str(best.index[0]) if best.iloc[1] - best.iloc[0] > 2 * spread else None


def seed_means(rows: Sequence[Row]) -> Means:
    """Means over the seeds of each variant on each problem."""
    frame, keys = pd.DataFrame([dict(row) for row in rows]), ["problem", "variant"]
    errors = [name for name in frame if name.startswith(ERRORS)]
    done = frame["status"] == "ok"
    scored = frame[errors].astype(float).where(done).join(frame[keys])
    scored = scored.groupby(keys, sort=False)
    first = frame.loc[(~done).sort_values(kind="stable").index]
    first = first.groupby(keys, sort=False).head(1).set_index(keys)
    last = frame.groupby(keys, sort=False)["status"].last()
    first = first.reindex(last.index)
    first["status"] = first["status"].where(first["status"] == "ok", last)
    return Means(scored.mean(), scored.std(), first)


def learns(variant: str) -> bool:
    """Tell the row of a model from that of a reference without a network."""
    return variant not in TRIVIAL.values()
