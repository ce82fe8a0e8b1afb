"""Meshes for ParaView: ``.vtu`` files and lists of them.

Parameters and the domain have no place in them. Static inputs are called ``a_NAME`` and
forcings ``forcing_NAME``, by which they are known again.
"""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.conventions import GHOST, VALID
from nfsgeo.data.writers.writer import Writer, marked_names
from nfsgeo.errors import UserError
from nfsgeo.files import check_room, growing
from nfsgeo.progress import Progress

if TYPE_CHECKING:
    from nfsgeo.data.fields import Fields

__all__ = ["PVD", "VTU"]

CELLS = {1: "line", 2: "quad", 3: "hexahedron"}  # with corners in the order of VTK
ROUND = [(0, 0), (1, 0), (1, 1), (0, 1)]
CORNERS: dict[int, list[tuple[int, ...]]] = {1: [(0,), (1,)], 2: [*ROUND]}
CORNERS[3] = [(*corner, height) for height, corner in product((0, 1), ROUND)]


def _write_vtu(fields: Fields, out: Path, progress: Progress) -> None:
    """Write one time step of one sample."""
    samples, steps = fields.num_samples, len(fields.times)
    if (samples, steps) != (1, 1):
        given = f"{samples} samples of {steps} time steps into {out}"
        todo = f"choose {out.with_suffix('.pvd').name}, which lists a .vtu for each"
        raise UserError(given, "one time step of one sample in a .vtu file", todo)
    names = marked_names(fields, out, (VALID, GHOST))
    with growing(out) as partial:
        _write_step(fields, names, 0, 0, _cells(fields, 0), partial)
    progress("exporting samples", 1, 1)


def _write_pvd(fields: Fields, out: Path, progress: Progress) -> None:
    """A list of the ``.vtu`` files in a folder beside it, one for each time step.

    The samples are groups of the list, which ParaView shows as blocks. Fields are data
    at the points, and points without cells are vertices.
    """
    names = marked_names(fields, out, (VALID, GHOST))
    folder = out.with_suffix("")
    if folder.exists():
        raise UserError(f"{folder}", "a new folder", "remove it or choose another name")
    begun = folder.with_name(folder.name + ".partial")
    total, steps = fields.num_samples, len(fields.times)
    check_room(out, 4 * total * steps * fields.num_points(0) * fields.components)
    root = ElementTree.Element("VTKFile", type="Collection", version="0.1")
    listed = ElementTree.SubElement(root, "Collection")
    left = begun
    try:
        with growing(out) as partial:
            shutil.rmtree(begun, ignore_errors=True)
            begun.mkdir()
            for sample in range(total):
                cells = _cells(fields, sample)
                for step, time in enumerate(fields.times):
                    name = f"sample_{sample}_step_{step}.vtu"
                    _write_step(fields, names, sample, step, cells, begun / name)
                    about = {"timestep": repr(float(time)), "part": "0"}
                    about["group"] = f"sample {sample}" if total > 1 else ""
                    about["file"] = f"{folder.name}/{name}"
                    ElementTree.SubElement(listed, "DataSet", about)
                progress("exporting samples", sample + 1, total)
            ElementTree.ElementTree(root).write(partial, xml_declaration=True)
            left = begun.replace(folder)
        left = begun  # the list is in place, too
    finally:
        shutil.rmtree(left, ignore_errors=True)


def _write_step(
    fields: Fields, names: list[str], sample: int, step: int, cells: Any, out: Path
) -> None:
    """Write one time step as a ``.vtu``."""
    import meshio

    points = fields.coordinates(sample)
    points = np.pad(points, ((0, 0), (0, 3 - points.shape[1])))
    u = fields.read_all(sample, slice(step, step + 1))[:, 0]
    keys = [escape(name, {'"': "&quot;"}) for name in names]  # which meshio does not
    values = [*u.T.copy(), *fields.read_inputs(sample).T.copy()]
    for number, name in enumerate(fields.input_names, u.shape[-1]):
        if name in fields.categories:
            values[number] = values[number].astype(np.int64)
    # Cells that meshio writes, but does not know the dimension of.
    meshio._mesh.topological_dimension.update(wedge15=3, pyramid13=3)
    mesh = meshio.Mesh(points, cells, dict(zip(keys, values, strict=True)))
    meshio.write(out, mesh, file_format="vtu")


def _cells(fields: Fields, sample: int) -> list[tuple[str, NDArray[np.int64]]]:
    """The cells of the file, or of its grid, or else each point by itself."""
    shape = fields.shape
    if shape is None or min(shape) < 2:
        cells = list(fields.cells(sample).items())
        return cells or [("vertex", np.arange(fields.num_points(sample))[:, None])]
    numbers = np.arange(np.prod(shape)).reshape(shape)
    first = numbers[(slice(-1),) * len(shape)].reshape(-1, 1)
    corners = [numbers[corner] for corner in CORNERS[len(shape)]]
    return [(CELLS[len(shape)], first + np.array(corners))]


PVD = Writer("meshes for ParaView (.pvd with .vtu)", (".pvd",), _write_pvd, ("meshio",))
VTU = Writer("one time step as a mesh (.vtu)", (".vtu",), _write_vtu, ("meshio",))
