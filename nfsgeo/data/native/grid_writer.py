"""Writes samples on one grid to a native file, and goes on after a kill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from nfsgeo.data.disk import check_room
from nfsgeo.data.native.layout import CHUNK_BYTES, LIBVER, Header, compressed, new_file
from nfsgeo.data.native.staging import StagedWriter
from nfsgeo.data.numbers import as_real
from nfsgeo.geometry import Domain

__all__ = ["GridWriter"]


class GridWriter(StagedWriter):
    """Native file of ``num_samples`` samples on one grid, written batch by batch.

    It is staged, see :class:`~nfsgeo.data.native.staging.StagedWriter`.

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
        header = Header(
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
        header.check_scalars(parameter_names)
        self._axes = [
            as_real(axis, f"axis {i}").astype(np.float64) for i, axis in enumerate(axes)
        ]
        if len(self._axes) != domain.dim:
            raise ValueError(f"{len(self._axes)} axes for a {domain.dim}-d domain")
        grid = tuple(len(axis) for axis in self._axes)
        points = [axis.tolist() for axis in self._axes]
        super().__init__(
            path, header, grid, points, num_samples, parameter_names, packing
        )

    def _pack(self) -> None:
        packed = self.partial.with_name(self.path.name + ".packing.partial")
        with new_file(packed, self.path, LIBVER) as file:
            self._header.store(file, self.num_samples, self._axes)
            for name in sorted(self._header.field_shapes()):
                self._header.describe(self._pack_field(file, name), name)
            for name in self._parameters:
                values = self._file[f"params/{name}"][:]
                self._header.store_parameter(file, name, values)

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
