"""User errors, and the words of options in their messages."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from contextvars import ContextVar
from importlib import import_module
from typing import Any

__all__ = ["COMMAND", "READING", "TooLarge", "UserError", "check_shape", "check_sizes"]
__all__ += ["columns_text", "option", "require", "said"]

# Options of the command that runs, by argument or setting; None in Python.
COMMAND = ContextVar[Mapping[str, str] | None]("COMMAND", default=None)

# Options of `nfsgeo convert`, which also tells how to read files for other commands.
READING = ("columns", "times", "at", "series", "time_axis", "sphere", "axis", "known")
OF_EVALUATE = ("data", "part")

# Control characters enclose an option that a message advises, and part its values.
BETWEEN = "\x1f"
ADVISED = re.compile("\x02([^\x03]*)\x03")
PYTHON = {
    "times": "times=[T, T, ...]",
    "sphere": "domain=Domain.sphere()",
    "axis": "domain=Domain(lower, upper, periodic)",
}

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


def option(name: str, *values: object) -> str:
    """Return an option for a message, which says it as its reader can give it.

    Args:
        name: The argument of Python, for example ``"time_axis"``, or a setting such as
            ``"data.known"``.
        values: A value as the command line takes it, and further ones to choose from,
            or in the case of ``"axis"`` one for each axis.
    """
    return f"\x02{BETWEEN.join([name, *map(str, values)])}\x03"


def columns_text(columns: Mapping[str, Any]) -> str | None:
    """Return the option that is read as these columns; None if a name has a comma."""
    alone = str, os.PathLike
    lists = {k: [v] if isinstance(v, alone) else v for k, v in columns.items()}
    parts = [f"{role}={name}" for role, names in lists.items() for name in names]
    return None if "," in "".join(parts) else ",".join(parts)


def said(text: str, source: str = "FILE") -> str:
    """Return a text, such as a line of a log, with options as its reader gives them.

    Args:
        text: The text with options as :func:`option` returns them.
        source: Files that are read, as words of a command.
    """
    own = COMMAND.get()
    return _in_python(text) if own is None else _in_command(text, own, source)


def _in_command(text: str, own: Mapping[str, str], source: str) -> str:
    """Say options as a command has them, or else with another one that does."""
    used = set[str]()

    def say(match: re.Match[str]) -> str:
        name, *values = match[1].split(BETWEEN)
        words, flag = "", own.get(name)
        if flag is None:
            flag = f"--{name.replace('_', '-')}"
            words = f"nfsgeo {'evaluate' if name in OF_EVALUATE else 'train'} "
            if name in READING:
                words = f"nfsgeo convert {source} --out NAME.nc "
            if "." in name:
                flag, values = "--set", [f"{name}={value}" for value in values]
                words *= "set" not in own
        words = "" if words in used else words
        used.add(words)
        between = f" {flag} " if name == "axis" else ", or "  # one for each axis
        several = between.join(map(shlex.quote, values))
        return words + flag + f" {several}" * bool(values)

    return ADVISED.sub(say, text)


def _in_python(text: str) -> str:
    """Say options as arguments of Python."""
    parts = re.split(ADVISED, SAVED.sub(r"\1", text))
    for i, part in enumerate(parts):
        name, *values = part.split(BETWEEN)
        several = ", or ".join(_value(name, value) for value in values)
        parts[i] = _assigned(name, several) if i % 2 else OPTION.sub(_argument, part)
    return "".join(parts)


class UserError(ValueError):
    """Input that cannot be used as it is.

    The message is one line: what was given, what was expected, what to do. The
    command line prints it and exits with status 2; a library caller catches a
    ``ValueError``, whose text names arguments where the command line has options.

    Args:
        given: The value that was given, for example ``"--points 9000"``.
        expected: Values that would have been accepted.
        todo: Advice to the user, with options as :func:`option` returns them.
        source: Files that are read, as words of a command.
    """

    def __init__(
        self, given: str, expected: str, todo: str, source: str = "FILE"
    ) -> None:
        self.given, self.expected, self.todo = given, expected, todo
        self.source = source
        super().__init__(self.line)

    @property
    def line(self) -> str:
        """The message as a command without any of the options says it."""
        return self.told({})

    def told(self, own: Mapping[str, str]) -> str:
        """Return the message as a command says it.

        Args:
            own: The options of the command by argument or setting. An option that it
                lacks is said with a command that has it, `nfsgeo convert` or `train`.
        """
        return _in_command(self._whole, own, self.source)

    def __str__(self) -> str:
        return said(self._whole, self.source)

    @property
    def _whole(self) -> str:
        message = f"{self.given}: expected {self.expected}; {self.todo}"
        return " ".join(message.splitlines())  # names of files may have some

    def __reduce__(self) -> tuple[type[UserError], tuple[str, ...]]:
        # Crosses process boundaries (data-loader workers) with all parts.
        return type(self), (self.given, self.expected, self.todo, self.source)


def _argument(match: re.Match[str]) -> str:
    """Name an option of the command line as Python does."""
    option, value = match[1], (match[2] or "").replace("'", "")
    if not option:
        return match[0]
    if option == "set" and value:
        return value
    name = option.replace("-", "_")
    return _assigned(name, _value(name, value))


def _assigned(name: str, value: str) -> str:
    return PYTHON.get(name) or (f"{name}={value}" if value else name)


def _value(name: str, value: str) -> str:
    """Write the value of an option as Python does."""
    if name == "columns" and "=" in value:
        names: dict[str, list[str]] = {}
        for pair in value.split(","):
            key, _, column = pair.partition("=")
            names.setdefault(key, []).append(column)
        return str(
            {key: column if column[1:] else column[0] for key, column in names.items()}
        )
    if "." in name:  # a setting, written as in files of settings
        return value
    if value == "none":
        return "None"
    return repr(value) if re.fullmatch("[a-z][a-z_-]*", value) else value


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


def check_sizes(**sizes: int) -> None:
    """Make sure that the sizes of a layer, by argument, are 1 or more.

    Raises:
        ValueError: One is not.
    """
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}={size}; expected 1 or more")


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
