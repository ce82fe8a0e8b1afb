"""Meshes for ParaView: ``.vtu`` files, and a ``.pvd`` that lists them by time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.disk import check_room
from nfsgeo.data.fields import FieldFile
from nfsgeo.data.native.layout import growing
from nfsgeo.data.readers.vtk import GHOST, VALID
from nfsgeo.data.writers.writer import Writer, marked_names
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress

__all__ = ["PVD", "VTU"]

# Cells of a grid, by the dimension: the type, and the corners in the order of VTK.
CORNERS: dict[int, tuple[str, list[tuple[int, ...]]]] = {
    1: ("line", [(0,), (1,)]),
    2: ("quad", [(0, 0), (1, 0), (1, 1), (0, 1)]),
    3: (
        "hexahedron",
        [
            (0, 0, 0),
            (1, 0, 0),
            (1, 1, 0),
            (0, 1, 0),
            (0, 0, 1),
            (1, 0, 1),
            (1, 1, 1),
            (0, 1, 1),
        ],
    ),
}


def _vtu(file: FieldFile, out: Path, tick: Progress) -> None:
    """One sample of one time step."""
    if (file.num_samples, len(file.times)) != (1, 1):
        raise UserError(
            f"{file.num_samples} samples of {len(file.times)} time steps into {out}",
            "one time step of one sample in a .vtu file",
            f"choose {out.with_suffix('.pvd').name}, which lists a .vtu for each",
        )
    names = marked_names(file, out, (VALID, GHOST))
    with growing(out) as partial:
        _step(file, names, 0, 0, _cells(file, 0), partial)
    tick("exporting samples", 1, 1)


def _pvd(file: FieldFile, out: Path, tick: Progress) -> None:
    """A list of the ``.vtu`` files in a folder beside it, one for each time step.
    Parameters and the domain are left out.

    The samples are groups of the list, which ParaView shows as blocks. Fields are data
    at the points; static inputs are called ``a_NAME``, forcings ``forcing_NAME``.
    Points without cells are vertices.
    """
    names = marked_names(file, out, (VALID, GHOST))
    folder = out.with_suffix("")
    if folder.exists():
        raise UserError(f"{folder}", "a new folder", "remove it or choose another name")
    begun = folder.with_name(folder.name + ".partial")
    total, steps = file.num_samples, len(file.times)
    check_room(out, 4 * total * steps * file.num_points(0) * file.components)
    root = ElementTree.Element("VTKFile", type="Collection", version="0.1")
    listed = ElementTree.SubElement(root, "Collection")
    with growing(out) as partial:
        shutil.rmtree(begun, ignore_errors=True)
        try:
            begun.mkdir()
            for sample in range(total):
                cells = _cells(file, sample)
                for step, time in enumerate(file.times):
                    name = f"sample_{sample}_step_{step}.vtu"
                    _step(file, names, sample, step, cells, begun / name)
                    ElementTree.SubElement(
                        listed,
                        "DataSet",
                        timestep=repr(float(time)),
                        group=f"sample {sample}" if total > 1 else "",
                        part="0",
                        file=f"{folder.name}/{name}",
                    )
                tick("exporting samples", sample + 1, total)
            ElementTree.ElementTree(root).write(partial, xml_declaration=True)
            begun.replace(folder)
        finally:
            shutil.rmtree(begun, ignore_errors=True)


def _step(
    file: FieldFile,
    names: list[str],
    sample: int,
    step: int,
    cells: list[Any],
    out: Path,
) -> None:
    """One time step as a ``.vtu``."""
    import meshio

    points = file.coordinates(sample)
    points = np.pad(points, ((0, 0), (0, 3 - points.shape[1])))
    u, a = file.read_all(sample, slice(step, step + 1))[:, 0], file.read_static(sample)
    keys = [escape(name, {'"': "&quot;"}) for name in names]  # which meshio does not
    data = dict(zip(keys, [*u.T.copy(), *a.T.copy()], strict=True))
    mesh = meshio.Mesh(points, cells, point_data=data)
    meshio.write(out, mesh, file_format="vtu")


def _cells(file: FieldFile, sample: int) -> list[tuple[str, NDArray[np.int64]]]:
    """The cells of the file, or of its grid, or else each point by itself."""
    if file.shape is not None and min(file.shape) > 1:
        kind, corners = CORNERS[len(file.shape)]
        numbers = np.arange(np.prod(file.shape)).reshape(file.shape)
        inner = [
            tuple(
                slice(c, size - 1 + c) for c, size in zip(at, file.shape, strict=True)
            )
            for at in corners
        ]
        return [(kind, np.stack([numbers[part].ravel() for part in inner], axis=1))]
    cells = list(file.cells(sample).items())
    return cells or [("vertex", np.arange(file.num_points(sample))[:, None])]


PVD = Writer("meshes for ParaView (.pvd with .vtu)", (".pvd",), _pvd, ("meshio",))
VTU = Writer("one time step as a mesh (.vtu)", (".vtu",), _vtu, ("meshio",))
