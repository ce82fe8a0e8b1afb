"""`nfsgeo predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nfsgeo.pretrained import FOLDER, NAMES
from nfsgeo_cli.terminal import as_json, device, progress_bar, report, times


@click.command(
    epilog="""\b
    Examples:
      nfsgeo predict runs/x --input new.nc --output predicted.nc
      nfsgeo predict runs/x --input new.nc --output p.nc --query-points q.npy
      nfsgeo predict runs/x --input new.nc --output ahead.nc --steps 200
      nfsgeo predict runs/x --input new.nc --output at.nc --lead-times 0.3,0.75
      nfsgeo predict runs/x --input stations.csv --output forecast.csv
      nfsgeo predict --model ns-small --input ns.nc --output p.nc
    """
)
@click.argument("run", type=Path, required=False)
@click.option("--model", type=click.Choice(NAMES), help="A pretrained model, not RUN.")
@click.option("--input", "source", type=Path, required=True, help="Observed fields.")
@click.option(
    "--output", "--out", "target", type=Path, required=True, help="File to make."
)
@click.option(
    "--query-points",
    type=Path,
    help="Where to predict: .npy, .npz or .csv file.  [the observed points]",
)
@click.option(
    "--first", type=int, help="Number of the first observed snapshot.  [the last ones]"
)
@click.option(
    "--steps", type=click.IntRange(1), help="Time steps to predict.  [as in training]"
)
@click.option(
    "--lead-times",
    metavar="T,T,...|START:STOP:STEP",
    callback=times,
    help="Times after the last observed one, for a model trained with data.lead_times.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.9,
    help="Share of values to lie in the error band of a run with bands; 0 for none.  "
    "[0.9]",
)
@device
@as_json
def predict(
    run: Path | None,
    model: str | None,
    source: Path,
    target: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Predict what follows the end of a file, for every sample.

    The last snapshots of the file are observed, as far apart as in training. To score
    predictions within the file, use `nfsgeo evaluate`. A point cloud is observed at all
    of its points, a grid at the points of the run, or at all of them with --model.
    With more --steps than in training, predictions are the inputs of further ones. The
    result has the format of its ending: CF NetCDF for .nc, else one of those that
    `nfsgeo datasets` lists. A run with error bands also gives their ends, such as
    u_lower and u_upper.
    """
    from nfsgeo.data.times import span_text
    from nfsgeo.evaluation import predict as predict_file

    if (run is None) == (model is None):
        raise click.UsageError("Give either RUN or --model")
    folder = run or FOLDER / str(model)
    with progress_bar() as progress:
        found = predict_file(folder, source, target, progress=progress, **options)
    with found as predicted:
        first, last = predicted.times[[0, -1]].tolist()
    span = span_text(first, last, predicted.time_unit)
    content = {"output": str(target), "times": [first, last]}
    report(as_json, content, f"written  {target}, {span}")
