"""Trains the models that come with nfsgeo: ``make pretrained``.

Runs go to ``build/pretrained``; one that is there and finished is not trained again.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pandas as pd
import yaml

import nfsgeo
from nfsgeo.data.generation import generate
from nfsgeo.evaluation import ship_run
from nfsgeo.pretrained import FOLDER
from nfsgeo.training import RunPaths, fit, resume_run

BUILD = Path(__file__).parents[2] / "build" / "pretrained"
CARDS = Path(__file__).parent / "pretrained"
RECIPES = yaml.safe_load((CARDS / "recipes.yaml").read_text())


def trained(name: str) -> RunPaths:
    """The finished run of a model, trained as far as it is not there yet."""
    folder = BUILD / name
    if (folder / "checkpoints" / "last.ckpt").exists():
        experiment, run = resume_run(folder)
        fit(experiment, run)
        return run
    shutil.rmtree(folder, ignore_errors=True)
    data = generate(out=None, **RECIPES[name]["data"])
    return nfsgeo.fit(nfsgeo.prepare(data, RECIPES[name]["settings"]), folder)


def errors(run: RunPaths) -> str:
    """Size and errors of a model, as its card has them."""
    summary, size = json.loads(run.summary.read_text()), run.best.stat().st_size
    rows = {f"this model, {summary['n_s']} points of training": summary["test"]}
    for factor, mean in pd.read_csv(run.unseen).groupby("factor").mean().iterrows():
        rows[f"this model, {factor:g} times the points"] = mean
        unseen = {"mae": mean["mae_unseen"]}
        rows[f"this model, {factor:g} times the points, at unseen ones"] = unseen
    rows |= {k.replace("_", " "): v for k, v in summary["baselines"].items()}
    lines = [
        f"{summary['parameters']:,} parameters, {size / 1e6:.1f} MB. Errors on the",
        "test samples, in the data's units:\n",
        "| | MAE | RMSE | relative L2 |",
        "|---|--:|--:|--:|",
    ]
    for title, row in rows.items():
        cells = [f"{row[m]:.2e}" if m in row else "" for m in ("mae", "rmse", "rel_l2")]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    for name in sys.argv[1:] or RECIPES:
        run = trained(name)
        nfsgeo.evaluate(run, factors=[2, 4], repeats=3)
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        shipped = ship_run(run, FOLDER / name)
        card = (CARDS / f"{name}.md").read_text()
        card = card.replace("<!-- numbers -->", errors(shipped))
        (FOLDER / name / "card.md").write_text(card)
