"""Writers of tables, and of meshes for ParaView.

Parameters and the domain have no place in them, cells none in tables. Static inputs are
called ``a_NAME`` and forcings ``forcing_NAME``, by which they are known again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import numpy as np
import pandas
from numpy.typing import NDArray

from nfsgeo.data.disk import check_room, growing
from nfsgeo.data.fields import FORCING, STATION, Fields
from nfsgeo.data.formats.columns import MARK, is_static, role_of
from nfsgeo.data.formats.format import Format
from nfsgeo.data.times import dates
from nfsgeo.errors import UserError
from nfsgeo.progress import Progress

__all__ = ["GHOST", "PARQUET", "PVD", "VALID", "VTU", "write_csv"]

VALID, GHOST = "vtkValidPointMask", "vtkGhostType"  # that ParaView sets
CELLS = {1: "line", 2: "quad", 3: "hexahedron"}  # with corners in the order of VTK
ROUND = [(0, 0), (1, 0), (1, 1), (0, 1)]
CORNERS: dict[int, list[tuple[int, ...]]] = {1: [(0,), (1,)], 2: [*ROUND]}
CORNERS[3] = [(*corner, height) for height, corner in product((0, 1), ROUND)]


def write_csv(fields: Fields, out: Path, progress: Progress) -> None:
    """A table of text: a row for each sample, point and time step."""
    ahead, names = _header(fields, out)
    with growing(out) as partial:
        pandas.DataFrame(columns=[*ahead, *names]).to_csv(partial, index=False)
        for table in _tables(fields, ahead, names, progress):
            if table["time"].dtype.kind == "M":  # ISO 8601
                at, units = table["time"].to_numpy(), ("D", "s", "us")
                fits = (u for u in units if (at.astype(f"M8[{u}]") == at).all())
                table["time"] = at.astype(f"M8[{next(fits)}]").astype(str)
            table.to_csv(partial, mode="a", header=False, index=False)


def _write_parquet(fields: Fields, out: Path, progress: Progress) -> None:
    """The columns of a ``.csv``."""
    tables = _tables(fields, *_header(fields, out), progress)
    with growing(out) as partial:
        whole = pandas.concat(tables, ignore_index=True)
        whole.to_parquet(partial, engine="pyarrow", index=False)


def _write_vtu(fields: Fields, out: Path, progress: Progress) -> None:
    """One sample of one time step."""
    samples, steps = fields.num_samples, len(fields.times)
    if (samples, steps) != (1, 1):
        given = f"{samples} samples of {steps} time steps into {out}"
        todo = f"choose {out.with_suffix('.pvd').name}, which lists a .vtu for each"
        raise UserError(given, "one time step of one sample in a .vtu file", todo)
    names = _marked(fields, out, (VALID, GHOST))
    with growing(out) as partial:
        _write_step(fields, names, 0, 0, _cells(fields, 0), partial)
    progress("exporting samples", 1, 1)


def _write_pvd(fields: Fields, out: Path, progress: Progress) -> None:
    """A list of the ``.vtu`` files in a folder beside it, one for each time step.

    The samples are groups of the list, which ParaView shows as blocks. Fields are data
    at the points, and points without cells are vertices.
    """
    names = _marked(fields, out, (VALID, GHOST))
    folder = out.with_suffix("")
    if folder.exists():
        raise UserError(f"{folder}", "a new folder", "remove it or choose another name")
    begun = folder.with_name(folder.name + ".partial")
    total, steps = fields.num_samples, len(fields.times)
    check_room(out, 4 * total * steps * fields.num_points(0) * fields.components)
    root = ElementTree.Element("VTKFile", type="Collection", version="0.1")
    listed = ElementTree.SubElement(root, "Collection")
    with growing(out) as partial:
        shutil.rmtree(begun, ignore_errors=True)
        try:
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
            begun.replace(folder)
        finally:
            shutil.rmtree(begun, ignore_errors=True)


def _marked(fields: Fields, out: Path, taken: Sequence[str]) -> list[str]:
    """Names of components, forcings and static inputs, in this order, with their marks.

    Raises:
        UserError: A name is ``taken`` by what ``out`` needs itself, or would be read
            back as another kind.
    """
    fine, forcings = fields.component_names, fields.forcing_names
    static = [name if name == "a" else MARK + name for name in fields.static_names]
    names = [*fine, *(FORCING + name for name in forcings), *static]
    for name in [*names, *forcings]:
        misread = name in (*fine, *forcings) and name.startswith(FORCING)
        misread |= name in fine and is_static(name)
        if misread or (
            name in names and (name in (*taken, *forcings) or names.count(name) > 1)
        ):
            raise UserError(
                f"a field named {name!r} in {out}",
                f"names that differ from each other and from {', '.join(taken)}, "
                f"without {MARK} and {FORCING}, the marks of inputs",
                "rename the component or choose .nc",
            )
    return names


def _header(fields: Fields, out: Path) -> tuple[list[str], list[str]]:
    """Names of the columns, which are read back as what they are."""
    ahead = ["sample"] * (fields.num_samples > 1) + ["time"]
    ahead += [STATION] * bool(fields.stations()) + [*fields.space]
    names = _marked(fields, out, ahead)
    for name in names:
        if role_of(name) or {*name} & {*",;\t"}:
            raise UserError(
                f"a field named {name!r} in {out}",
                "names that are not taken for those of coordinates, time or sample, "
                "without commas, semicolons and tabs",
                "rename the component or choose .nc",
            )
    return ahead, names


def _tables(
    fields: Fields, ahead: list[str], names: list[str], progress: Progress
) -> Iterator[pandas.DataFrame]:
    """The columns of one sample after the other."""
    times, total = dates(fields.times, fields.time_unit), fields.num_samples
    for sample in range(total):
        u, a = fields.read_all(sample, slice(None)), fields.read_static(sample)
        points, steps = fields.coordinates(sample), len(times)
        values = [np.full(len(u) * steps, sample)] * (total > 1)
        values += [np.tile(times, len(u))]
        if STATION in ahead:
            values.append(np.repeat(fields.stations(sample), steps))
        values += [*np.repeat(points, steps, axis=0).T]
        values += [*u.reshape(-1, u.shape[-1]).T, *np.repeat(a, steps, axis=0).T]
        yield pandas.DataFrame(dict(zip([*ahead, *names], values, strict=True)))
        progress("exporting samples", sample + 1, total)


def _write_step(
    fields: Fields, names: list[str], sample: int, step: int, cells: Any, out: Path
) -> None:
    """One time step as a ``.vtu``."""
    import meshio

    points = fields.coordinates(sample)
    points = np.pad(points, ((0, 0), (0, 3 - points.shape[1])))
    u = fields.read_all(sample, slice(step, step + 1))[:, 0]
    keys = [escape(name, {'"': "&quot;"}) for name in names]  # which meshio does not
    values = [*u.T.copy(), *fields.read_static(sample).T.copy()]
    for number, name in enumerate(fields.static_names, u.shape[-1]):
        if name in fields.categories:
            values[number] = values[number].astype(np.int64)
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


PARQUET = Format(
    "tables of points (.parquet)",
    write=_write_parquet,
    endings=(".parquet",),
    needs=("pyarrow",),
)
PVD = Format(
    "meshes for ParaView (.pvd with .vtu)",
    write=_write_pvd,
    endings=(".pvd",),
    needs=("meshio",),
)
VTU = Format(
    "one time step as a mesh (.vtu)",
    write=_write_vtu,
    endings=(".vtu",),
    needs=("meshio",),
)
