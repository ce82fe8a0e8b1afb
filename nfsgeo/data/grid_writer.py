"""Writes samples on one grid to a native file, and goes on after a kill."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from nfsgeo.data.disk import abandon, check_room, occupied, writing
from nfsgeo.data.layout import (
    CHUNK_BYTES,
    LIBVER,
    Header,
    as_float32,
    compressed,
    new_file,
    partial_path,
)
from nfsgeo.data.numbers import as_real
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["GridWriter"]


class GridWriter:
    """Native file of ``num_samples`` samples on one grid, written batch by batch.

    Batches are staged in ``<path>.partial``, whose datasets are allocated before the
    first batch and never move, so that a kill at any moment leaves every finished
    batch readable. Leaving the ``with`` block packs them, compressed, into ``path``,
    which therefore exists whole or not at all. Opened again with the same arguments,
    the writer goes on: ``done`` tells which samples are there.

    Args:
        path: The file to make.
        equation: Name of the equation.
        domain: Box that holds the grid.
        axes: Coordinates of each grid axis, increasing.
        times: Time of each time step, ``[T]``.
        num_samples: Number of samples ``N``.
        component_names: Components of ``u``.
        static_names: Components of the static field ``a``.
        static_role: ``"coefficient"``, ``"initial condition"``, None without ``a``.
        provenance: How the data are made; must not change from one try to the next.
            Units belong here, as ``{"units": {"p": "hPa"}}``.
        parameter_names: Scalars that each sample carries.
        split: Sample numbers of each part; in order 0.7/0.1/0.2 when None.
        meshes: Flat point numbers of meshes to publish with the data, by name.
        packing: Called with the samples packed and their number.
        forcing_names: Components of the forcing, see
            :attr:`~nfsgeo.data.FieldFile.forcing_names`.
        scalar_names: Parameters that are inputs of a model.

    Raises:
        UserError: ``path`` exists, a partial file of other data is in the way, or the
            disk is full, now or later; finished batches are kept.
        ValueError: The axes do not fit the domain; later, a batch does not fit what
            was announced.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        equation: str,
        domain: Domain,
        axes: Sequence[ArrayLike],
        times: ArrayLike,
        num_samples: int,
        component_names: Sequence[str],
        static_names: Sequence[str] = (),
        static_role: str | None = None,
        provenance: Mapping[str, Any] | None = None,
        parameter_names: Sequence[str] = (),
        split: Mapping[str, NDArray[np.int64]] | None = None,
        meshes: Mapping[str, NDArray[np.int64]] | None = None,
        packing: Callable[[int, int], None] | None = None,
        forcing_names: Sequence[str] = (),
        scalar_names: Sequence[str] = (),
    ) -> None:
        self.path = Path(path)
        self.partial = partial_path(self.path)
        self._header = Header(
            equation,
            domain,
            times,
            component_names,
            static_names,
            static_role,
            provenance,
            split,
            meshes,
            forcing_names,
            scalar_names,
        )
        self._header.check_scalars(parameter_names)
        self._axes = [
            as_real(axis, f"axis {i}").astype(np.float64) for i, axis in enumerate(axes)
        ]
        self._grid = tuple(len(axis) for axis in self._axes)
        if len(self._grid) != domain.dim:
            raise ValueError(f"{len(self._grid)} axes for a {domain.dim}-d domain")
        self.num_samples = num_samples
        self._parameters = tuple(parameter_names)
        self._packing = packing
        self._file = self._stage()

    @property
    def done(self) -> NDArray[np.bool_]:
        """Which samples are staged, ``[num_samples]``."""
        return self._file["done"][:].astype(bool)

    def write(
        self,
        start: int,
        u: Any,
        a: Any = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        forcing: Any = None,
    ) -> None:
        """Stages samples ``start``, ``start + 1``, ... and marks them done.

        Args:
            start: Number of the first sample.
            u: Fields, ``[B, T, *S, C]``; NaN or masked where a value is missing.
            a: Static fields, ``[B, *S, C_a]``; None where there are none.
            parameters: One array ``[B]`` for each parameter name.
            forcing: What is known ahead, ``[B, T, *S, C_f]``; None where there is none.

        Raises:
            UserError: A shape is wrong, or a value is infinite or, but for ``u``,
                missing.
        """
        stop = start + len(u)
        if not 0 <= start < stop <= self.num_samples:
            raise ValueError(
                f"samples {start}:{stop}: expected a range within {self.num_samples}"
            )
        staged = self._header.given(u, a, forcing)
        if set(parameters or {}) != set(self._parameters):
            raise ValueError(f"parameters: expected {self._parameters} for each batch")
        with writing(self.path):
            for name, values in staged.items():
                dataset = self._file[name]
                for row, sample in zip(values, range(start, stop), strict=True):
                    what = f"{name} of sample {sample}"
                    shape = dataset.shape[1:]
                    dataset[sample] = as_float32(row, shape, what, gaps=name == "u")
                dataset.flush()
            for name, values in (parameters or {}).items():
                numbers = as_real(values, f"parameter {name}")
                self._file[f"params/{name}"][start:stop] = numbers
            self._sync()
            self._file["done"][start:stop] = 1
            self._sync()

    def close(self) -> None:
        """Lets go of the staged samples, to go on later."""
        abandon(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._pack()
        finally:
            self.close()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.id.get_vfd_handle())

    def _stage(self) -> h5py.File:
        """Opens the staged samples of an earlier try, or begins."""
        header = self._header.to_json() + repr(
            (self.num_samples, self._parameters, [axis.tolist() for axis in self._axes])
        )
        size = sum(int(np.prod(s)) * int(k[-1]) for s, k in self._shapes().values())
        check_room(self.path, size - occupied(self.partial))
        if not self.partial.exists():
            begun = self.partial.with_name(self.path.name + ".new.partial")
            with new_file(begun, self.partial) as file:
                self._allocate(file, header)
        try:
            file = h5py.File(self.partial, "r+")
            same = file["header"].asstr()[()] == header
        except (OSError, KeyError, TypeError) as error:
            raise UserError(
                f"{self.partial}",
                "samples staged by an earlier try that no other process writes to",
                "wait for that process or remove the file",
            ) from error
        if not same:
            file.close()
            raise UserError(
                f"{self.partial}",
                "samples staged with the same settings",
                "repeat the settings it was begun with or remove the file",
            )
        return file

    def _shapes(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shape and type of each staged array."""
        num, fields = self.num_samples, self._header.field_shapes(*self._grid)
        shapes = {name: ((num, *shape), "<f4") for name, shape in fields.items()}
        shapes |= {f"params/{name}": ((num,), "<f8") for name in self._parameters}
        return shapes | {"done": ((num,), "<u1")}

    def _allocate(self, file: h5py.File, header: str) -> None:
        # Contiguous and allocated now: later writes touch no metadata.
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        early.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        file.create_group("params")
        for name, (shape, dtype) in self._shapes().items():
            space = h5py.h5s.create_simple(shape)
            kind = h5py.h5t.py_create(np.dtype(dtype))
            h5py.h5d.create(file.id, name.encode(), kind, space, early)
        file["done"][:] = 0
        file["header"] = header

    def _pack(self) -> None:
        missing = self.num_samples - int(self.done.sum())
        if missing:
            raise ValueError(f"{self.path}: {missing} samples were not written")
        packed = self.partial.with_name(self.path.name + ".packing.partial")
        with new_file(packed, self.path, LIBVER) as file:
            self._header.store(file, self.num_samples, self._axes)
            for name in sorted(self._header.field_shapes()):
                self._header.describe(self._pack_field(file, name), name)
            for name in self._parameters:
                values = self._file[f"params/{name}"][:]
                self._header.store_parameter(file, name, values)
        self.close()
        self.partial.unlink()

    def _pack_field(self, file: h5py.File, name: str) -> h5py.Dataset:
        """Copies a staged field, compressed: in chunks of some time steps of a sample,
        ``a`` in one of each.
        """
        source = self._file[name]
        num, rows = source.shape[:2]
        if name != "a":
            step_bytes = 4 * int(np.prod(source.shape[2:]))
            rows = min(rows, max(1, CHUNK_BYTES // step_bytes))
        chunks = (1, rows, *source.shape[2:])
        target = compressed(file, f"fields/{name}", source.shape, chunks)
        for sample in range(num):
            target[sample] = source[sample]
            if sample == 0:  # the others will be about as large
                target.flush()
                check_room(self.path, target.id.get_storage_size() * (num - 1))
            if name == "u" and self._packing is not None:
                self._packing(sample + 1, num)
        target.flush()
        return target
