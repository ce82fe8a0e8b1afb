"""Fields of a run that move: truth, prediction and error, time step by time step."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import FFMpegWriter, MovieWriter, PillowWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from nfsgeo.errors import UserError
from nfsgeo.report.figures import COMPONENTS, SAMPLES, evenly, sample_columns
from nfsgeo.report.maps import FieldMaps, along, profiles
from nfsgeo.report.run_folder import Predictions, read_run_folder
from nfsgeo.report.style import as_source, styled
from nfsgeo.report.text import mae_text
from nfsgeo.training.artifacts import write_bytes

__all__ = ["frames_of", "write_animation"]

MOST_FRAMES = 40  # of a report
PAGE_DPI, FILE_DPI = 100, 160
SECONDS = 6.0  # of an animation
WRITERS: dict[str, type[MovieWriter] | type[PillowWriter]] = {
    ".gif": PillowWriter,
    ".mp4": FFMpegWriter,
}


def frames_of(e: Predictions | None) -> list[dict[str, Any]]:
    """The films of a run's report: one for each sample and component.

    All have the same time steps, as many as there are or as a page can hold. A frame
    has the numbers of its ``film`` and ``step``, the ``name`` of what it shows, such as
    ``"Test sample 960, vorticity"``, the ``time``, such as ``"t = 2.75"``, and the
    picture as the ``source`` of an ``<img>``. A problem without time has none.
    """
    if e is None or e.steady or len(e.times_out) < 2:
        return []
    components = range(min(COMPONENTS, len(e.quantities)))
    films = list(product(components, range(min(SAMPLES, len(e.samples)))))
    steps = evenly(len(e.times_out), max(2, MOST_FRAMES // len(films)))
    frames = []
    for film, (c, s) in enumerate(films):
        name = f"Test sample {e.samples[s]}, {e.quantities[c]}"
        with styled():
            figure, show = _film(e, s, c)
            figure.set_dpi(PAGE_DPI)
            canvas = FigureCanvasAgg(figure)
            for number, step in enumerate(steps):
                show(step)
                canvas.draw()
                source = as_source(Image.fromarray(np.asarray(canvas.buffer_rgba())))
                about = {"film": film, "step": number, "name": name}
                frames.append({**about, "time": e.when(step), "source": source})
    return frames


def write_animation(run_dir: Path, target: Path) -> Path:
    """Writes the first test sample of a run as an animation.

    Args:
        run_dir: A run folder.
        target: The file to make, ``.gif`` or ``.mp4``, which needs ffmpeg.

    Returns:
        ``target``.

    Raises:
        UserError: The ending is another, ffmpeg is not installed, or the run has no
            predictions in time.
    """
    target = Path(target)
    kind = WRITERS.get(target.suffix.lower())
    if kind is None:
        raise UserError(f"{target} to animate", "a .gif or .mp4 file", "rename it")
    if not kind.isAvailable():
        raise UserError(
            f"{target}", "the program ffmpeg, which makes it", "install it, or use .gif"
        )
    e = read_run_folder(Path(run_dir)).predictions
    if e is None or e.steady or len(e.times_out) < 2:
        raise UserError(
            f"{run_dir} without predictions at several times",
            "an evaluated run of a problem in time",
            "evaluate it first, or leave --animate out",
        )
    writer = kind(fps=max(2, round(len(e.times_out) / SECONDS)))
    with styled(), tempfile.TemporaryDirectory() as folder:
        figure, show = _film(e, 0, 0)
        whole = Path(folder) / f"whole{target.suffix.lower()}"
        with writer.saving(figure, str(whole), FILE_DPI):
            for k in range(len(e.times_out)):
                show(k)
                writer.grab_frame()
        write_bytes(target, whole.read_bytes())
    return target


def _film(e: Predictions, s: int, c: int) -> tuple[Figure, Callable[[int], None]]:
    """A figure of one sample, and what makes it show a time step."""
    columns = sample_columns(e, s, c)
    errors = enumerate(columns[-1].values)
    texts = [f"{e.when(k)}\n{mae_text(error)}" for k, error in errors]
    if e.domain.dim > 1:
        maps = FieldMaps(e.domain, e.pos, columns, texts[:1], e.axes, e.triangles)
        figure = maps.figure

        def show(k: int) -> None:
            maps.update([column.values[k] for column in columns], texts[k])
    else:
        fields = {k.title: k.values for k in columns if k.scale == "field"}
        figure = profiles(e.domain, e.pos, fields, texts[:1], e.axes[0])
        order = along(e.domain, e.pos)[1]
        (panel,) = figure.axes
        values = np.stack(list(fields.values()))
        shown = values[np.isfinite(values)]
        if shown.size:
            room = 0.05 * float(np.ptp(shown)) or 0.5
            panel.set_ylim(shown.min() - room, shown.max() + room)

        def show(k: int) -> None:
            for line, field in zip(panel.lines, fields.values(), strict=True):
                line.set_ydata(field[k, order])
            panel.set_ylabel(texts[k])

    # Every frame has the layout of the first.
    FigureCanvasAgg(figure).draw()
    figure.set_layout_engine("none")
    return figure, show
