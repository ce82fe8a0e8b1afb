"""Packed files, and files of other programs, told by how they begin."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from nfsgeo.data.io.format import FileProbe
from nfsgeo.data.other_files import check_size

__all__ = [
    "BEGINNING",
    "BROKEN",
    "CUT_OFF",
    "EMPTY",
    "MESHES",
    "OF_SOLVER",
    "blocks",
    "foreign",
    "opened",
    "packing",
]
__all__ += ["whole_text"]

BEGINNING = 2**20  # bytes that are looked at
SMALL = 2**28  # bytes that any packed table may have, which are parsed within seconds
TEXTS = (".csv", ".txt", ".tsv", ".dat")
JSONS = (".json", ".jsonl", ".ndjson", ".geojson")
ASIDE = re.compile(r"(?i)__MACOSX/|(.*/)?(\.|readme|licen[cs]e)")  # in archives
PACKED: dict[bytes, tuple[Any, str]] = {
    b"\x1f\x8b": (gzip.open, "gzip"),
    b"BZh": (bz2.open, "bz2"),
    b"\xfd7zXZ\0": (lzma.open, "xz"),
    b"PK\3\4": (None, "zip"),
}
BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile)
EXCEL = (
    "a workbook of a spreadsheet program",
    "save it as CSV there, or with pandas and openpyxl: "
    "pandas.read_excel({0!r}).to_csv('NAME.csv', index=False)",
)
CFX_POST = (
    "a table of CFX-Post in sections",
    "write the lines of its section [Data] alone: "
    "awk '/^\\[/ {{p = /^\\[Data/; next}} p && NF' {1} > NAME.csv",
)
EMPTY, CUT_OFF = "an empty file", "a compressed file that is cut off or damaged"
PARAVIEW = "open it in ParaView and save it, File, Save Data, as NAME.pvd"
TECPLOT = ("data of Tecplot", PARAVIEW)
AS_BOUNDARY = "name the file of the fields, and this one as a boundary: nfsgeo convert "
AS_BOUNDARY += "FIELDS --out NAME.nc --obstacles {1}, or --region {1}"
OF_SOLVER = "export the fields of the solver on it, as .vtu or columns x, y, z, u"
STL = ("a surface of STL", AS_BOUNDARY)
MESHES = {  # how files begin that have points and no fields
    rb"solid\b[^\n]*\n\s*(facet|endsolid)\b": STL,
    rb"(\s|(#|(mtllib|usemtl|[ogs])\b)[^\n]*\n)*v([ \t]+[-+.\deE]+){3}": (
        "a surface of Wavefront (.obj)",
        AS_BOUNDARY,
    ),
    rb"(ST|[CN4n])*OFF\s+(#[^\n]*\n\s*)*\d+\s+\d+\s+\d+\s": (
        "a surface of Geomview (.off)",
        AS_BOUNDARY,
    ),
    rb"ISO-10303-21;": ("a geometry of STEP", OF_SOLVER),
    rb"MeshVersionFormatted\b": ("a mesh of Medit", OF_SOLVER),
    rb"(?i)(\*\*[^\n]*\n\s*)*\*(heading|node|part)\b": ("a mesh of Abaqus", OF_SOLVER),
    rb"(\$[^\n]*\n\s*)*(BEGIN BULK|GRID\*?[ ,])": ("a mesh of Nastran", OF_SOLVER),
    rb"(%[^\n]*\n\s*)*NDIME\s*=": ("a mesh of SU2", OF_SOLVER),
}
TRIANGLES = 84, 50  # bytes before and of each triangle in binary STL
FOREIGN = {  # how other files begin, what they are, and how they can be read
    rb"\xd0\xcf\x11\xe0": EXCEL,
    rb"\x28\xb5\x2f\xfd": ("a file compressed by zstd", "unpack it: zstd -d {1}"),
    rb"\x04\x22\x4d\x18": ("a file compressed by lz4", "unpack it: lz4 -d {1}"),
    rb"\x5d\0\0": (
        "a file compressed by lzma",
        "unpack it: xz -d -F lzma -c {1} > NAME",
    ),
    rb"7z\xbc\xaf\x27\x1c": ("an archive of 7-Zip", "unpack it: 7z x {1}"),
    rb"\[Name\]": CFX_POST,
    rb"\[Data\]": CFX_POST,
    rb"SQLite format 3": (
        "a data base",
        "write a table, by pandas.read_sql, to_csv",
    ),
    rb"<!DOCTYPE": ("a web page", "download the file that the page is about"),
    rb"<html": ("a web page", "download the file that the page is about"),
    rb"(?i)(#[^\n]*\n\s*)*(title|variables)\s*=|#!TD[VF]": TECPLOT,
    rb"\([0-9]+ +[\"(0-9]": ("a mesh or case of Fluent", PARAVIEW),
    rb"ply\s+format ": ("a mesh of PLY", PARAVIEW),
    **MESHES,
}


def packing(path: Path) -> str:
    """Return the compression of a file as pandas names it; empty if there is none."""
    head = FileProbe(path).head
    return next((PACKED[start][1] for start in PACKED if head.startswith(start)), "")


def whole_text(path: Path, encoding: str) -> str:
    """The whole text of a file, unpacked."""
    return b"".join(blocks(path)).decode(encoding)


def blocks(path: Path) -> Iterator[bytes]:
    """The content of a file in blocks, unpacked.

    Raises:
        UserError: It has hundreds of times the size of the file.
    """
    size = 0
    with opened(path) as stream:
        while block := stream.read(BEGINNING):
            check_size(path, size := size + len(block), small=SMALL)
            yield block


def foreign(path: Path) -> tuple[str, str] | None:
    """Say what a file is that is no table, and how to make a table of it."""
    if not path.is_file():
        return None
    try:
        members = _members(path)
        with opened(path) as stream:
            head = stream.read(BEGINNING)
    except BROKEN:
        return CUT_OFF, "copy it again"
    if {"xl/workbook.xml", "content.xml"} & {*members}:
        return EXCEL
    if len(members) > 1 and all(name.lower().endswith(TEXTS) for name in members):
        what = f"an archive of {len(members)} tables"
        return what, "unpack it, and name the files: unzip {1}"
    if head[257:262] == b"ustar":
        return "an archive of files", "unpack it: tar -xf {1}"
    if not head.strip():
        return EMPTY, "write it again"
    size = TRIANGLES[0] + TRIANGLES[1] * int.from_bytes(head[80:84], "little")
    if path.stat().st_size == size:
        return STL
    return next((FOREIGN[m] for m in FOREIGN if re.match(m, head.lstrip())), None)


def _members(path: Path) -> list[str]:
    """The files in a zip archive, without those about it."""
    if not FileProbe(path).head.startswith(b"PK\3\4"):
        return []
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    return [name for name in names if not ASIDE.match(name)] or names


def opened(path: Path) -> BinaryIO:
    """Open a file for its bytes, unpacked if gzip, bz2, xz or zip has packed it."""
    head = FileProbe(path).head
    members = _members(path)
    if len(members) == 1 and Path(members[0].lower()).suffix in (*TEXTS, *JSONS, ""):
        return cast(BinaryIO, zipfile.ZipFile(path).open(members[0]))
    for start, (unpacked, _) in PACKED.items():
        if unpacked and head.startswith(start):
            return cast(BinaryIO, unpacked(path))
    return path.open("rb")
