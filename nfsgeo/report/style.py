"""The style of all figures, and a picture with its caption."""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

__all__ = ["COLOURS", "DPI", "WIDTH", "Picture", "as_source", "drawn", "styled"]
__all__ += ["tolerant"]

logger = logging.getLogger(__name__)

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
    """A figure with its caption, drawn when it is asked for.

    One that cannot be drawn has no content, and says so in its caption.
    """

    name: str  # of its file without ending, unique in a report
    section: str  # of the report: errors, fields, unseen or training
    about: str  # one or two sentences of plain text
    draw: Callable[[], Any]  # returns a figure, or an object with one and with a note

    @cached_property
    def _drawn(self) -> tuple[Image.Image | None, str]:
        """The drawing at :data:`DPI` dots per inch, and what is to be said about it."""
        with tolerant(f"picture {self.name}"), styled():
            made = self.draw()
            return drawn(made.figure), getattr(made, "note", "")
        return None, "It could not be drawn."

    @property
    def caption(self) -> str:
        """A few sentences about it."""
        return f"{self.about} {self._drawn[1]}".strip()

    @property
    def png(self) -> bytes:
        """The content of its file."""
        content = io.BytesIO()
        if (image := self._drawn[0]) is not None:
            image.save(content, "PNG")
        return content.getvalue()

    @property
    def source(self) -> str:
        """The picture in a page."""
        image = self._drawn[0]
        return "" if image is None else as_source(image)


@contextmanager
def tolerant(what: str) -> Iterator[None]:
    """Go on after an error of drawing, which costs no more than ``what`` it was of."""
    try:
        yield
    except Exception as error:  # matplotlib raises many
        logger.warning("%s could not be drawn (%s)", what, error)


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
