"""Published sets, of which the names of files and arrays tell what the files do not.

Coordinates, times and the domain are those that the authors tell. Files of other names
with such arrays are arrays like any other, see :mod:`nfsgeo.data.io.described_arrays`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from xarray import Variable

from nfsgeo.data.build import Array, build, even_axis, nodes, numbered
from nfsgeo.data.conventions import INITIAL, SPACE, STATIC
from nfsgeo.data.domains import check_within
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.array_files import arrays_of, attributes
from nfsgeo.data.io.format import Format, left_out
from nfsgeo.data.splits import published_split
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

Arrays = Mapping[str, Variable]

FLOW, GAS = ("velocity_x", "velocity_y"), ("velocity_x", "velocity_y", "pressure")
# What the authors of CAMLab's sets tell of them, by the name of the file in lower case
# and with hyphens: the first components, which are predicted; the name of the
# coefficient, if it is an input; the time of the last of 21 steps from 0, 0 for steady
# problems. The domain of ns-... and ce-... is the periodic unit square.
CAMLAB: dict[str, tuple[Sequence[str], str, float]] = {
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
GEO_FNO = {
    "Random_UnitCell_sigma_10.npy": ("stress", -1, ["Random_UnitCell_XY_10.npy"]),
    "Pipe_Q.npy": ("velocity_x", 0, ["Pipe_X.npy", "Pipe_Y.npy"]),
    "NACA_Cylinder_Q.npy": ("mach", 4, ["NACA_Cylinder_X.npy", "NACA_Cylinder_Y.npy"]),
}
SNAPSHOTS, STEP = 17, 0.06  # of burgers_lowres.pt, every sixth of 101 from t = 0 to 1


def _on_unit_box(
    path: Path,
    arrays: Sequence[Array],
    equation: str,
    times: Any = None,
    *,
    periodic: bool = True,
    kind: str = "nodes",
    **parameters: Any,
) -> Fields:
    """On nodes at i/n, closed axes with both ends, or centres of cells."""
    values, letters = arrays[0].values, arrays[0].axes
    sizes = [values.shape[letters.index(axis)] for axis in SPACE if axis in letters]
    axes = [nodes(size, periodic=kind != "closed") for size in sizes]
    shift = 0.5 if kind == "centres" else 0.0
    return build(
        path,
        arrays,
        axes=[axis + shift / len(axis) for axis in axes],
        times=times,
        domain=Domain.unit(len(sizes), periodic=periodic),
        equation=equation,
        provenance={"parameters": parameters},
    )


def _burgers_pairs(path: Path, found: Arrays) -> Fields:
    """The initial condition at t = 0 and the solution at t = 1 are two time steps."""
    both = np.stack([found["a"].values, found["u"].values], axis=1)
    return _on_unit_box(path, [Array(both, "ntx", ["u"])], "burgers", [0.0, 1.0])


def _burgers_series(path: Path, found: Arrays) -> Fields:
    """The first time step is unreliable and replaced by the input.

    Viscosity and times are in the name alone: ``v100`` is 1/100, ``t200`` are 200 steps
    from t = 0 to 1.
    """
    first, u = found["input"].values[:, None], found["output"].values
    arrays = [Array(np.concatenate([first, u[:, 1:]], axis=1), "ntx", ["u"])]
    steps = u.shape[1] - 1
    named = re.search(rf"(?<![A-Za-z])t{steps}(?!\d)", path.name)
    times = np.linspace(0, 1, steps + 1) if named else None
    viscosity = 1 / int(re.findall(r"v(\d+)", path.name)[0])
    return _on_unit_box(path, arrays, "burgers", times, viscosity=viscosity)


def _vorticity(path: Path, found: Arrays) -> Fields:
    """At the file's own times; at 1, ..., 50 where its name has ``T50``."""
    u, times = found["u"], None
    if "t" in found:
        times = found["t"].values.ravel()
    elif re.search(rf"_T{u.shape[3]}(?!\d)", path.name):
        times = np.arange(1.0, 1 + u.shape[3])
    arrays = [Array(u, "nxyt", ["w"]), Array(found["a"], "nxy", ["w0"], INITIAL)]
    return _on_unit_box(path, arrays, "navier-stokes", times)


