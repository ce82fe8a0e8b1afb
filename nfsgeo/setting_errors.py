"""Turns what is wrong with a setting, or a name, into one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from typing import Any

from pydantic import ValidationError

from nfsgeo.errors import UserError

__all__ = ["explained", "unknown"]


@contextmanager
def explained(section: str = "", known: Iterable[str] = ()) -> Iterator[None]:
    """Re-raises the first error that pydantic finds inside the block.

    Args:
        section: Dotted name of what is being checked.
        known: Dotted names of all keys, to tell the nearest one.

    Raises:
        UserError: In place of a ``ValidationError``.
    """
    try:
        yield
    except ValidationError as error:
        first: Any = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, UserError):
            raise cause from None
        key = ".".join(filter(None, [section, *map(str, first["loc"])]))
        if first["type"] == "extra_forbidden":
            if isinstance(first["input"], dict):  # of a section that does not exist
                key = ".".join([key, *map(str, list(first["input"])[:1])])
            raise unknown(key, "a known key", key, known) from None
        raise UserError(
            f"{key}={first['input']!r}",
            first["msg"].removeprefix("Input should be ").removeprefix("Value error, "),
            "change it",
        ) from None


def unknown(given: str, expected: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a ``name`` that does not exist, with the nearest that is ``known``.

    Of dotted names the last part counts, and the section where that is the same.
    """
    section, _, last = name.rpartition(".")

    def likeness(other: str) -> tuple[float, bool]:
        of, _, part = other.rpartition(".")
        return SequenceMatcher(None, last, part).ratio(), of == section

    near = max(known, key=likeness, default="")
    todo = f"the nearest is {near}" if near else "leave it out: there is none"
    return UserError(given, expected, todo)
