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
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
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
    """A figure with its caption."""

    name: str  # of its file without ending, unique in a report
    section: str  # of the report: errors, fields, unseen or training
    caption: str  # one or two sentences of plain text
    figure: Figure

    @cached_property
    def image(self) -> Image.Image:
        """The drawing at :data:`DPI` dots per inch."""
        with styled():
            return drawn(self.figure)

    @property
    def png(self) -> bytes:
        """The content of its file."""
        content = io.BytesIO()
        self.image.save(content, "PNG")
        return content.getvalue()

    @property
    def source(self) -> str:
        """The picture in a page."""
        return as_source(self.image)


def drawn(figure: Figure, dpi: int = DPI) -> Image.Image:
    """Draw a figure as an image at a resolution in dots per inch."""
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.array(canvas.buffer_rgba())).convert("RGB")


def as_source(image: Image.Image) -> str:
    """An image as the address of an ``<img>``, in WebP: a tenth of a PNG's size."""
    content = io.BytesIO()
    image.save(content, "WEBP", quality=85, method=2)
    return "data:image/webp;base64," + base64.b64encode(content.getvalue()).decode()


@contextmanager
def styled() -> Iterator[None]:
    """Draw in nfsgeo's style and leave the caller's matplotlib settings alone."""
    with matplotlib.style.context(STYLE, after_reset=True):
        yield
