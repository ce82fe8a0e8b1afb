"""The MATLAB files of the FNO paper, and the tensors of the neuraloperator library.

These files tell neither coordinates nor a domain, mostly no times. All of that is known
of the published files, by their names; of a file of any other name it is asked for.
"""

from __future__ import annotations

import pickle
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from xarray import Variable

from nfsgeo.data.build import Array, on_unit_box
from nfsgeo.data.fields import INITIAL, STATIC, Fields
from nfsgeo.data.formats import containers
from nfsgeo.data.formats.format import Format, left_out, unknown_set
from nfsgeo.errors import UserError

LEGACY = bytes.fromhex("80028a0a6cfc9c46f920")  # how files of old PyTorch begin
TENSORS = "neuraloperator (.pt): a dict of tensors x and y, no other objects"
SNAPSHOTS, STEP = 17, 0.06  # of burgers_lowres.pt, every sixth of 101 from t = 0 to 1
# Arrays of the published files that are made from the others, or read with them.
DERIVED = re.compile("t|K?coeff_[xy]|Kcoeff|a_x|a_smooth(_x)?")


def _pairs(path: Path, a: Variable, u: Variable) -> Fields:
    """The initial condition at t = 0 and the solution at t = 1 are two time steps."""
    both = Array(np.stack([a.values, u.values], axis=1), "ntx", ["u"])
    return on_unit_box(path, [both], "burgers", [0.0, 1.0])


def _series(path: Path, first: Variable, u: Variable) -> Fields:
    """The first time step is unreliable and replaced by the input.

    Viscosity and times are in the name alone: ``v100`` is 1/100, ``t200`` are 200 steps
    from t = 0 to 1.
    """
    values = np.concatenate([first.values[:, None], u.values[:, 1:]], axis=1)
    steps = u.shape[1] - 1
    named = re.search(rf"(?<![A-Za-z])t{steps}(?!\d)", path.name)
    times = np.linspace(0, 1, steps + 1) if named else None
    viscosity = 1 / int(re.findall(r"v(\d+)", path.name)[0])
    arrays = [Array(values, "ntx", ["u"])]
    return on_unit_box(path, arrays, "burgers", times, viscosity=viscosity)


def _flow(path: Path, a: Variable, u: Variable) -> Fields:
    """Vorticity at the file's own times; at 1, ..., 50 where its name has ``T50``."""
    times: Any = None
    if "t" in containers.shapes(path):
        times = containers.read(path, ["t"])["t"].values.ravel()
    elif re.search(rf"_T{u.shape[3]}(?!\d)", path.name):
        times = np.arange(1.0, 1 + u.shape[3])
    arrays = [Array(u, "nxyt", ["w"]), Array(a, "nxy", ["w0"], INITIAL)]
    return on_unit_box(path, arrays, "navier-stokes", times)


def _darcy(path: Path, a: Variable, u: Variable) -> Fields:
    """Coefficient and solution at nodes that include the boundary."""
    arrays = [Array(u, "nxy", ["u"]), Array(a, "nxy", ["a"], STATIC)]
    return on_unit_box(path, arrays, "darcy", [0.0], periodic=False, kind="closed")


Set = tuple[str, dict[str, str], Callable[[Path, Variable, Variable], Fields]]
# How the files are called, the input and the output with the letters of their axes.
SETS: tuple[Set, ...] = (
    (r"burgers_data_R\d", {"a": "nx", "u": "nx"}, _pairs),
    (r"burgers_v\d+_t\d", {"input": "nx", "output": "ntx"}, _series),
    (r"(NavierStokes|ns(_data)?)_V\d", {"a": "nxy", "u": "nxyt"}, _flow),
    (r"piececonst_r\d", {"coeff": "nxy", "sol": "nxy"}, _darcy),
)


def _set_of(shapes: Mapping[str, tuple[int, ...]]) -> Set:
    ranks = {(name, len(shape)) for name, shape in shapes.items()}
    return next(s for s in SETS if {(n, len(a)) for n, a in s[1].items()} <= ranks)


def _fno(path: Path) -> Fields:
    """Arrays of Li et al. (2021): Burgers ``a`` and ``u``, or ``input`` and ``output``,
    Navier-Stokes ``a`` and ``u``, Darcy ``coeff`` and ``sol``, known by their names.
    """
    shapes = containers.shapes(path)
    pattern, axes, read = _set_of(shapes)
    if not re.match(pattern, path.name):
        raise unknown_set(path, shapes, axes)
    left_out(path, [n for n in shapes if n not in axes and not DERIVED.fullmatch(n)])
    return read(path, *containers.read(path, axes).values())


def _neuraloperator(path: Path) -> Fields:
    """Coefficient to solution, forcing to vorticity, or trajectories from ``x``.

    The tensors were thinned out from a finer grid, which leaves nodes at i/n even on
    the bounded axes of Darcy flow.
    """
    tensors = _load(path)
    x, y = tensors["x"].numpy(), tensors["y"].numpy()
    timed, space = y.ndim > x.ndim, "xyz"[: x.ndim - 1]
    axes = {"x": f"n{space}", "y": f"nt{space}" if timed else f"n{space}"}
    named = re.match(r"(darcy|nsforcing|burgers)_(train|test|lowres)", path.name)
    if not named or len(space) != 1 + (named[1] != "burgers"):
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        raise unknown_set(path, shapes, axes, "x=x, y=y")
    left_out(path, [name for name in tensors if name not in ("x", "y", "visc")])
    times: Any = STEP * np.arange(SNAPSHOTS) if y.shape[1] == SNAPSHOTS else None
    static = Array(x, axes["x"], ["a"], INITIAL if timed else STATIC)
    arrays, times = [Array(y, axes["y"], ["u"]), static], times if timed else [0.0]
    equation = {"nsforcing": "navier-stokes"}.get(named[1], named[1])
    periodic, viscosity = named[1] != "darcy", tensors.get("visc")
    return on_unit_box(
        path, arrays, equation, times, periodic=periodic, viscosity=viscosity
    )


def _load(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a file, by name; says what else it holds."""
    try:
        zipped = zipfile.is_zipfile(path)
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except pickle.UnpicklingError as error:
        found = re.findall(r"GLOBAL (\S+)", str(error))
    named = found.items() if isinstance(found, dict) else ()
    tensors = {str(k): v.detach() for k, v in named if isinstance(v, torch.Tensor)}
    if not {"x", "y"} <= tensors.keys():
        what = ", ".join(f"{k} ({type(v).__name__.lower()})" for k, v in named)
        what = what or " ".join(str(found).split())
        given = f"{path}, a {type(found).__name__} of {what[:200]}"
        todo = "save it as arrays: numpy.savez('arrays.npz', coords=points, u=fields)"
        raise UserError(given, TENSORS, todo)
    return tensors


FNO = Format(
    "FNO's Burgers, Darcy and Navier-Stokes (.mat)",
    lambda look: look.head.startswith(b"MATLAB") and bool(_set_of(look.shapes)),
    _fno,
)
NEURALOPERATOR = Format(
    "neuraloperator (.pt)",
    lambda look: (
        look.head.startswith(LEGACY)
        or any(name.endswith("/data.pkl") for name in look.zipped)
    ),
    _neuraloperator,
    TENSORS,
)
