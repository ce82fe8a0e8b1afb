"""Parameters of an equation that a user can choose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from nfsgeo.errors import UserError

__all__ = ["Option"]


@dataclass(frozen=True)
class Option:
    """A parameter of an equation.

    Attributes:
        name: Its name.
        type: ``int``, ``float`` or ``str``.
        default: Its value when not given.
        help: What it means, one line.
        choices: The values there are, empty when any will do.
    """

    name: str
    type: type
    default: int | float | str
    help: str
    choices: tuple[str, ...] = ()

    def parse(self, value: Any) -> int | float | str:
        """The value in the option's type; text is converted.

        Raises:
            UserError: It cannot be.
        """
        kind = {int: "an integer", float: "a number", str: "text"}[self.type]
        expected = f"one of {', '.join(self.choices)}" if self.choices else kind
        wrong = UserError(f"{self.name}={value!r}", expected, "change the value")
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise wrong
        try:
            parsed = self.type(value)
        except (ValueError, OverflowError):
            raise wrong from None
        if isinstance(value, float) and parsed != value and self.type is int:
            raise wrong
        if self.choices and parsed not in self.choices:
            raise wrong
        if self.type is float and not math.isfinite(parsed):
            raise wrong
        return parsed
