"""Names of static inputs in formats that hold no roles: ``a``, or ``a_NAME``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nfsgeo.errors import UserError

__all__ = ["bare", "changing", "is_static", "marked", "no_field"]

MARK = "a_"


def is_static(name: str) -> bool:
    """Whether a named field is a static input: ``a``, ``a_permeability``, ..."""
    return name == "a" or name.startswith(MARK)


def marked(name: str) -> str:
    """The name under which a static input is written: ``a``, or ``a_NAME``."""
    return name if name == "a" else MARK + name


def bare(name: str) -> str:
    """The inverse of :func:`marked`: ``a_permeability`` is ``permeability``."""
    return name.removeprefix(MARK) or name


def no_field(path: Path, names: Iterable[str]) -> UserError:
    """What to say of a file without a field to predict.

    Args:
        path: The file.
        names: The fields that it holds, of which all are static by their names.
    """
    static = ", ".join(names)
    return UserError(
        f"{path} with no field"
        + (f" but {static}, by the name a static input" if static else ""),
        "a field to predict",
        "rename it if it is one" if static else "add one",
    )


def changing(path: Path, name: str) -> UserError:
    """What to say of a static input that changes in time."""
    return UserError(
        f"{path} with {name}, which changes in time",
        "the same values at all time steps of a static input, which is a field named a "
        "or a_NAME",
        "rename it if it is a field to predict",
    )
