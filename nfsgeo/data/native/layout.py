"""Layout of the native HDF5 file, shared by its reader and its writers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.axes import is_at
from nfsgeo.data.disk import abandon, writing
from nfsgeo.data.fields import SPACE
from nfsgeo.data.numbers import (
    as_real,
    as_times,
    check_distinct,
    dated,
    finite,
    not_infinite,
)
from nfsgeo.data.splits import check_split, split_in_order
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = [
    "NATIVE",
    "Header",
    "as_float32",
    "as_text",
    "check_ending",
    "checked",
    "compressed",
    "growing",
    "members",
    "new_file",
    "partial_path",
    "text",
]

FORMAT, VERSION = "nfsgeo", 1
INPUT = "input"  # role of a parameter that is an input of a model
# Of files whose domain has a region, or is a sphere: older versions would not see it.
WITH_REGION, WITH_SPHERE = 2, 3
NATIVE = (".h5", ".hdf5")  # endings of native files
CHUNK_BYTES = 2**20
RESERVED = {"format", "version", "equation", "domain", "boundary", "end_point"}
# Metadata with checksums: a damaged file gives an error, not another file.
LIBVER = ("v110", "v110")


@dataclass
class Header:
    """Everything about a file but its values, as the writers take it.

    Each key of the provenance becomes a root attribute (``commit``, ``seed``,
    ``scheme``, ``parameters``, ``solver``, ``units``).
    """

    equation: str
    domain: Domain
    times: Any
    component_names: Sequence[str]
    static_names: Sequence[str] = ()
    static_role: str | None = None
    provenance: Mapping[str, Any] | None = None
    split: Mapping[str, NDArray[np.int64]] | None = None
    meshes: Mapping[str, NDArray[np.int64]] | None = None
    forcing_names: Sequence[str] = ()
    scalar_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.provenance = dated(self.provenance, self.times)
        self.times = as_times(self.times, "times")
        self.component_names = list(self.component_names)
        self.static_names = list(self.static_names)
        self.forcing_names = list(self.forcing_names)
        self.scalar_names = list(self.scalar_names)
        self.meshes = self.meshes or {}
        roles = ("coefficient", "initial condition") if self.static_names else (None,)
        if self.static_role not in roles:
            raise ValueError(
                f"static role {self.static_role!r} with static components "
                f"{self.static_names}: expected one of {roles}; change the role"
            )
        clash = RESERVED & set(self.provenance)
        if clash:
            raise ValueError(f"provenance keys {sorted(clash)} are taken; rename them")
        if self.times.ndim != 1 or not len(self.times) or not self.component_names:
            raise ValueError("a file needs at least one time step and one component")
        check_distinct("a file", [*self.component_names, *self.forcing_names])
        check_distinct("a file", self.static_names)
        if not np.all(np.diff(self.times) > 0):
            raise ValueError("times must increase from one time step to the next")

    def to_json(self) -> str:
        """The header as text; equal headers give equal text."""
        values = dict(vars(self), domain=self.domain.to_dict(), times=list(self.times))
        for name in ("split", "meshes"):
            table = values[name] or {}
            values[name] = {k: np.asarray(v).tolist() for k, v in table.items()}
        return json.dumps(values, sort_keys=True)

    def store(
        self,
        file: h5py.File,
        num_samples: int,
        axes: Sequence[NDArray[np.float64]] | None,
    ) -> None:
        """Writes attributes, ``/coords``, ``/split``, ``/meshes`` and ``/region``."""
        box = self.domain.to_dict()
        facets = box.pop("facets", None)
        version = VERSION if facets is None else WITH_REGION
        if self.domain.curved:
            version = WITH_SPHERE
        file.attrs.update(format=text(FORMAT), version=version)
        file.attrs["equation"] = text(self.equation)
        file.attrs["domain"] = text(json.dumps(box))
        if facets is not None:
            checked(file, "region/facets", np.array(facets))
        periodic = self.domain.periodic
        kinds = ["periodic" if axis else "bounded" for axis in periodic]
        file.attrs["boundary"] = text(json.dumps(kinds))
        for key, value in (self.provenance or {}).items():
            file.attrs[key] = text(json.dumps(value))
        checked(file, "coords/t", self.times)
        if axes is not None:
            ends = [
                is_at(axis, -1, upper)
                for axis, upper in zip(axes, self.domain.upper, strict=True)
            ]
            file.attrs["end_point"] = text(json.dumps(ends))
            for name, axis in zip(SPACE, axes, strict=False):
                checked(file, f"coords/{name}", np.asarray(axis, np.float64))
        split = self.split or split_in_order(num_samples)
        check_split(split, num_samples)
        for name, samples in split.items():
            checked(file, f"split/{name}", np.asarray(samples, np.int64))
        for name, index in (self.meshes or {}).items():
            checked(file, f"meshes/{name}/index", np.asarray(index, np.int64))

    def given(self, u: Any, a: Any, forcing: Any) -> dict[str, Any]:
        """The fields of a sample or batch by the names of their data sets.

        Raises:
            ValueError: One comes that was not announced, or the other way round.
        """
        for what, values, names in (
            ("static fields", a, self.static_names),
            ("forcings", forcing, self.forcing_names),
        ):
            if (values is not None) != bool(names):
                raise ValueError(f"{what} must come if and only if they are named")
        fields = {"u": u, "a": a, "f": forcing}
        return {name: values for name, values in fields.items() if values is not None}

    def field_shapes(self, *grid: int) -> dict[str, tuple[int, ...]]:
        """Shape of each field of a sample by the name of its data set.

        Args:
            grid: Points along each axis.
        """
        steps = len(self.times)
        shapes = {"u": (steps, *grid, len(self.component_names))}
        if self.static_names:
            shapes["a"] = (*grid, len(self.static_names))
        if self.forcing_names:
            shapes["f"] = (steps, *grid, len(self.forcing_names))
        return shapes

    def describe(self, dataset: h5py.Dataset, name: str) -> None:
        """Names the components of a field, and the role of a static one.

        Args:
            dataset: Of the field.
            name: ``"u"``, ``"a"`` or ``"f"``.
        """
        names = {
            "u": self.component_names,
            "a": self.static_names,
            "f": self.forcing_names,
        }[name]
        dataset.attrs["components"] = text(json.dumps(names))
        if name == "a":
            dataset.attrs["role"] = text(str(self.static_role))

    def store_parameter(self, file: h5py.File, name: str, values: Any) -> None:
        """Stores a scalar of all samples, and whether it is an input of a model."""
        checked(file, f"params/{name}", np.asarray(values))
        if name in self.scalar_names:
            file[f"params/{name}"].attrs["role"] = text(INPUT)

    def check_scalars(self, parameters: Iterable[str]) -> None:
        """Makes sure that scalars which are inputs are among the parameters.

        Raises:
            ValueError: One is not.
        """
        unknown = set(self.scalar_names) - set(parameters)
        if unknown:
            raise ValueError(f"scalars {sorted(unknown)} that are no parameters")


def compressed(
    group: h5py.Group,
    name: str,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    *,
    dtype: str = "f4",
    grows: bool = False,
) -> h5py.Dataset:
    """Creates a chunked dataset: shuffle, gzip at level 4, a checksum per chunk."""
    return group.create_dataset(
        name,
        shape,
        dtype,
        chunks=chunks,
        maxshape=(None, *shape[1:]) if grows else None,
        shuffle=True,
        compression="gzip",
        compression_opts=4,
        fletcher32=True,
    )


def checked(group: h5py.Group, name: str, values: NDArray[Any]) -> None:
    """Stores a small array with a checksum, as far as HDF5 can give it one."""
    whole = values.shape if values.size else None
    made = group.create_dataset(name, data=values, chunks=whole, fletcher32=bool(whole))
    made.flush()  # a full disk is an error here, and noise where it is let go of


def text(value: str) -> bytes:
    """A string attribute that shares its object's checksum: fixed length, UTF-8."""
    # Strings of variable length lie in a heap that has no checksum.
    return np.bytes_(value.encode())


