"""Names that differ in a date or a number, such as ``u_0`` and ``u_1``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from nfsgeo.data.conventions import listed
from nfsgeo.errors import UserError

__all__ = ["COMPACT", "TIMED", "expanded", "matching"]

# A name that ends with a date or a number, perhaps before a unit in brackets.
TIMED = re.compile(
    r"(.*?)(\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?)?|\d\d?([./])\d\d?\3\d{4}|"
    r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(\s*[\[(].*[\])])?"
)
COMPACT = re.compile(r"((?:18|19|20|21)\d\d)([01]\d)([0-3]\d)$")


def matching(path: Path, names: Sequence[str], form: str) -> dict[str, str]:
    """Return the names that have a number or a date in place of a ``*``, and these.

    Raises:
        UserError: None do.
    """
    parts = {name: TIMED.fullmatch(name) for name in names}
    found = {
        name: "-".join(filter(None, COMPACT.split(part[2])))
        for name, part in parts.items()
        if part and f"{part[1]}*{part[4] or ''}" == form
    }
    if not found:
        expected = "columns whose names have a number or a date in its place"
        raise UserError(f"{form} of {path}", expected, f"choose from {listed(names)}")
    return found


def expanded(path: Path, names: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """Return chosen names, with those that match instead of each with a ``*``.

    Raises:
        UserError: None match.
    """
    whole = list[str]()
    for name in chosen:
        form = "*" in name and name not in names
        whole += matching(path, names, name) if form else [name]
    return whole
