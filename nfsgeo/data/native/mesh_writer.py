"""Writes samples on meshes of their own to a native file, and goes on after a kill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.native.layout import Header
from nfsgeo.data.native.point_writer import PointWriter
from nfsgeo.data.native.staging import StagedWriter

__all__ = ["MeshWriter"]


class MeshWriter(StagedWriter):
    """Native file of samples whose meshes differ in the place of their points alone.

    It is staged, see :class:`~nfsgeo.data.native.staging.StagedWriter`.

    Args:
        path: The file to make.
        header: Everything about it but its values.
        cells: Cells of each mesh by type, point numbers ``[cells, k]``.
        num_points: Points of each mesh ``P``.
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
        *,
        cells: Mapping[str, NDArray[np.int64]],
        num_points: int,
        num_samples: int,
        parameter_names: Sequence[str] = (),
        packing: Callable[[int, int], None] | None = None,
    ) -> None:
        self._cells = dict(cells)
        points = {kind: nodes.tolist() for kind, nodes in self._cells.items()}
        super().__init__(
            path, header, (num_points,), points, num_samples, parameter_names, packing
        )

    def _shapes(self) -> dict[str, tuple[tuple[int, ...], str]]:
        pos = (self.num_samples, *self._shape, self._header.domain.dim)
        return super()._shapes() | {"pos": (pos, "<f8")}

    def _pack(self) -> None:
        header, staged = self._header, self._file
        about: Any = {k: v for k, v in vars(header).items() if k != "meshes"}
        with PointWriter(self.path, **about) as writer:
            for sample in range(self.num_samples):
                mesh = writer.add_mesh(staged["pos"][sample], self._cells)
                u = staged["u"][sample].swapaxes(0, 1)
                a = staged["a"][sample] if header.static_names else None
                some = {k: staged[f"params/{k}"][sample] for k in self._parameters}
                writer.write(u, mesh, a, some)
                if self._packing is not None:
                    self._packing(sample + 1, self.num_samples)
