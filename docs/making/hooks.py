"""What the pages hold that is made when the site is built."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from nfsgeo.pretrained import FOLDER, NAMES

sys.path.insert(0, str(Path(__file__).parent))
from formats import formats_read, formats_written  # noqa: E402
from mathematics import formulas  # noqa: E402
from models import model_settings, model_table  # noqa: E402

__all__ = ["on_page_markdown"]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in formulas and tables before a page is rendered."""
    if "<!-- models -->" in markdown:
        markdown = markdown.replace("<!-- models -->", model_table())
        markdown = markdown.replace("<!-- settings -->", model_settings())
    if "<!-- formats read -->" in markdown:
        markdown = markdown.replace("<!-- formats read -->", formats_read())
        markdown = markdown.replace("<!-- formats written -->", formats_written())
    if "<!-- cards -->" in markdown:
        cards = [(FOLDER / name / "card.md").read_text() for name in NAMES]
        text = "\n".join(re.sub(r"^# ", "## ", card) for card in cards)
        markdown = markdown.replace("<!-- cards -->", text)
    return formulas(markdown)
