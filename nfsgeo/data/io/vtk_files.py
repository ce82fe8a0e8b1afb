"""Files that the VTK library reads, in a process of its own, as meshes.

VTK checks little of what it reads: one in thirty files with a few changed bytes ends
the process that reads it. So that is another one, which is started again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from html import unescape
from itertools import product
from mmap import ACCESS_READ, mmap
from operator import is_not
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.io import vtk_process
from nfsgeo.data.io.labelled import num_nodes
from nfsgeo.data.other_files import beside, check_hdf5
from nfsgeo.errors import UserError

__all__ = ["Mesh", "read_vtk", "twice"]

# Cells by their number in VTK, with their names in meshio.
CELLS = {3: "line", 5: "triangle", 9: "quad", 10: "tetra", 12: "hexahedron"}
CELLS |= {13: "wedge", 14: "pyramid", 21: "line3", 22: "triangle6", 23: "quad8"}
CELLS |= {24: "tetra10", 25: "hexahedron20", 26: "wedge15", 27: "pyramid13"}
CELLS |= {28: "quad9", 29: "hexahedron27", 32: "wedge18"}
# Lagrange cells, by their number of nodes, that are the same as others.
LAGRANGE = {(68, 2): 3, (69, 3): 5, (70, 4): 9, (71, 4): 10, (72, 8): 12, (73, 6): 13}
LAGRANGE |= {(74, 5): 14, (68, 3): 21, (69, 6): 22, (70, 9): 28, (71, 10): 24}
VERTICES, POLYLINE, STRIP, POLYGON, POLYHEDRON = (1, 2), 4, 6, 7, 42
# Cells in another order: pixels, voxels, and wedges, which meshio mirrors.
ALIKE = {8: (9, [0, 1, 3, 2]), 11: (12, [0, 1, 3, 2, 4, 5, 7, 6])}
ALIKE |= {13: (13, [0, 2, 1, 3, 5, 4])}
TAGS = re.compile(
    rb"<(/?(?:PointData|CellData|FieldData)|Piece|DataArray|AppendedData)\b([^<>]*)>"
)
ATTRIBUTES = re.compile(rb"\b(\w+)\s*=\s*[\"']([^\"']*)[\"']")
SECTIONS = {"PointData": "points", "CellData": "cells", "FieldData": "numbers"}
SECTIONS |= dict.fromkeys(["/PointData", "/CellData", "/FieldData"], "")
LISTED = 10_000  # words in a file of EnSight that are no numbers, at most


@dataclass
class Mesh:
    """A mesh, or a block of one.

    Attributes:
        points: Coordinates ``[n, 3]``.
        cells: Types and the nodes ``[cells, nodes]`` of cells, without vertices.
        middles: Returns the centres of the cells.
        at_points: Arrays at the points, ``[n, ...]``, by name.
        at_cells: Arrays at the cells, ``[cells, ...]``, by name.
        numbers: Arrays of the mesh as a whole, by name.
        lost: What it holds besides.
        unknown: How many cells are of types that ``cells`` cannot hold; "" if none.
        dim: Dimension of the cells, the highest one.
        axes: Coordinates along the axes of a grid, whose points are numbered along x
            first; empty for other meshes.
    """

    points: NDArray[np.float64]
    cells: list[tuple[str, NDArray[Any]]]
    middles: Callable[[], NDArray[np.float64]]
    at_points: dict[str, Any]
    at_cells: dict[str, Any]
    numbers: dict[str, Any]
    lost: list[str] = field(default_factory=list)
    unknown: str = ""
    dim: int = 3
    axes: list[NDArray[np.float64]] = field(default_factory=list)

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        """The mean of the nodes of each cell, ``[cells, 3]``; of polygons and polyhedra
        the centroid.
        """
        return self.middles()


class _Process:
    """The process that reads files of VTK, started when it is first needed."""

    def __init__(self) -> None:
        self._started: subprocess.Popen[bytes] | None = None
        self._lock, self._owner = threading.Lock(), 0
        self._last: list[NDArray[Any]] = []
        self.cells: tuple[Any, Any] = (), None  # of the last mesh, by its arrays

    def ask(self, *request: Any) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Return the answer to a request, see :mod:`nfsgeo.data.io.vtk_process`."""
        with self._lock:
            alive = self._started is not None and self._started.poll() is None
            if not alive or self._owner != os.getpid():  # a fork has one of its own
                self._started = subprocess.Popen(
                    [sys.executable, vtk_process.__file__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    pipesize=PIPE_BYTES,
                )
                self._owner = os.getpid()
            process, complete = self._started, False
            assert process and process.stdin and process.stdout
            answer: Any = process.stdout
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                about, arrays = json.loads(answer.readline()), []
                for number, (dtype, shape) in enumerate(about["arrays"]):
                    if number in about["again"]:
                        arrays.append(self._last[number])
                        continue
                    arrays.append(np.empty(shape, dtype))
                    flat = arrays[-1].reshape(-1).view(np.uint8)
                    if answer.readinto(flat) != flat.size:
                        raise EOFError
                few = sum(a.nbytes for a in arrays) <= vtk_process.KEPT_BYTES
                self._last, complete = arrays if few else [], True
            except (ValueError, EOFError, OSError):
                raise ValueError("damaged: the VTK library breaks off") from None
            finally:
                if not complete:  # or interrupted between question and answer
                    process.kill()
                    process.wait()
                    self._started = None
        if "error" in about:
            raise ValueError(about["error"])
        return about, arrays


PIPE_BYTES = 2**20  # which the system takes along at once, where it can
PROCESS = _Process()


def read_vtk(
    path: Path, kind: str, step: int = 0
) -> tuple[dict[str, Mesh], list[float] | None]:
    """Blocks of a file by name, "" where it is a single mesh, and its times if any.

    Args:
        path: The file.
        kind: What reads it, a key of :data:`nfsgeo.data.io.vtk_process.READERS`.
        step: Number of the time step to read, where there are several.

    Raises:
        ValueError: It is damaged, or no mesh.
        UserError: It names files elsewhere.
    """
    if kind == "ensight":
        words = {*re.split(r"[\s\"']+", path.read_text(errors="replace"))}
        number, folder = re.compile(r"[-+.\deE]*"), path.resolve().parent
        words = {
            word
            for word in words
            if not number.fullmatch(word) or (word and os.path.lexists(folder / word))
        }
        if len(words) > LISTED:
            raise ValueError(f"more than {LISTED} names")
        for word in words:
            beside(path, word)
            # A row of stars is a number.
            for file in folder.glob(re.sub(r"\*+", "*", word)):
                beside(path, str(file.relative_to(folder)))
    elif kind in ("hdf", "cgns"):
        check_hdf5(path, whole=True)
    names, more = _described(path) if kind == "xml" else ({}, {})
    about, arrays = PROCESS.ask(str(path.resolve()), kind, step)
    if "twice" in about:
        raise twice(path, about["twice"])
    rest, meshes = iter(arrays), dict[str, Mesh]()
    for block in about["blocks"]:
        if "dim" not in block:
            raise ValueError(f"a {block['kind'].removeprefix('vtk')}, which is no mesh")
        points, types, offsets, nodes = (next(rest) for _ in range(4))
        points = points.astype(np.float64, copy=False)
        kinds = ("points", "cells", "numbers")
        data = [{name: next(rest) for name in block[section]} for section in kinds]
        at_points, at_cells, numbers = data
        for where, described in names.items():
            if lost := described - {*block[where], *block["lost"]}:
                raise ValueError(f"{', '.join(sorted(lost))} broken")
        numbers |= more
        axes = [next(rest) for _ in range(3 * block["grid"])]
        centroids = next(rest) if block["centroids"] else None
        middles = partial(_centres, points, types, offsets, nodes, centroids)
        previous, cached_cells = PROCESS.cells
        if len(previous) != 3 or any(map(is_not, previous, (types, offsets, nodes))):
            cached_cells = _cells(types, offsets, nodes, block["types"])
            PROCESS.cells = (types, offsets, nodes), cached_cells
        cells, unknown = cached_cells
        mesh = Mesh(points, cells, middles, at_points, at_cells, numbers)
        meshes[block["name"]] = mesh
        mesh.lost, mesh.dim = block["lost"], block["dim"]
        mesh.unknown, mesh.axes = unknown, axes
    return meshes, about["times"]


def twice(path: Path, name: str) -> UserError:
    """Return the error of several arrays of one name, of which one would be lost."""
    given = f"{path} with several arrays called {name}"
    todo = "rename one of them in the file, or where the program writes it"
    return UserError(given, "arrays of different names", todo)


def _described(path: Path) -> tuple[dict[str, set[str]], dict[str, Any]]:
    """Names of the arrays that XML of VTK describes, and numbers that VTK passes over.

    VTK takes the arrays of the first piece for those of all, and reads none of the
    whole mesh that does not tell its size.
    """
    pieces, numbers, inside = list[dict[str, set[str]]](), dict[str, Any](), ""
    with (
        path.open("rb") as stream,
        mmap(stream.fileno(), 0, access=ACCESS_READ) as text,
    ):
        for tag in TAGS.finditer(text):
            name, about = tag[1].decode(), dict(ATTRIBUTES.findall(tag[2]))
            if name == "Piece" and about.get(b"NumberOfPoints") != b"0":
                pieces.append({"points": set(), "cells": set()})
            if name == "AppendedData":
                break  # of bytes which may look like anything
            if name in SECTIONS:
                inside = "" if tag[2].endswith(b"/") else SECTIONS[name]
            elif name == "DataArray" and pieces and inside in pieces[-1]:
                pieces[-1][inside].add(unescape(about.get(b"Name", b"").decode()))
            elif inside == "numbers" and b"NumberOfTuples" not in about:
                called = unescape(about.get(b"Name", b"").decode())
                if about.get(b"format") == b"ascii":
                    values = text[tag.end() : text.find(b"<", tag.end())].split()
                    numbers[called] = np.array([*map(float, values)])
        if b"</VTKFile>" not in text[-1024:]:
            raise ValueError("it ends too early")
    for piece, where in product(pieces, ("points", "cells")):
        if odd := ", ".join(sorted(piece[where] ^ pieces[0][where])):
            raise ValueError(f"{odd} broken, or in some of its pieces alone")
    return (pieces[0] if pieces else {}), numbers


def _centres(
    points: Any, types: Any, offsets: Any, nodes: Any, centroids: Any
) -> NDArray[np.float64]:
    """The mean of the nodes of each cell, or the centroid of those with sides."""
    if not len(types):
        return np.empty((0, 3))
    sums = np.add.reduceat(points[nodes], offsets[:-1], axis=0)
    centres: NDArray[np.float64] = sums / np.diff(offsets)[:, None]
    if centroids is not None:
        faces = np.isin(types, (POLYGON, POLYHEDRON))
        centres[faces] = centroids[faces]
    return centres


def _cells(
    types: NDArray[Any], offsets: NDArray[Any], nodes: NDArray[Any], classes: Any
) -> tuple[list[tuple[str, NDArray[Any]]], str]:
    """Cells by type, and how many are of types that have no names here."""
    cells, unknown = list[tuple[str, NDArray[Any]]](), list[str]()
    codes = types.astype(np.int64) << 32 | np.diff(offsets)
    alike = len(codes) > 0 and bool((codes == codes[0]).all())
    for code in codes[:1].tolist() if alike else np.unique(codes).tolist():
        kind, size = code >> 32, code % 2**32
        some = np.flatnonzero(codes == code)
        if alike:
            corners = nodes[offsets[0] :].reshape(-1, size)
        else:
            corners = nodes[offsets[some, None] + np.arange(size)]
        kind = LAGRANGE.get((kind, size), kind)
        if kind in ALIKE and size == len(ALIKE[kind][1]):
            kind, corners = ALIKE[kind][0], corners[:, ALIKE[kind][1]]
        elif kind in (POLYLINE, STRIP):
            size = 2 if kind == POLYLINE else 3
            windows = np.lib.stride_tricks.sliding_window_view(corners, size, axis=1)
            kind, corners = (3, 5)[kind == STRIP], windows.reshape(-1, size)
        elif kind == POLYGON and size in (3, 4):
            kind = {3: 5, 4: 9}[size]
        name = CELLS.get(kind, "")
        if name and corners.shape[1] != num_nodes(name):
            raise ValueError(f"{len(some)} cells of type {kind} with {size} nodes")
        if name:
            cells.append((name, corners))
        elif kind not in VERTICES:
            unknown.append(f"{len(some)} of type {kind}, {classes[str(kind)]}")
    return ([] if unknown else cells), "; ".join(unknown)
