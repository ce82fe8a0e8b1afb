"""Writes point clouds, one mesh for all samples or many, to a native file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from nfsgeo.data.native.layout import (
    CHUNK_BYTES,
    LIBVER,
    Header,
    as_float32,
    checked,
    compressed,
    new_file,
    partial_path,
)
from nfsgeo.data.numbers import as_real
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["PointWriter"]


class PointWriter:
    """Native file of samples on point clouds, written one sample at a time.

    The file grows as ``<path>.partial`` and takes its name when the ``with`` block
    ends well; an exception inside removes it.

    Args:
        path: The file to make.
        equation: Name of the equation.
        domain: Box that holds all points.
        times: Time of each time step, ``[T]``.
        component_names: Components of ``u``.
        static_names: Components of the static field ``a``.
        static_role: ``"coefficient"``, ``"initial condition"``, None without ``a``.
        provenance: How the data were made; units belong here, as
            ``{"units": {"p": "hPa"}}``.
        split: Sample numbers of each part; in order 0.7/0.1/0.2 when None.
        forcing_names: Components of the forcing, see
            :attr:`~nfsgeo.data.FieldFile.forcing_names`.
        scalar_names: Parameters that are inputs of a model.

    Raises:
        UserError: ``path`` exists or its folder does not; later, the disk is full.
        ValueError: Later, a sample does not fit what was announced.

    Example:
        >>> with PointWriter("cloud.h5", equation="heat", domain=domain,
        ...                  times=times, component_names=["u"]) as writer:
        ...     mesh = writer.add_mesh(points)           # [P, d]
        ...     for u in samples:                        # each [P, T, C]
        ...         writer.write(u, mesh)
    """

    def __init__(
        self,
        path: str | Path,
        *,
        equation: str,
        domain: Domain,
        times: ArrayLike,
        component_names: Sequence[str],
        static_names: Sequence[str] = (),
        static_role: str | None = None,
        provenance: Mapping[str, Any] | None = None,
        split: Mapping[str, NDArray[np.int64]] | None = None,
        forcing_names: Sequence[str] = (),
        scalar_names: Sequence[str] = (),
    ) -> None:
        self.path = Path(path)
        # A name of its own: two processes must not write into one file.
        usual = partial_path(self.path)
        self.partial = usual.with_name(f"{self.path.name}.{os.getpid()}.partial")
        self._header = Header(
            equation,
            domain,
            times,
            component_names,
            static_names,
            static_role,
            provenance,
            split,
            forcing_names=forcing_names,
            scalar_names=scalar_names,
        )
        self._mesh_offsets = [0]
        self._sample_mesh: list[int] = []
        self._parameters: dict[str, list[Any]] = {}
        self._cells: dict[str, list[int]] = {}
        self._ending = ExitStack()
        growing = new_file(self.partial, self.path, LIBVER)
        self._file = self._ending.enter_context(growing)
        self._points = self._file.create_group("points")

    def add_mesh(
        self, coords: Any, cells: Mapping[str, NDArray[np.int64]] | None = None
    ) -> int:
        """Adds a mesh and returns its number, for :meth:`write`.

        Args:
            coords: Points, ``[P, d]``.
            cells: Cells by type (``"triangle"``, ...), point numbers ``[cells, k]``.

        Raises:
            UserError: A point is not finite, outside the domain or in an obstacle.
        """
        domain, number = self._header.domain, len(self._mesh_offsets) - 1
        coords = as_real(coords, f"coordinates of mesh {number}").astype(np.float64)
        if coords.ndim != 2 or not len(coords) or coords.shape[1] != domain.dim:
            raise UserError(
                f"mesh {number} with points of shape {coords.shape}",
                f"shape [points, {domain.dim}]",
                "give one row for each point",
            )
        inside = replace(domain, region=None).contains(torch.from_numpy(coords)).numpy()
        if not inside.all():
            raise UserError(
                f"mesh {number} with a point at {coords[~inside][0]}",
                f"points in the box from {domain.lower} to {domain.upper}, periodic "
                f"axes {domain.periodic} without their upper end",
                "enlarge the domain or wrap the points into it",
            )
        domain.check_region(torch.from_numpy(coords), f"mesh {number} with ")
        self._append("coords", coords, "f8")
        self._mesh_offsets.append(self._mesh_offsets[-1] + len(coords))
        for kind, nodes in (cells or {}).items():
            nodes = np.asarray(nodes, dtype=np.int64)
            if nodes.size and not (nodes.min() >= 0 and nodes.max() < len(coords)):
                raise UserError(
                    f"{kind} cells of mesh {number}",
                    f"point numbers below {len(coords)}",
                    "repair the cells or leave them out",
                )
            offsets = self._cells.setdefault(kind, [0] * (number + 1))
            offsets.extend([offsets[-1]] * (number + 1 - len(offsets)))
            self._append(f"cells/{kind}/nodes", nodes, "i8")
            offsets.append(offsets[-1] + len(nodes))
        return number

    def write(
        self,
        u: Any,
        mesh: int,
        a: Any = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        forcing: Any = None,
    ) -> None:
        """Adds the next sample.

        Args:
            u: Field at the points of the mesh, ``[P, T, C]``; NaN or masked where a
                value is missing.
            mesh: Number that :meth:`add_mesh` returned.
            a: Static field, ``[P, C_a]``; None where there is none.
            parameters: Scalars of the sample, the same names for every sample.
            forcing: What is known ahead, ``[P, T, C_f]``; None where there is none.

        Raises:
            UserError: A shape is wrong, or a value is infinite or, but for ``u``,
                missing.
        """
        names, sample = self._header, len(self._sample_mesh)
        num = self._mesh_offsets[mesh + 1] - self._mesh_offsets[mesh]
        fields = names.given(u, a, forcing)
        names.check_scalars(parameters or ())
        if sample and set(parameters or {}) != set(self._parameters):
            raise ValueError("every sample must carry the same parameters")
        for name, shape in names.field_shapes().items():
            what, shape = f"{name} of sample {sample}", (num, *shape)
            values = as_float32(fields[name], shape, what, gaps=name == "u")
            self._append(name, values, "f4", most=num)
        for name, value in (parameters or {}).items():
            value = as_real(value, f"parameter {name} of sample {sample}")
            self._parameters.setdefault(name, []).append(value)
        self._sample_mesh.append(mesh)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        with self._ending:
            if error is not None:
                raise error
            self._finish()

    def _append(
        self, name: str, values: NDArray[Any], dtype: str, most: int | None = None
    ) -> None:
        """Adds rows to a data set, made at first in chunks of at most ``most`` rows."""
        if name not in self._points:
            row_bytes = np.dtype(dtype).itemsize * int(np.prod(values.shape[1:]))
            rows = max(1, min(most or CHUNK_BYTES, CHUNK_BYTES // row_bytes))
            shape, chunks = (0, *values.shape[1:]), (rows, *values.shape[1:])
            compressed(self._points, name, shape, chunks, dtype=dtype, grows=True)
        dataset = self._points[name]
        start = len(dataset)
        dataset.resize(start + len(values), axis=0)
        dataset[start:] = values
        dataset.flush()

    def _finish(self) -> None:
        if not self._sample_mesh:
            raise ValueError(f"{self.path}: no sample was written")
        points, offsets = self._points, np.asarray(self._mesh_offsets)
        meshes = np.asarray(self._sample_mesh, dtype=np.int64)
        self._header.store(self._file, len(meshes), None)
        for name in self._header.field_shapes():
            self._header.describe(points[name], name)
        checked(points, "mesh_offsets", offsets)
        checked(points, "sample_mesh", meshes)
        ends = np.append(0, np.cumsum(np.diff(offsets)[meshes]))
        checked(points, "sample_offsets", ends)
        for kind, cells in self._cells.items():
            cells.extend([cells[-1]] * (len(offsets) - len(cells)))
            checked(points, f"cells/{kind}/offsets", np.asarray(cells, np.int64))
        for name, values in self._parameters.items():
            self._header.store_parameter(self._file, name, values)