def _darcy(path: Path, found: Arrays) -> Fields:
    """Coefficient and solution at nodes that include the boundary."""
    arrays = [Array(found["sol"], "nxy", ["u"])]
    arrays += [Array(found["coeff"], "nxy", ["a"], STATIC)]
    return _on_unit_box(path, arrays, "darcy", periodic=False, kind="closed")


def _from_x_to_y(path: Path, found: Arrays) -> Fields:
    """Coefficient to solution, force to vorticity, or trajectories from ``x``.

    The tensors were thinned out from a finer grid, which leaves nodes at i/n even on
    the bounded axes of Darcy flow.
    """
    x, y, equation = found["x"], found["y"], path.name.partition("_")[0]
    timed, space = equation == "burgers", "x" if x.ndim == 2 else "xy"
    arrays = [Array(y, f"nt{space}" if timed else f"n{space}", ["u"])]
    arrays += [Array(x, f"n{space}", ["a"], INITIAL if timed else STATIC)]
    known = timed and y.shape[1] == SNAPSHOTS
    times = STEP * np.arange(SNAPSHOTS) if known else None
    about: dict[str, Any] = {"periodic": equation != "darcy"}
    if "visc" in found:
        about["viscosity"] = float(found["visc"].values.flat[0])
    equation = "navier-stokes" if equation == "nsforcing" else equation
    return _on_unit_box(path, arrays, equation, times, **about)


def _nfs(path: Path, found: Arrays) -> Fields:
    """The NFS authors' ``u`` (samples, x[, y], time steps) and ``a`` without time, on
    the unit torus; at points ``x`` (points, axes) or (x, y, axes), if there are such.

    ``a`` is a static input where there is one time step, else the initial condition.
    """
    u, a = found["u"].values, found["a"].values
    role = STATIC if u.shape[-1] == 1 else INITIAL
    space = "p" if "x" in found else SPACE[: a.ndim - 1]
    if "x" in found:
        points = found["x"].values
        flat = points.reshape(-1, points.shape[-1])
        if u.shape[1:-1] not in (points.shape[:-1], (len(flat),)):
            raise ValueError(f"u {u.shape} does not fit x {points.shape}")
        u, a = u.reshape(len(u), len(flat), -1), a.reshape(len(u), len(flat))
    arrays = [Array(u, f"n{space}t", ["u"]), Array(a, f"n{space}", ["a"], role)]
    if "x" in found:
        return build(path, arrays, points=flat)
    return _on_unit_box(path, arrays, "")


def _pdebench(path: Path, found: Arrays) -> Fields:
    """Trajectories in one dimension, or Darcy flow, at centres of cells; Navier-Stokes
    with particles.

    The names of published sets tell the domain, which is periodic in one dimension.
    ``t-coordinate`` has one entry too many; the viscosity of Burgers' equation is
    Nu/pi, with Nu an attribute or in the name.
    """
    line, u, about = "nu" not in found, found["tensor"], attributes(path)
    names = [name for name in ("x-coordinate", "y-coordinate") if name in found]
    axes, domain = [found[name].values.astype(float) for name in names], None
    sets = r"1D_(Burgers|Advection)_|ReacDiff_Nu()" if line else "2D_DarcyFlow()"
    if known := re.search(sets, path.name):
        ends = [even_axis(axis, centred=True) for axis in axes]
        axes, lower, upper = map(list, zip(*ends, strict=True))
        domain = Domain(tuple(lower), tuple(upper), (line,) * len(axes))
    burgers = line and known and known[1] == "Burgers"
    nu = re.search(r"Nu([0-9.]+\d)", path.name)
    parameters = {"beta": float(about["beta"])} if "beta" in about and not line else {}
    if burgers and (value := about.get("Nu", nu and nu[1])):
        parameters = {"viscosity": float(value) / math.pi}
    static = [] if line else [Array(found["nu"], "nxy", ["a"], STATIC)]
    return build(
        path,
        [Array(u, "ntx" if line else "ntxy", ["u"]), *static],
        axes=axes,
        times=found["t-coordinate"].values[: u.shape[1]] if line else None,
        domain=domain,
        equation="burgers" if burgers else "" if line else "darcy",
        provenance={"parameters": parameters},
    )


