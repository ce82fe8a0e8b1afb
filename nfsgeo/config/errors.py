"""User errors about settings and names, each in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from nfsgeo.errors import UserError

__all__ = ["explained", "unknown"]

FEW = 12  # names that a message lists


@contextmanager
def explained(section: str = "", keys: Iterable[str] = ()) -> Iterator[None]:
    """Re-raise the first error that pydantic finds inside the block.

    Args:
        section: Dotted name of the section that is checked.
        keys: Dotted names of all keys, to name the nearest one.

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
            if isinstance(first["input"], dict):  # a section that does not exist
                key = ".".join([key, *map(str, list(first["input"])[:1])])
            raise unknown(key, "a known key", key, keys) from None
        expected = first["msg"].removeprefix("Input should be ")
        expected = expected.removeprefix("Value error, ")
        if first["type"] == "missing":
            expected, key = f"{key} as well", key.rpartition(".")[0]
        came = f"{key}={first['input']!r}".lstrip("=")  # no key for all settings
        raise UserError(came, expected, "change it") from None


def unknown(given: str, expected: str, name: str, choices: Iterable[str]) -> UserError:
    """Make the error for a name that does not exist, which names similar ones.

    Dotted names are compared by their last part, and by the section if the last parts
    are equal. If no name is similar, those of the section are listed, if they are few.

    Args:
        given: The text that came, for the message.
        expected: The text that was expected, for the message.
        name: The name that does not exist.
        choices: The names that exist.
    """
    section, _, last = name.rpartition(".")
    names = sorted(choices)
    siblings = [key for key in names if section and key.rpartition(".")[0] == section]
    parts = {key.rpartition(".")[2]: key for key in [*names, *siblings]}
    near = [last] if last in parts else get_close_matches(last, parts, n=1)
    if near:
        return UserError(given, expected, f"the nearest is {parts[near[0]]}")
    if not names:
        return UserError(given, expected, "leave it out: there is none")
    close = {part: key for part, key in parts.items() if key in siblings} or parts
    todo = f"choose one of {', '.join(close.values())}"
    if len(close) > FEW:
        todo = f"check it: none of the {len(close)} names is similar"
    return UserError(given, expected, todo)
