"""From a file of fields to a file of any format that nfsgeo writes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.native import NativeFile
from nfsgeo.data.writers import NATIVE_FILE, writer_of
from nfsgeo.progress import Progress, silent

__all__ = ["export", "exporting"]


def export(file: FieldFile, out: str | Path, *, progress: Progress = silent) -> Path:
    """Writes fields in the format of the target's ending, one sample at a time.

    See ``WRITERS`` in :mod:`nfsgeo.data.writers` for the formats, and what each of them
    has no place for.

    Args:
        file: What to write.
        out: The file to make, such as ``"fields.nc"``.
        progress: Called with what is being done, how many samples are through with
            it, and of how many.

    Returns:
        ``out``.

    Raises:
        UserError: ``out`` exists, no format has its ending or the format cannot hold
            the fields, a package is not installed, or the disk is full.
    """
    out = Path(out)
    writer_of(out).write(file, out, progress)
    return out


@contextmanager
def exporting(out: Path) -> Iterator[Path]:
    """A name for a native file, which becomes the target when the block ends well.

    Args:
        out: The file to make, of any format that is written.

    Raises:
        UserError: As :func:`export`, before the block where that can be known.
    """
    writer = writer_of(out)
    if writer is NATIVE_FILE:
        yield out
        return
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=out.name) as folder:
        native = Path(folder) / "whole.h5"
        yield native
        with NativeFile(native) as file:
            writer.write(file, out, silent)
