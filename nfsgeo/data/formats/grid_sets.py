"""Published sets on grids in groups of HDF5: the Well and those of MP-PDE solvers."""

from __future__ import annotations

import math
import re
from itertools import product
from pathlib import Path

import h5py
import numpy as np

from nfsgeo.data.build import Array, build, even_axis
from nfsgeo.data.fields import FIELD, STATIC, Fields
from nfsgeo.data.formats.containers import as_text, attributes, read, shapes
from nfsgeo.data.formats.format import Format, Look, left_out
from nfsgeo.data.lazy import stacked
from nfsgeo.data.splits import SPLITS
from nfsgeo.geometry import Domain

COMBINED, WAVE = ("alpha", "beta", "gamma"), ("c", "bc_left", "bc_right")


def _the_well(path: Path) -> Fields:
    """Version 1 of the layout: vectors and tensors component by component.

    Fields that vary in time are predicted, the others static inputs. All samples have
    the same coordinates and times. An axis is periodic if a boundary condition is.
    """
    arrays, sides, fixed, parameters = [], [], {}, {}
    with h5py.File(path, "r") as file:
        dims = [as_text(name) for name in file["dimensions"].attrs["spatial_dims"]]
        bounds = [each.attrs for each in file["boundary_conditions"].values()]
        closed = [b for b in bounds if as_text(b["bc_type"]).lower() == "periodic"]
        periodic = {as_text(d) for b in closed for d in np.ravel(b["associated_dims"])}
        for dim in ("time", *dims):
            if file["dimensions"][dim].attrs.get("sample_varying", False):
                raise ValueError(f"{dim} differs between samples")
        for dim in dims:
            axis = np.asarray(file["dimensions"][dim][:], dtype=np.float64)
            axis, *ends = axis, float(axis[0]), float(axis[-1])
            if dim in periodic:
                axis, *ends = even_axis(axis, centred=False)
            sides.append((axis, *ends, dim in periodic))
        axes, lower, upper, closes = zip(*sides, strict=True)
        for order in range(3):
            group = f"t{order}_fields"
            names = file[group].attrs["field_names"] if group in file else ()
            for name in map(as_text, names):
                about = file[group][name].attrs
                letters = "n" * bool(about["sample_varying"])
                letters += "t" * bool(about["time_varying"])
                varying = zip("xyz", about["dim_varying"], strict=False)
                letters += "".join(letter for letter, varies in varying if varies)
                parts = product("xyz"[: len(dims)], repeat=order)
                each = [f"{name}_{''.join(p)}".rstrip("_") for p in parts]
                values = read(path, [f"{group}/{name}"])[f"{group}/{name}"]
                role = FIELD if "t" in letters else STATIC
                arrays.append(Array(values, letters + "ij"[:order], each, role))
        for name, scalar in file.get("scalars", {}).items():
            if scalar.attrs.get("time_varying"):
                left_out(path, [name])
            elif scalar.attrs.get("sample_varying"):
                parameters[name] = scalar[()]
            elif scalar.size == 1:
                fixed[name] = float(np.ravel(scalar[()])[0])
        return build(
            path,
            arrays,
            axes=axes,
            times=file["dimensions/time"][:],
            domain=Domain(lower, upper, closes),
            parameters=parameters,
            equation=as_text(file.attrs.get("dataset_name", "")),
            provenance={"parameters": fixed},
        )


def _is_mp_pde(look: Look) -> bool:
    return any(
        name.startswith(tuple(f"{s}/pde_" for s in SPLITS)) for name in look.shapes
    )


def _mp_pde(path: Path) -> Fields:
    """The finest ``pde_{nt}-{nx}`` of every part, with its coefficients as parameters.

    Files with ``alpha``, ``beta`` and ``gamma`` are periodic and repeat the first node
    as the last, which is left out; files with ``bc_left`` are bounded. Others do not
    tell the domain.
    """
    sizes, finest = {n: math.prod(shape) for n, shape in shapes(path).items()}, {}
    for part in SPLITS:
        if names := [name for name in sizes if name.startswith(f"{part}/pde_")]:
            finest[part] = max(names, key=sizes.__getitem__)
    u = [*read(path, finest.values()).values()]
    about = [attributes(path, name) for name in finest.values()]
    if len({(*v.shape[1:], a["tmax"]) for v, a in zip(u, about, strict=True)}) > 1:
        raise ValueError("parts that differ in grid or time")
    x = np.asarray(about[0]["x"], dtype=np.float64)
    has = [n for n in (*COMBINED, *WAVE) if all(f"{p}/{n}" in sizes for p in finest)]
    periodic, bounded = {*COMBINED} <= {*has}, "bc_left" in has
    each = {n: read(path, [f"{p}/{n}" for p in finest]).values() for n in has}
    of, order = np.repeat([*finest], [*map(len, u)]), np.arange(sum(map(len, u)))
    return build(
        path,
        [Array(stacked(u, "0")[..., : len(x) - periodic], "ntx", ["u"])],
        axes=[x[: len(x) - periodic]],
        times=np.linspace(about[0]["tmin"], about[0]["tmax"], u[0].shape[1]),
        domain=Domain((x[0],), (x[-1],), (periodic,)) if periodic or bounded else None,
        equation="combined" if periodic else "wave" if bounded else "",
        parameters={n: np.concatenate([*parts]) for n, parts in each.items()},
        split={n: order[of == n] for n in SPLITS} if len(finest) > 1 else None,
    )


THE_WELL = Format(
    "The Well (.hdf5)",
    lambda look: (
        "dimensions/time" in look.shapes
        and any(re.match("t[012]_fields/", name) for name in look.shapes)
    ),
    _the_well,
)
MP_PDE = Format("MP-PDE (.h5)", _is_mp_pde, _mp_pde)
