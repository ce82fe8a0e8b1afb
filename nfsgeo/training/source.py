"""The fields of a run: its file, with training, validation and test samples."""

from __future__ import annotations

import logging
import os
from pathlib import Path, PureWindowsPath
from typing import Any

import nfsgeo.data
from nfsgeo.config import DataSection
from nfsgeo.data import Fields
from nfsgeo.data.conventions import Indices
from nfsgeo.data.generation import generate
from nfsgeo.data.io.edges import table_of, with_graph_of
from nfsgeo.data.io.joining import joined
from nfsgeo.data.io.marks import MISSING
from nfsgeo.data.io.opening import matches, takes_columns
from nfsgeo.data.other_files import names_others
from nfsgeo.data.splits import published_split, split_in_order
from nfsgeo.errors import UserError, option
from nfsgeo.progress import Progress, silent

__all__ = ["check_in_place", "files_as_they_are", "in_file_order", "open_as"]
__all__ += ["open_source", "relocated", "with_parts"]

logger = logging.getLogger(__name__)

DEMONSTRATION = "navier-stokes-64-20-360-seed0.nc"  # its name in the cache


def open_source(data: DataSection, progress: Progress = silent) -> Fields:
    """Open the fields that a run is trained, validated and tested on.

    The default is Navier-Stokes on a coarse grid with viscosity 1e-3 and a snapshot
    every 0.25 time units, which is generated once and cached.

    Args:
        data: Settings of the data.
        progress: Called while the default data are generated.

    Raises:
        UserError: The file cannot be read, or the parts do not fit to it.
    """
    path = data.file
    if path is None or (path.name == DEMONSTRATION and not path.exists()):
        path = generate(
            "navier-stokes",
            None,
            samples=360,
            resolution=64,
            num_steps=20,
            workers=os.cpu_count() or 1,
            progress=progress,
        )
    fields = nfsgeo.data.open(path, columns=data.columns, known=data.known)
    return with_parts(data, fields)


def with_parts(data: DataSection, fields: Fields) -> Fields:
    """Give the fields of a file the parts and the known fields of a run.

    Args:
        data: Settings of the data.
        fields: The content of ``data.file``.

    Raises:
        UserError: The parts do not fit to the file.
    """
    split, path = data.split, fields.path
    fields = with_graph_of(fields, data.graph) if data.graph else fields
    if data.test_file is not None:
        num, part = fields.num_samples, split[1] if split else 1 / 8
        fields = joined([fields, open_as(data, data.test_file)], "samples")
        valid = round(part if part >= 1 else part * num)
        if not 0 < valid < num:
            raise UserError(
                f"{num} samples of {path} to train and validate on",
                "some for each",
                "change data.split, or use a longer file",
            )
        sizes = num - valid, valid, fields.num_samples - num
        fields = fields.with_split(published_split(fields.num_samples, *sizes))
    elif split is not None:
        fields = fields.with_split(_parts(split, fields))
    return fields.with_known(data.known) if data.known else fields


def in_file_order(data: DataSection, fields: Fields) -> bool:
    """Return whether samples have the default parts, which follow their order.

    Args:
        data: The complete settings of the data.
        fields: The result of :func:`open_source`.
    """
    return data.split_by != "time" and "part" not in fields.dataset


def relocated(
    data: DataSection, file: Path, test_file: Path | None = None
) -> DataSection:
    """Return the settings of data that have moved.

    Args:
        data: Settings of the data.
        file: Where ``data.file`` is now.
        test_file: Where ``data.test_file`` is now; None for where it was or, if it is
            not there, beside ``file`` under its name.
    """
    places = data.columns or {}
    changes: dict[str, Any] = {"test_file": test_file or data.test_file}
    table = str(places.get("points", ""))
    points_path = _beside(Path(table), file) if table else None
    if test_file is None and data.test_file is not None:
        changes["test_file"] = _beside(data.test_file, file)
    columns = {**places, "points": str(points_path)} if points_path else data.columns
    graph = data.graph
    if graph is not None:
        edges = table_of(graph)
        graph = graph.replace(str(edges), str(_beside(edges, file)), 1)
    changes |= {"columns": columns, "graph": graph}
    return data.changed(file=file.resolve(), **changes)


