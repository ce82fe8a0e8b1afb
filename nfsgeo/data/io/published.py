"""Published sets: presets over arrays whose meaning their file does not tell.

A preset names the arrays of a file, recognised by its name and their number of axes,
and what the authors tell of coordinates, times and the domain. Files of other names
with such arrays are arrays like any other, see
:mod:`nfsgeo.data.io.described_arrays`.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from xarray import Variable

from nfsgeo.data.conventions import INITIAL, SPACE, STATIC
from nfsgeo.data.domains import check_within
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.array_files import arrays_of, attributes
from nfsgeo.data.io.format import Format, left_out
from nfsgeo.data.io.labelled import even_axis, nodes, numbered, to_fields
from nfsgeo.data.splits import published_split
from nfsgeo.errors import UserError, option, said
from nfsgeo.geometry import Domain

__all__ = ["PUBLISHED"]

logger = logging.getLogger(__name__)

Arrays = Mapping[str, Variable]  # of a file, along the dimensions of its preset
Facts = dict[str, Any]  # arguments of the gate, and `times`

VELOCITY, GAS = ("velocity_x", "velocity_y"), ("velocity_x", "velocity_y", "pressure")
# Attributes that files of CAMLab lack, by the name of the file in lower case
# and with hyphens: the first components, which are predicted; the name of the
# coefficient, if it is an input; the time of the last of 21 steps from 0, 0 for steady
# problems. The domain of ns-... and ce-... is the periodic unit square.
CAMLAB: dict[str, tuple[Sequence[str], str, float]] = {
    **dict.fromkeys(("ns-gauss", "ns-pwc", "ns-sl", "ns-svs"), (VELOCITY, "", 1.0)),
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
BURGERS, DARCY, FLOW = "burgers", "darcy", "navier-stokes"
SNAPSHOTS, STEP = 17, 0.06  # of burgers_lowres.pt, every sixth of 101 from t = 0 to 1


class Preset(NamedTuple):
    """A published file, and how its arrays become labelled arrays.

    Attributes:
        file: Pattern with which the name of the file begins.
        arrays: Dimensions of each array that is always there, and before a colon its
            name and role where it is a variable.
        equation: Name of the equation.
        hook: Returns further arguments of the gate, which replace those of the preset.
        beside: Pattern of arrays that may be there without a warning.
        grid: Nodes of the unit box: a ``"torus"``, a ``"box"`` with both ends, one
            ``"thinned"``, without the upper end, or ``"centres"`` of cells.
    """

    file: str
    arrays: Mapping[str, str]
    equation: str = ""
    hook: Callable[[Path, Arrays], Facts] | None = None
    beside: str = "$"
    grid: str = "torus"

    def dims(self, key: str) -> list[str]:
        """Dimensions of an array."""
        return self.arrays[key].rpartition(":")[2].split()

    def read(self, path: Path, stored: Arrays) -> Fields:
        """Fields of the arrays of a file."""
        arrays, variables = dict(stored), dict[str, Any]()
        for key, text in self.arrays.items():
            arrays[key] = Variable(self.dims(key), stored[key])
            name, _, role = text.rpartition(":")[0].partition(" ")
            if name:
                variables[name] = arrays[key].dims, arrays[key], {"role": role}
        facts: Facts = {"variables": variables, "equation": self.equation}
        facts |= self.hook(path, arrays) if self.hook else {}
        times = facts.pop("times", None)
        if "coordinates" not in facts:
            dims, values, *_ = next(iter(facts["variables"].values()))
            sizes = dict(zip(dims, values.shape, strict=True))
            facts["coordinates"], shift = {}, 0.5 * (self.grid == "centres")
            for axis in (axis for axis in SPACE if axis in sizes):
                at = nodes(sizes[axis], periodic=self.grid != "box")
                facts["coordinates"][axis] = axis, at + shift / len(at)
            torus, dim = self.grid == "torus", len(facts["coordinates"])
            facts["domain"] = Domain.unit(dim, periodic=torus)
        facts["coordinates"]["time"] = "time", times
        return to_fields(path, **facts)


def _pairs(path: Path, arrays: Arrays) -> Facts:
    """The initial condition at t = 0 and the solution at t = 1 are two time steps."""
    both = np.stack([arrays["a"].values, arrays["u"].values], axis=1)
    return {"variables": {"u": (("sample", "time", "x"), both)}, "times": [0.0, 1.0]}


def _series(path: Path, arrays: Arrays) -> Facts:
    """The first time step is unreliable and replaced by the input.

    Viscosity and times are in the name alone: ``v100`` is 1/100, ``t200`` are 200 steps
    from t = 0 to 1.
    """
    first, u = arrays["input"].values[:, None], arrays["output"].values
    whole = np.concatenate([first, u[:, 1:]], axis=1)
    steps = u.shape[1] - 1
    named = re.search(rf"(?<![A-Za-z])t{steps}(?!\d)", path.name)
    viscosity = 1 / int(re.findall(r"v(\d+)", path.name)[0])
    return {
        "variables": {"u": (("sample", "time", "x"), whole)},
        "times": np.linspace(0, 1, steps + 1) if named else None,
        "provenance": {"parameters": {"viscosity": viscosity}},
    }


def _vorticity(path: Path, arrays: Arrays) -> Facts:
    """Times are those of the file, or 1, ..., 50 where its name has ``T50``."""
    steps = arrays["u"].sizes["time"]
    if "t" in arrays:
        return {"times": arrays["t"].values.ravel()}
    named = re.search(rf"_T{steps}(?!\d)", path.name)
    return {"times": np.arange(1.0, 1 + steps) if named else None}


def _trajectories(path: Path, arrays: Arrays) -> Facts:
    """neuraloperator's Burgers, with times where there are as many as published."""
    published = arrays["y"].sizes["time"] == SNAPSHOTS
    facts: Facts = {"times": STEP * np.arange(SNAPSHOTS) if published else None}
    if "visc" in arrays:
        viscosity = float(arrays["visc"].values.flat[0])
        facts["provenance"] = {"parameters": {"viscosity": viscosity}}
    return facts


