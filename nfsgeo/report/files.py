"""Pictures of a data file: its fields and its meshes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from nfsgeo.data.fields import Doubles, Fields, Indices
from nfsgeo.data.times import time_texts
from nfsgeo.geometry import Domain
from nfsgeo.report.figures import evenly, slug
from nfsgeo.report.maps import Column, FieldMaps, profiles
from nfsgeo.report.style import COLOURS, WIDTH, Picture, styled
from nfsgeo.report.text import axis_labels, with_unit
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
    units = [file.units.get(axis, "") for axis in file.space]
    axes = axis_labels(file.domain, units)
    for sample in samples:
        pos, triangles = file.coordinates(sample), file.triangles(sample)
        for name, panels in _panels(file, sample).items():
            label = with_unit(name, file.units.get(name))
            if file.domain.dim == 1:
                rows = np.stack(list(panels.values()))
                figure = profiles(file.domain, pos, {label: rows}, [*panels], axes[0])
            else:
                columns = [Column(title, u[None], name) for title, u in panels.items()]
                maps = FieldMaps(file.domain, pos, columns, [label], axes, triangles)
                figure = maps.figure
            yield f"sample-{sample}-{slug(name)}", figure
    if file.shape is None:
        firsts = {file.mesh_id(sample): sample for sample in reversed(samples)}
        for mesh, sample in sorted(firsts.items()):
            pos, elements = file.coordinates(sample), file.cells(sample)
            yield f"mesh-{mesh}", mesh_figure(file.domain, pos, elements, axes)


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


def mesh_figure(
    domain: Domain,
    pos: Doubles,
    elements: Mapping[str, Indices] | None = None,
    axes: Sequence[str] = ("x", "y", "z"),
) -> Figure:
    """Draws points, and in the plane also lines, triangles and quadrilaterals.

    Args:
        domain: Box that holds the points.
        pos: Points ``[n, d]``.
        elements: Point numbers ``[num, k]`` by type, as meshio names them.
        axes: Names of the axes, with their units.
    """
    title = f"{len(pos)} points"
    size = float(np.clip(150 / np.sqrt(len(pos)), 1.0, 4.0))
    height = 0.6 if domain.dim == 1 else WIDTH
    if domain.dim == 2:
        height *= min(1, domain.lengths[1] / domain.lengths[0])
    figure = Figure((WIDTH, height + 0.6), layout="constrained")
    if domain.dim == 3:
        ax = figure.subplots(subplot_kw={"projection": "3d", "proj_type": "ortho"})
        spans = [f"{name}, {domain.span(axis)}" for axis, name in enumerate(axes)]
        title += "\n" + "; ".join(spans).replace("-", "−")
        ax.set(xticks=[], yticks=[], zticks=[], box_aspect=domain.lengths)
    elif domain.dim == 2:
        ax = figure.subplots()
        ax.set(xlabel=axes[0], ylabel=axes[1], aspect="equal")
        for kind, nodes in (elements or {}).items():
            corners = nodes[:, : CORNERS.get(kind.rstrip("0123456789"), 0)]
            sides: dict[str, Any] = {"lw": 0.4, "ec": COLOURS["pale"], "fc": "none"}
            if corners.size:
                ax.add_collection(PolyCollection(list(pos[corners]), **sides))
    else:
        ax = figure.subplots()
        ax.set(xlabel=axes[0], yticks=[], ylim=(-1, 1))
        ax.spines["left"].set_visible(False)
        pos = np.column_stack([pos, np.zeros(len(pos))])
    ax.plot(*pos.T, ".", ms=size, mew=0, c=COLOURS["ink"])
    for name, low, high in zip("xyz", domain.lower, domain.upper, strict=False):
        ax.set(**{f"{name}lim": (low, high)})
    ax.set_title(title)
    return figure
