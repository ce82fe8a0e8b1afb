"""Opens files of fields, whatever their format, and writes them."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from glob import escape, glob
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nfsgeo.data.checks import reading
from nfsgeo.data.conventions import NPZ_ABOUT, angle_of, length_of
from nfsgeo.data.fields import Fields
from nfsgeo.data.flat_axes import heights_as_input, without_flat_axes
from nfsgeo.data.io import ARRAYS, FORMATS, OWN, FileProbe, Format
from nfsgeo.data.io.array_files import arrays_of
from nfsgeo.data.io.described_arrays import fit_arrays
from nfsgeo.data.io.edges import with_graph_of
from nfsgeo.data.io.file_order import FileOrder, as_listed
from nfsgeo.data.io.flags import with_masks
from nfsgeo.data.io.graph_times import ASK, TimeAxis
from nfsgeo.data.io.joining import concatenated
from nfsgeo.data.io.longitudes import check_longitudes, globe_of
from nfsgeo.data.io.marks import with_marks, without_marks_among
from nfsgeo.data.io.near_points import check_near_points
from nfsgeo.data.io.netcdf import STORE
from nfsgeo.data.io.odd_arrays import about_odd_arrays
from nfsgeo.data.io.roles import Columns, with_kinds
from nfsgeo.data.other_files import check_inside, check_source
from nfsgeo.data.times import EPOCH, counted
from nfsgeo.data.writers import writer_of
from nfsgeo.errors import ADVISED, BETWEEN, UserError, columns_text, option
from nfsgeo.geometry import Domain, Region
from nfsgeo.progress import Progress, silent

__all__ = ["check_path", "convert", "files_of", "is_source", "matches", "open"]
__all__ += ["with_user_answers"]

logger = logging.getLogger(__name__)

SHOWN_SOURCES = 3  # in a command that a message advises


def open(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    series: str | None = None,
    times: ArrayLike | None = None,
    columns: Columns | None = None,
    at: str | None = None,
    time_axis: TimeAxis = ASK,
    domain: Domain | None = None,
    known: Sequence[str] = (),
) -> Fields:
    """Open a file of fields, recognised by its content, or several files as one.

    What a file does not tell has to be said by an argument; nothing is guessed.

    Args:
        sources: A file, several of one kind, or a folder of them or a pattern such as
            ``"step_*.vtu"``, which are taken in the order of the numbers in their
            names.
        series: Whether several files, or several graphs of one file, are ``"samples"``,
            or ``"time-steps"`` of one; has to be said where each holds one time step
            on the same points.
        times: Time of each time step, ``[T]``, instead of what the files tell.
        columns: Columns of a table, arrays of a mesh, or variables of NetCDF or Zarr,
            by what they are: ``sample``, ``time``, ``x``, ``y`` or ``z``, where their
            names do not tell, an empty name where none is; and the names of those that
            are ``static`` inputs, a ``field``, or to ``ignore``, or flags that ``mask``
            bad values, see :func:`~nfsgeo.data.io.flags.with_masks`. Where a table has
            a column for each station, or of their names, another table with these and
            coordinates, ``points``. Of a table also ``station``, the column of names of
            points, ``quantity``, one of names of quantities, each of which becomes a
            field (``NAME:VALUES`` with the column of values where that is not clear),
            and a time in several columns, ``date+hour``. Of any file ``missing``, what
            marks missing values. In a file of arrays of any names, ``field`` and
            ``static`` are ``"NAME:AXES"``, one or several, with a letter for each axis:
            ``n`` sample, ``t`` time step, ``p`` point, or ``x``, ``y``, ``z`` of a
            grid, ``c`` component; ``points`` or ``x``, ``y``, ``z`` the coordinates,
            and ``time`` the times.
        at: Whether the fields of a mesh are those at its ``"points"`` or ``"cells"``;
            has to be said where it has both.
        time_axis: The axis of ``x``, ``y`` and ``forcing`` of graphs that is time, None
            where none is, see :func:`nfsgeo.from_pyg`.
        domain: The box and its periodic axes, instead of what the format implies.
        known: Names of fields that are known ahead (forcings), and of parameters that
            are inputs of a model; fields called ``forcing_NAME`` need not be named.

    Raises:
        ValueError: ``series`` or ``at`` is none of these.
        UserError: A file cannot be read or can be read in two ways, files differ in
            kind, or their times or the ends of their longitudes are not known.
    """
    choices = {"series": ("samples", "time-steps"), "at": ("points", "cells")}
    for name, value in (("series", series), ("at", at)):
        if value not in (None, *choices[name]):
            expected = " or ".join(choices[name])
            raise ValueError(f"{name} {value!r}: expected {expected}")
    named, paths, chosen = files_of(sources, warn=True)
    with _of_sources(named, columns=columns, at=at, series=series, known=known):
        axis = None if time_axis == ASK else (time_axis,)
        first, said, marks = _format_of(paths[0], columns), columns, list[str]()
        if not first.reads_marks:
            columns, marks = without_marks_among(columns)
        options = {"columns": columns, "at": at, "time_axis": axis, "known": known}
        if "times" in first.options and (len(paths) == 1 or series == "samples"):
            options["times"] = None if times is None else np.ravel(times).tolist()
        if len(paths) == 1:
            fields = first.open(paths[0], options | {"series": series})
        else:
            opener = partial(_open_one, options=options)
            meshes = first.columns == "kinds"
            fields = concatenated(paths, opener, series, gaps=meshes)
            if series == "time-steps" and "time" not in fields.dataset.variables:
                _check_order(paths, chosen)
        alone = len(named) == 1  # perhaps a folder
        fields = replace(fields, path=named[0] if alone else fields.path)
        if first.columns in ("kinds", "roles"):
            fields, columns = with_masks(fields, columns)
            roles = first.columns == "roles"
            fields = with_kinds(fields, columns, roles=roles, known=known)
        if not first.reads_marks:
            fields = with_marks(fields, marks, ask=first is not OWN)
        if first.columns:
            fields = heights_as_input(fields, columns, domain)
        fields = with_user_answers(fields, times, domain, known)
        answers = (series, times, said, at, axis, domain, known or None)
        reopens = alone and all(answer is None for answer in answers)
        return replace(fields, reopens=reopens)


@contextmanager
def _of_sources(named: Sequence[Path], **options: Any) -> Iterator[None]:
    """Give errors the files that are opened, and the options that were given, which
    their advice may name.
    """
    try:
        yield
    except UserError as error:
        few = len(named) <= SHOWN_SOURCES
        words = shlex.join(map(str, named)) if few else "FILE..."
        advised = {text.split(BETWEEN)[0] for text in ADVISED.findall(error.todo)}
        for name, value in options.items():
            if name in advised:
                continue
            if name == "columns":
                value = columns_text(value or {})
            elif name == "known":
                value = ",".join(value)
            words += f" --{name} {shlex.quote(value)}" if value else ""
        error.source = words
        raise


def convert(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    region: Region | None = None,
    graph: str | None = None,
    equation: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Path:
    """Open files and writes them as one.

    Args:
        sources: As for :func:`open`.
        out: The file to make; its ending chooses the format.
        region: The part of the domain that fields live in, see
            :func:`nfsgeo.data.domains.read_region`; instead of the domain's own.
        graph: Table of edges between the points, see
            :func:`nfsgeo.data.io.edges.with_graph_of`.
        equation: Name of the equation, instead of what the format implies.
        progress: Called with what is being done, how many samples are through with
            it, and of how many.
        options: Further arguments of :func:`open`.

    Raises:
        UserError: A source cannot be read or does not fit the domain, ``out`` exists,
            or the disk is full.
    """
    writer_of(Path(out))
    with open(sources, **options) as fields:
        fields.check_known()
        if equation is not None:
            named = fields.dataset.assign_attrs(equation=equation)
            fields = replace(fields, dataset=named)
        if region is not None:
            fields = fields.with_domain(replace(fields.domain, region=region))
        if graph is not None:
            fields = with_graph_of(fields, graph)
        return fields.write(out, progress=progress or silent)


def is_source(path: Path) -> bool:
    """Return whether there is a file, or a folder that is a Zarr store."""
    return path.is_file() or any((path / name).exists() for name in STORE)


def takes_columns(path: Path, columns: Columns | None = None) -> bool:
    """Return whether files leave open what their columns are, or have these arrays.

    A file that nfsgeo wrote leaves nothing open.
    """
    for file in _expanded(path)[:1]:
        form = _format_of(file)
        written = form is OWN or NPZ_ABOUT in FileProbe(file).zipped
        if form.columns or (not written and fit_arrays(file, columns or {})):
            return True
    return False


def check_path(path: Any) -> Path:
    """The path; a UserError where it is something else, such as an array."""
    if isinstance(path, (str, os.PathLike)):
        return Path(path).expanduser()
    given = f"data of type {type(path).__name__}"
    todo = "make fields of arrays with nfsgeo.from_arrays(u, points, times)"
    raise UserError(given, "the path of a file, or fields", todo)


def files_of(
    sources: Any, *, warn: bool = False
) -> tuple[list[Path], list[Path], bool]:
    """The files that are opened as one.

    Args:
        sources: As for :func:`open`.
        warn: Whether to warn of files that are named twice.

    Returns:
        The paths as they are named; the files there, each once, in their order; and
        whether that order is the user's, not that of the names.

    Raises:
        UserError: There is no file.
    """
    several = list(sources) if isinstance(sources, (list, tuple)) else [sources]
    named = [*map(check_path, several)]
    paths = [path for name in named for path in _expanded(name)]
    chosen = paths == named and not as_listed(named)
    if not paths:
        names = ", ".join(map(str, named)) or "no name"
        raise UserError(names, "at least one file of data", "check the names")
    once: dict[Any, Path] = {}
    for path in paths:
        about = path.stat() if path.exists() else None
        same = (about.st_dev, about.st_ino) if about else path
        if (first := once.setdefault(same, path)) is not path and warn:
            logger.warning("%s is the same file as %s: taken once", path, first)
    paths = [*once.values()]
    return named, paths if chosen else FileOrder(paths).paths, chosen


def matches(path: Path) -> list[Path]:
    """Return the path if it exists, or else the paths that it matches as a pattern."""
    found = [path] if path.exists() else map(Path, sorted(glob(str(path))))
    return [path for path in found if path.exists()]


def _expanded(path: Path) -> list[Path]:
    """Return the files of a folder or a pattern, or else the path itself."""
    files: list[Path] = []
    for place in matches(path) or [path]:
        within = [place]
        if place.is_dir() and not is_source(place):
            inside = (file for file in place.iterdir() if file.name[0] != ".")
            check_inside(place, within := sorted(filter(is_source, inside)))
        files += within
    return files


def _check_order(paths: Sequence[Path], chosen: bool) -> None:
    """Check that names of files tell the order of their time steps, and say it."""
    by_names, ends = FileOrder(paths), f"from {paths[0]} to {paths[-1]}"
    if not chosen:
        by_names.check()
        ends = f"the order of their names, {ends}"
    elif by_names.doubt is None and by_names.paths not in (paths, paths[::-1]):
        given = f"files {ends}, in no order"
        first, last = by_names.paths[0], by_names.paths[-1]
        expected = f"the order of their names, from {first} to {last}"
        raise UserError(given, expected, "sort them, or rename them if it is another")
    else:
        ends = f"the order given, {ends}"
    logger.warning("%d files without times as time steps in %s", len(paths), ends)


def _open_one(path: Path, options: Mapping[str, Any]) -> Fields:
    return _format_of(path, options["columns"]).open(path, options)


def _format_of(path: Path, columns: Columns | None = None) -> Format:
    if not is_source(path):
        none = ", a pattern that matches no file" * (escape(str(path)) != str(path))
        raise UserError(f"{path}{none}", "an existing file", "check the name")
    with reading(path, "an undamaged file", "check or replace it"):
        check_source(path)
    probe = FileProbe(path)
    chosen = "field" in (columns or {})
    for form in (*FORMATS, ARRAYS):
        if form.recognises(probe) and (form.columns or not chosen):
            return form
    expected = "an undamaged file of nfsgeo or of a format that it reads"
    todo = "see `nfsgeo datasets` for the formats"
    with reading(path, expected, todo):  # says what is wrong with it
        if error := about_odd_arrays(path):
            raise error
        arrays_of(path)
    raise UserError(f"{path}", expected, todo)


def _check_lengths(fields: Fields) -> None:
    """Raise a UserError if the units of x and y are different lengths or angles."""
    units = {axis: fields.units.get(axis, "") for axis in fields.space[:2]}
    lengths = {length_of(unit) for unit in units.values()} - {""}
    angles = {angle_of(unit) for unit in units.values()} - {""}
    if len(lengths) > 1 or len(angles) > 1:
        given = " and ".join(f"{axis} in {unit}" for axis, unit in units.items())
        given = f"{fields.path} with {given}"
        raise UserError(
            given, "one unit, in which distances are", "convert one of them"
        )


def with_user_answers(
    fields: Fields,
    times: ArrayLike | None,
    domain: Domain | None,
    known: Sequence[str],
    todo: str = "",
) -> Fields:
    """The fields with what a user tells of them.

    Args:
        fields: As a reader returns them.
        times: Time of each time step; None for those of the file.
        domain: The box; None for that of the file.
        known: Names of forcings and of parameters that are inputs.
        todo: How to give times, for the message.

    Raises:
        UserError: Times, or the ends of longitudes, are still not known.
    """
    path = fields.path
    if times is not None:
        fields = fields.with_times(times)
    elif not fields.reopens and fields.time_unit != EPOCH:  # no file of nfsgeo
        kind, call = counted(fields.times, "times")
        if kind not in ("", "day"):  # many other times are as large as days
            text = "%s: times from %.12g are read as numbers, not as %s; for dates, "
            text += "give %s"
            logger.warning(text, path, fields.times.min(), kind, call)
    last = len(fields.times) - 1
    if last and "time" not in fields.dataset.variables:
        given = f"{path} with {last + 1} time steps and no times, or several alike"
        say = f"give them: {option('times', 'START:STOP:STEP')}, as in "
        todo = todo or say + option("times", f"0:{last}:1")
        raise UserError(given, "a file that tells them", todo)
    fields = fields.with_known(known) if known else fields
    if domain is None or domain.dim < len(fields.space):
        fields = without_flat_axes(fields)
    check_near_points(fields)
    _check_lengths(fields)
    if domain is None:
        check_longitudes(fields)
        return fields
    if domain.curved:
        about = [fields.dataset[axis].attrs for axis in fields.space]
        units = (str(attrs.get("units", "")) for attrs in about)
        if unit := next((unit for unit in units if unit.startswith("rad")), ""):
            given = f"{path} with coordinates in {unit} on a sphere"
            expected = "longitude and latitude in degrees"
            raise UserError(given, expected, "convert the coordinates")
        domain = globe_of(fields)
    return fields.with_domain(domain)
