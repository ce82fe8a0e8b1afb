"""Published point clouds: CAMLab's sets of RIGNO and GAOT, and those of Geo-FNO."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from nfsgeo.data.build import Array, build, numbered
from nfsgeo.data.domains import check_within
from nfsgeo.data.fields import SPACE, STATIC, Fields, reading
from nfsgeo.data.formats import containers
from nfsgeo.data.formats.format import Format, Look, left_out
from nfsgeo.data.lazy import Key, deferred
from nfsgeo.data.splits import published_split
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

FLOW, GAS = ("velocity_x", "velocity_y"), ("velocity_x", "velocity_y", "pressure")
# What the authors of CAMLab's sets tell of them, by the name of the file in lower case
# and with hyphens: the first components, which are predicted; the name of the
# coefficient, if it is an input; the time of the last of 21 steps from 0, 0 for steady
# problems. The domain of ns-... and ce-... is the periodic unit square.
SETS: dict[str, tuple[tuple[str, ...], str, float]] = {
    **dict.fromkeys(("ns-gauss", "ns-pwc", "ns-sl", "ns-svs"), (FLOW, "", 1.0)),
    **dict.fromkeys(("ce-gauss", "ce-rp"), (("density", *GAS), "", 1.0)),
    **dict.fromkeys(("airfoil-li", "airfoil-li-large"), (("density",), "distance", 0)),
    **dict.fromkeys(("poisson-c-sines", "poisson-gauss"), (("u",), "source", 0)),
    "elasticity": (("stress",), "distance", 0),
    "ace": (("u",), "", 0.0002),
    "heat-l-sines": (("u",), "", 0.002),
    "wave-layer": (("u",), "speed", 1.0),
    "wave-c-sines": (("u",), "", 0.1),
    "wave-c-sines-uv": (("u", "u_t"), "", 0.1),
}
# Geo-FNO's component, its channel and the files of coordinates beside those of fields.
GEO = {
    "Random_UnitCell_sigma_10.npy": ("stress", -1, ["Random_UnitCell_XY_10.npy"]),
    "Pipe_Q.npy": ("velocity_x", 0, ["Pipe_X.npy", "Pipe_Y.npy"]),
    "NACA_Cylinder_Q.npy": ("mach", 4, ["NACA_Cylinder_X.npy", "NACA_Cylinder_Y.npy"]),
}


def _camlab(path: Path) -> Fields:
    """``u`` (samples, time steps, points, components), ``x`` (samples or 1, 1, points,
    axes) and optionally ``c``, a coefficient, axes as ``u``.

    The file tells neither times nor names nor a domain; ``SETS`` does. Components that
    the authors do not predict are left out. Of other sets all components are read, and
    times have to be given.
    """
    name, shapes = path.stem.lower().replace("_", "-"), containers.shapes(path)
    found = containers.read(path, [each for each in "uxc" if each in shapes])
    (samples, steps, num_points, width), u, x = shapes["u"], found["u"], found["x"]
    if x.shape[:3] not in [(1, 1, num_points), (samples, 1, num_points)]:
        raise ValueError(f"x of shape {x.shape} and u of shape {u.shape}")
    unknown = tuple(numbered("u", width)), "c" if "c" in found else "", 0
    names, coefficient, end = SETS.get(name, unknown)
    arrays = [Array(u[..., : len(names)], "ntpc", names)]
    if coefficient:
        c, read = found["c"], partial(_still, path, found["c"])
        still = deferred([*"npc"], (len(c), *c.shape[2:]), c.dtype, read)
        arrays.append(Array(still, "npc", numbered(coefficient, c.shape[3]), STATIC))
    left_out(path, sorted(shapes.keys() - {"u", "x", "c" if coefficient else "u"}))
    times: Any = [0.0] if steps == 1 else None
    if end and (steps == 21 or name == "wave-layer"):
        times = np.linspace(0, end, steps)
    dims = ["sample", "point", "d"][len(x) == 1 :]
    at = Variable(dims, x[:, 0] if len(x) > 1 else x[0, 0])
    periodic = name in SETS and name[:3] in ("ns-", "ce-")
    if periodic:
        square, meshes = Domain.unit(x.shape[3], periodic=False), (m.values for m in x)
        check_within(square, (mesh[0] for mesh in meshes), path)
    return build(
        path,
        arrays,
        points={
            axis: at[..., i] for axis, i in zip(SPACE, range(x.shape[3]), strict=False)
        },
        times=times,
        domain=Domain.unit(x.shape[3]) if periodic else None,
        split=published_split(samples, 1024, 128, 256),
    )


def _still(path: Path, values: Variable, key: Key) -> NDArray[Any]:
    """Reads a coefficient that must be the same at every time step."""
    steps = values[(key[0], slice(None), *key[1:])].values
    steps = np.moveaxis(steps, int(isinstance(key[0], slice)), 0)
    if (steps != steps[:1]).any():
        given, same = f"{path} with c that changes in time", "one for all time steps"
        raise UserError(given, same, "store it as components of u")
    return np.asarray(steps[0])


def _geo_fno(path: Path) -> Fields:
    """Arrays (samples, channels, i, j) and coordinates (samples, i, j) of a grid;
    of elasticity (points, samples) and (points, 2, samples).

    The input is the mesh itself. 1000 samples are for training and 200 for the test, as
    published: the last ones, or those that follow; 100 others are for validation.
    """
    main = next(m for m, (*_, beside) in GEO.items() if path.name in (m, *beside))
    if path.name != main:
        given, todo = f"{path}, which belongs to {main}", f"give {main} alone"
        raise UserError(given, f"the set by its {main}", todo)
    component, channel, beside = GEO[main]
    u, *axes = (_load(path, name) for name in (main, *beside))
    shapes = ", ".join(str(array.shape) for array in (u, *axes))
    u = u[:, channel] if channel >= 0 else u.T
    axes = axes if channel >= 0 else [*np.moveaxis(axes[0], 0, -1)]
    if len(axes) != 2 or any(axis.shape != u.shape for axis in axes):
        raise ValueError(f"arrays of shape {shapes}")
    u, x, y = (each.reshape(len(each), -1) for each in (u, *axes))
    dims = ("sample", "point")
    at = {"x": Variable(dims, x), "y": Variable(dims, y)}
    static = [Array(at[name], "np", [f"{name}_position"], STATIC) for name in at]
    return build(
        path,
        [Array(u, "np", [component]), *static],
        points=at,
        times=[0.0],
        split=published_split(len(u), 1000, 100, 200, test_last=channel < 0),
    )


def _load(path: Path, name: str) -> NDArray[Any]:
    """The array in a file beside another one."""
    beside = path.with_name(name)
    if not beside.exists():
        raise UserError(f"{path} without {name}", "both in one folder", "put it there")
    with reading(beside, "an undamaged array (.npy)"):
        return np.asarray(np.load(beside, mmap_mode="r", allow_pickle=False))


def _is_geo_fno(look: Look) -> bool:
    names = {name for main, (*_, beside) in GEO.items() for name in (main, *beside)}
    return look.path.name in names and look.head.startswith(containers.NUMPY)


CAMLAB = Format(
    "CAMLab point clouds of RIGNO and GAOT (.nc)",
    lambda look: look.is_hdf5 and [len(look.shapes[name]) for name in "ux"] == [4, 4],
    _camlab,
    "a set of CAMLab: u (samples, time steps, points, components), x (samples or 1, 1, "
    "points, axes), optionally c as u",
)
GEO_FNO = Format("Geo-FNO elasticity, pipe and airfoil (.npy)", _is_geo_fno, _geo_fno)