def as_text(value: Any) -> str:
    """The inverse of :func:`text`."""
    return value.decode() if isinstance(value, bytes) else str(value)


def as_float32(
    values: Any, shape: tuple[int, ...], what: str, *, gaps: bool = False
) -> NDArray[np.float32]:
    """Values as finite float32 of the given shape.

    Args:
        values: Anything that numpy makes an array of.
        shape: What they should have.
        what: What they are, for messages.
        gaps: Whether values may be missing; these become NaN.

    Raises:
        UserError: The shape differs, or a value is no real number, not finite in
            float32, or missing where none may be.
    """
    with np.errstate(over="ignore"):
        array = as_real(values, what, gaps=gaps).astype(np.float32)
    if array.shape != shape:
        raise UserError(
            f"{what} of shape {array.shape}",
            f"shape {shape}, with a component for each name",
            "reorder the axes, or name as many components",
        )
    return not_infinite(array, what) if gaps else finite(array, what)


def members(group: h5py.Group, *path: str) -> list[str]:
    """Members of a group inside another, none where it does not exist.

    By listing, since HDF5 also answers "not there" for what is there but damaged.
    """
    for name in path:
        if name not in list(group):
            return []
        group = group[name]
    return list(group)


def check_ending(path: Path, *endings: str) -> None:
    """Makes sure that the name of a file to write does not promise another format.

    Raises:
        UserError: It ends in something else than one of ``endings``.
    """
    if path.suffix and path.suffix.lower() not in endings:
        raise UserError(
            f"{path} to write",
            f"a name that ends in {' or '.join(endings)}, the format written here",
            f"choose {path.with_suffix(endings[0]).name}",
        )


def partial_path(path: Path, *endings: str) -> Path:
    """Name under which a file grows until it is whole.

    Args:
        path: Its own name.
        endings: Those that it may have, see :func:`check_ending`.

    Raises:
        UserError: The path has another ending or is taken, or its folder does not
            exist.
    """
    check_ending(path, *(endings or NATIVE))
    if path.exists():
        raise UserError(f"{path}", "a new file", "remove it or choose another name")
    if not path.parent.is_dir():
        raise UserError(f"folder {path.parent}", "an existing folder", "make it first")
    return path.with_name(path.name + ".partial")


@contextmanager
def growing(path: Path) -> Iterator[Path]:
    """A name to write a file under, which takes its own when the block ends well.

    Raises:
        UserError: The path is taken, its folder does not exist, or the disk is full.
    """
    partial = partial_path(path, path.suffix.lower())
    try:
        with writing(path):
            yield partial
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def new_file(
    partial: Path, path: Path, libver: tuple[str, str] | None = None
) -> Iterator[h5py.File]:
    """A file that takes its own name when the block ends well, and else is removed.

    Args:
        partial: Its name until then.
        path: Its own name.
        libver: As h5py takes it.

    Raises:
        UserError: The disk is full.
    """
    with writing(path):
        try:
            file = h5py.File(partial, "w", libver=libver)
            try:
                yield file
                file.flush()
                os.fsync(file.id.get_vfd_handle())
                file.close()
            finally:
                abandon(file)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
