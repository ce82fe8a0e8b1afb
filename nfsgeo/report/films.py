"""Animations of the fields of a run: truth, prediction and error over time."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path
from typing import Any

from matplotlib.animation import FuncAnimation, writers

from nfsgeo.errors import UserError
from nfsgeo.report.curves import COMPONENTS
from nfsgeo.report.figures import SAMPLES, evenly, times_figure
from nfsgeo.report.maps import FieldFigure
from nfsgeo.report.run_folder import Example, Predictions, read_run_folder
from nfsgeo.report.style import DPI, as_source, drawn, styled, tolerant
from nfsgeo.training.artifacts import write_bytes

__all__ = ["frames_of", "write_animation"]

MOST_FRAMES = 40  # of a report
PAGE_DPI = 100
SECONDS = 6.0  # of an animation
WRITERS = {".gif": "pillow", ".mp4": "ffmpeg"}


def frames_of(e: Predictions | None) -> list[dict[str, Any]]:
    """Draw the films of a run's report: one for each sample and component.

    All have the same time steps, as many as there are or as a page can hold. A frame
    has the numbers of its ``film`` and ``step``, the ``name`` of what it shows, the
    ``time`` as text, and the ``source`` of its ``<img>``. A problem without time has
    none.
    """
    if e is None or not e.moving:
        return []
    components = range(min(COMPONENTS, len(e.quantities)))
    films = list(product(components, e.examples[:SAMPLES]))
    steps = evenly(len(e.leads[0]), max(2, MOST_FRAMES // len(films)))
    frames = list[dict[str, Any]]()
    for c, example in films:
        rank = f" ({example.rank})" if example.rank else ""
        name = f"Test {example.name}{rank}, {e.quantities[c]}"
        film, made = frames[-1]["film"] + 1 if frames else 0, list[dict[str, Any]]()
        with tolerant(f"the film of {name}"), styled():
            moving = _film(e, example, c)
            for number, step in enumerate(steps):
                moving.show(step)
                source = as_source(drawn(moving.figure, PAGE_DPI))
                about = {"film": film, "step": number, "name": name}
                made.append({**about, "time": example.when[step], "source": source})
            frames += made
    return frames


def write_animation(run_dir: Path, target: Path) -> Path:
    """Write the first test sample of the run in ``run_dir`` as an animation.

    The ``target``, which is returned, is a file ``.gif`` or, with ffmpeg, ``.mp4``.

    Raises:
        UserError: The ending is another, ffmpeg is not installed, or the run has no
            predictions in time.
    """
    target = Path(target)
    writer = WRITERS.get(target.suffix.lower())
    if writer is None or not writers.is_available(writer):
        raise UserError(
            f"{target} to animate",
            "a .gif file, or a .mp4 file and the program ffmpeg",
            "rename it, or install ffmpeg",
        )
    e = read_run_folder(Path(run_dir)).predictions
    if e is None or not e.moving:
        raise UserError(
            f"{run_dir} without predictions at several times",
            "an evaluated run of a problem in time",
            "evaluate it first, or leave --animate out",
        )
    with styled(), tempfile.TemporaryDirectory() as folder:
        moving, num = _film(e, e.first, 0), len(e.leads[0])
        whole = Path(folder) / f"whole{target.suffix.lower()}"
        animation = FuncAnimation(moving.figure, moving.show, num, lambda: None)
        fps = max(2, round(num / SECONDS))
        animation.save(str(whole), writer, fps=fps, dpi=DPI)
        write_bytes(target, whole.read_bytes())
    return target


def _film(e: Predictions, example: Example, c: int) -> FieldFigure:
    """Return a figure whose time steps all have the layout of the first."""
    moving = times_figure(e, example, c, [0], observed=True)
    drawn(moving.figure, PAGE_DPI)
    moving.figure.set_layout_engine("none")
    return moving
