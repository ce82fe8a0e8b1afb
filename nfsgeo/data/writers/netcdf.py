"""NetCDF-4 by the CF conventions, one sample at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from nfsgeo.data.disk import check_room
from nfsgeo.data.fields import SPACE, FieldFile
from nfsgeo.data.native.layout import growing
from nfsgeo.data.readers.netcdf import ABOUT
from nfsgeo.data.writers.writer import Writer, check_marks, check_names, wrapped
from nfsgeo.progress import Progress

__all__ = ["NETCDF_FILE"]

SAMPLE, TIME, POINT = "sample", "time", "point"


def _write(file: FieldFile, out: Path, tick: Progress) -> None:
    """Variables ``(sample, time, x[, y[, z]])``, or ``(sample, time, point)`` with
    coordinates of the points, by the CF conventions. Cells are left out.

    Points of samples on different meshes have coordinates ``(sample, point)``, filled
    up with NaN. An attribute holds the domain, where it is known, the equation, the
    split, the provenance and the names of static inputs and of what is known ahead.
    """
    import h5netcdf

    axes = SPACE[: file.domain.dim]
    varying = [*file.component_names, *file.forcing_names]
    names = [*varying, *file.static_names]
    scalars = {k: v for k, v in file.parameters.items() if np.ndim(v) == 1}
    check_names(out, [*names, *scalars], (SAMPLE, TIME, POINT, *axes))
    check_marks(file, out)
    total, steps = file.num_samples, len(file.times)
    one = len({file.mesh_id(sample) for sample in range(total)}) == 1
    most = max(map(file.num_points, range(total)))
    check_room(out, 4 * total * most * (steps * len(varying)))
    if file.shape is None:
        places = {POINT: most}
    else:
        places = dict(zip(axes, file.shape, strict=True))
    told = file.provenance.get("units")
    units = told if isinstance(told, dict) else {}
    with (
        growing(out) as partial,
        h5netcdf.File(partial, "w") as target,
    ):
        target.dimensions = {SAMPLE: total, TIME: steps, **places}
        target.attrs["Conventions"] = "CF-1.11"
        target.attrs[ABOUT] = json.dumps(_about(file))
        time = target.create_variable(TIME, (TIME,), "f8", data=file.times)
        time.attrs["axis"] = "T"
        if "time" in units:
            time.attrs["units"] = units["time"]
        along = (SAMPLE, POINT) if file.axes is None and not one else tuple(places)
        for i, name in enumerate(axes):
            if file.axes is not None:
                made = target.create_variable(name, (name,), "f8", data=file.axes[i])
            else:
                made = target.create_variable(name, along, "f8", fillvalue=np.nan)
            made.attrs["axis"] = name.upper()
            if units.get(name):
                made.attrs["units"] = units[name]
        for name, values in scalars.items():
            target.create_variable(name, (SAMPLE,), "f8", data=values)
        for name in names:
            dims = (SAMPLE, *([TIME] if name in varying else []), *places)
            made = target.create_variable(
                name,
                dims,
                "f4",
                fillvalue=np.float32(np.nan),
                chunks=(1, *(target.dimensions[dim].size for dim in dims[1:])),
                compression="gzip",
                shuffle=True,
            )
            if name in units:
                made.attrs["units"] = units[name]
            if file.axes is None:
                made.attrs["coordinates"] = " ".join(axes)
        for sample in range(total):
            num = file.num_points(sample)
            if file.axes is None and (not sample or not one):
                for name, values in zip(axes, wrapped(file, sample).T, strict=True):
                    target[name][(slice(num),) if one else (sample, slice(num))] = (
                        values
                    )
            u, a = file.read_all(sample, slice(None)), file.read_static(sample)
            for name, values in zip(varying, u.T, strict=True):
                _put(target[name], sample, values, places)
            for name, values in zip(file.static_names, a.T, strict=True):
                _put(target[name], sample, values, places)
            tick("exporting samples", sample + 1, total)


def _put(variable: Any, sample: int, values: Any, places: dict[str, int]) -> None:
    """A sample's values ``[..., n]``, of which a padded mesh has fewer."""
    if POINT in places:
        variable[(sample, ..., slice(values.shape[-1]))] = values
    else:
        variable[sample] = values.reshape(*values.shape[:-1], *places.values())


def _about(file: FieldFile) -> dict[str, Any]:
    provenance = {k: v for k, v in file.provenance.items() if k != "units"}
    about: dict[str, Any] = {"equation": file.equation, "provenance": provenance}
    about["split"] = {k: np.asarray(v).tolist() for k, v in file.split.items()}
    about["static"] = list(file.static_names)
    if file.static_role is not None:
        about["static_role"] = file.static_role
    if known := [*file.forcing_names, *file.scalar_names]:
        about["known"] = known
    if file.domain_is_known:
        about["domain"] = file.domain.to_dict()
    return about


NETCDF_FILE = Writer("NetCDF (.nc)", (".nc", ".nc4"), _write, ("h5netcdf",))
