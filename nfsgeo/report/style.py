"""The style of all figures, and a picture with its caption."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imsave
from PIL import Image

__all__ = [
    "COLOURS",
    "DPI",
    "SECTIONS",
    "WIDTH",
    "Picture",
    "as_source",
    "legend_above",
    "styled",
]

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

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "axes.edgecolor": COLOURS["muted"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.limits": (-3, 4),  # longer numbers run into each other
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["muted"],
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "grid.color": COLOURS["hairline"],
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


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
            # savefig draws everything twice.
            self.figure.set_dpi(DPI)
            canvas = FigureCanvasAgg(self.figure)
            canvas.draw()
            # A little larger than by default, in half the time.
            smaller = {"compress_level": 4}
            pixels = canvas.buffer_rgba()
            imsave(buffer, pixels, format="png", dpi=DPI, pil_kwargs=smaller)
        return buffer.getvalue()


def as_source(image: Image.Image) -> str:
    """A picture as the address of an ``<img>``, in WebP."""
    content = io.BytesIO()
    image.save(content, "WEBP", quality=85, method=2)
    return "data:image/webp;base64," + base64.b64encode(content.getvalue()).decode()


def legend_above(ax: Axes) -> None:
    """A legend in one line over the axes."""
    ax.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=3, borderaxespad=0.2)


@contextmanager
def styled() -> Iterator[None]:
    """Draws in nfsgeo's style and leaves the caller's matplotlib settings alone."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield
