"""Pictures of a data file: its fields and its meshes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nfsgeo.data.fields import Fields
from nfsgeo.data.times import time_texts
from nfsgeo.geometry import Domain
from nfsgeo.report.figures import evenly, slug
from nfsgeo.report.lines import profiles
from nfsgeo.report.maps import FieldMaps, points_of_surface
from nfsgeo.report.numbers import axis_labels, with_unit
from nfsgeo.report.panels import Column
from nfsgeo.report.style import COLOURS, WIDTH, Picture, styled
from nfsgeo.report.views import on_surface
from nfsgeo.training.artifacts import write_bytes

__all__ = ["mesh_figure", "plot_file"]

SAMPLES = 3
TIME_STEPS = 4
CORNERS = {"line": 2, "triangle": 3, "quad": 4}


def plot_file(file: Fields, out_dir: Path) -> list[Path]:
    """Draws the first samples of a data file at several time steps, and its meshes.

    The meshes are those of the samples drawn, if they are points.

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
            write_bytes(written[-1], Picture(name, "fields", "", figure).png())
    return written


def _figures(file: Fields) -> Iterator[tuple[str, Figure]]:
    """Figures with their names, one at a time."""
    samples = range(min(SAMPLES, file.num_samples))
    for sample in samples:
        for name, panels in _panels(file, sample).items():
            yield f"sample-{sample}-{slug(name)}", _drawn(file, sample, name, panels)
    axes = axis_labels(file.domain, file.axis_units)
    if file.shape is None:
        firsts = {file.mesh_id(sample): sample for sample in reversed(samples)}
        for mesh, sample in sorted(firsts.items()):
            pos, elements = file.coordinates(sample), file.cells(sample)
            yield f"mesh-{mesh}", mesh_figure(file.domain, pos, elements, axes)


def _panels(file: Fields, sample: int) -> dict[str, dict[str, NDArray[np.float64]]]:
    """The fields of each component, by the titles of their panels."""
    shown = evenly(file.num_observed() or len(file.times), TIME_STEPS)
    panels: dict[str, dict[str, NDArray[np.float64]]] = {}
    if file.static_names:
        static = file.read_static(sample).astype(np.float64)
        for c, name in enumerate(file.static_names):
            panels[name] = {"static input": static[:, c]}
    labels = time_texts(file.times[shown], file.time_unit)
    for k, label in zip(shown, labels, strict=True):
        values = file.read(sample, slice(k, k + 1))[:, 0].astype(np.float64)
        if len(file.times) == 1:
            label = "solution"
        for c, name in enumerate(file.component_names):
            panels.setdefault(name, {})[label] = values[:, c]
    return panels


def _drawn(
    file: Fields, sample: int, name: str, panels: dict[str, NDArray[np.float64]]
) -> Figure:
    pos = file.coordinates(sample)
    axes = axis_labels(file.domain, file.axis_units)
    name = with_unit(name, file.units.get(name))
    if file.domain.dim == 1:
        rows = np.stack(list(panels.values()))
        return profiles(file.domain, pos, {name: rows}, [*panels], axes[0])
    columns = [Column(label, field[None], name) for label, field in panels.items()]
    triangles = file.triangles(sample)
    return FieldMaps(file.domain, pos, columns, [name], axes, triangles).figure


def mesh_figure(
    domain: Domain,
    pos: NDArray[np.float64],
    elements: Mapping[str, NDArray[np.int64]] | None = None,
    axes: Sequence[str] = ("x", "y", "z"),
) -> Figure:
    """Draws points in their box, and lines, triangles and quadrilaterals in the plane.

    Points in space are seen along the last axis, those on a surface from two sides.

    Args:
        domain: Box that holds the points.
        pos: Points ``[n, d]``.
        elements: Point numbers ``[num, k]`` by type, as meshio names them.
        axes: Names of the axes, with their units.
    """
    if domain.dim == 3 and on_surface(pos):
        return points_of_surface(pos, axes)
    lower, lengths = domain.lower, domain.lengths
    flat = domain.dim > 1
    height = min(WIDTH, WIDTH * lengths[1] / lengths[0]) if flat else 0.6
    figure = Figure((WIDTH, height + 0.6), layout="compressed")
    ax = figure.subplots()
    shown = pos[:, :2] if flat else np.c_[pos, np.zeros(len(pos))]
    if domain.dim == 2:
        lines = shown[_edges(elements or {})]
        ax.add_collection(LineCollection(list(lines), lw=0.4, color=COLOURS["pale"]))
    size = float(np.clip(150 / np.sqrt(len(pos)), 1.0, 4.0))
    ax.plot(*shown.T, ".", ms=size, mew=0, c=COLOURS["ink"])
    ax.set_title(f"{len(pos)} points" + f", seen along {axes[-1]}" * (domain.dim == 3))
    ax.set_xlim(lower[0], domain.upper[0])
    ax.set_xlabel(axes[0])
    if flat:
        ax.set_ylim(lower[1], domain.upper[1])
        ax.set_ylabel(axes[1])
        ax.set_aspect("equal")
    else:
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    return figure


def _edges(elements: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Sides of all elements ``[edges, 2]``, each once."""
    pairs = [np.empty((0, 2), np.int64)]
    for kind, nodes in elements.items():
        corners = nodes[:, : CORNERS.get(kind.rstrip("0123456789"), 0)]
        for k in range(corners.shape[1]):
            pairs.append(np.sort(corners[:, [k - 1, k]], axis=1))
    return np.unique(np.concatenate(pairs), axis=0)
