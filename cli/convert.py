"""`nfsgeo convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import (
    Text,
    opening_options,
    option,
    progress_bar,
    report,
    verb,
)


def _axis(given: str, text: str) -> tuple[float, float, bool]:
    """Read the ends of an axis ``-180:180:periodic``, and whether it is periodic."""
    try:
        low, high = map(float, text.removesuffix(":periodic").split(":"))
        if low < high:
            return low, high, text.endswith(":periodic")
    except ValueError:
        pass
    raise UserError(given, "LOW:HIGH or LOW:HIGH:periodic", "for example 0:1")


AXIS = Text("LOW:HIGH[:periodic]", _axis)


@verb
@click.argument("sources", metavar="SOURCE...", type=Path, nargs=-1, required=True)
@option("--out", Path, "File to make: .nc, .csv, ...", required=True)
@opening_options
@option("--axis", AXIS, "The domain, one option per axis.", multiple=True)
@option("--sphere", bool, "x and y are longitude and latitude in degrees on a sphere.")
@option("--obstacles", Path, "Areas without fields: .geojson, .npz, .stl, ...")
@option("--region", Path, "The area of the fields: .geojson, .stl, ...")
@option("--graph", str, "Edges between points: a table of from, to and weight.")
@option("--equation", str, "Name of the equation.")
@option(
    "--known",
    str,
    "Fields known ahead (forcings), and parameters that are inputs of a model.",
    metavar="NAME,...",
)
def convert(
    sources: tuple[Path, ...],
    out: Path,
    axis: tuple[tuple[float, float, bool], ...],
    sphere: bool,
    obstacles: Path | None,
    region: Path | None,
    known: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Convert files between formats.

    Formats read are recognised by their content, those written by the ending of --out,
    see `nfsgeo datasets`. Obstacles, or a region, are polygons, a signed distance
    (arrays x, y and distance, negative in obstacles) or a closed surface; nothing is
    interpolated through their boundaries.

    Examples:
      nfsgeo convert NavierStokes_V1e-3_N5000_T50.mat --out ns.nc
      nfsgeo convert fields.npz --out f.nc --axis 0:360:periodic --axis -90:90
      nfsgeo convert ns.nc --out ns.csv
      nfsgeo convert sst.nc --out sst.nc --sphere
      nfsgeo convert step_*.vtu --out f.nc --series time-steps --times 0:10:0.5
      nfsgeo convert w.npz --out w.nc --columns field=p:npt,points=xy,time=t
      nfsgeo convert sea.csv --out sea.nc --columns time=date,x=lon,y=lat
      nfsgeo convert rain.csv --out rain.nc --columns points=gauges.csv
      nfsgeo convert rivers.nc --out rivers.nc --known rain,slope
      nfsgeo convert flow.nc --out walls.nc --obstacles cylinder.geojson
    """
    from nfsgeo.data import convert as convert_files
    from nfsgeo.data.domains import read_region
    from nfsgeo.geometry import Domain

    if obstacles is not None and region is not None:
        raise click.UsageError("Give --obstacles or --region, not both")
    if sphere and axis:
        raise click.UsageError("Give --sphere or --axis, not both")
    if sphere:
        options["domain"] = Domain.sphere()
    elif axis:
        lower, upper, periodic = zip(*axis, strict=True)
        options["domain"] = Domain(lower, upper, periodic)
    if boundary := obstacles or region:
        options["region"] = read_region(boundary, inside=obstacles is None)
    options["known"] = known.split(",") if known is not None else []
    with progress_bar() as progress:
        convert_files(sources, out, progress=progress, **options)
    report(as_json, {"output": str(out)}, f"written  {out}")
