"""The style of all figures, and a picture with its caption."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import matplotlib.style
from matplotlib.figure import Figure
from PIL import Image

__all__ = ["COLOURS", "DPI", "WIDTH", "Picture", "as_source", "drawn", "styled"]

# Okabe and Ito's colours, which the colour-blind can tell apart.
COLOURS = {
    "ink": "#1b1f24",
    "muted": "#6b7280",
    "hairline": "#d9dde2",
    "model": "#0072b2",
    "second": "#d55e00",
    "third": "#009e73",
    "pale": "#b9bec6",
}
WIDTH = 5.6  # inches; one column on a phone, half a page on a desk
DPI = 160

STYLE = Path(__file__).with_name("report.mplstyle")


@dataclass(frozen=True)
class Picture:
    """A figure with its caption.

    Args:
        name: File name without ending, unique in a report.
        section: Of the report: errors, fields, unseen or training.
        caption: One or two sentences of plain text.
        figure: The drawing.
    """

    name: str
    section: str
    caption: str
    figure: Figure

    @cached_property
    def png(self) -> bytes:
        """The content of its file."""
        with styled():
            return drawn(self.figure)

    @property
    def source(self) -> str:
        """The picture in a page."""
        return as_source(self.png)


def drawn(figure: Figure, dpi: int = DPI) -> bytes:
    """A figure as a PNG of so many dots per inch."""
    content = io.BytesIO()
    figure.savefig(content, dpi=dpi)
    return content.getvalue()


def as_source(png: bytes) -> str:
    """A PNG as the address of an ``<img>``, in WebP, which takes a tenth of it."""
    content = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").save(content, "WEBP", quality=85, method=2)
    return "data:image/webp;base64," + base64.b64encode(content.getvalue()).decode()


@contextmanager
def styled() -> Iterator[None]:
    """Draws in nfsgeo's style and leaves the caller's matplotlib settings alone."""
    with matplotlib.style.context(STYLE, after_reset=True):
        yield
