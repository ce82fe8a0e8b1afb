"""`nfsgeo predict`."""

from __future__ import annotations

from pathlib import Path

import click

from nfsgeo.errors import UserError
from nfsgeo.pretrained import FOLDER, NAMES
from nfsgeo_cli.terminal import as_json, device, progress_bar, report


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
@click.option(
    "--model", type=click.Choice(NAMES), help="A pretrained model, in place of RUN."
)
@click.option("--input", "source", type=Path, required=True, help="Observed fields.")
@click.option(
    "--output",
    "--out",
    "target",
    type=Path,
    required=True,
    help="File to make: .nc, .pvd, .vtu, .csv, .parquet or .npz.",
)
@click.option(
    "--query-points",
    type=Path,
    help="Where to predict: .npy, .npz or .csv file; default: the observed points.",
)
@click.option(
    "--first",
    type=int,
    help="Number of the first observed snapshot, from 0; default: the last ones.",
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    help="Time steps to predict; default: as many as in training.",
)
@click.option(
    "--lead-times",
    metavar="T,T,...",
    help="Times to predict after the last observed one, of a model that was trained "
    "with data.lead_times.",
)
@device
@as_json
def predict(
    run: Path | None,
    model: str | None,
    source: Path,
    target: Path,
    query_points: Path | None,
    first: int | None,
    steps: int | None,
    lead_times: str | None,
    device: str | None,
    as_json: bool,
) -> None:
    """Predict what follows the end of a file, for every sample.

    The last snapshots of the file are observed, as far apart as in training. To score
    predictions within the file, use `nfsgeo evaluate`. A point cloud is observed at all
    of its points, a grid at the points of the run, or at all of them with --model.
    With more --steps than in training, predictions are the inputs of further ones. The
    result has the format of its ending: CF NetCDF for .nc, else one of those that
    `nfsgeo datasets` lists.
    """
    from nfsgeo.data import open as open_file
    from nfsgeo.data.times import span_text
    from nfsgeo.evaluation import predict as predict_file

    if (run is None) == (model is None):
        raise click.UsageError("Give either RUN or --model")
    folder = FOLDER / model if model is not None else run
    assert folder is not None

    with progress_bar() as progress:
        predict_file(
            folder,
            source,
            target,
            query_points=query_points,
            first=first,
            steps=steps,
            lead_times=_numbers(lead_times),
            device=device,
            progress=lambda done, total: progress("samples", done, total),
        )
    with open_file(target) as predicted:
        ends = predicted.times[[0, -1]].tolist()
        line = f"written  {target}, {span_text(ends[0], ends[1], predicted.time_unit)}"
    report(as_json, {"output": str(target), "times": ends}, line)


def _numbers(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise UserError(
            f"--lead-times {text}", "numbers with commas between them", "change it"
        ) from None
