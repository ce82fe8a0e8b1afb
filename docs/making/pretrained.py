"""Trains the models that come with nfsgeo: ``make pretrained``.

Runs go to ``build/pretrained``; one that is there and finished is not trained again.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

import nfsgeo
from nfsgeo.data.generation import cached_file
from nfsgeo.evaluation import ship_run
from nfsgeo.pretrained import FOLDER
from nfsgeo.training import RunPaths, fit, resume_run

BUILD = Path(__file__).parents[2] / "build" / "pretrained"
CARDS = Path(__file__).parent / "pretrained"
RECIPES = yaml.safe_load((CARDS / "recipes.yaml").read_text())


def trained(name: str, data: Path) -> RunPaths:
    """The finished run of a model, trained as far as it is not there yet."""
    folder = BUILD / name
    if (folder / "checkpoints" / "last.ckpt").exists():
        experiment, run = resume_run(folder)
        fit(experiment, run)
        return run
    shutil.rmtree(folder, ignore_errors=True)
    return nfsgeo.fit(nfsgeo.prepare(data, RECIPES[name]["settings"]), folder)


def numbers(run: RunPaths) -> str:
    """Tables of a card: sizes and errors, as evaluated."""
    summary = json.loads(run.summary.read_text())
    size, larger = run.best.stat().st_size, _unseen(run)
    points = summary["unseen_points"]
    where = {
        "off-grid": "Between the nodes of the grid, where nothing was trained,",
        "file": "At nodes of the grid in no point set of training",
    }
    alone = ", and ".join(
        f"{mean['mae_unseen']:.2e} with {factor} times the points of training"
        for factor, mean in larger.items()
    )
    text = (
        f"{summary['parameters']:,} parameters, {size / 1e6:.1f} MB. "
        f"{where[points['at']]} the test MAE is {alone}. Training has seen "
        f"{points['trained']} of the {points['points']} nodes. Errors at all observed "
        "points, on the 72 test samples, in the data's units:"
    )
    lines = [
        textwrap.fill(text, 96),
        "",
        "| | MAE | RMSE | relative L2 |",
        "|---|--:|--:|--:|",
    ]
    for factor, mean in larger.items():
        title = f"this model, {factor} times the points, the further ones unseen"
        lines.append(_row(title, mean))
    title = f"this model, {summary['n_s']} points of training"
    lines.append(_row(title, summary["test"]))
    for baseline, errors in summary["baselines"].items():
        lines.append(_row(baseline.replace("_", " "), errors))
    return "\n".join(lines)


def _unseen(run: RunPaths) -> dict[str, dict[str, float]]:
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    with open(run.unseen, newline="") as table:
        for row in csv.DictReader(table):
            found[f"{float(row['factor']):g}"].append(row)
    names = ("mae", "rmse", "rel_l2", "mae_unseen")
    return {
        factor: {name: sum(float(r[name]) for r in rows) / len(rows) for name in names}
        for factor, rows in found.items()
    }


def _row(title: str, errors: dict[str, Any]) -> str:
    cells = [f"{errors[name]:.2e}" for name in ("mae", "rmse", "rel_l2")]
    return f"| {' | '.join([title, *cells])} |"


def main() -> None:
    """Trains, evaluates and ships every model, or those named."""
    for name in sys.argv[1:] or RECIPES:
        data = cached_file(**RECIPES[name]["data"])
        run = trained(name, data)
        nfsgeo.evaluate(run, factors=[2, 4], repeats=3)
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        shipped = ship_run(run, folder)
        card = (CARDS / f"{name}.md").read_text()
        (folder / "card.md").write_text(
            card.replace("<!-- numbers -->", numbers(shipped))
        )
        print((folder / "card.md").read_text())


if __name__ == "__main__":
    main()
