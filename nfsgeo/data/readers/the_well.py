"""Files of the Well, version 1 of its HDF5 layout."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import h5py
import numpy as np

from nfsgeo.data.fields import Doubles, FieldFile
from nfsgeo.data.native.layout import as_text
from nfsgeo.data.readers.gridded import ArrayFile, Field, even_axis
from nfsgeo.data.readers.reader import Reader
from nfsgeo.geometry import Domain

__all__ = ["THE_WELL"]

ORDERS = ("t0_fields", "t1_fields", "t2_fields")


def _is_the_well(path: Path) -> bool:
    with h5py.File(path, "r") as file:
        return {"t0_fields", "dimensions", "boundary_conditions"} <= set(file)


def _the_well(path: Path) -> FieldFile:
    """Every field, vectors and tensors component by component.

    Fields that vary in time are the solution, the others a coefficient; fields that
    do not vary along an axis or between samples are repeated there. An axis is
    periodic if one of its boundary conditions is. All samples have the same coordinates
    and times.
    """
    file = h5py.File(path, "r")
    about = file["dimensions"]
    dims = [as_text(name) for name in about.attrs["spatial_dims"]]
    for name in ("time", *dims):
        if about[name].attrs.get("sample_varying", False):
            raise ValueError(f"{name} differs between samples")
    axes, domain = _box(file, dims)
    changing: list[Field] = []
    constant: list[Field] = []
    for order, group in enumerate(ORDERS):
        for name in file[group].attrs["field_names"] if group in file else ():
            array = file[group][as_text(name)]
            field = _field(array, as_text(name), order, len(dims))
            (changing if "t" in field.order else constant).append(field)
    if not changing:
        raise ValueError("no field that varies in time")
    return ArrayFile(
        path,
        fields=changing,
        static=constant,
        static_role="coefficient" if constant else None,
        axes=axes,
        times=about["time"][:],
        domain=domain,
        equation=as_text(file.attrs.get("dataset_name", "")),
        provenance={"parameters": _scalars(file)},
        handle=file,
    )


def _field(array: h5py.Dataset, name: str, order: int, dim: int) -> Field:
    about = array.attrs
    letters = "n" if about["sample_varying"] else ""
    letters += "t" if about["time_varying"] else ""
    varying = zip("xyz"[:dim], about["dim_varying"], strict=True)
    letters += "".join(letter for letter, varies in varying if varies)
    letters += "ij"[:order]
    parts = product("xyz"[:dim], repeat=order)
    names = ["_".join([name, "".join(part)]) if order else name for part in parts]
    return Field(array, letters, names)


def _box(file: h5py.File, dims: list[str]) -> tuple[list[Doubles], Domain]:
    periodic = dict.fromkeys(dims, False)
    for name in file["boundary_conditions"]:
        about = file["boundary_conditions"][name].attrs
        if as_text(about["bc_type"]).lower() == "periodic":
            for dim in np.atleast_1d(about["associated_dims"]):
                periodic[as_text(dim)] = True
    axes, lower, upper = [], [], []
    for dim in dims:
        values = np.asarray(file["dimensions"][dim][:], dtype=np.float64)
        low, high = values[0], values[-1]
        if periodic[dim]:
            values, low, high = even_axis(values, centred=False)
        axes.append(values)
        lower.append(float(low))
        upper.append(float(high))
    flags = tuple(periodic[dim] for dim in dims)
    return axes, Domain(tuple(lower), tuple(upper), flags)


def _scalars(file: h5py.File) -> dict[str, float]:
    """Scalars that hold for the whole file."""
    found = {}
    for name in file.get("scalars", ()):
        scalar = file["scalars"][name]
        about = scalar.attrs
        fixed = not (about.get("sample_varying") or about.get("time_varying"))
        if fixed and scalar.size == 1:
            found[name] = float(np.asarray(scalar[()]).reshape(()))
    return found


THE_WELL = Reader("The Well (.hdf5)", _is_the_well, _the_well)
