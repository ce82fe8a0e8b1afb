"""The tables of formats describe the formats, not the wrappers of their functions."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "making"))
from pages import formats_read, formats_written  # noqa: E402


def cells(table: str, column: int) -> list[str]:
    """One column of a Markdown table, without its head."""
    rows = table.replace("\\|", "").splitlines()[2:]
    return [row.strip("| ").split(" | ")[column] for row in rows]


def test_every_format_has_a_content_of_its_own() -> None:
    found = cells(formats_read(), 1) + cells(formats_written(), 2)
    assert all(content.endswith((".", ",", ":")) for content in found), found
    assert len(set(found)) == len(found)
    wrapper = (functools.partial.__doc__ or "").split("\n\n")[0]
    assert not any(content in wrapper for content in found)