def _nfs(path: Path, arrays: Arrays) -> Facts:
    """The NFS authors' ``u`` (samples, x[, y], time steps) and ``a`` without time, on
    the unit torus; at points ``x`` (points, axes) or (x, y, axes), if there are such.

    ``a`` is a static input where there is one time step, else the initial condition.
    """
    u, a = arrays["u"], arrays["a"]
    about = {"role": STATIC if u.sizes["time"] == 1 else INITIAL}
    if "x" not in arrays:
        return {"variables": {"u": (u.dims, u), "a": (a.dims, a, about)}}
    points = arrays["x"].values
    flat = points.reshape(-1, points.shape[-1])
    if u.shape[1:-1] not in (points.shape[:-1], (len(flat),)):
        raise ValueError(f"u {u.shape} does not fit x {points.shape}")
    along = ("sample", "point")
    fields, inputs = (v.values.reshape(len(u), len(flat), -1) for v in (u, a))
    variables = {"u": ((*along, "time"), fields), "a": (along, inputs[..., 0], about)}
    return {
        "variables": variables,
        "coordinates": {"points": (("point", "axis"), flat)},
    }


def _pdebench(path: Path, arrays: Arrays) -> Facts:
    """Trajectories in one dimension, or Darcy flow, at centres of cells; Navier-Stokes
    with particles.

    The names of published sets tell the domain, which is periodic in one dimension.
    ``t-coordinate`` has one entry too many; the viscosity of Burgers' equation is
    Nu/pi, with Nu an attribute or in the name.
    """
    line, u, about = "nu" not in arrays, arrays["tensor"], attributes(path)
    names = [axis for axis in "xy" if f"{axis}-coordinate" in arrays]
    axes = [arrays[f"{axis}-coordinate"].values.astype(float) for axis in names]
    sets = r"1D_(Burgers|Advection)_|ReacDiff_Nu()" if line else "2D_DarcyFlow()"
    domain = None
    if match := re.search(sets, path.name):
        ends = [even_axis(axis, centred=True) for axis in axes]
        axes, lower, upper = map(list, zip(*ends, strict=True))
        domain = Domain(tuple(lower), tuple(upper), (line,) * len(axes))
    else:
        text = "%s: the name is of no published set, so the domain ends with the "
        text += "coordinates; %s tells another"
        logger.warning(text, path, said(option("axis", "LOWER:UPPER:periodic")))
    burgers = line and match and match[1] == "Burgers"
    nu = re.search(r"Nu([0-9.]+\d)", path.name)
    parameters = {"beta": float(about["beta"])} if "beta" in about and not line else {}
    if burgers and (value := about.get("Nu", nu and nu[1])):
        parameters = {"viscosity": float(value) / math.pi}
    return {
        "coordinates": {name: (name, x) for name, x in zip(names, axes, strict=True)},
        "times": arrays["t-coordinate"].values[: u.sizes["time"]] if line else None,
        "domain": domain,
        "equation": "burgers" if burgers else "" if line else "darcy",
        "provenance": {"parameters": parameters},
    }


