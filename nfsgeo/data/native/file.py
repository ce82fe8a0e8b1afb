"""The native HDF5 file: fields on a grid or on point clouds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from nfsgeo.data.axes import check_axes
from nfsgeo.data.fields import (
    SPACE,
    Doubles,
    FieldFile,
    Floats,
    Indices,
    reading,
)
from nfsgeo.data.native.layout import (
    FORMAT,
    INPUT,
    RESERVED,
    VERSION,
    WITH_REGION,
    WITH_SPHERE,
    as_text,
    members,
)
from nfsgeo.data.splits import SPLITS, check_split
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["NativeFile"]

VERSIONS = VERSION, WITH_REGION, WITH_SPHERE
WHOLE = "a whole nfsgeo file"


class NativeFile(FieldFile):
    """Reads what :class:`~nfsgeo.data.GridWriter` and :class:`~nfsgeo.data.PointWriter`
    make.

    Besides what every file has, ``meshes`` holds the point numbers of meshes that
    came with the data, by name.

    Args:
        path: The file.

    Raises:
        UserError: The file is missing, cut off, damaged or contradicts itself.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise UserError(f"{path}", "an existing file", "check the name")
        todo = "make it again or use an undamaged copy"
        with reading(self.path, WHOLE, todo):
            self._file = h5py.File(self.path, "r")
            try:
                self._read_header()
                if "points" in self._file:
                    self._read_points()
                else:
                    self._read_grid()
                self._check_samples()
            except BaseException:
                self._file.close()
                raise

    @staticmethod
    def fits(path: Path) -> bool:
        """Whether the file says that it is one of these."""
        with h5py.File(path, "r") as file:
            return as_text(file.attrs.get("format")) == FORMAT

    def coordinates(self, sample: int = 0) -> Doubles:
        mesh = self.mesh_id(sample)
        if self.axes is not None:
            return super().coordinates(sample)
        start, stop = self._mesh_offsets[mesh : mesh + 2]
        with reading(self.path, WHOLE):
            return self._file["points/coords"][start:stop]

    def num_points(self, sample: int = 0) -> int:
        mesh = self.mesh_id(sample)
        return int(self._mesh_offsets[mesh + 1] - self._mesh_offsets[mesh])

    def cells(self, sample: int = 0) -> dict[str, Indices]:
        mesh, found = self.mesh_id(sample), {}
        with reading(self.path, WHOLE):
            for kind in members(self._file, "points", "cells"):
                group = self._file[f"points/cells/{kind}"]
                start, stop = group["offsets"][mesh : mesh + 2]
                if stop > start:
                    found[kind] = group["nodes"][start:stop]
        return found

    def slab(self, sample: int, steps: slice) -> Floats:
        # Chunks hold all time steps, and h5py is slow at strides: skipped in memory.
        rows, whole = self._rows(sample), slice(steps.start, steps.stop)
        values = self._u[rows, whole]
        if self._f is not None:
            values = np.concatenate([values, self._f[rows, whole]], axis=-1)
        skip = slice(None, None, steps.step)
        return values[:, skip] if self.axes is None else values[skip]

    def static_slab(self, sample: int) -> Floats:
        return self._a[self._rows(sample)]

    def close(self) -> None:
        self._file.close()

    def _rows(self, sample: int) -> int | slice:
        """Where a sample is in the data sets of the fields."""
        if self.axes is not None:
            return sample
        return slice(*self._sample_offsets[sample : sample + 2])

    def _read_header(self) -> None:
        attrs = {key: as_text(value) for key, value in self._file.attrs.items()}
        if attrs.get("format") != FORMAT:
            raise UserError(
                f"{self.path}", WHOLE, "convert it with `nfsgeo convert` first"
            )
        if attrs["version"] not in map(str, VERSIONS):
            raise UserError(
                f"{self.path} of format version {attrs['version']}",
                f"one of the versions {', '.join(map(str, VERSIONS))}",
                "make it again or use the nfsgeo that wrote it",
            )
        self.equation = attrs["equation"]
        domain = json.loads(attrs["domain"])
        if attrs["version"] == str(WITH_REGION):
            domain["facets"] = self._file["region/facets"][:]
        self.domain = Domain.from_dict(domain)
        self.provenance = {
            key: json.loads(attrs[key]) for key in attrs if key not in RESERVED
        }
        self.times = self._file["coords/t"][:]
        _check(
            self.times.dtype == np.float64
            and self.times.ndim == 1
            and len(self.times) > 0
            and bool(np.all(np.diff(self.times) > 0)),
            "coords/t is not an increasing float64 axis",
        )
        self.parameters = {
            name: self._file[f"params/{name}"][:]
            for name in members(self._file, "params")
        }
        self.scalar_names = [
            name
            for name in self.parameters
            if as_text(self._file[f"params/{name}"].attrs.get("role")) == INPUT
        ]
        self.split = {name: self._file[f"split/{name}"][:] for name in SPLITS}
        self.meshes = {
            name: self._file[f"meshes/{name}/index"][:]
            for name in members(self._file, "meshes")
        }

    def _read_fields(self, group: str) -> None:
        there = members(self._file, group)
        fields = {
            name: self._file[f"{group}/{name}"] if name in there else None
            for name in "uaf"
        }
        self._u: Any = fields["u"]
        self._a: Any = fields["a"]
        self._f: Any = fields["f"]
        self.component_names, self.static_names, self.forcing_names = (
            [] if field is None else json.loads(as_text(field.attrs["components"]))
            for field in fields.values()
        )
        self.static_role = None
        if self._a is not None:
            self.static_role = as_text(self._a.attrs["role"])
        self._stored = [*self.component_names, *self.forcing_names]

    def _check_fields(self, *ahead: int, grid: tuple[int, ...] = ()) -> None:
        """Shapes and types of the fields: samples or points, time steps, grid."""
        u = (*ahead, len(self.times), *grid, self.components)
        a = (*ahead, *grid, self.static_components)
        f = (*ahead, len(self.times), *grid, len(self.forcing_names))
        for field, shape in ((self._u, u), (self._a, a), (self._f, f)):
            if field is not None:
                _check(field.dtype == np.float32, f"{field.name} is not float32")
                _same(field, shape)

    def _read_grid(self) -> None:
        self._read_fields("fields")
        self.num_samples = len(self._u)
        names = SPACE[: self.domain.dim]
        self.axes = tuple(self._file[f"coords/{name}"][:] for name in names)
        check_axes(self.path, self.axes, self.domain)
        _check(all(axis.dtype == np.float64 for axis in self.axes), "axes not float64")
        grid = tuple(len(axis) for axis in self.axes)
        self._check_fields(self.num_samples, grid=grid)
        self._mesh_offsets = np.array([0, np.prod(grid)])
        for name, index in self.meshes.items():
            inside = index.size and index.min() >= 0 and index.max() < np.prod(grid)
            single = len(np.unique(index)) == index.size
            _check(inside and single, f"meshes/{name} is no set of grid points")

    def _read_points(self) -> None:
        self._read_fields("points")
        group = self._file["points"]
        self._mesh_offsets = group["mesh_offsets"][:]
        self.sample_mesh = meshes = group["sample_mesh"][:]
        self._sample_offsets = group["sample_offsets"][:]
        self.num_samples = len(meshes)
        sizes = np.diff(self._mesh_offsets)
        _check(
            len(sizes) > 0
            and self._mesh_offsets[0] == 0
            and bool(np.all(sizes > 0))
            and bool(np.all((meshes >= 0) & (meshes < len(sizes)))),
            "points/mesh_offsets or sample_mesh are out of order",
        )
        ends = np.append(0, np.cumsum(sizes[meshes]))
        _check(
            np.array_equal(self._sample_offsets, ends),
            "points/sample_offsets do not fit the meshes",
        )
        _same(group["coords"], (int(self._mesh_offsets[-1]), self.domain.dim))
        self._check_fields(int(ends[-1]))

    def _check_samples(self) -> None:
        _check(self.num_samples > 0, "no samples")
        check_split(self.split, self.num_samples)
        for name, values in self.parameters.items():
            fits = values.shape[:1] == (self.num_samples,)
            fits &= name not in self.scalar_names or values.ndim == 1
            _check(fits, f"params/{name} has shape {values.shape}")


def _check(condition: Any, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _same(dataset: h5py.Dataset, shape: tuple[int, ...]) -> None:
    if dataset.shape != shape:
        raise ValueError(f"{dataset.name} has shape {dataset.shape}, not {shape}")
