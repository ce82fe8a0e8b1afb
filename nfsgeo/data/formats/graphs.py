"""Lists of PyTorch Geometric's ``Data`` in files of ``torch.save``."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from nfsgeo.data.build import Array, build, numbered
from nfsgeo.data.checks import on_cpu
from nfsgeo.data.fields import KNOWN, STATIC, Fields
from nfsgeo.data.formats.format import Format, Look
from nfsgeo.errors import UserError

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["GRAPHS", "fields_of_graphs"]

TIMES, READ = ("time", "times"), ("pos", "x", "y", "forcing", "t", "face")
LEFT_OUT = ("edge_index", "edge_attr", "edge_weight", "num_nodes")  # made anew
SERIES = 'give --series {0}, in Python series="{0}"'


def _read(path: Path, series: Any = None) -> Fields:
    """The graphs of a file, without running any code that it names."""
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    known = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    with torch.serialization.safe_globals(known):
        found = torch.load(path, map_location="cpu", weights_only=True)
    return fields_of_graphs(path, [found] if isinstance(found, Data) else found, series)


def fields_of_graphs(
    path: Path, graphs: Iterable[Data], series: str | None = None
) -> Fields:
    """Each graph a sample, or all of them the time steps of one.

    ===========  =======================================================================
    attribute    content
    ===========  =======================================================================
    ``pos``      coordinates, (points, axes)
    ``x``        (points, time steps, components); without the axis of time, one time
                 step, or the coefficient where there is a ``y``
    ``y``        with an axis of time, the time steps after ``x``; else the solution
    ``forcing``  with an axis of time, that of ``x`` and ``y``: known ahead; optional
    ``t``        (time steps), of ``x`` and ``y``; optional
    ``face``     (3, triangles), optional
    others       numbers, one for each graph: parameters; in a series all the same
    ===========  =======================================================================

    Batches are taken apart. Edges are left out: nfsgeo makes its own graphs. Whether
    ``series`` is ``"samples"`` or ``"time-steps"`` has to be said of graphs on the same
    points that have no axis of time. ``path`` is for messages.

    Raises:
        UserError: Also where an attribute would go unread.
    """
    from torch_geometric.data import Batch

    lists = [g.to_data_list() if isinstance(g, Batch) else [g] for g in graphs]
    parts = [_arrays(path, k, graph) for k, graph in enumerate(chain(*lists))]
    first, timed = parts[0], [part["x"].ndim == 3 for part in parts]
    shared = all(np.array_equal(part["pos"], first["pos"]) for part in parts)
    twins = all("y" in p and p["x"].shape == p["y"].shape for p in parts)
    if series is None and not all(timed) and (twins or (shared and len(parts) > 1)):
        given = f"{path} with {len(parts)} graphs without an axis of time in x"
        told = "to be told whether they are samples, from x to y, or time steps of one"
        raise UserError(given, told, SERIES.format("samples") + ", or time-steps")
    in_time = series == "time-steps"
    if in_time and (any(timed) or not shared or "y" in first):
        wanted = "graphs on the same points, with x without an axis of time and no y"
        todo = "leave y out, or " + SERIES.format("samples")
        raise UserError(f"{path} as time steps", wanted, todo)
    same = {*first} - {"x", "forcing", "t"} if in_time else {"t"}
    for number, part in enumerate(parts):
        odd = part.keys() ^ first.keys()
        both = same & part.keys() & first.keys()
        odd |= {name for name in both if not np.array_equal(part[name], first[name])}
        if odd:
            names = ", ".join("its times" if name == "t" else name for name in odd)
            given = f"{path} with graph {number} that differs from the first in {names}"
            other = SERIES.format("samples" if in_time else "time-steps")
            raise UserError(given, "the same in each", f"{other}, if they are such")
    if in_time:
        moving = [name for name in ("x", "forcing") if name in first]
        first = first | {n: np.stack([p[n] for p in parts], 1) for n in moving}
        if "t" in first:
            first["t"] = np.concatenate([part["t"] for part in parts])
        parts = [first]
    u = [part.get("y", part["x"]) for part in parts]
    u = [values if values.ndim == 3 else values[:, None] for values in u]
    arrays = [Array(u, "ptc", numbered("u", u[0].shape[2]))]
    if "y" in first:
        a = [part["x"] for part in parts]
        arrays.append(Array(a, "pc", numbered("a", a[0].shape[1]), STATIC))
    if "forcing" in first:
        known = [part["forcing"] for part in parts]
        arrays.append(Array(known, "ptc", numbered("f", known[0].shape[-1]), KNOWN))
    return build(
        path,
        arrays,
        points=[part["pos"] for part in parts],
        times=first.get("t"),
        cells=[{"triangle": p["face"].T} if "face" in p else {} for p in parts],
        parameters={n: [p[n] for p in parts] for n in sorted(first) if n not in READ},
    )


def _arrays(path: Path, number: int, graph: Data) -> dict[str, NDArray[Any]]:
    """The attributes of a graph by what they are, ``x`` and ``y`` with components."""
    found: dict[str, NDArray[Any]] = {}
    for key, value in graph.to_dict().items():
        values, name = np.asarray(on_cpu(value)), "t" if key in TIMES else key
        if name in LEFT_OUT:
            continue
        if name in ("x", "y", "forcing") and values.ndim == 1:
            values = values[:, None]
        elif name not in READ:
            if values.size != 1 or values.dtype.kind not in "biuf":
                only = f"attributes {', '.join(READ)}, and single numbers"
                todo = "rename it or leave it out; take batches apart, to_data_list()"
                raise UserError(f"{path} with {key} in graph {number}", only, todo)
            values = values.reshape(())
        found[name] = np.atleast_1d(values) if name == "t" else values
    if lost := ", ".join({"pos", "x"} - found.keys()):
        given = f"{path} with graph {number} without {lost}"
        raise UserError(given, "graphs with pos and x", f"set data.{lost}")
    if "y" in found and 3 in (found["x"].ndim, found["y"].ndim):
        found["x"] = np.concatenate([found["x"], found.pop("y")], axis=1)
    return found


def _is_graphs(look: Look) -> bool:
    with zipfile.ZipFile(look.path) as archive:
        names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        return any(b"torch_geometric" in archive.read(name) for name in names)


GRAPHS = Format(
    "lists of PyTorch Geometric's Data (.pt)",
    _is_graphs,
    _read,
    "graphs in one list, as of torch.save([*dataset], path) or batch.to_data_list()",
    "kinds",
)
