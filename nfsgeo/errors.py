"""Errors that the person at the keyboard can mend."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

__all__ = ["TooLarge", "UserError", "check_shape", "require"]


# This matches a whole command, or an option with its value. These words follow an
# option in a sentence and are no values.
WORDS = "a|an|and|are|beside|for|if|in|is|of|on|or|out|that|to|with|you"
OPTION = re.compile(
    r"nfsgeo [a-z]+ [^;]*|(?<![\w-])--([a-z]+(?:-[a-z]+)*)"
    rf"(?: (?!(?:{WORDS})\b)((?:'[^']*'|[^\s;()'])+(?<![,:.])))?"
)

# Files of fields from memory are called by their name and a digest.
SAVED_NAME = r"([^/]+)-[0-9a-f]{32}\.nc"
SAVED = re.compile(rf"(?:/[^/:;,]*)*/nfsgeo/{SAVED_NAME}")


class UserError(ValueError):
    """Input that cannot be used as it is.

    The message is one line: what was given, what was expected, what to do. The
    command line prints it and exits with status 2; a library caller catches a
    ``ValueError``, whose text names arguments where the command line has options.

    Args:
        given: The value that was given, for example ``"--points 9000"``.
        expected: Values that would have been accepted.
        todo: Advice to the user.
    """

    def __init__(self, given: str, expected: str, todo: str) -> None:
        self.given, self.expected, self.todo = given, expected, todo
        message = f"{given}: expected {expected}; {todo}"
        self.line = " ".join(message.splitlines())  # names of files may have some
        super().__init__(self.line)

    def __str__(self) -> str:
        return OPTION.sub(_argument, SAVED.sub(r"\1", self.line))

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str, str]]:
        # Crosses process boundaries (data-loader workers) with all three parts.
        return type(self), (self.given, self.expected, self.todo)


def _argument(match: re.Match[str]) -> str:
    """Name an option of the command line as Python does."""
    option, value = match[1], (match[2] or "").replace("'", "")
    if not option:
        return match[0]
    name = option.replace("-", "_")
    if option == "set" and value:
        return value
    if option == "columns" and "=" in value:
        names: dict[str, list[str]] = {}
        for pair in value.split(","):
            key, _, column = pair.partition("=")
            names.setdefault(key, []).append(column)
        value = str(
            {key: column if column[1:] else column[0] for key, column in names.items()}
        )
    elif value == "none":
        value = "None"
    elif re.fullmatch("[a-z][a-z_-]*", value):
        value = repr(value)
    return f"{name}={value}" if value else name


class TooLarge(UserError):
    """Raised before an allocation that would not fit into memory."""


def check_shape(name: str, tensor: Any, *sizes: int | str) -> Any:
    """Make sure that a tensor has the shape that a layer was made for.

    Args:
        name: Name of the argument.
        tensor: The tensor, or None where it is missing.
        sizes: Sizes of its axes. A letter is any size, and ``"..."`` at first
            for any leading axes.

    Returns:
        The tensor.

    Raises:
        ValueError: It has another shape.
    """
    shape: Any = ()
    given = "is missing"
    if tensor is not None:
        shape, given = tensor.shape, f"has shape {tuple(tensor.shape)}"
    last = sizes[sizes[0] == "..." :]
    fits = len(shape) >= len(last) if sizes[0] == "..." else len(shape) == len(last)
    pairs = zip(last, shape[len(shape) - len(last) :], strict=False)
    if not (fits and all(isinstance(a, str) or a == b for a, b in pairs)):
        raise ValueError(f"{name} {given}; expected [{', '.join(map(str, sizes))}]")
    return tensor


def require(package: str, what: str, extra: str = "formats") -> None:
    """Makes sure that a package is installed.

    Args:
        package: Its name, as it is imported.
        what: The feature that needs it, for the message.
        extra: The extra of nfsgeo that installs it.

    Raises:
        UserError: It is not installed.
    """
    try:
        import_module(package)
    except ImportError as error:
        raise UserError(what, package, f"pip install 'nfsgeo[{extra}]'") from error
