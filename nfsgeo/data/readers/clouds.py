"""What the readers of point clouds share: arrays of one mesh or of many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import Doubles, FieldFile, Indices, padded_box, reading
from nfsgeo.data.numbers import (
    as_real,
    as_times,
    check_distinct,
    check_num_names,
    dated,
)
from nfsgeo.data.splits import split_in_order
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = [
    "HALF_CIRCLE",
    "CloudFile",
    "Lazy",
    "LazyCloudFile",
    "numbered",
]

HALF_CIRCLE = 180.0  # degrees of longitude from which on an axis may be periodic


def numbered(name: str, num: int) -> list[str]:
    """Names of so many components: ``u``, or ``u_0``, ``u_1``, ..."""
    return [name] if num == 1 else [f"{name}_{i}" for i in range(num)]


@dataclass
class Lazy:
    """A field that is read when it is asked for.

    Attributes:
        shape: Its points, time steps and components, ``(n, T, C)``.
        read: Reads some time steps, ``[n, T', C]``.
    """

    shape: tuple[int, int, int]
    read: Callable[[slice], NDArray[Any]]


class CloudFile(FieldFile):
    """Point clouds.

    Args:
        path: The file.
        meshes: Points of each sample, ``[n, d]``; equal ones count as one mesh.
        u: Field of each sample, ``[n, T, C]``, in memory or lazy.
        a: Coefficient of each sample, ``[n, C_a]``.
        times: Time of each time step; None where the file does not tell.
        component_names: Names of the ``C`` components.
        static_names: Names of the ``C_a`` components.
        cells: Cells of each sample by type.
        equation: Name of the equation.
        static_role: What the static field is.
        parameters: Scalars of each sample.
        provenance: What the file says about its making; units belong here.
        domain: Box that holds the points; drawn around them when None.
        split: Its own split; in order 0.7/0.1/0.2 when None.
        handle: To be closed with the file.

    Raises:
        UserError: A size contradicts another, or a coordinate is not finite.
    """

    def __init__(
        self,
        path: Path,
        *,
        meshes: Sequence[NDArray[Any]],
        u: Sequence[NDArray[Any] | Lazy],
        times: Any,
        component_names: Sequence[str],
        a: Sequence[NDArray[Any]] = (),
        static_names: Sequence[str] = (),
        cells: Sequence[Mapping[str, NDArray[Any]]] = (),
        equation: str = "",
        static_role: str | None = "coefficient",
        parameters: Mapping[str, NDArray[Any]] | None = None,
        provenance: Mapping[str, Any] | None = None,
        domain: Domain | None = None,
        split: Mapping[str, Indices] | None = None,
        handle: Any = None,
    ) -> None:
        self.path, self._handle = path, handle
        self.domain_is_known = domain is not None
        self.equation, self.parameters = equation, dict(parameters or {})
        self.provenance = dated(provenance, times)
        self.times_are_known = times is not None
        self.times = as_times(
            np.arange(u[0].shape[1]) if times is None else times, f"times of {path}"
        )
        check_distinct(path, list(component_names))
        check_distinct(path, list(static_names))
        self.name_fields(component_names)
        self.static_names = list(static_names)
        self.static_role = static_role if self.static_names else None
        self.axes = None
        self.num_samples = len(u)
        self.split = dict(split or split_in_order(self.num_samples))
        self._u, self._a, self._cells = u, a, cells
        self._meshes: list[Doubles] = []
        self.sample_mesh: list[int] = []
        self._gather(meshes)
        points = np.concatenate(self._meshes)
        self.domain = Domain.bounding(points) if domain is None else domain

    def coordinates(self, sample: int = 0) -> Doubles:
        return self._meshes[self.mesh_id(sample)]

    def cells(self, sample: int = 0) -> dict[str, Indices]:
        self._check_sample(sample)
        return dict(self._cells[sample]) if self._cells else {}

    def slab(self, sample: int, steps: slice) -> NDArray[Any]:
        u = self._u[sample]
        return u.read(steps) if isinstance(u, Lazy) else u[:, steps].copy()

    def static_slab(self, sample: int) -> NDArray[Any]:
        return self._a[sample].copy()

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()

    def _gather(self, meshes: Sequence[NDArray[Any]]) -> None:
        """Keeps each different mesh once, and checks every size against it."""
        if self.times.ndim != 1:
            raise UserError(
                f"{self.path} with times of shape {self.times.shape}",
                "one axis, that of the time steps",
                "flatten them",
            )
        if not np.all(np.diff(self.times) > 0) or not len(self.times):
            raise UserError(f"{self.path}", "increasing times", "sort its time steps")
        known: dict[bytes, int] = {}
        steps = len(self.times)
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
            shape: tuple[int, ...] = (len(points), steps)
            self._check(sample, "fields", u, shape, self._stored)
            if self.static_names:
                a, names = self._a[sample], self.static_names
                self._check(sample, "coefficient", a, (len(points),), names)
            number = known.setdefault(points.tobytes(), len(self._meshes))
            if number == len(self._meshes):
                self._meshes.append(points)
            self.sample_mesh.append(number)

    def _check(
        self,
        sample: int,
        what: str,
        values: NDArray[Any] | Lazy,
        ahead: tuple[int, ...],
        names: Sequence[str],
    ) -> None:
        """Makes sure that an array has these axes ahead of its named components."""
        if not isinstance(values, Lazy):
            name = f"{what} of sample {sample} of {self.path}"
            values = as_real(values, name, gaps=what == "fields")
        found = values.shape
        if found[:-1] != ahead:
            raise self._misfit(sample, what, found, str((*ahead, len(names))))
        check_num_names(self.path, what, names, found, found[-1])

    def _misfit(
        self, sample: int, what: str, shape: tuple[int, ...], wanted: str
    ) -> UserError:
        return UserError(
            f"sample {sample} of {self.path} with {what} of shape {shape}",
            wanted,
            "reorder its axes",
        )


class LazyCloudFile(FieldFile):
    """Point clouds of one size that are read sample by sample.

    Args:
        path: The file.
        num_samples: Number of samples ``N``.
        num_points: Number of points of each sample ``n``.
        points: Returns the points of a sample, ``[n, d]``.
        shared: Whether these are the same for all samples.
        fields: Returns time steps of the field of a sample, ``[n, T', C]``.
        times: Time of each time step.
        times_are_known: Whether these are from the file or its documentation.
        component_names: Names of the ``C`` components.
        split: Sample numbers of each part; in order 0.7/0.1/0.2 when None.
        coefficient: Returns the coefficient of a sample, ``[n, C_a]``.
        static_names: Names of the ``C_a`` components.
        domain: Box that holds the points; drawn around them when None.
        handle: To be closed with the file.

    Raises:
        ValueError: A coordinate is not finite.
    """

    def __init__(
        self,
        path: Path,
        *,
        num_samples: int,
        num_points: int,
        points: Callable[[int], NDArray[Any]],
        shared: bool,
        fields: Callable[[int, slice], NDArray[Any]],
        times: Doubles,
        component_names: Sequence[str],
        times_are_known: bool = True,
        split: Mapping[str, Indices] | None = None,
        coefficient: Callable[[int], NDArray[Any]] | None = None,
        static_names: Sequence[str] = (),
        domain: Domain | None = None,
        handle: Any = None,
    ) -> None:
        self.path, self._handle = path, handle
        self.equation, self.provenance, self.parameters = "", {}, {}
        self.times, self.times_are_known = times, times_are_known
        self.name_fields(component_names)
        self.static_names = list(static_names)
        self.static_role = "coefficient" if self.static_names else None
        self.axes = None
        self.num_samples, self._num_points = num_samples, num_points
        self.sample_mesh = None if shared else np.arange(num_samples)
        self.split = dict(split or split_in_order(num_samples))
        self._points, self._fields, self._coefficient = points, fields, coefficient
        self.domain_is_known = domain is not None
        self.domain = domain or padded_box(self)

    def coordinates(self, sample: int = 0) -> Doubles:
        self._check_sample(sample)
        with reading(self.path, f"points of sample {sample} to be readable"):
            return self._points(sample).astype(np.float64)

    def num_points(self, sample: int = 0) -> int:
        self._check_sample(sample)
        return self._num_points

    def slab(self, sample: int, steps: slice) -> NDArray[Any]:
        return self._fields(sample, steps)

    def static_slab(self, sample: int) -> NDArray[Any]:
        if self._coefficient is None:
            return super().static_slab(sample)
        return self._coefficient(sample)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()
