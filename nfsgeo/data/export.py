"""From any format that nfsgeo reads to one that every other program reads."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.disk import check_room
from nfsgeo.data.fields import SPACE, FieldFile
from nfsgeo.data.layout import partial_path
from nfsgeo.data.readers.npz import PARAMETER, SPLIT
from nfsgeo.errors import UserError

__all__ = ["export"]


def export(
    file: FieldFile,
    out: str | Path,
    *,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Path:
    """Writes gridded fields into an ``.npz`` archive, one sample at a time.

    Converted back, it gives a native file with the very same content. The arrays are
    those of :mod:`nfsgeo.data.readers.npz`; they are not compressed.

    Args:
        file: What to write.
        out: The archive to make.
        progress: Called with what is being done, how many samples are through with
            it, and of how many.

    Returns:
        ``out``.

    Raises:
        UserError: ``out`` exists, the fields are on no grid, or the disk is full.
    """
    out = Path(out)
    if file.axes is None or file.shape is None:
        raise UserError(
            f"the point cloud {file.path} into {out.name}",
            "fields on a grid",
            "convert it to a native file, .h5",
        )
    partial = partial_path(out, ".npz")
    total, components = file.num_samples, file.components
    shape = (total, len(file.times), *file.shape, components)
    check_room(out, 4 * int(np.prod(shape)))
    about = {
        name: getattr(file, name)
        for name in ("equation", "component_names", "static_names", "static_role")
    } | {"provenance": file.provenance}
    arrays: dict[str, Any] = {
        "t": file.times,
        **dict(zip(SPACE, file.axes, strict=False)),
        **file.domain.to_dict(),
        **{PARAMETER + name: values for name, values in file.parameters.items()},
        **{SPLIT + name: values for name, values in file.split.items()},
        "about": np.array(json.dumps(about)),
    }

    def fields() -> Iterable[NDArray[Any]]:
        for sample in range(total):
            yield file.read(sample, slice(None)).swapaxes(0, 1)
            progress("exporting samples", sample + 1, total)

    try:
        with zipfile.ZipFile(partial, "w") as archive:
            for name, values in arrays.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, np.asarray(values))
            with archive.open("u.npy", "w", force_zip64=True) as member:
                _stream(member, shape, fields())
            if file.static_names:
                static = (total, *file.shape, file.static_components)
                with archive.open("a.npy", "w", force_zip64=True) as member:
                    _stream(member, static, map(file.read_static, range(total)))
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return out


def _stream(
    member: IO[bytes], shape: tuple[int, ...], parts: Iterable[NDArray[Any]]
) -> None:
    """An ``.npy`` of float32 without holding it in memory."""
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(member, header)
    for part in parts:
        member.write(np.ascontiguousarray(part, "<f4").data)
