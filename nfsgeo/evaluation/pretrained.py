"""Trained models that come with nfsgeo, by name."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import torch

from nfsgeo.errors import UserError
from nfsgeo.evaluation.summary import read_summary
from nfsgeo.training import RunPaths, read_config
from nfsgeo.training.artifacts import write_bytes, write_json, write_yaml
from nfsgeo.training.checkpoints import read_checkpoint

__all__ = ["ship_run"]

# Entries of the summary that the checkpoint of a shipped model holds.
PROVENANCE = ("equation", "provenance", "seed", "n_s", "epochs", "test")


def ship_run(run: RunPaths, folder: Path) -> RunPaths:
    """Copies what prediction needs of an evaluated run, and its provenance.

    The checkpoint holds the best weights, the scales of the fields, the settings of the
    model and its provenance, without the state of the optimiser. Grids will be observed
    at all of their points.

    Args:
        run: A run that was trained and evaluated.
        folder: The folder to create.

    Raises:
        UserError: The run has no checkpoint or no summary, or the folder exists.
    """
    if folder.exists():
        raise UserError(f"{folder}", "a folder that does not exist", "remove it first")
    config, checkpoint = read_config(run.config), read_checkpoint(run.best)
    summary = read_summary(run)
    if not summary:
        raise UserError(f"{run.root}", "a run with its errors", "evaluate it first")
    # The path of the file means nothing elsewhere.
    summary["data"] = Path(summary["data"]).name
    environment = json.loads(run.environment.read_text())
    shipped = RunPaths(folder)
    shipped.best.parent.mkdir(parents=True)
    data = {"file": None, "mesh": "all", "points": None, "grid": None}
    trainer = {"device": "auto", "devices": 1}
    sections = {
        "data": config.data.model_copy(update=data),
        "trainer": config.trainer.model_copy(update=trainer),
    }
    config = config.model_copy(update=sections)
    write_yaml(shipped.config, config.model_dump(mode="json"))
    write_json(shipped.summary, summary)
    write_json(shipped.environment, environment)
    for table, copied in ((run.metrics, shipped.metrics), (run.unseen, shipped.unseen)):
        if table.exists():
            shutil.copyfile(table, copied)
    provenance = {key: summary[key] for key in PROVENANCE if key in summary}
    provenance |= {key: environment[key] for key in ("nfsgeo", "commit")}
    provenance |= {"torch": environment["packages"]["torch"], "license": "MIT"}
    description = checkpoint["nfsgeo"] | {"provenance": provenance}
    content = io.BytesIO()
    weights = {"state_dict": checkpoint["state_dict"], "nfsgeo": description}
    torch.save(weights, content)
    write_bytes(shipped.best, content.getbuffer())
    return shipped
