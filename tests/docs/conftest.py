"""The pages of the site."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    str(page.relative_to(DOCS))
    for page in DOCS.rglob("*.md")
    if "```" in page.read_text()
)


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> Path:
    """Each page that shows something to type."""
    return DOCS / request.param
