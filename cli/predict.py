"""`nfsgeo predict` and `nfsgeo export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from nfsgeo.pretrained import FOLDER, NAMES
from nfsgeo_cli.terminal import DEVICE, TIMES, option, progress_bar, report, verb


@verb
@click.argument("run", type=Path, required=False)
@option("--model", [*NAMES], "A pretrained model, not RUN.")
@option("--input source", Path, "Observed fields.", required=True)
@option("--output --out target", Path, "File to make.", required=True)
@option(
    "--query-points query_pos",
    Path,
    "Where to predict; by default the observed points.",
)
@option("--first", int, "Number of the first observed snapshot, from 0.")
@option(
    "--steps",
    click.IntRange(1),
    "Number of time steps to predict, by an autoregressive rollout where they are "
    "more than in training.",
)
@option(
    "--lead-times",
    TIMES,
    "Times to predict, after the last observed one, for a model that was trained with "
    "data.lead_times.",
)
@option(
    "--level",
    click.FloatRange(0, 1, max_open=True),
    "Coverage of the error bands, 0.9 by default; 0 leaves them out.",
)
@DEVICE
def predict(
    run: Path | None,
    model: str | None,
    source: Path,
    target: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Predict the time steps after the end of a file, for every sample.

    The last snapshots of the file are observed, as far apart as in training. To score
    predictions within the file, use `nfsgeo evaluate`. A point cloud is observed at all
    of its points, a grid at the points of the run, or at all of them with --model.
    With more --steps than in training, predictions are the inputs of further ones. The
    result has the format of its ending: CF NetCDF for .nc, else one of those that
    `nfsgeo datasets` lists. A run with error bands also gives their ends, such as
    u_lower and u_upper.

    Examples:
      nfsgeo predict runs/x --input new.nc --output predicted.nc
      nfsgeo predict runs/x --input new.nc --output p.nc --query-points q.npy
      nfsgeo predict runs/x --input new.nc --output ahead.nc --steps 200
      nfsgeo predict runs/x --input new.nc --output at.nc --lead-times 0.3,0.75
      nfsgeo predict runs/x --input stations.csv --output forecast.csv
      nfsgeo predict --model ns-small --input ns.nc --output p.nc
    """
    import numpy as np

    from nfsgeo.data.times import span_text
    from nfsgeo.evaluation import predict as predict_file

    if (run is None) == (model is None):
        raise click.UsageError("Give either RUN or --model")
    folder = run or FOLDER / str(model)
    with progress_bar() as progress:
        fields = predict_file(folder, source, target, progress=progress, **options)
    with fields:
        first, last = fields.times[[0, -1]].tolist()
        steady = len(fields.times) == 1 and first == 0 and not fields.time_unit
        step = np.diff(fields.times).min(initial=np.inf)
    span = "" if steady else f", {span_text(first, last, fields.time_unit, step)}"
    content = {"output": str(target), "times": [first, last]}
    if not_finite := fields.provenance.get("not_finite"):
        content["not_finite"] = not_finite
    report(as_json, content, f"written  {target}{span}")


@verb
@click.argument("run", metavar="RUN|NAME", type=Path)
@option("--out", Path, "File to make.", required=True)
@option(
    "--format",
    ["torch-export", "onnx"],
    "Kind of program.",
    default="torch-export",
)
def export(
    run: Path, out: Path, format: Literal["torch-export", "onnx"], as_json: bool
) -> None:
    """Export a run as a torch.export or ONNX program.

    The program is for one sample on any mesh. That of nfs or one of its variants runs
    without nfsgeo. Graphs are arguments: nfsgeo.evaluation.program_inputs makes them.

    Examples:
      nfsgeo export runs/x --out x.pt2
      nfsgeo export runs/mixer --out mixer.onnx --format onnx
    """
    from nfsgeo.evaluation import export_run

    export_run(run, out, format=format)
    report(as_json, {"output": str(out), "format": format}, f"written  {out}")