def _particles(path: Path, arrays: Arrays) -> Facts:
    """PDEBench's Navier-Stokes with particles, which tells no coordinates."""
    times = arrays["t"].values
    if not np.allclose(times, times[0]):
        raise ValueError("samples stored at different times")
    u, force = arrays["velocity"], arrays["force"]
    named = {"role": STATIC, "components": ["force_x", "force_y"]}
    variables = {
        "velocity": (u.dims, u, {"components": ["u", "v"]}),
        "particles": arrays["particles"],
        "force": (force.dims, force, named),
    }
    return {"variables": variables, "times": times[0]}


def _camlab(path: Path, arrays: Arrays) -> Facts:
    """``u`` (samples, time steps, points, components), ``x`` (samples or 1, 1, points,
    axes) and optionally ``c``, a coefficient, axes as ``u``.

    The file tells neither times nor names nor a domain; ``CAMLAB`` does. Components
    that the authors do not predict are left out. Of other sets all components are read,
    and times have to be given.
    """
    name, u, x = path.stem.lower().replace("_", "-"), arrays["u"], arrays["x"]
    samples, steps, num_points, width = u.shape
    if x.shape[:3] not in [(1, 1, num_points), (samples, 1, num_points)]:
        raise ValueError(f"x of shape {x.shape} and u of shape {u.shape}")
    unknown = tuple(numbered("u", width)), "c" if "c" in arrays else "", 0
    names, coefficient, end = CAMLAB.get(name, unknown)
    variables: Facts = {"fields": (u.dims, u[..., : len(names)], {"components": names})}
    if coefficient:
        first, *others = (arrays["c"][:, step] for step in range(arrays["c"].shape[1]))
        if not all(np.array_equal(first.values, other.values) for other in others):
            given, same = f"{path} with c that changes in time", "one for all steps"
            raise UserError(given, same, "store it as components of u")
        about = {"role": STATIC}
        variables[coefficient] = ("sample", "point", "component"), first, about
    elif "c" in arrays:
        left_out(path, ["c"])
    dims, dim = ("sample", "point", "axis")[len(x) == 1 :], x.shape[3]
    at = Variable(dims, x[:, 0] if len(x) > 1 else x[0, 0])
    periodic = name in CAMLAB and name[:3] in ("ns-", "ce-")
    if periodic:
        square = Domain.unit(dim, periodic=False)
        check_within(square, (mesh[0].values for mesh in x), path)
    timed = end and (steps == 21 or name == "wave-layer")
    return {
        "variables": variables,
        "coordinates": {axis: at[..., i] for i, axis in enumerate(SPACE[:dim])},
        "times": np.linspace(0, end, steps) if timed else None,
        "domain": Domain.unit(dim) if periodic else None,
        "split": published_split(samples, 1024, 128, 256),
    }


def _geo_fno(path: Path, arrays: Arrays) -> Facts:
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
    flat = (values.reshape(len(values), -1) for values in (u, *axes))
    u, x, y = (Variable(("sample", "point"), values) for values in flat)
    variables: Facts = {component: u}
    for name, at in (("x_position", x), ("y_position", y)):
        variables[name] = at.dims, at, {"role": STATIC}
    return {
        "variables": variables,
        "coordinates": {"x": x, "y": y},
        "split": published_split(len(u), 1000, 100, 200, test_last=channel < 0),
    }


