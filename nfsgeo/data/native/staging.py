"""Samples staged on the disk batch by batch, so that a kill loses none of them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.disk import abandon, check_room, occupied, writing
from nfsgeo.data.native.layout import Header, as_float32, new_file, partial_path
from nfsgeo.data.numbers import as_real
from nfsgeo.errors import UserError

__all__ = ["StagedWriter"]


class StagedWriter(ABC):
    """Native file of ``num_samples`` samples of one shape, written batch by batch.

    Batches are staged in ``<path>.partial``, whose datasets are allocated before the
    first batch and never move, so that a kill at any moment leaves every finished
    batch readable. Leaving the ``with`` block packs them, compressed, into ``path``,
    which therefore exists whole or not at all. Opened again with the same arguments,
    the writer goes on: ``done`` tells which samples are there.

    Args:
        path: The file to make.
        header: Everything about it but its values.
        shape: Points along each axis, or in all of a mesh.
        points: What says where they are; must not change from one try to the next.
        num_samples: Number of samples ``N``.
        parameter_names: Scalars that each sample carries.
        packing: Called with the samples packed and their number.

    Raises:
        UserError: ``path`` exists, a partial file of other data is in the way, or the
            disk is full, now or later; finished batches are kept.
        ValueError: Later, a batch does not fit what was announced.
    """

    def __init__(
        self,
        path: str | Path,
        header: Header,
        shape: tuple[int, ...],
        points: Any,
        num_samples: int,
        parameter_names: Sequence[str],
        packing: Callable[[int, int], None] | None,
    ) -> None:
        self.path = Path(path)
        self.partial = partial_path(self.path)
        self.num_samples = num_samples
        self._header, self._shape = header, shape
        self._parameters = tuple(parameter_names)
        self._packing = packing
        self._file = self._stage(points)

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
        pos: Any = None,
    ) -> None:
        """Stages samples ``start``, ``start + 1``, ... and marks them done.

        Args:
            start: Number of the first sample.
            u: Fields, ``[B, T, *S, C]``; NaN or masked where a value is missing.
            a: Static fields, ``[B, *S, C_a]``; None where there are none.
            parameters: One array ``[B]`` for each parameter name.
            forcing: What is known ahead, ``[B, T, *S, C_f]``; None where there is none.
            pos: Points, ``[B, P, d]``, where each sample has a mesh of its own.

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
        exact = {f"params/{name}": each for name, each in (parameters or {}).items()}
        if pos is not None:
            exact["pos"] = pos
        if {*staged, *exact, "done"} != {*self._shapes()}:
            raise ValueError("points must come if and only if each sample has its own")
        with writing(self.path):
            for name, values in staged.items():
                dataset = self._file[name]
                for row, sample in zip(values, range(start, stop), strict=True):
                    what = f"{name} of sample {sample}"
                    shape = dataset.shape[1:]
                    dataset[sample] = as_float32(row, shape, what, gaps=name == "u")
                dataset.flush()
            for name, values in exact.items():
                what = name.replace("params/", "parameter ")
                self._file[name][start:stop] = as_real(values, what)
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
                missing = self.num_samples - int(self.done.sum())
                if missing:
                    raise ValueError(f"{self.path}: {missing} samples were not written")
                self._pack()
                self.close()
                self.partial.unlink()
        finally:
            self.close()

    @abstractmethod
    def _pack(self) -> None:
        """Makes the file of the staged samples."""

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.id.get_vfd_handle())

    def _stage(self, points: Any) -> h5py.File:
        """Opens the staged samples of an earlier try, or begins."""
        header = self._header.to_json() + repr(
            (self.num_samples, self._parameters, points)
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
        num, fields = self.num_samples, self._header.field_shapes(*self._shape)
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
