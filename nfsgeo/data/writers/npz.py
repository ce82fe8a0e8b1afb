"""``.npz`` archives of numpy, one sample at a time."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.disk import check_room
from nfsgeo.data.fields import SPACE, FieldFile
from nfsgeo.data.known_ahead import FORCING
from nfsgeo.data.native.layout import growing
from nfsgeo.data.readers.npz import PARAMETER, SPLIT
from nfsgeo.data.writers.writer import Writer, check_marks, dates
from nfsgeo.progress import Progress

__all__ = ["NPZ"]


def _write(file: FieldFile, out: Path, tick: Progress) -> None:
    """The arrays of :mod:`nfsgeo.data.readers.npz`, not compressed. A point cloud is
    without its domain and its cells.

    A grid converted back gives a native file with the very same content.
    """
    check_marks(file, out)
    total, width = file.num_samples, file.components + len(file.forcing_names)
    if file.axes is not None and file.shape is not None:
        ahead: tuple[int, ...] = (total, *file.shape)
        u_shape = (total, len(file.times), *file.shape, width)
        arrays = _about_grid(file)
    else:
        sizes = [file.num_points(sample) for sample in range(total)]
        one = len({file.mesh_id(sample) for sample in range(total)}) == 1
        ahead = (total, sizes[0]) if one else (sum(sizes),)
        u_shape = (*ahead, len(file.times), width)
        points = [file.coordinates(sample) for sample in range(1 if one else total)]
        arrays = {"t": dates(file), "coords": np.concatenate(points)}
        forcings = [FORCING + name for name in file.forcing_names]
        arrays["names"] = np.array([*file.component_names, *forcings])
        if file.static_names:
            arrays["static_names"] = np.array(file.static_names)
        arrays |= {} if one else {"offsets": np.cumsum([0, *sizes])}
    check_room(out, 4 * int(np.prod(u_shape)))

    def fields() -> Iterable[NDArray[Any]]:
        for sample in range(total):
            values = file.read_all(sample, slice(None))
            yield values if file.axes is None else values.swapaxes(0, 1)
            tick("exporting samples", sample + 1, total)

    with growing(out) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(values))
        with archive.open("u.npy", "w", force_zip64=True) as member:
            _stream(member, u_shape, fields())
        if file.static_names:
            static = (*ahead, file.static_components)
            with archive.open("a.npy", "w", force_zip64=True) as member:
                _stream(member, static, map(file.read_static, range(total)))


def _about_grid(file: FieldFile) -> dict[str, Any]:
    about = {
        name: getattr(file, name)
        for name in ("equation", "static_names", "static_role", "provenance")
    }
    about["component_names"] = [*file.component_names, *file.forcing_names]
    if known := [*file.forcing_names, *file.scalar_names]:
        about["known"] = known
    return {
        "t": file.times,
        **dict(zip(SPACE, file.axes or (), strict=False)),
        **file.domain.to_dict(),
        **{PARAMETER + name: values for name, values in file.parameters.items()},
        **{SPLIT + name: values for name, values in file.split.items()},
        "about": np.array(json.dumps(about)),
    }


def _stream(
    member: IO[bytes], shape: tuple[int, ...], parts: Iterable[NDArray[Any]]
) -> None:
    """An ``.npy`` of float32 without holding it in memory."""
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(member, header)
    for part in parts:
        member.write(np.ascontiguousarray(part, "<f4").data)


NPZ = Writer("archives of numpy (.npz)", (".npz",), _write)
