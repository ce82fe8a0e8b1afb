"""The pictures of a data file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.native import NativeFile
from nfsgeo.report.lines import profiles
from nfsgeo.report.maps import field_maps
from nfsgeo.report.mesh_figures import mesh_figure
from nfsgeo.report.scales import Column
from nfsgeo.report.selection import evenly, slug
from nfsgeo.report.style import Picture, styled
from nfsgeo.training.artifacts import write_bytes

__all__ = ["plot_file"]

SAMPLES = 3
RECORDS = 4


def plot_file(file: FieldFile, out_dir: Path) -> list[Path]:
    """Draws the first samples of a data file at several records, and its meshes.

    Of a point cloud the meshes of those samples, of a grid those published with it.

    Args:
        file: An open data file.
        out_dir: Folder for the PNG files, made if need be.

    Returns:
        The files written, ``sample-<number>-<component>.png`` and
        ``mesh-<number or name>.png``.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in _figures(file):
        written.append(out_dir / f"{name}.png")
        write_bytes(written[-1], Picture(name, "fields", "", figure).png())
    return written


def _figures(file: FieldFile) -> Iterator[tuple[str, Figure]]:
    """Figures with their names, one at a time."""
    samples = range(min(SAMPLES, file.num_samples))
    for sample in samples:
        for name, panels in _panels(file, sample).items():
            with styled():
                figure = _drawn(file, sample, name, panels)
            yield f"sample-{sample}-{slug(name)}", figure
    if file.shape is None:
        for mesh in dict.fromkeys(map(file.mesh_id, samples)):
            sample = next(s for s in samples if file.mesh_id(s) == mesh)
            pos, cells = file.coordinates(sample), file.cells(sample)
            with styled():
                figure = mesh_figure(file.domain, pos, cells)
            yield f"mesh-{mesh}", figure
    elif isinstance(file, NativeFile):
        for name, index in file.meshes.items():
            with styled():
                figure = mesh_figure(file.domain, file.coordinates()[index])
            yield f"mesh-{slug(name)}", figure


def _panels(file: FieldFile, sample: int) -> dict[str, dict[str, NDArray[np.float64]]]:
    """For each component, a field for each panel, by the text over it."""
    shown = evenly(len(file.times), RECORDS)
    panels: dict[str, dict[str, NDArray[np.float64]]] = {}
    if file.static_components:
        static = file.read_static(sample).astype(np.float64)
        for c, name in enumerate(file.static_names):
            panels[name] = {file.static_role or "static": static[:, c]}
    for record in shown:
        values = file.read(sample, slice(record, record + 1))[:, 0].astype(np.float64)
        label = f"t = {file.times[record]:.4g}" if len(file.times) > 1 else "solution"
        for c, name in enumerate(file.component_names):
            panels.setdefault(name, {})[label] = values[:, c]
    return panels


def _drawn(
    file: FieldFile, sample: int, name: str, panels: dict[str, NDArray[np.float64]]
) -> Figure:
    pos = file.coordinates(sample)
    if file.domain.dim == 1:
        rows = np.stack(list(panels.values()))
        return profiles(file.domain, pos, {name: rows}, [*panels])
    columns = [Column(label, field[None], name) for label, field in panels.items()]
    return field_maps(file.domain, pos, columns, [name])