def _beside(path: Path, file: Path) -> Path:
    """A path, or a file of its name beside another one if nothing else exists."""
    near = file.parent / PureWindowsPath(path).name  # of either system
    return near.resolve() if near.exists() and not path.exists() else path


def files_as_they_are(data: DataSection) -> dict[str, Any] | None:
    """Return sizes and times of the files of data, which change with the values.

    The result is None where a file may name others, as those of ParaView do.
    """
    paths, file_stats = [data.file, data.test_file], dict[str, Any]()
    if table := (data.columns or {}).get("points"):
        paths.append(Path(str(table)))
    paths += [table_of(data.graph)] if data.graph else []
    for path in (p for pattern in paths if pattern for p in matches(pattern)):
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in (file for file in inside if file.is_file()):
            if file == path and names_others(file):
                return None
            at = file.stat()
            about = at.st_size, at.st_mtime_ns, at.st_ctime_ns, at.st_ino, at.st_dev
            file_stats[str(file.resolve())] = [*about]
    return file_stats


def check_in_place(data: DataSection, run: Path) -> None:
    """Make sure that the data of a run are where they were.

    Args:
        data: Settings of the data.
        run: The folder of the run.

    Raises:
        UserError: They are not.
    """
    graph = data.graph and table_of(data.graph)
    if graph and not graph.exists():
        given = f"{graph}, the graph of the run {run}, which is not there"
        raise UserError(given, "the table of its edges", "put it back")
    for path in (data.file, data.test_file):
        if path and not matches(path) and path.name != DEMONSTRATION:
            say = option("data", "FILE")
            if path == data.test_file:
                say = f"nfsgeo train --resume {run} --test-file FILE"
            raise UserError(
                f"{path}, data of the run {run}, which are not there",
                "the data that the run was trained on",
                f"say where they are now: {say}, or put them back",
            )


def open_as(data: DataSection, path: Path) -> Fields:
    """Open another file than that of training, with the same roles of columns.

    Args:
        data: Settings of the data.
        path: The file.
    """
    roles: dict[str, Any] = {"columns": data.columns, "known": data.known}
    if table := (data.columns or {}).get("points"):
        near = _beside(Path(str(table)), path)
        roles["columns"] = {**(data.columns or {}), "points": str(near)}
        if near.resolve().parent != path.resolve().parent:
            logger.warning("%s: its points are those of the run, %s", path, near)
    if not takes_columns(path, data.columns):
        marks = {k: v for k, v in (data.columns or {}).items() if k == MISSING}
        roles = {"columns": marks} if marks else {}
    fields = nfsgeo.data.open(path, **roles)
    if data.graph is None or fields.has_graph:
        return fields
    if not fields.stations():
        text = "%s: points without names are those of the graph of the run, %s"
        logger.warning(text, path, table_of(data.graph))
    return with_graph_of(fields, data.graph)


def _parts(split: tuple[float, float, float], fields: Fields) -> dict[str, Indices]:
    """Return the samples of each part, from three fractions or numbers of samples."""
    num = fields.num_samples
    if abs(sum(split) - 1) < 1e-6 and min(split) > 0:
        train, valid, test = (part / sum(split) for part in split)
        return split_in_order(num, (train, valid, test))
    if any(size != int(size) for size in split) or sum(split) > num:
        raise UserError(
            f"data.split={list(split)} with {num} samples of {fields.path}",
            "three fractions with the sum 1, or three numbers of samples that it has",
            f"for example {option('data.split', '[0.8,0.1,0.1]')}",
        )
    return published_split(num, *map(int, split))
