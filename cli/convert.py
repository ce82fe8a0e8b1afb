"""`nfsgeo convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import as_json, progress_bar, report

if TYPE_CHECKING:
    from nfsgeo.geometry import Domain


MOST_TIMES = 10**7


@click.command(
    short_help="Convert files between formats.",
    epilog="""\b
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
    """,
)
@click.argument("sources", metavar="SOURCE...", type=Path, nargs=-1, required=True)
@click.option("--out", type=Path, required=True, help="File to make: .nc, .csv, ...")
@click.option(
    "--series",
    type=click.Choice(["samples", "time-steps"]),
    help="What several sources or graphs are: samples, or time steps of one.",
)
@click.option(
    "--times",
    metavar="START:STOP:STEP|T,T,...",
    help="Time of each time step, where the files do not hold it.",
)
@click.option(
    "--columns",
    metavar="ROLE=NAME,...",
    help="Columns of a table, or variables of NetCDF, that are sample, time, x, y, z; "
    "columns of a table that are static inputs, a field, or to ignore, and points, "
    "another table, of the stations that have a column each; arrays of any names that "
    "are field, static, points, time, x, y, z.",
)
@click.option(
    "--at",
    type=click.Choice(["points", "cells"]),
    help="Which fields of a mesh that has both.",
)
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="LOW:HIGH[:periodic]",
    help="The domain, one option per axis, in place of the format's.",
)
@click.option(
    "--sphere",
    is_flag=True,
    help="The domain is a sphere: x and y are longitude and latitude in degrees.",
)
@click.option(
    "--obstacles", type=Path, help="Areas without fields: .geojson, .npz, .stl, ..."
)
@click.option("--region", type=Path, help="The area of the fields: .geojson, .stl, ...")
@click.option("--equation", help="Name of the equation.")
@click.option(
    "--known",
    metavar="NAME,...",
    help="Fields known ahead (forcings), and parameters that are inputs of a model.",
)
@as_json
def convert(
    sources: tuple[Path, ...],
    out: Path,
    series: str | None,
    times: str | None,
    columns: str | None,
    at: str | None,
    axes: tuple[str, ...],
    sphere: bool,
    obstacles: Path | None,
    region: Path | None,
    equation: str | None,
    known: str | None,
    as_json: bool,
) -> None:
    """Convert files of other programs to nfsgeo's format, or to others.

    Formats read are recognised by their content, those written by the ending of --out,
    see `nfsgeo datasets`. Obstacles, or a region, are polygons, a signed distance
    (arrays x, y and distance, negative in obstacles) or a closed surface; nothing is
    interpolated through their boundaries.
    """
    from nfsgeo.data import convert as convert_files
    from nfsgeo.data.regions import read_region
    from nfsgeo.geometry import Domain

    if obstacles is not None and region is not None:
        raise click.UsageError("Give --obstacles or --region, not both")
    if sphere and axes:
        raise click.UsageError("Give --sphere or --axis, not both")
    boundary = obstacles or region
    with progress_bar() as progress:
        convert_files(
            sources,
            out,
            series=series,
            times=None if times is None else _times(times),
            columns=None if columns is None else _columns(columns),
            at=at,
            domain=Domain.sphere() if sphere else _domain(axes) if axes else None,
            region=None
            if boundary is None
            else read_region(boundary, inside=obstacles is None),
            equation=equation,
            known=[] if known is None else known.split(","),
            progress=progress,
        )
    report(as_json, {"output": str(out)}, f"written  {out}")


def _times(text: str) -> list[float]:
    """``0:10:0.5`` from 0 to 10 by 0.5, both ends included, or a list."""
    try:
        if ":" not in text:
            return [float(time) for time in text.split(",")]
        start, stop, step = map(float, text.split(":"))
        num = round((stop - start) / step)
        whole = abs(start + num * step - stop) <= 1e-6 * abs(step)
        if not (whole and 0 <= num < MOST_TIMES):
            raise ValueError
        return [start + k * step for k in range(num + 1)]
    except (ValueError, ZeroDivisionError, OverflowError):
        raise UserError(
            f"--times {text}",
            "START:STOP:STEP with a whole number of steps, or T,T,...",
            "for example 0:10:0.5, which has 21 times",
        ) from None


def _columns(text: str) -> dict[str, str | list[str]]:
    from nfsgeo.data.formats.columns import KINDS

    parts = [part.partition("=") for part in text.split(",")]
    if any(not equals for _, equals, _ in parts):
        raise UserError(
            f"--columns {text}", "ROLE=NAME,...", "for example time=date,x=lon,y=lat"
        )
    found: dict[str, str | list[str]] = {}
    for role, name in ((role.strip(), name.strip()) for role, _, name in parts):
        if role in found and role not in KINDS:
            raise UserError(f"--columns {text}", f"{role}= once", "leave one out")
        found[role] = [*found.get(role, ()), name] if role in KINDS else name
    return found


def _domain(axes: tuple[str, ...]) -> Domain:
    from nfsgeo.geometry import Domain

    lower, upper, periodic = [], [], []
    for axis in axes:
        low, _, rest = axis.partition(":")
        high, _, kind = rest.partition(":")
        try:
            lower.append(float(low))
            upper.append(float(high))
            if kind not in ("", "periodic") or not lower[-1] < upper[-1]:
                raise ValueError
        except ValueError:
            raise UserError(
                f"--axis {axis}", "LOW:HIGH or LOW:HIGH:periodic", "for example 0:1"
            ) from None
        periodic.append(kind == "periodic")
    return Domain(tuple(lower), tuple(upper), tuple(periodic))
