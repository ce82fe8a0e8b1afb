"""The definition of a format that fields are written in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nfsgeo.progress import Progress

if TYPE_CHECKING:
    from nfsgeo.data.fields import Fields

__all__ = ["Writer"]


@dataclass(frozen=True)
class Writer:
    """A format that fields are written in.

    Attributes:
        name: In `nfsgeo datasets`.
        endings: Those that choose the format, in small letters.
        write: Called with fields, a path that nothing has yet, and a function of the
            progress; it writes all or nothing.
        needs: Packages of ``nfsgeo[formats]`` that it imports.
    """

    name: str
    endings: tuple[str, ...]
    write: Callable[[Fields, Path, Progress], None]
    needs: tuple[str, ...] = ()
