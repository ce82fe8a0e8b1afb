"""The style of all figures, and a picture with its caption."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib.style
from matplotlib.figure import Figure
from PIL import Image

__all__ = ["COLOURS", "DPI", "SECTIONS", "WIDTH", "Picture", "as_source", "styled"]

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
SECTIONS = ("errors", "fields", "unseen", "training")  # parts of the report

STYLE = Path(__file__).with_name("report.mplstyle")


@dataclass(frozen=True)
class Picture:
    """A figure with its caption.

    Args:
        name: File name without ending, unique in a report.
        section: One of :data:`SECTIONS`.
        caption: One or two sentences of plain text.
        figure: The drawing.
    """

    name: str
    section: str
    caption: str
    figure: Figure

    def png(self) -> bytes:
        """The drawing as a PNG of :data:`DPI` dots per inch."""
        buffer = io.BytesIO()
        with styled():
            self.figure.savefig(buffer, format="png", dpi=DPI)
        return buffer.getvalue()


def as_source(image: Image.Image) -> str:
    """A picture as the address of an ``<img>``, in WebP: a tenth of a PNG's size."""
    content = io.BytesIO()
    image.convert("RGB").save(content, "WEBP", quality=85, method=2)
    return "data:image/webp;base64," + base64.b64encode(content.getvalue()).decode()


@contextmanager
def styled() -> Iterator[None]:
    """Draws in nfsgeo's style and leaves the caller's matplotlib settings alone."""
    with matplotlib.style.context(STYLE, after_reset=True):
        yield
