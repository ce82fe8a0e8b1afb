"""From any format that nfsgeo reads to its own, or to another that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from numpy.typing import ArrayLike

from nfsgeo.data.export import export
from nfsgeo.data.fields import padded_box
from nfsgeo.data.opening import open_sources
from nfsgeo.data.readers.columns import Columns
from nfsgeo.data.writers import writer_of
from nfsgeo.geometry import Domain, Region
from nfsgeo.progress import Progress, silent

__all__ = ["convert"]


def convert(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    series: str | None = None,
    times: ArrayLike | None = None,
    columns: Columns | None = None,
    at: str | None = None,
    domain: Domain | None = None,
    region: Region | None = None,
    pad: float = 0.05,
    equation: str | None = None,
    known: Sequence[str] = (),
    progress: Progress | None = None,
) -> Path:
    """Writes the samples of foreign files into one file, one by one.

    The target's ending chooses its format, see :func:`nfsgeo.data.export`. A conversion
    of gridded data to the native file that was interrupted goes on where it stopped.

    Args:
        sources: A file, several of one kind, or a folder of them, which are taken in
            the order of the numbers in their names.
        out: The file to make: native, ``.h5``, or of another format.
        series: Whether several files, or several graphs of one file, are ``"samples"``,
            or ``"time-steps"`` of one; has to be said where each holds one time step
            on the same points.
        times: Time of each time step, ``[T]``, in place of what the files tell.
        columns: Columns of a table, or variables of a NetCDF or Zarr data set, by what
            they are: ``sample``, ``time``, ``x``, ``y`` or ``z``, where their names do
            not tell; an empty name where none is. Of a table also the names of those
            that are ``static`` inputs, a ``field``, or to ``ignore``; where it has a
            column for each station, another table with their names and coordinates,
            ``points``. In a file of
            arrays of any names, ``field`` and ``static`` are ``"NAME:AXES"``, one or
            several, with a letter for each axis: ``n`` sample, ``t`` time step, ``p``
            point, or ``x``, ``y``, ``z`` of a grid, ``c`` component; ``points`` or
            ``x``, ``y``, ``z`` the coordinates, and ``time`` the times.
        at: Whether the fields of a mesh are those at its ``"points"`` or ``"cells"``;
            has to be said where it has both.
        domain: The box and its periodic axes, in place of what the format implies.
            Points are wrapped into it along its periodic axes.
        region: The part of the domain that fields live in, see
            :func:`nfsgeo.data.regions.read_region`; in place of the domain's own.
        pad: Room that the box leaves around point clouds on each side, as a fraction
            of their extent, where neither the file nor the caller gives a domain.
        equation: Name of the equation, in place of what the format implies.
        known: Names of fields that are known ahead (forcings), and of parameters that
            are inputs of a model; fields called ``forcing_NAME`` need not be named.
        progress: Called with what is being done, how many samples are through with
            it, and of how many.

    Returns:
        Path of the file.

    Raises:
        UserError: A source cannot be read or does not fit the domain, ``out`` exists,
            or the disk is full.
    """
    out = Path(out)
    writer_of(out)
    with open_sources(
        sources,
        series=series,
        times=times,
        columns=columns,
        at=at,
        domain=domain,
        known=known,
    ) as file:
        if known:
            file.check_forcings()
        file.check_series()
        if equation is not None:
            file.equation = equation
        if file.axes is None and not file.domain_is_known:
            file.domain = padded_box(file, pad)
        if region is not None:
            file.domain = replace(file.domain, region=region)
        return export(file, out, progress=progress or silent)
