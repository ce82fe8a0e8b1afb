"""Pictures of a data file: its fields and its meshes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from nfsgeo.data.fields import Doubles, Fields
from nfsgeo.data.times import time_texts
from nfsgeo.report.figures import evenly, slug
from nfsgeo.report.maps import Column, FieldFigure
from nfsgeo.report.style import COLOURS, WIDTH, Picture, styled
from nfsgeo.report.text import axis_labels, with_unit
from nfsgeo.training.artifacts import write_bytes

__all__ = ["plot_file"]

SAMPLES = 3
TIME_STEPS = 4


def plot_file(file: Fields, out_dir: Path) -> list[Path]:
    """Draws the first samples of a data file at several time steps, and its meshes.

    The meshes are those of the samples drawn, if they are points of a plane or of
    space.

    Args:
        file: An open data file.
        out_dir: Folder for the PNG files, made if need be.

    Returns:
        The files written, ``sample-<number>-<component>.png`` and
        ``mesh-<number>.png``.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    written = []
    with styled():
        for name, figure in _figures(file):
            written.append(out_dir / f"{name}.png")
            write_bytes(written[-1], Picture(name, "fields", "", figure).png)
    return written


def _figures(file: Fields) -> Iterator[tuple[str, Figure]]:
    """Figures with their names, one at a time."""
    samples = range(min(SAMPLES, file.num_samples))
    axes = axis_labels(file.domain, file.axis_units)
    for sample in samples:
        pos, triangles = file.coordinates(sample), file.triangles(sample)
        for name, panels in _panels(file, sample).items():
            labels = [with_unit(name, file.units.get(name))]
            columns = [Column(title, u[None], name) for title, u in panels.items()]
            if file.domain.dim == 1:
                rows = np.stack(list(panels.values()))
                columns, labels = [Column(labels[0], rows, name)], [*panels]
            look = {"axes": axes, "triangles": triangles}
            made = FieldFigure(file.domain, pos, columns, labels, **look)
            yield f"sample-{sample}-{slug(name)}", made.figure
    if file.shape is None and file.domain.dim > 1:
        firsts = {file.mesh_id(sample): sample for sample in reversed(samples)}
        for mesh, sample in sorted(firsts.items()):
            yield f"mesh-{mesh}", _mesh_figure(file, sample, axes)


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


def _mesh_figure(file: Fields, sample: int, axes: list[str]) -> Figure:
    """The points of a sample, and in the plane the triangles between them."""
    domain, pos = file.domain, file.coordinates(sample)
    figure = Figure((WIDTH, WIDTH), layout="compressed")
    look = {"projection": "3d", "proj_type": "ortho"} if domain.dim == 3 else {}
    ax = figure.subplots(subplot_kw=look)
    triangles = file.triangles(sample)
    if triangles is not None:
        ax.triplot(*pos.T, triangles, lw=0.4, color=COLOURS["pale"])
    size = float(np.clip(150 / np.sqrt(len(pos)), 1.0, 4.0))
    ax.plot(*pos.T, ".", ms=size, mew=0, c=COLOURS["ink"])
    ax.set(title=f"{len(pos)} points", aspect="equal")
    for axis, name, *ends in zip("xyz", axes, domain.lower, domain.upper, strict=False):
        ax.set(**{f"{axis}label": name, f"{axis}lim": ends})
    return figure
