"""Reads files of VTK in a process of its own, which a damaged file may crash.

:mod:`nfsgeo.data.io.vtk_files` runs this file as a script. It is asked by
lines of JSON, ``[path, kind, step]``, and answers with a line of JSON and the bytes of
the arrays whose types and shapes it has, but for those that are the same ``again`` as
in the answer before. Nothing of nfsgeo is imported here.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np

READERS = {
    "xml": ("vtkIOXML", "vtkXMLGenericDataObjectReader"),
    "vtk": ("vtkIOLegacy", "vtkGenericDataObjectReader"),
    "hdf": ("vtkIOHDF", "vtkHDFReader"),
    "ensight": ("vtkIOEnSight", "vtkGenericEnSightReader"),
    "cgns": ("vtkIOCGNSReader", "vtkCGNSReader"),
}
SECONDS, BYTES_IN_A_SECOND = 10, 2**20  # of the processor, which a file takes at most
LEGACY = ("Scalars", "Vectors", "Normals", "Tensors", "ColorScalars", "TCoords")
POLYGON, POLYHEDRON = 7, 42

# An array that legacy files get at their end, to see whether VTK reads as far.
END_NAME = "nfsgeo_end"
END = f"\nFIELD {END_NAME} 1\n{END_NAME} 1 1 int\n7777\n".encode()
HEADS = re.compile(  # of parts of a legacy file and of their arrays
    rb"(?im)^(?:(POINT|CELL)_DATA\s+\d+\s*$|(?:(?:COLOR_)?SCALARS|VECTORS|NORMALS|"
    rb"TENSORS6?|TEXTURE_COORDINATES|GLOBAL_IDS|PEDIGREE_IDS)[ \t]+(\S+)|"
    rb"(\S+)[ \t]+\d+[ \t]+\d+[ \t]+(?:bit|float|double|string|vtkidtype|"
    rb"(?:vtktype)?(?:unsigned_|u)?(?:char|short|int|long)(?:8|16|32|64|_long)?)\s*$)"
)
WIDTHS = rb"\bvtktype(u?)int(8|16|32)\b"
TYPES = {b"8": b"char", b"u8": b"unsigned_char", b"16": b"short"}
TYPES |= {b"u16": b"unsigned_short", b"32": b"int", b"u32": b"unsigned_int"}

said: list[str] = []  # errors and warnings of VTK about a file
KEPT_BYTES = 2**26  # of the arrays of a file, at most, that both processes keep
sent: list[Any] = []  # the arrays of the last answer
cached: dict[Any, Any] = {}  # the last reader, where its file has several time steps


def _opened(path: str, kind: str) -> Any:
    """A reader of VTK for a file, from which all arrays are wanted."""
    module, name = READERS[kind]
    reader = getattr(import_module(f"vtkmodules.{module}"), name)()
    if kind == "ensight":
        reader.SetCaseFileName(path)
    else:
        reader.SetFileName(path)
    if kind == "vtk":
        for name in (*LEGACY, "Fields"):
            getattr(reader, f"ReadAll{name}On")()
        return reader
    reader.UpdateInformation()
    if kind == "cgns":
        for name in ("Bases", "Families", "PointArrays", "CellArrays", "FaceArrays"):
            getattr(reader, f"EnableAll{name}", lambda: None)()
    return reader


class _TwiceError(ValueError):
    """Several arrays have one name, of which VTK keeps the last."""


def _read_legacy(path: str) -> tuple[dict[str, Any], list[Any]]:
    """Read a copy of a file that has an end, and types of all the widths in meshio."""
    with TemporaryDirectory() as folder, open(path, "rb") as stream:
        text = re.sub(WIDTHS, lambda match: TYPES[match[1] + match[2]], stream.read())
        part, names = b"", set[tuple[bytes, bytes]]()
        for head in HEADS.finditer(text):
            part, name = head[1] or part, head[2] or head[3]
            if name and (part, name) in names:
                raise _TwiceError(name.decode(errors="replace"))
            names |= {(part, name)} if name else set()
        copy = os.path.join(folder, "copy.vtk")
        with open(copy, "wb") as written:
            written.write(text + END)
        return _read(copy, "vtk", 0)


def _read(path: str, kind: str, step: int) -> tuple[dict[str, Any], list[Any]]:
    """The blocks of a file at one of its times, as JSON and as arrays."""
    from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline

    key = path, kind, os.stat(path).st_mtime_ns
    reader = cached.pop(key, None) or _opened(path, kind)
    cached.clear()

    about = reader.GetOutputInformation(0)
    times = about.Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS())
    if times:
        reader.UpdateTimeStep(times[step])
    else:
        reader.Update()
    whole = reader.GetOutputDataObject(0)
    if whole is None or said or reader.GetErrorCode():
        raise ValueError(said[0] if said else "it ends too early")
    if kind == "vtk" and whole.IsA("vtkDataSet"):
        parts = whole.GetPointData(), whole.GetCellData(), whole.GetFieldData()
        if not any(part.HasArray(END_NAME) for part in parts):
            raise ValueError("it ends too early")
        for part in parts:
            part.RemoveArray(END_NAME)
    blocks, arrays = [], list[Any]()
    for name, data in _leaves(whole, ""):
        block, values = _block(data)
        blocks.append({"name": name, "kind": data.GetClassName(), **block})
        arrays += values
    if said:
        raise ValueError(said[0])
    if times:
        cached[key] = reader
    return {"times": times and list(times), "blocks": blocks}, arrays


def _leaves(data: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The data sets of which data consist, by their names."""
    if not data.IsA("vtkDataObjectTree"):
        yield name, data
        return
    for number in range(data.GetNumberOfChildren()):
        child, about = data.GetChild(number), data.GetChildMetaData(number)
        has = about is not None and about.Has(data.NAME())
        below = about.Get(data.NAME()) if has else str(number)
        if child is not None:
            yield from _leaves(child, f"{name}/{below}" if name else below)