def _pdebench_flow(path: Path, found: Arrays) -> Fields:
    """Navier-Stokes with particles, which tells no coordinates."""
    times = found["t"].values
    if not np.allclose(times, times[0]):
        raise ValueError("samples stored at different times")
    arrays = [
        Array(found["velocity"], "ntxyc", ["u", "v"]),
        Array(found["particles"], "ntxyc", ["particles"]),
        Array(found["force"], "nxyc", ["force_x", "force_y"], STATIC),
    ]
    how: dict[str, Any] = {"periodic": False, "kind": "centres"}
    return _on_unit_box(path, arrays, "navier-stokes", times[0], **how)


def _camlab(path: Path, found: Arrays) -> Fields:
    """``u`` (samples, time steps, points, components), ``x`` (samples or 1, 1, points,
    axes) and optionally ``c``, a coefficient, axes as ``u``.

    The file tells neither times nor names nor a domain; ``CAMLAB`` does. Components
    that the authors do not predict are left out. Of other sets all components are read,
    and times have to be given.
    """
    name, u, x = path.stem.lower().replace("_", "-"), found["u"], found["x"]
    samples, steps, num_points, width = u.shape
    if x.shape[:3] not in [(1, 1, num_points), (samples, 1, num_points)]:
        raise ValueError(f"x of shape {x.shape} and u of shape {u.shape}")
    unknown = tuple(numbered("u", width)), "c" if "c" in found else "", 0
    names, coefficient, end = CAMLAB.get(name, unknown)
    arrays = [Array(u[..., : len(names)], "ntpc", names)]
    if coefficient:
        first, *others = (found["c"][:, step] for step in range(found["c"].shape[1]))
        if not all(np.array_equal(first.values, each.values) for each in others):
            given, same = f"{path} with c that changes in time", "one for all steps"
            raise UserError(given, same, "store it as components of u")
        arrays.append(
            Array(first, "npc", numbered(coefficient, first.shape[-1]), STATIC)
        )
    elif "c" in found:
        left_out(path, ["c"])
    times = None
    if end and (steps == 21 or name == "wave-layer"):
        times = np.linspace(0, end, steps)
    dims, dim = ["sample", "point", "d"][len(x) == 1 :], x.shape[3]
    at = Variable(dims, x[:, 0] if len(x) > 1 else x[0, 0])
    periodic = name in CAMLAB and name[:3] in ("ns-", "ce-")
    if periodic:
        square = Domain.unit(dim, periodic=False)
        check_within(square, (mesh[0].values for mesh in x), path)
    return build(
        path,
        arrays,
        points={axis: at[..., i] for i, axis in enumerate(SPACE[:dim])},
        times=times,
        domain=Domain.unit(dim) if periodic else None,
        split=published_split(samples, 1024, 128, 256),
    )


def _geo_fno(path: Path, found: Arrays) -> Fields:
    """Arrays (samples, channels, i, j) and coordinates (samples, i, j) of a grid;
    of elasticity (points, samples) and (points, 2, samples).

    The input is the mesh itself. 1000 samples are for training and 200 for the test, as
    published: the last ones, or those that follow; 100 others are for validation.
    """
    component, channel, beside = GEO_FNO[path.name]
    files = [path.with_name(name) for name in (path.name, *beside)]
    u, *axes = (np.load(file, mmap_mode="r", allow_pickle=False) for file in files)
    u = u[:, channel] if channel >= 0 else u.T
    axes = axes if channel >= 0 else [*np.moveaxis(axes[0], 0, -1)]
    if len(axes) != 2 or any(axis.shape != u.shape for axis in axes):
        raise ValueError(f"fields {u.shape} at {', '.join(str(a.shape) for a in axes)}")
    u, x, y = (each.reshape(len(each), -1) for each in (u, *axes))
    at = {axis: Variable(("sample", "point"), v) for axis, v in (("x", x), ("y", y))}
    static = [Array(at[name], "np", [f"{name}_position"], STATIC) for name in at]
    return build(
        path,
        [Array(u, "np", [component]), *static],
        points=at,
        split=published_split(len(u), 1000, 100, 200, test_last=channel < 0),
    )


