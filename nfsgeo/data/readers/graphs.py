"""Lists of PyTorch Geometric's ``Data`` in files of ``torch.save``."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.readers.clouds import CloudFile, numbered
from nfsgeo.data.readers.reader import Reader
from nfsgeo.errors import UserError

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["GRAPHS", "fields_of_graphs", "is_graphs"]

NAME = "lists of PyTorch Geometric's Data (.pt)"
TIMES = ("t", "time", "times")
PARAMETER = "parameter "  # before the name of a number among the attributes
# Made anew by nfsgeo, or made by PyTorch Geometric from the others.
LEFT_OUT = ("edge_index", "edge_attr", "edge_weight", "num_nodes", "batch", "ptr")


def is_graphs(path: Path) -> bool:
    """Whether a file of ``torch.save`` names classes of PyTorch Geometric."""
    with zipfile.ZipFile(path) as archive:
        pickled = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        return any(b"torch_geometric" in archive.read(name) for name in pickled)


def _graphs(path: Path, series: str | None = None) -> FieldFile:
    """Each graph a sample with ``pos``, ``x`` and optionally ``y``, ``t`` and ``face``,
    or all of them the time steps of one.
    """
    return fields_of_graphs(path, _load(path), series)


def fields_of_graphs(
    path: Path, graphs: Sequence[Data], series: str | None = None
) -> FieldFile:
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

    Edges are left out: nfsgeo makes its own graphs. In a series, ``y`` has to be the
    next graph's ``x``, and that of the last graph is one time step more.

    Args:
        path: The file, for messages.
        graphs: What it holds.
        series: ``"samples"`` or ``"time-steps"``; has to be said of graphs on the same
            points that have no axis of time.

    Raises:
        UserError: Also where an attribute would go unread.
    """
    parts = [_arrays(path, number, graph) for number, graph in enumerate(graphs)]
    steps = all(part["x"].ndim == 3 for part in parts)
    shared = all(np.array_equal(part["pos"], parts[0]["pos"]) for part in parts)
    twins = all("y" in p and p["x"].shape == p["y"].shape for p in parts)
    if series is None and not steps and (twins or (shared and len(parts) > 1)):
        raise UserError(
            f"{path} with {len(parts)} graphs without an axis of time in x",
            "to be told whether they are samples, from x to y, or time steps of one",
            "say it: --series samples or --series time-steps, in Python "
            'series="samples" or series="time-steps"',
        )
    for number, part in enumerate(parts):
        if part.keys() != parts[0].keys():
            odd = sorted(part.keys() ^ parts[0].keys())
            raise UserError(
                f"{path} with graph {number} that differs from the first in "
                f"{', '.join(name.removeprefix(PARAMETER) for name in odd)}",
                "graphs of the same attributes",
                "add it or leave it out",
            )
    if series == "time-steps":
        parts = [_chained(path, parts)]
    numbers = [name for name in parts[0] if name.startswith(PARAMETER)]
    for number, part in enumerate(parts):
        for name in ("x", "y", "forcing"):
            if name in part and part[name].shape[1:] != parts[0][name].shape[1:]:
                raise UserError(
                    f"{path} with {name} of shape {part[name].shape} in graph {number} "
                    f"and {parts[0][name].shape} in the first",
                    "as many time steps and components in all graphs",
                    "reshape it or leave the graph out",
                )
        if "t" in part and not np.array_equal(part["t"], parts[0]["t"]):
            raise UserError(
                f"{path} with graph {number} at other times than the first",
                "samples with the same times",
                "give --series time-steps, in Python series="
                '"time-steps", if they are those of one sample',
            )
    a = [part["x"] for part in parts] if "y" in parts[0] and not steps else []
    u = [part["y"][:, None] if a else part["x"] for part in parts]
    u = [values[:, None] if values.ndim == 2 else values for values in u]
    if steps and "y" in parts[0]:
        u = [np.concatenate([p["x"], p["y"]], axis=1) for p in parts]
    names = numbered("u", u[0].shape[2])
    if "forcing" in parts[0]:
        known = [part["forcing"] for part in parts]
        _check_forcing(path, known, u)
        names = [*names, *numbered("forcing_f", known[0].shape[2])]
        u = [np.concatenate(pair, axis=2) for pair in zip(u, known, strict=True)]
    times = parts[0].get("t")
    return CloudFile(
        path,
        meshes=[part["pos"] for part in parts],
        u=u,
        a=a,
        times=times if times is not None or u[0].shape[1] > 1 else [0.0],
        component_names=names,
        static_names=numbered("a", a[0].shape[1]) if a else [],
        cells=[
            {"triangle": part["face"].T} if "face" in part else {} for part in parts
        ],
        parameters={
            name.removeprefix(PARAMETER): np.stack([p[name] for p in parts])
            for name in sorted(numbers)
        },
    )


