"""Published sets in groups of HDF5: the Well, MP-PDE, PDEBench, MeshGraphNets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from nfsgeo.data.checks import finite
from nfsgeo.data.conventions import FIELD, FLAGS, NODE_TYPE, PARAMETER, SPACE, STATIC
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.array_files import arrays_of, as_text, attributes, unit_of, units_of
from nfsgeo.data.io.format import FileProbe, Format, left_out
from nfsgeo.data.io.labelled import even_axis, to_fields
from nfsgeo.data.io.roles import Columns, ask
from nfsgeo.data.lazy import stacked
from nfsgeo.data.splits import SPLITS
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["MESH_GRAPH_NETS", "MP_PDE", "PDE_BENCH", "THE_WELL"]

COMBINED, WAVE = ("alpha", "beta", "gamma"), ("c", "bc_left", "bc_right")
POINTS, TIMES = ("mesh_pos", "pos", "coords"), ("time", "times", "t")
OWN = {*POINTS, *TIMES, NODE_TYPE, "cells"}
# Names of the authors' node types 0, 1, ...
TYPES = "normal obstacle airfoil handle inflow outflow wall_boundary"
DATA = re.compile(r"\d+/data")
EITHER = "either"  # role of an array that may be a field or a static input
CELLS = {2: "line", 3: "triangle", 4: "tetra", 8: "hexahedron"}  # by nodes, in space


def _the_well(path: Path) -> Fields:
    """Version 1 of the layout: vectors and tensors component by component.

    Fields that vary in time are predicted, the others static inputs. All samples have
    the same coordinates and times. An axis is periodic if a boundary condition is.
    """
    stored, variables, coordinates = arrays_of(path), dict[str, Any](), dict[str, Any]()
    ends, fixed, parameters = [], {}, {}
    with h5py.File(path, "r") as file:
        dims = [as_text(name) for name in file["dimensions"].attrs["spatial_dims"]]
        bounds = [condition.attrs for condition in file["boundary_conditions"].values()]
        closed = [b for b in bounds if as_text(b["bc_type"]).lower() == "periodic"]
        periodic = {as_text(d) for b in closed for d in np.ravel(b["associated_dims"])}
        for dim in ("time", *dims):
            if file["dimensions"][dim].attrs.get("sample_varying", False):
                raise ValueError(f"{dim} differs between samples")
        for dim in dims:
            axis = np.asarray(file["dimensions"][dim][:], dtype=np.float64)
            first, last = float(axis[0]), float(axis[-1])
            if dim in periodic:
                axis, first, last = even_axis(axis, centred=False)
            ends.append((first, last, dim in periodic))
            coordinates[SPACE[len(coordinates)]] = SPACE[len(coordinates)], axis
        for order in range(3):
            group = f"t{order}_fields"
            fields = file[group].attrs["field_names"] if group in file else ()
            for name in map(as_text, fields):
                about = file[group][name].attrs
                varies = [about["sample_varying"], about["time_varying"]]
                varies += [*about["dim_varying"]]
                along = zip(("sample", "time", *SPACE), varies, strict=False)
                varying = [dim for dim, differs in along if differs]
                parts = product(SPACE[: len(dims)], repeat=order)
                names = [f"{name}_{''.join(part)}".rstrip("_") for part in parts]
                role = FIELD if "time" in varying else STATIC
                variables[f"{group}/{name}"] = (
                    (*varying, "row", "column")[: len(varying) + order],
                    stored[f"{group}/{name}"],
                    {"role": role, "components": names},
                )
        for name, scalar in file.get("scalars", {}).items():
            if scalar.attrs.get("time_varying"):
                left_out(path, [name])
            elif scalar.attrs.get("sample_varying"):
                parameters[name] = scalar[()]
            elif scalar.size == 1:
                fixed[name] = float(np.ravel(scalar[()])[0])
        coordinates["time"] = "time", file["dimensions/time"][:]
        lower, upper, closes = zip(*ends, strict=True)
        return to_fields(
            path,
            variables,
            coordinates,
            domain=Domain(lower, upper, closes),
            parameters=parameters,
            equation=as_text(file.attrs.get("dataset_name", "")),
            provenance={"parameters": fixed},
        )


def _is_mp_pde(probe: FileProbe) -> bool:
    starts = tuple(f"{part}/pde_" for part in SPLITS)
    return any(name.startswith(starts) for name in probe.shapes)


def _mp_pde(path: Path) -> Fields:
    """The finest ``pde_{nt}-{nx}`` of every part, with its coefficients as parameters.

    Files with ``alpha``, ``beta`` and ``gamma`` are periodic and repeat the first node
    as the last, which is left out; files with ``bc_left`` are bounded. Others do not
    tell the domain.
    """
    stored, finest = arrays_of(path), {}
    for part in SPLITS:
        if names := [name for name in stored if name.startswith(f"{part}/pde_")]:
            finest[part] = max(names, key=lambda name: stored[name].size)
    u = [stored[name] for name in finest.values()]
    about = [attributes(path, name) for name in finest.values()]
    if len({(*v.shape[1:], a["tmax"]) for v, a in zip(u, about, strict=True)}) > 1:
        raise ValueError("parts that differ in grid or time")
    x = np.asarray(about[0]["x"], dtype=np.float64)
    has = [n for n in (*COMBINED, *WAVE) if all(f"{p}/{n}" in stored for p in finest)]
    periodic, bounded = {*COMBINED} <= {*has}, "bc_left" in has
    coefficients = {n: [stored[f"{p}/{n}"].values for p in finest] for n in has}
    parts, order = np.repeat([*finest], [*map(len, u)]), np.arange(sum(map(len, u)))
    times = np.linspace(about[0]["tmin"], about[0]["tmax"], u[0].shape[1])
    values = stacked(u, "0")[..., : len(x) - periodic]
    return to_fields(
        path,
        {"u": (("sample", "time", "x"), values)},
        {"x": ("x", x[: len(x) - periodic]), "time": ("time", times)},
        domain=Domain((x[0],), (x[-1],), (periodic,)) if periodic or bounded else None,
        equation="combined" if periodic else "wave" if bounded else "",
        parameters={n: np.concatenate(v) for n, v in coefficients.items()},
        split={n: order[parts == n] for n in SPLITS} if len(finest) > 1 else None,
    )


def _pdebench(path: Path) -> Fields:
    """A group for each sample, ``data`` (T, x[, y], components) on a grid ``grid/x``,
    ``grid/y`` at times ``grid/t``: reaction, sorption and shallow water of PDEBench.
    """
    stored = arrays_of(path)
    order = sorted(name.removesuffix("data") for name in stored if DATA.fullmatch(name))
    names = [n for n in ("x", "y", "z", "t") if f"{order[0]}grid/{n}" in stored]
    *axes, times = (stored[f"{order[0]}grid/{n}"].values.astype(float) for n in names)
    for group, name in product(order, names):
        if not stored[f"{group}grid/{name}"].equals(stored[f"{order[0]}grid/{name}"]):
            raise ValueError(f"samples that differ in grid/{name}, as {group}")
    *space, _ = names
    coordinates = {axis: (axis, x) for axis, x in zip(space, axes, strict=True)}
    coordinates["time"] = "time", times
    u = [stored[f"{group}data"] for group in order]
    return to_fields(path, {"u": (("time", *space, "component"), u)}, coordinates)


def _groups(names: Iterable[str]) -> dict[str, set[str]]:
    """Names of the arrays in each group."""
    groups: dict[str, set[str]] = {}
    for path in names:
        group, _, name = path.rpartition("/")
        groups.setdefault(group, set()).add(name)
    return groups


def _is_trajectory(names: set[str]) -> bool:
    return "node_type" in names and not names.isdisjoint(POINTS)


def _mesh_graph_nets(path: Path, columns: Columns | None = None) -> Fields:
    """A group for each trajectory, or one trajectory without a group.

    ``mesh_pos`` (points, axes), also ``pos`` or ``coords``; ``node_type`` (points, 1);
    optionally ``cells`` (cells, nodes of a cell); these may have an axis of time ahead
    along which they do not change, and so may masks, which are booleans. Optionally
    ``time``. Others are fields (T, points, components), static inputs (points) or
    (points, components), and inputs of one number for each trajectory; a warning tells
    what is none of these.
    (Pfaff et al., Learning mesh-based simulation with graph networks, 2021.)
    """
    stored = arrays_of(path, numbers=True)
    groups = _groups(stored)
    order = sorted(groups, key=lambda name: (len(name), name))
    names = sorted(groups[order[0]] - OWN)
    points, types, times, units = [], [], [], dict[str, str]()
    cells: list[dict[str, NDArray[Any]]] = []
    values: dict[str, list[Variable]] = {name: [] for name in names}
    kinds: dict[str, str] = {}
    for group in order:
        where, has = f"{path} in trajectory {group or 0}", groups[group]
        if not _is_trajectory(has) or sorted(has - OWN) != names:
            expected = f"points, node_type and {', '.join(names)} in each group"
            given = f"{where} with {', '.join(sorted(has))}"
            raise UserError(given, expected, "rename its arrays or leave it out")
        arrays = {n: stored[f"{group}/{n}".lstrip("/")] for n in has}
        at = next(name for name in POINTS if name in has)
        points.append(_constant(arrays[at], f"{where}: {at}"))
        types.append(_constant(arrays["node_type"], f"{where}: node_type").ravel())
        times += [np.ravel(arrays[n].values) for n in TIMES if n in has]
        units |= dict.fromkeys(SPACE, unit_of(arrays[at].attrs))
        units["time"] = "".join(unit_of(arrays[n].attrs) for n in TIMES if n in has)
        cells.append({})
        if "cells" in has:
            corners = _constant(arrays["cells"], f"{where}: cells").astype(np.int64)
            kind = CELLS[corners.shape[1]]
            plane = kind == "tetra" and points[-1].shape[1] == 2
            cells[-1] = {"quad" if plane else kind: corners}
        for name in names:
            kind = _kind_of(arrays, name, len(points[-1]))
            if kind == EITHER:
                kind = _answered(path, name, arrays[name].shape, columns)
            if kinds.setdefault(name, kind) != kind:
                given = f"{where} with {name} of shape {arrays[name].shape}"
                expected = f"a {kinds[name] or 'thing to leave out'}, as in the first"
                raise UserError(given, expected, "rename or reshape it")
            if kind == STATIC:
                marks = _constant(arrays[name], f"{where}: {name}")
                arrays[name] = Variable(["0", "1"], marks)
            values[name].append(arrays[name])
    if any(not np.array_equal(times[0], other) for other in times):
        raise ValueError("trajectories at different times")
    flags, numbers = dict[str, Any](), np.arange(len(TYPES.split()))
    if np.isin(np.concatenate(types), numbers).all():
        flags = dict(zip(FLAGS, (numbers, TYPES), strict=True))
    variables: dict[str, Any] = {NODE_TYPE: ("point", types, {"role": STATIC, **flags})}
    for name in (name for name in names if kinds[name] in (FIELD, STATIC)):
        parts, one = values[name], values[name][0]
        along = ("time", "point", "component")[kinds[name] == STATIC :]
        several = parts if len(order) > 1 else one
        about = {"role": kinds[name], **units_of(one)}
        variables[name] = along[: one.ndim], several, about
    scalars = [name for name in names if kinds[name] == PARAMETER]
    left_out(path, [name for name in names if not kinds[name]])
    return to_fields(
        path,
        variables,
        {
            "points": (("point", "axis"), points),
            "time": ("time", times[0] if times else None),
        },
        cells=cells,
        units=units,
        parameters={n: [np.ravel(v.values)[0] for v in values[n]] for n in scalars},
    )


def _kind_of(stored: Mapping[str, Variable], name: str, points: int) -> str:
    """The role of an array of a trajectory, by its shape; "" of none."""
    values = stored[name]
    steps = {v.shape[0] for n, v in stored.items() if v.ndim == 3 and n not in OWN}
    if values.size == 1 and values.ndim < 2:
        return PARAMETER
    if values.ndim not in (1, 2, 3) or points not in values.shape[:2]:
        return ""
    in_time = values.ndim > 1 and values.shape[1] == points
    if values.dtype.kind == "b" and (in_time or values.ndim < 3):
        return STATIC
    if values.shape == (points, points) and (not steps or points in steps):
        return EITHER
    if in_time and (values.ndim == 3 or not steps or values.shape[0] in steps):
        return FIELD
    return STATIC if values.ndim < 3 and values.shape[0] == points else ""


def _answered(
    path: Path, name: str, shape: tuple[int, ...], columns: Columns | None
) -> str:
    """The role of an array along as many time steps, or components, as points."""
    for kind in (FIELD, STATIC):
        if name in np.ravel((columns or {}).get(kind, [])):
            return kind
    which = f"time steps and points, or points and components, both {shape[0]}"
    what = "whether it is a field in time or a static input"
    say = f"field={name}", f"static={name}"
    raise ask(path, [name], f"along {which}", what, *say)


def _constant(array: Variable, what: str) -> NDArray[Any]:
    """Values ``[rows, columns]`` that do not change in time."""
    if array.ndim == 3 and (array.values != array.values[:1]).any():
        given, same = f"{what} that change in time", "the same at all time steps"
        raise UserError(given, same, "choose data on a fixed mesh")
    values = finite(array.values[0] if array.ndim == 3 else array.values, what)
    return values.reshape(len(values), -1)


THE_WELL = Format(
    "The Well (.hdf5)",
    lambda probe: (
        "dimensions/time" in probe.shapes
        and any(re.match("t[012]_fields/", name) for name in probe.shapes)
    ),
    _the_well,
)
MP_PDE = Format("MP-PDE (.h5)", _is_mp_pde, _mp_pde)
PDE_BENCH = Format(
    "PDEBench in groups (.h5)",
    lambda probe: any(re.fullmatch(r"\d+/grid/t", name) for name in probe.shapes),
    _pdebench,
)
MESH_GRAPH_NETS = Format(
    "MeshGraphNets (.h5, .npz)",
    lambda probe: any(map(_is_trajectory, _groups(probe.shapes).values())),
    _mesh_graph_nets,
    columns="kinds",
)