class _Set(NamedTuple):
    """How the name begins, the number of axes of arrays that are always there, and
    names of those that may be, which are read as well or made from those that are.
    """

    name: str
    axes: dict[str, int]
    read: Callable[[Path, Arrays], Fields]
    beside: str = "$"


SMOOTH = "K?coeff_[xy]|Kcoeff|a_x|a_smooth(_x)?"
FNO = (
    _Set(r"burgers_data_R\d", {"a": 2, "u": 2}, _burgers_pairs, SMOOTH),
    _Set(r"burgers_v\d+_t\d", {"input": 2, "output": 3}, _burgers_series, "t"),
    _Set(r"(NavierStokes|ns(_data)?)_V\d", {"a": 3, "u": 4}, _vorticity, "t"),
    _Set(r"piececonst_r\d", {"coeff": 3, "sol": 3}, _darcy, SMOOTH),
)
TENSORS = (
    _Set(r"(darcy|nsforcing)_(train|test)", {"x": 3, "y": 3}, _from_x_to_y),
    _Set(r"burgers_(train|test|lowres)", {"x": 2, "y": 3}, _from_x_to_y, "visc"),
)
NFS = [_Set(r"dataset_sr\d+\.pkl", {"a": r - 1, "u": r}, _nfs, "x") for r in (3, 4)]
COORDINATES = {"tensor": 3, "x-coordinate": 1, "t-coordinate": 1}
DARCY = {"tensor": 4, "nu": 3, "x-coordinate": 1, "y-coordinate": 1}
PARTICLES = {"velocity": 5, "particles": 5, "force": 4, "t": 2}
PDEBENCH = (
    _Set("", COORDINATES, _pdebench),
    _Set("", DARCY, _pdebench, "t-coordinate"),
    _Set("ns_incom", PARTICLES, _pdebench_flow),
)
CAMLAB_CLOUDS = _Set("", {"u": 4, "x": 4}, _camlab, "c")
GEO_FNO_MESHES = _Set("|".join(map(re.escape, GEO_FNO)), {}, _geo_fno)


def _format(name: str, *sets: _Set, content: str | None = None) -> Format:
    """One of several sets, of which ``content`` tells, or the docstring of the first
    one's reader.
    """

    def set_of(path: Path, shapes: Mapping[str, Sequence[int]]) -> _Set | None:
        ranks = {(name, len(shape)) for name, shape in shapes.items()}
        named = (each for each in sets if re.match(each.name, path.name))
        return next((each for each in named if each.axes.items() <= ranks), None)

    def read(path: Path) -> Fields:
        there = arrays_of(path)
        one = set_of(path, {name: each.shape for name, each in there.items()})
        assert one is not None
        rest = [name for name in there if one.axes and name not in one.axes]
        left_out(path, [name for name in rest if not re.fullmatch(one.beside, name)])
        return one.read(path, there)

    read.__doc__ = content or sets[0].read.__doc__
    return Format(name, lambda probe: bool(set_of(probe.path, probe.shapes)), read)


PUBLISHED = (
    _format("PDEBench (.hdf5, .h5)", *PDEBENCH),
    _format("CAMLab point clouds of RIGNO and GAOT (.nc)", CAMLAB_CLOUDS),
    _format("Geo-FNO elasticity, pipe and airfoil (.npy)", GEO_FNO_MESHES),
    _format(
        "FNO's Burgers, Darcy and Navier-Stokes (.mat)",
        *FNO,
        content="Arrays of Li et al. (2021): Burgers ``a`` and ``u``, or ``input`` and "
        "``output``, Navier-Stokes ``a`` and ``u``, Darcy ``coeff`` and ``sol``.",
    ),
    _format("neuraloperator (.pt)", *TENSORS),
    _format("NFS authors' data (.pkl)", *NFS),
)