SMOOTH = "K?coeff_[xy]|Kcoeff|a_x|a_smooth(_x)?"
LINE, PLANE = "u field: sample x", "u field: sample x y"
SERIES, START = "u field: sample time x", f"a {INITIAL}: sample x"
INPUT = "a static: sample x y"
VORTICITY = {"u": "w field: sample x y time", "a": f"w0 {INITIAL}: sample x y"}
FNO = (
    Preset(r"burgers_data_R\d", {"a": LINE, "u": LINE}, BURGERS, _pairs, SMOOTH),
    Preset(
        r"burgers_v\d+_t\d", {"input": LINE, "output": SERIES}, BURGERS, _series, "t"
    ),
    Preset(r"(NavierStokes|ns(_data)?)_V\d", VORTICITY, FLOW, _vorticity, "t"),
    Preset(
        r"piececonst_r\d", {"sol": PLANE, "coeff": INPUT}, DARCY, None, SMOOTH, "box"
    ),
)
# Thinned out from a finer grid, which leaves nodes at i/n even on bounded axes.
MAP, TIMED = {"y": PLANE, "x": INPUT}, {"y": SERIES, "x": START}
TENSORS = (
    Preset(r"darcy_(train|test)", MAP, DARCY, grid="thinned"),
    Preset(r"nsforcing_(train|test)", MAP, FLOW),
    Preset(r"burgers_(train|test|lowres)", TIMED, BURGERS, _trajectories, "visc"),
)
NFS = [
    Preset(r"dataset_sr\d+\.pkl", {"a": start, "u": f"{start} time"}, "", _nfs, "x")
    for start in ("sample x", "sample x y")
]
COORDINATES = {"x-coordinate": "x", "t-coordinate": "step"}
COEFFICIENT = {"nu": INPUT, "x-coordinate": "x", "y-coordinate": "y"}
VECTORS = "sample time x y component"
PARTICLES = {"velocity": VECTORS, "particles": VECTORS, "t": "sample time"}
PARTICLES["force"] = VECTORS.replace("time ", "")
PDEBENCH = (
    Preset("", {"tensor": SERIES, **COORDINATES}, "", _pdebench),
    Preset("", {"tensor": f"{SERIES} y", **COEFFICIENT}, "", _pdebench, "t-coordinate"),
    Preset("ns_incom", PARTICLES, FLOW, _particles, grid="centres"),
)
POINTS = {"u": "sample time point component", "x": "mesh one point axis"}
CLOUDS = Preset("", POINTS, "", _camlab, "c")
MESHES = Preset("|".join(map(re.escape, GEO_FNO)), {}, "", _geo_fno)


def _format(name: str, content: str, *presets: Preset) -> Format:
    """A format of several presets."""

    def preset_of(path: Path, shapes: Mapping[str, Sequence[int]]) -> Preset | None:
        ranks = {(name, len(shape)) for name, shape in shapes.items()}
        for preset in presets:
            axes = {(key, len(preset.dims(key))) for key in preset.arrays}
            if re.match(preset.file, path.name) and axes <= ranks:
                return preset
        return None

    def read(path: Path) -> Fields:
        stored = arrays_of(path)
        preset = preset_of(path, {name: array.shape for name, array in stored.items()})
        assert preset is not None
        rest = [name for name in stored if preset.arrays and name not in preset.arrays]
        left_out(path, [name for name in rest if not re.fullmatch(preset.beside, name)])
        return preset.read(path, stored)

    read.__doc__ = content
    return Format(name, lambda probe: bool(preset_of(probe.path, probe.shapes)), read)


PUBLISHED = (
    _format("PDEBench (.hdf5, .h5)", str(_pdebench.__doc__), *PDEBENCH),
    _format(
        "CAMLab point clouds of RIGNO and GAOT (.nc)", str(_camlab.__doc__), CLOUDS
    ),
    _format(
        "Geo-FNO elasticity, pipe and airfoil (.npy)", str(_geo_fno.__doc__), MESHES
    ),
    _format(
        "FNO's Burgers, Darcy and Navier-Stokes (.mat)",
        "Arrays of Li et al. (2021): Burgers ``a`` and ``u``, or ``input`` and "
        "``output``, Navier-Stokes ``a`` and ``u``, Darcy ``coeff`` and ``sol``.",
        *FNO,
    ),
    _format(
        "neuraloperator (.pt)",
        "Tensors ``x`` and ``y``: coefficient to solution, force to vorticity, or "
        "trajectories from ``x``.",
        *TENSORS,
    ),
    _format("NFS authors' data (.pkl)", str(_nfs.__doc__), *NFS),
)