def _arrays(path: Path, number: int, graph: Data) -> dict[str, NDArray[Any]]:
    """The attributes of a graph by what they are, ``x`` and ``y`` with components."""
    found: dict[str, NDArray[Any]] = {}
    for key, value in graph.to_dict().items():
        if key in LEFT_OUT:
            continue
        values = value.detach().numpy() if isinstance(value, torch.Tensor) else value
        name = "t" if key in TIMES else key
        if name not in ("pos", "x", "y", "forcing", "t", "face"):
            if np.size(values) != 1 or not isinstance(
                value, (torch.Tensor, int, float)
            ):
                raise UserError(
                    f"{path} with {key} in graph {number}",
                    "attributes pos, x, y, forcing, t, face, and single numbers",
                    "rename it or leave it out",
                )
            name, values = PARAMETER + key, np.asarray(values).reshape(())
        if name == "t":
            values = np.atleast_1d(values)
        if name in ("x", "y", "forcing") and values.ndim == 1:
            values = values[:, None]
        found[name] = values
    for name in ("pos", "x"):
        if name not in found:
            raise UserError(
                f"{path} with graph {number} without {name}",
                "graphs with pos and x",
                f"set data.{name}",
            )
    if "y" in found and (found["y"].ndim, len(found["y"])) != (
        found["x"].ndim,
        len(found["x"]),
    ):
        raise UserError(
            f"{path} with x of shape {found['x'].shape} and y of shape "
            f"{found['y'].shape} in graph {number}",
            "both at the points, with an axis of time or both without",
            "reshape one",
        )
    return found


def _check_forcing(
    path: Path, known: list[NDArray[Any]], u: list[NDArray[Any]]
) -> None:
    for number, (forcing, field) in enumerate(zip(known, u, strict=True)):
        if forcing.ndim != 3 or forcing.shape[:2] != field.shape[:2]:
            raise UserError(
                f"{path} with a forcing of shape {forcing.shape} in graph {number}",
                f"({field.shape[0]} points, {field.shape[1]} time steps of x and y, "
                "components)",
                "reshape it",
            )


def _chained(path: Path, parts: list[dict[str, NDArray[Any]]]) -> dict[str, Any]:
    """One sample of graphs that are its time steps."""
    x = [part["x"] for part in parts]
    one = all(v.ndim == 2 and v.shape == x[0].shape for v in x)
    if not one or not all(np.array_equal(p["pos"], parts[0]["pos"]) for p in parts):
        raise UserError(
            f"{path} as time steps of one sample",
            "graphs on the same points, x without an axis of time",
            'give --series samples, in Python series="samples"',
        )
    ahead = [part["y"] for part in parts if "y" in part]
    if ahead:
        if not all(
            np.array_equal(y, after) for y, after in zip(ahead, x[1:], strict=False)
        ):
            raise UserError(
                f"{path} as time steps of one sample, with a y that is not the next x",
                "y to be x of the next graph",
                'leave y out or give --series samples, in Python series="samples"',
            )
        x.append(ahead[-1])
    found = {"pos": parts[0]["pos"], "x": np.stack(x, axis=1)}
    found |= {"face": parts[0]["face"]} if "face" in parts[0] else {}
    known = [part["forcing"] for part in parts if "forcing" in part]
    if known:
        found["forcing"] = np.stack(known, axis=1)
    times = [part["t"] for part in parts if "t" in part]
    if times:
        found["t"] = _times_of_series(path, times, 2 if ahead else 1)
    for name in parts[0]:
        if name.startswith(PARAMETER):
            if any(part[name] != parts[0][name] for part in parts):
                raise UserError(
                    f"{path} as time steps of one sample, with "
                    f"{name.removeprefix(PARAMETER)} that differs between them",
                    "one number for the sample",
                    "leave it out, or give it at the points as part of x",
                )
            found[name] = parts[0][name]
    return found


def _times_of_series(path: Path, times: list[NDArray[Any]], each: int) -> NDArray[Any]:
    """The times of graphs that are time steps, with that after the last one's ``x``.

    Args:
        path: The file, for messages.
        times: Of each graph.
        each: How many: one, of ``x``, or two, of ``x`` and ``y``.
    """
    fitting = all(t.shape == (each,) for t in times)
    if not fitting or any(
        before[-1] != after[0]
        for before, after in zip(times, times[1:], strict=False)
        if each == 2
    ):
        wanted = "one time for each graph, that of its x"
        if each == 2:
            wanted = "two times for each graph, of its x and of its y, the next x"
        raise UserError(
            f"{path} as time steps of one sample, with t of {len(times[0])} times in "
            "the first graph",
            wanted,
            "set data.t",
        )
    return np.concatenate([t[:1] for t in times] + [times[-1][1:]])


def _load(path: Path) -> list[Data]:
    """The graphs, without running any code that the file names."""
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    known = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    with torch.serialization.safe_globals(known):
        found = torch.load(path, map_location="cpu", weights_only=True)
    graphs = [found] if isinstance(found, Data) else found
    listed = isinstance(graphs, (list, tuple)) and len(graphs) > 0
    if not listed or not all(isinstance(each, Data) for each in graphs):
        raise UserError(
            f"{path}, which holds a {type(found).__name__} of other things",
            NAME,
            "save the graphs as a list: torch.save([*dataset], path)",
        )
    return list(graphs)


GRAPHS = Reader(NAME, is_graphs, _graphs, "", ("series",))
