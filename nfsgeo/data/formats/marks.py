"""Marks in formats without roles: ``a``, ``a_NAME`` static, ``forcing_NAME`` known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nfsgeo.data.fields import FORCING, Fields
from nfsgeo.errors import UserError

MARK = "a_"


def is_static(name: str) -> bool:
    """Whether a named field is a static input: ``a``, ``a_permeability``, ..."""
    return name == "a" or name.startswith(MARK)


def bare(name: str) -> str:
    """The name of a static input without its mark; ``a`` itself stays."""
    return name.removeprefix(MARK) or name


def marked_names(fields: Fields, out: Path, taken: Sequence[str]) -> list[str]:
    """Names of components, forcings and static inputs, in this order, with their marks.

    Args:
        fields: What to write.
        out: The file to make, for messages.
        taken: Names that the format needs itself.

    Raises:
        UserError: A name is taken, or would be read back as another kind.
    """
    fine, forcings = fields.component_names, fields.forcing_names
    for name in (*fine, *forcings):
        if name.startswith(FORCING):
            raise _refused(name, out, f"names without {FORCING}, which marks forcings")
        if is_static(name) and name in fine:
            raise _refused(name, out, "names without a_, the mark of static inputs")
    static = [n if n == "a" else MARK + n for n in fields.static_names]
    names = [*fine, *(FORCING + name for name in forcings), *static]
    for each in (forcings, fields.static_names):
        check_names(out, each, ())
    check_names(out, names, taken)
    return names


def check_names(out: Path, names: Sequence[str], taken: Sequence[str]) -> None:
    """Makes sure that names differ, and are no coordinates (``taken``) or paths."""
    for name in names:
        expected = ""
        if "/" in name:
            expected = "names without '/', which separates the parts of a path"
        elif name != name.strip() or not name.isprintable() or not name:
            expected = "names of printable characters without blanks at their ends"
        elif name in taken or list(names).count(name) > 1:
            expected = f"names that differ from each other and from {', '.join(taken)}"
        if expected:
            raise _refused(name, out, expected)


def _refused(name: str, out: Path, expected: str) -> UserError:
    given = f"a field named {name!r} in {out}"
    return UserError(given, expected, "rename the component or choose .nc")
