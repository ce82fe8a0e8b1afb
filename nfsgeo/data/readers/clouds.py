"""What the readers of point clouds share: arrays of one mesh or of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import Doubles, FieldFile, Indices
from nfsgeo.data.numbers import as_real, as_times
from nfsgeo.data.splits import split_in_order
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["CloudFile", "is_static"]


def is_static(name: str) -> bool:
    """Whether a named field is the coefficient: ``a``, ``a_permeability``, ..."""
    return name == "a" or name.startswith("a_")


class CloudFile(FieldFile):
    """Point clouds in memory.

    Args:
        path: The file.
        meshes: Points of each sample, ``[n, d]``; equal ones count as one mesh.
        u: Field of each sample, ``[n, T, C]``.
        a: Coefficient of each sample, ``[n, C_a]``.
        times: Time of each time step; None where the file does not tell.
        component_names: Names of the ``C`` components.
        static_names: Names of the ``C_a`` components.
        cells: Cells of each sample by type.
        equation: Name of the equation.
        static_role: What the static field is.

    Raises:
        UserError: A size contradicts another, or a coordinate is not finite.
    """

    def __init__(
        self,
        path: Path,
        *,
        meshes: Sequence[NDArray[Any]],
        u: Sequence[NDArray[Any]],
        times: Any,
        component_names: Sequence[str],
        a: Sequence[NDArray[Any]] = (),
        static_names: Sequence[str] = (),
        cells: Sequence[Mapping[str, NDArray[Any]]] = (),
        equation: str = "",
        static_role: str | None = "coefficient",
    ) -> None:
        self.path = path
        self.domain_is_known = False
        self.equation, self.provenance, self.parameters = equation, {}, {}
        self.times_are_known = times is not None
        self.times = as_times(
            np.arange(u[0].shape[1]) if times is None else times, f"times of {path}"
        )
        self.component_names = list(component_names)
        self.static_names = list(static_names)
        self.static_role = static_role if self.static_names else None
        self.axes = None
        self.num_samples = len(u)
        self.split = split_in_order(self.num_samples)
        self._u, self._a, self._cells = u, a, cells
        self._meshes: list[Doubles] = []
        self.sample_mesh: list[int] = []
        self._gather(meshes)
        points = np.concatenate(self._meshes)
        self.domain = Domain.bounding(points)

    def coordinates(self, sample: int = 0) -> Doubles:
        return self._meshes[self.mesh_id(sample)]

    def cells(self, sample: int = 0) -> dict[str, Indices]:
        self._check_sample(sample)
        return dict(self._cells[sample]) if self._cells else {}

    def slab(self, sample: int, steps: slice) -> NDArray[Any]:
        return self._u[sample][:, steps].copy()

    def static_slab(self, sample: int) -> NDArray[Any]:
        return self._a[sample].copy()

    def _gather(self, meshes: Sequence[NDArray[Any]]) -> None:
        """Keeps each different mesh once, and checks every size against it."""
        if not np.all(np.diff(self.times) > 0) or not len(self.times):
            raise UserError(f"{self.path}", "increasing times", "sort its time steps")
        known: dict[bytes, int] = {}
        steps, width = len(self.times), len(self.component_names)
        for sample, (mesh, u) in enumerate(zip(meshes, self._u, strict=True)):
            points = as_real(mesh, f"points of sample {sample} of {self.path}")
            points = points.astype(np.float64)
            dims = range(1, 4)
            if self._meshes:
                dims = range(self._meshes[0].shape[1], self._meshes[0].shape[1] + 1)
            if points.ndim != 2 or points.shape[1] not in dims:
                wanted = f"(points, {' or '.join(map(str, dims))})"
                raise self._misfit(sample, "points", points.shape, wanted)
            if not np.isfinite(points).all():
                raise UserError(
                    f"sample {sample} of {self.path}", "finite points", "repair it"
                )
            self._check(sample, "fields", u, (len(points), steps, width))
            if self.static_names:
                shape = (len(points), len(self.static_names))
                self._check(sample, "coefficient", self._a[sample], shape)
            number = known.setdefault(points.tobytes(), len(self._meshes))
            if number == len(self._meshes):
                self._meshes.append(points)
            self.sample_mesh.append(number)

    def _check(
        self, sample: int, what: str, values: NDArray[Any], shape: tuple[int, ...]
    ) -> None:
        found = as_real(values, f"{what} of sample {sample} of {self.path}").shape
        if found != shape:
            raise self._misfit(sample, what, found, str(shape))

    def _misfit(
        self, sample: int, what: str, shape: tuple[int, ...], wanted: str
    ) -> UserError:
        return UserError(
            f"sample {sample} of {self.path} with {what} of shape {shape}",
            wanted,
            "reorder its axes",
        )
