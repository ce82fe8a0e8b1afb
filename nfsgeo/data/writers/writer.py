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
from nfsgeo.data.readers.clouds import EPOCH, is_static
from nfsgeo.errors import UserError

__all__ = [
    "Progress",
    "Writer",
    "check_names",
    "dates",
    "static_names",
    "varying_names",
    "wrapped",
]

Progress = Callable[[str, int, int], None]


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
    """Makes sure that no field has the name of a coordinate or of another field.

    Args:
        out: The file to make, for messages.
        names: The fields.
        taken: Names that the format needs itself.

    Raises:
        UserError: One has.
    """
    for name in names:
        if name in taken or list(names).count(name) > 1 or "/" in name:
            raise UserError(
                f"a field named {name!r} in {out}",
                f"names that differ from each other and from {', '.join(taken)}",
                "rename the component or choose .h5",
            )


def static_names(file: FieldFile) -> list[str]:
    """Names by which formats that hold no roles tell the coefficient: ``a_...``."""
    return [name if is_static(name) else f"a_{name}" for name in file.static_names]


def varying_names(file: FieldFile) -> list[str]:
    """Names of the fields that vary in time, those of forcings as ``forcing_...``."""
    forcings = [FORCING + name for name in file.forcing_names]
    return [*file.component_names, *forcings]


def dates(file: FieldFile) -> NDArray[Any]:
    """Times of the time steps, as dates where they were dates."""
    units: Any = file.provenance.get("units")
    if not isinstance(units, dict) or units.get("time") != EPOCH:
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
