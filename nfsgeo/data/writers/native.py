"""nfsgeo's own HDF5 file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nfsgeo.data.axes import check_axes
from nfsgeo.data.disk import check_room
from nfsgeo.data.fields import FieldFile
from nfsgeo.data.native.grid_writer import GridWriter
from nfsgeo.data.native.layout import NATIVE
from nfsgeo.data.native.point_writer import PointWriter
from nfsgeo.data.writers.writer import Writer, wrapped
from nfsgeo.progress import Progress

__all__ = ["NATIVE_FILE"]

BATCH_BYTES = 2**26


def _write(file: FieldFile, out: Path, tick: Progress) -> None:
    """All that a file of fields has, compressed and with checksums."""
    options: dict[str, Any] = {
        "equation": file.equation,
        "domain": file.domain,
        "times": file.times,
        "component_names": file.component_names,
        "static_names": file.static_names,
        "static_role": file.static_role,
        "provenance": {"source": file.path.name} | file.provenance,
        "split": file.split,
        "forcing_names": file.forcing_names,
        "scalar_names": file.scalar_names,
    }
    write = _write_points if file.axes is None else _write_grid
    write(file, out, options, tick)


def _write_grid(
    file: FieldFile, out: Path, options: dict[str, Any], tick: Progress
) -> None:
    assert file.axes is not None and file.shape is not None
    check_axes(file.path, file.axes, file.domain)
    scalars = {k: v for k, v in file.parameters.items() if np.ndim(v) == 1}
    total, shape = file.num_samples, file.shape
    width, num = file.components + len(file.forcing_names), file.components
    size = 4 * len(file.times) * int(np.prod(shape)) * width
    step = max(1, BATCH_BYTES // size)
    with GridWriter(
        out,
        axes=file.axes,
        num_samples=total,
        parameter_names=sorted(scalars),
        packing=partial(tick, "packing samples"),
        **options,
    ) as writer:
        done = writer.done
        for start in range(0, total, step):
            samples = range(start, min(start + step, total))
            if not done[samples].all():
                both = [file.read_all(sample, slice(None)) for sample in samples]
                both = [v.swapaxes(0, 1).reshape(-1, *shape, width) for v in both]
                u, forcing = ([v[..., part] for v in both] for part in _parts(num))
                a = [file.read_static(sample) for sample in samples]
                a = [values.reshape(*shape, -1) for values in a]
                some = {name: values[samples] for name, values in scalars.items()}
                writer.write(
                    start,
                    u,
                    a if file.static_names else None,
                    some,
                    forcing=forcing if file.forcing_names else None,
                )
            tick("converting samples", samples.stop, total)


def _write_points(
    file: FieldFile, out: Path, options: dict[str, Any], tick: Progress
) -> None:
    num = file.components
    step_bytes = 4 * (num + len(file.forcing_names)) * file.num_points(0)
    check_room(out, file.num_samples * len(file.times) * step_bytes)
    meshes: dict[int, int] = {}
    with PointWriter(out, **options) as writer:
        for sample in range(file.num_samples):
            mesh = file.mesh_id(sample)
            if mesh not in meshes:
                points = wrapped(file, sample)
                meshes[mesh] = writer.add_mesh(points, file.cells(sample))
            a = file.read_static(sample) if file.static_names else None
            some = {name: values[sample] for name, values in file.parameters.items()}
            both = file.read_all(sample, slice(None))
            u, forcing = (both[..., part] for part in _parts(num))
            known = forcing if file.forcing_names else None
            writer.write(u, meshes[mesh], a, some, forcing=known)
            tick("converting samples", sample + 1, file.num_samples)


def _parts(num: int) -> tuple[slice, slice]:
    """Where components and forcings are among all fields."""
    return slice(num), slice(num, None)


NATIVE_FILE = Writer("nfsgeo (.h5)", NATIVE, _write)
