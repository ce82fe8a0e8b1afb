"""Turns what is wrong with a configuration into one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
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
            raise unknown(key, "a known key", key, known) from None
        raise UserError(
            f"{key}={first['input']!r}",
            first["msg"].removeprefix("Input should be ").removeprefix("Value error, "),
            "change it",
        ) from None


def unknown(given: str, expected: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist, with the nearest that does.

    Args:
        given: What came, as the message shows it.
        expected: What it should have been.
        name: The name to look for.
        known: All names that exist; dotted ones are also compared by their last part.
    """
    names = sorted(known)
    by_last_part = {each.rpartition(".")[2]: each for each in names}
    near = get_close_matches(name, names, n=1) or [
        by_last_part[each]
        for each in get_close_matches(name.rpartition(".")[2], by_last_part, n=1)
    ]
    if near:
        return UserError(given, expected, f"the nearest is {near[0]}")
    return UserError(given, expected, f"choose one of {', '.join(names)}")
