"""Formats that fields are written in, and names in those that hold no roles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nfsgeo.data.conventions import FORCING, MARK, is_static
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress

if TYPE_CHECKING:
    from nfsgeo.data.fields import Fields

__all__ = ["Writer", "marked_names"]


@dataclass(frozen=True)
class Writer:
    """A format that fields are written in.

    Attributes:
        name: In `nfsgeo datasets`.
        endings: Those that choose the format, in small letters.
        write: Called with fields, a path that nothing has yet, and a function of the
            progress; it writes all or nothing.
        needs: Packages of ``nfsgeo[formats]`` that it imports.
        keeps_attributes: Whether it has all that nfsgeo knows of the fields.
    """

    name: str
    endings: tuple[str, ...]
    write: Callable[[Fields, Path, Progress], None]
    needs: tuple[str, ...] = ()
    keeps_attributes: bool = False


def marked_names(fields: Fields, out: Path, taken: Sequence[str]) -> list[str]:
    """Names of components, forcings and static inputs, in this order, with their marks.

    Inputs that have one value in a sample are static inputs here.

    Raises:
        UserError: A name is ``taken`` by what ``out`` needs itself, or would be read
            back as another kind.
    """
    fine, forcings = fields.component_names, fields.forcing_names
    static = [name if name == "a" else MARK + name for name in fields.input_names]
    names = [*fine, *(FORCING + name for name in forcings), *static]
    for name in [*names, *forcings]:
        misread = name in (*fine, *forcings) and name.startswith(FORCING)
        misread |= name in fine and is_static(name)
        if misread or (
            name in names and (name in (*taken, *forcings) or names.count(name) > 1)
        ):
            raise UserError(
                f"a field named {name!r} in {out}",
                f"names that differ from each other and from {', '.join(taken)}, "
                f"without {MARK} and {FORCING}, the marks of inputs",
                "rename the component or choose .nc",
            )
    return names