def _block(data: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return the names of the arrays of a data set, and the arrays."""
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkCommonDataModel import vtkCellTypeUtilities
    from vtkmodules.vtkFiltersCore import vtkAppendFilter, vtkCellCenters

    if not data.IsA("vtkDataSet"):
        return {}, []
    mesh, about = data, dict[str, Any](lost=[], types={}, dim=0)
    if not data.IsA("vtkUnstructuredGrid"):
        append = vtkAppendFilter()
        append.AddInputDataObject(data)
        append.SetOutputPointsPrecision(1)  # float64
        append.Update()
        mesh = append.GetOutput()
    arrays: list[Any] = [np.empty((0, 3)), *[np.zeros(0, np.int64)] * 3]
    num, cells = mesh.GetNumberOfPoints(), mesh.GetNumberOfCells()
    if num:
        arrays[0] = vtk_to_numpy(mesh.GetPoints().GetData())
    if cells:
        types = vtk_to_numpy(mesh.GetCellTypes())
        offsets = vtk_to_numpy(mesh.GetCells().GetOffsetsArray())
        nodes = vtk_to_numpy(mesh.GetCells().GetConnectivityArray())
        if empty := int((np.diff(offsets) <= 0).sum()):
            raise ValueError(f"{empty} cells without points")
        if not (nodes.min() >= 0 and nodes.max() < num):
            raise ValueError("cells of points that do not exist")
        arrays[1:] = types, offsets, nodes
        for kind in np.unique(types).tolist():
            about["types"][kind] = vtkCellTypeUtilities.GetClassNameFromTypeId(kind)
            about["dim"] = max(about["dim"], vtkCellTypeUtilities.GetDimension(kind))
    for where, given, size in (
        ("points", data.GetPointData(), num),
        ("cells", data.GetCellData(), cells),
        ("numbers", data.GetFieldData(), None),
    ):
        about[where] = []
        for number in range(given.GetNumberOfArrays()):
            array = given.GetAbstractArray(number)
            name = array.GetName() or f"array {number}"
            if not array.IsA("vtkDataArray"):
                about["lost"].append(name)
                continue
            about[where].append(name)
            arrays.append(vtk_to_numpy(array))
            if size is not None and len(arrays[-1]) != size:
                raise ValueError(
                    f"{len(arrays[-1])} values of {name} at {size} {where}"
                )
    about["grid"] = False
    if data.IsA("vtkRectilinearGrid"):
        axes = [getattr(data, f"Get{axis}Coordinates")() for axis in "XYZ"]
        arrays += [vtk_to_numpy(axis).astype(float) for axis in axes]
        about["grid"] = True
    elif data.IsA("vtkImageData") and data.GetDirectionMatrix().IsIdentity():
        first, sizes = data.GetExtent()[::2], data.GetDimensions()
        steps = zip(data.GetOrigin(), data.GetSpacing(), first, sizes, strict=True)
        arrays += [start + step * (i + np.arange(n)) for start, step, i, n in steps]
        about["grid"] = True
    about["centroids"] = bool(np.isin(arrays[1], (POLYGON, POLYHEDRON)).any())
    if about["centroids"]:
        centres = vtkCellCenters()
        centres.SetInputDataObject(mesh)
        centres.Update()
        arrays.append(vtk_to_numpy(centres.GetOutput().GetPoints().GetData()))
        if len(arrays[-1]) != cells:
            raise ValueError("cells without a centre")
    return about, arrays


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    from vtkmodules.vtkCommonCore import vtkOutputWindow

    def note(caller: Any, event: str, text: str = "") -> None:
        said.append(" ".join(text.split("):", 1)[-1].split()) or event)

    note.CallDataType = "string0"  # type: ignore[attr-defined]
    window: Any = vtkOutputWindow()
    window.SetInstance(window)
    window.SetDisplayModeToNever()
    for event in ("ErrorEvent", "WarningEvent"):
        window.AddObserver(event, note)
    for line in requests:
        path, kind, step = json.loads(line)
        said.clear()
        _limit_time(SECONDS + os.path.getsize(path) / BYTES_IN_A_SECOND)
        try:
            legacy = kind == "vtk"
            about, arrays = _read_legacy(path) if legacy else _read(path, kind, step)
        except _TwiceError as error:
            about, arrays = {"twice": str(error)}, []
        except Exception as error:
            reason = re.sub(r"(for|read) file:? \S+", "", str(error)).strip()
            about, arrays = {"error": reason or type(error).__name__}, []
        flat = [np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in arrays]
        about["arrays"] = [(array.dtype.str, array.shape) for array in arrays]
        alike = [
            about["arrays"][k] == kind and np.array_equal(flat[k], values)
            for k, (kind, values) in enumerate(sent[: len(arrays)])
        ]  # as in the file before, such as a mesh that stays
        sent[:] = zip(about["arrays"], flat, strict=True)
        if sum(map(len, flat)) > KEPT_BYTES:
            sent.clear()
        about["again"] = [k for k, same in enumerate(alike) if same]
        answers.write(json.dumps(about).encode() + b"\n")
        for k, values in enumerate(flat):
            if k not in about["again"]:
                answers.write(values.data)
        answers.flush()
        _limit_time(0)


def _limit_time(seconds: float) -> None:
    """Let the process end after so many seconds, where the system can; 0 for never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    """Let a size that is damaged fail to be allocated, where the system can."""
    try:
        import resource

        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except (ImportError, ValueError, OSError):
        pass


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_memory()
    with os.fdopen(os.dup(1), "wb") as channel:
        for unwanted in (1, 2):  # where libraries print what they say of a file
            os.dup2(os.open(os.devnull, os.O_WRONLY), unwanted)
        _serve(sys.stdin.buffer, channel)
