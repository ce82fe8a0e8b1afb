"""Pictures of meshes: points, and the cells between them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nfsgeo.geometry import Domain
from nfsgeo.report.style import COLOURS, WIDTH

__all__ = ["mesh_figure"]

CORNERS = {"line": 2, "triangle": 3, "quad": 4}


def mesh_figure(
    domain: Domain,
    pos: NDArray[np.float64],
    cells: Mapping[str, NDArray[np.int64]] | None = None,
) -> Figure:
    """Draws points in their box, and lines, triangles and quadrilaterals in the plane.

    Points in space are seen along the last axis.

    Args:
        domain: Box that holds the points.
        pos: Points ``[n, d]``.
        cells: Point numbers ``[cells, k]`` by type, as meshio names them.
    """
    lower, lengths = domain.lower, domain.lengths
    flat = domain.dim > 1
    height = min(WIDTH, WIDTH * lengths[1] / lengths[0]) if flat else 0.6
    figure = Figure((WIDTH, height + 0.6), layout="compressed")
    ax = figure.subplots()
    shown = pos[:, :2] if flat else np.c_[pos, np.zeros(len(pos))]
    if domain.dim == 2:
        lines = shown[_edges(cells or {})]
        ax.add_collection(LineCollection(list(lines), lw=0.4, color=COLOURS["pale"]))
    size = float(np.clip(150 / np.sqrt(len(pos)), 1.0, 4.0))
    ax.plot(*shown.T, ".", ms=size, mew=0, c=COLOURS["ink"])
    ax.set_title(f"{len(pos)} points" + ", seen along z" * (domain.dim == 3))
    ax.set_xlim(lower[0], domain.upper[0])
    ax.set_xlabel("x")
    if flat:
        ax.set_ylim(lower[1], domain.upper[1])
        ax.set_ylabel("y")
        ax.set_aspect("equal")
    else:
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    return figure


def _edges(cells: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Sides of all cells ``[edges, 2]``, each once."""
    pairs = [np.empty((0, 2), np.int64)]
    for kind, nodes in cells.items():
        corners = nodes[:, : CORNERS.get(kind.rstrip("0123456789"), 0)]
        for k in range(corners.shape[1]):
            pairs.append(np.sort(corners[:, [k - 1, k]], axis=1))
    return np.unique(np.concatenate(pairs), axis=0)
