"""Pictures of the fields of a data file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nfsgeo.data.fields import Doubles, Fields
from nfsgeo.data.times import time_texts
from nfsgeo.report.figures import evenly, slug
from nfsgeo.report.maps import Column, FieldFigure
from nfsgeo.report.style import Picture, styled
from nfsgeo.report.text import axis_labels, with_unit
from nfsgeo.training.artifacts import write_bytes

__all__ = ["plot_file"]

SAMPLES = 3
TIME_STEPS = 4


def plot_file(file: Fields, out_dir: Path) -> list[Path]:
    """Draws the first samples of a data file at several time steps.

    Args:
        file: An open data file.
        out_dir: Folder for the PNG files, made if need be.

    Returns:
        The files written, ``sample-<number>-<component>.png``.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    written = []
    units = [file.units.get(axis, "") for axis in file.space]
    axes = axis_labels(file.domain, units)
    for sample in range(min(SAMPLES, file.num_samples)):
        look: dict[str, Any] = {"axes": axes, "triangles": file.triangles(sample)}
        for name, panels in _panels(file, sample).items():
            labels = [with_unit(name, file.units.get(name))]
            columns = [Column(title, u[None], name) for title, u in panels.items()]
            if file.domain.dim == 1:
                rows = np.stack(list(panels.values()))
                columns, labels = [Column(labels[0], rows, name)], [*panels]
            with styled():
                of = file.domain, file.coordinates(sample), columns, labels
                picture = Picture("", "fields", "", FieldFigure(*of, **look).figure)
            written.append(out_dir / f"sample-{sample}-{slug(name)}.png")
            write_bytes(written[-1], picture.png)
    return written


def _panels(file: Fields, sample: int) -> dict[str, dict[str, Doubles]]:
    """The fields of each component, by the titles of their panels."""
    panels: dict[str, dict[str, Doubles]] = {}
    if file.static_names:
        static = file.read_static(sample).astype(np.float64)
        for c, name in enumerate(file.static_names):
            panels[name] = {"static input": static[:, c]}
    shown = evenly(file.num_observed() or len(file.times), TIME_STEPS)
    labels = time_texts(file.times[shown], file.time_unit)
    for k, label in zip(shown, labels, strict=True):
        values = file.read(sample, slice(k, k + 1))[:, 0].astype(np.float64)
        for c, name in enumerate(file.component_names):
            title = label if len(file.times) > 1 else "solution"
            panels.setdefault(name, {})[title] = values[:, c]
    return panels
