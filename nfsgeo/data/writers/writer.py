"""What a writer of a format consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nfsgeo.data.fields import Doubles, FieldFile
from nfsgeo.data.known_ahead import FORCING
from nfsgeo.data.numbers import EPOCH
from nfsgeo.data.static_names import is_static, marked
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress

__all__ = [
    "Writer",
    "check_marks",
    "check_names",
    "dates",
    "marked_names",
    "wrapped",
]


@dataclass(frozen=True)
class Writer:
    """A format: the endings of its files and how they are written.

    Args:
        name: Its name in ``nfsgeo datasets``.
        endings: By which it is chosen, in small letters.
        write: Writes a file of fields under a name that nothing has yet, whole or not
            at all, and tells its progress.
        needs: Packages of the extra ``nfsgeo[formats]`` that it imports.
    """

    name: str
    endings: tuple[str, ...]
    write: Callable[[FieldFile, Path, Progress], None]
    needs: tuple[str, ...] = ()


def check_names(out: Path, names: Sequence[str], taken: Sequence[str]) -> None:
    """Makes sure that names differ, and are no coordinates or paths.

    Args:
        out: The file to make, for messages.
        names: The fields.
        taken: Names that the format needs itself.

    Raises:
        UserError: One is.
    """
    for name in names:
        expected = ""
        if "/" in name:
            expected = "names without '/', which separates the parts of a path"
        elif name != name.strip() or not name.isprintable() or not name:
            expected = "names of printable characters without blanks at their ends"
        elif name in taken or list(names).count(name) > 1:
            others = f" and from {', '.join(taken)}" if taken else ""
            expected = f"names that differ from each other{others}"
        if expected:
            raise _refused(name, out, expected)


def check_marks(file: FieldFile, out: Path, *, by_name: bool = False) -> None:
    """Makes sure that no field is read back as another kind of field than it is.

    Args:
        file: What to write.
        out: The file to make, for messages.
        by_name: Whether names alone tell static inputs in the format.

    Raises:
        UserError: The name of a field would be read back as another kind.
    """
    for name in (*file.component_names, *file.forcing_names):
        if name.startswith(FORCING):
            raise _refused(name, out, f"names without {FORCING}, which marks forcings")
    for name in file.component_names:
        if by_name and is_static(name):
            expected = "names other than a and a_..., which mark static inputs"
            raise _refused(name, out, expected)


def marked_names(file: FieldFile, out: Path, taken: Sequence[str]) -> list[str]:
    """Names of all fields in formats that hold no roles.

    Those of forcings are ``forcing_NAME``, those of static inputs ``a`` or ``a_NAME``.

    Args:
        file: What to write.
        out: The file to make, for messages.
        taken: Names that the format needs itself.

    Raises:
        UserError: A name is taken, or would be read back as another kind.
    """
    check_marks(file, out, by_name=True)
    for group in (file.forcing_names, file.static_names):
        check_names(out, group, ())
    names = [*file.component_names, *(FORCING + name for name in file.forcing_names)]
    names += map(marked, file.static_names)
    check_names(out, names, taken)
    return names


def _refused(name: str, out: Path, expected: str) -> UserError:
    given = f"a field named {name!r} in {out}"
    return UserError(given, expected, "rename the component or choose .h5")


def dates(file: FieldFile) -> NDArray[Any]:
    """Times of the time steps, as dates where they were dates."""
    if file.time_unit != EPOCH:
        return file.times
    return np.round(file.times * 1e6).astype(np.int64).astype("M8[us]")


def wrapped(file: FieldFile, sample: int) -> Doubles:
    """Points of a sample, in the domain along its periodic axes.

    Raises:
        UserError: The domain has another number of axes.
    """
    points = file.coordinates(sample)
    if points.shape[1] != file.domain.dim:
        raise UserError(
            f"a domain of {file.domain.dim} axes",
            f"{points.shape[1]}, as the points of {file.path} have",
            "give a lower and an upper end for each axis",
        )
    return file.domain.wrap(torch.tensor(points)).numpy()
