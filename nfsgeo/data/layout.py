"""What a data set of xarray holds, as CF lays it out.

=============  =========================================================================
in the data    meaning
=============  =========================================================================
samples, time  dimensions ``sample`` and ``time`` with the coordinate ``time``; the
               variable ``part(sample)`` is 0, 1 or 2 for training, validation or test
grid           dimensions ``x``, ``y``, ``z`` with coordinates of these names
points         dimension ``point`` and coordinates ``x(point)``, or ``x(sample, point)``
               where each sample has points of its own; names ``station(point)``
ragged         a mesh for each sample: dimension ``obs``, ``row_size(sample)`` points of
               each sample, one after the other, ``x(obs)`` (CF 1.11, section 9.3.3)
domain         attributes ``lower``, ``upper`` and ``periodic`` of each coordinate, see
               :mod:`nfsgeo.data.domains`
roles          attribute ``role`` of each variable, see :mod:`nfsgeo.data.conventions`
categories     an input of whole numbers that is called ``node_type``, or that has the
               attributes ``flag_values`` and ``flag_meanings`` (CF 1.11, section 3.5)
=============  =========================================================================

A variable that does not vary along a dimension is without it. NaN is no value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import xarray
from numpy.typing import NDArray

from nfsgeo.data.checks import reading
from nfsgeo.data.conventions import (
    FIELD,
    FLAGS,
    KNOWN,
    LAYOUT,
    NODE_TYPE,
    PARAMETER,
    ROLES,
    SPACE,
    STATIC,
    Doubles,
    Indices,
)
from nfsgeo.data.lazy import part
from nfsgeo.data.splits import SPLITS, split_in_order
from nfsgeo.errors import UserError

__all__ = ["Layout"]


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """What a data set tells of its samples and their points; nothing changes it.

    Args:
        dataset: Laid out as :mod:`nfsgeo.data.layout` says.
        path: The file that it comes from, for messages.
        reopens: Whether opening ``path`` gives the same, but for what is known ahead.

    Raises:
        UserError: The data set is not laid out like this.
    """

    dataset: xarray.Dataset
    path: Path
    reopens: bool = False

    def __post_init__(self) -> None:
        allowed = {"sample", "time", *self.places}
        for name, variable in self.dataset.data_vars.items():
            role, dims = variable.attrs.get("role"), set(variable.dims)
            fits = "sample" in dims if role == PARAMETER else dims <= allowed
            fits &= role in ROLES and variable.dtype.kind in "biuf"
            if role not in LAYOUT and not fits:
                along = ", ".join(map(str, variable.dims))
                given = f"{name} of type {variable.dtype} along {along}, role {role}"
                expected = f"real numbers along {', '.join(sorted(allowed))} and a "
                raise self._refused(given, f"{expected}role of {', '.join(ROLES)}")
        axes = zip(SPACE, self.axes or (), strict=False)
        for name, values in [("time", self.times), *axes]:
            finite = values.ndim == 1 and values.size and np.isfinite(values).all()
            if not (finite and (np.diff(values) > 0).all()):
                given = f"{name} of shape {values.shape}"
                expected = "a finite number for each step along it, which increase"
                todo = "repair it, or sort it and the fields with it"
                raise self._refused(given, expected, todo)
        if not self.component_names:
            known = ", ".join([*self.forcing_names, *self.static_names])
            given = "no field to predict" + f" but the inputs {known}" * bool(known)
            todo = "rename it if it is one, or leave it out of what is known ahead"
            raise self._refused(given, "a field to predict", todo)

    def __repr__(self) -> str:
        points = "points" if self.shape is None else self.shape
        return (
            f"{type(self).__name__}({str(self.path)!r}, samples={self.num_samples}, "
            f"time_steps={len(self.times)}, components={self.components}, {points})"
        )

    @property
    def num_samples(self) -> int:
        """Number of samples ``N``."""
        return int(self.dataset.sizes.get("sample", 1))

    @cached_property
    def times(self) -> Doubles:
        """Time of each time step, float64 ``[T]``; 0, 1, 2, ... if it is not known."""
        if "time" in self.dataset.variables:
            return np.atleast_1d(self.dataset["time"].values.astype(np.float64))
        return np.arange(float(self.dataset.sizes.get("time", 1)))

    @cached_property
    def component_names(self) -> list[str]:
        """Names of the ``C`` components of the fields to predict."""
        return self._named(FIELD)

    @cached_property
    def forcing_names(self) -> list[str]:
        """Names of the ``C_f`` fields that are known ahead of time, such as the height
        of the sun: inputs of a model at all time steps of a window.
        """
        return [n for n in self._named(KNOWN) if self.dataset[n].dims != ("sample",)]

    @cached_property
    def scalar_names(self) -> list[str]:
        """Names of the parameters of each sample that are inputs of a model."""
        return [n for n in self._named(KNOWN) if self.dataset[n].dims == ("sample",)]

    @cached_property
    def static_names(self) -> list[str]:
        """Names of the ``C_a`` components of the static input."""
        return self._named(STATIC)

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs that do not change in time: static ones, then scalars."""
        return [*self.static_names, *self.scalar_names]

    @cached_property
    def categories(self) -> dict[str, dict[int, str]]:
        """Inputs that are categories, such as node types, and the meanings of their
        values as far as ``flag_meanings`` tells them.
        """
        found = {}
        for name in self.input_names:
            about, whole = self.dataset[name].attrs, self.dataset[name].dtype.kind
            if whole in "iu" and (name == NODE_TYPE or FLAGS[0] in about):
                values = np.ravel(about.get(FLAGS[0], [])).tolist()
                meanings = str(about.get(FLAGS[1], "")).split()
                found[name] = dict(zip(map(int, values), meanings, strict=False))
        return found

    @property
    def node_types(self) -> str | None:
        """The category that tells the kinds of points: the one called ``node_type``,
        or else the first static one; None where there is none.
        """
        static = [name for name in self.static_names if name in self.categories]
        return NODE_TYPE if NODE_TYPE in static else next(iter(static), None)

    @property
    def components(self) -> int:
        """Number of components ``C`` of the fields to predict."""
        return len(self.component_names)

    @cached_property
    def parameters(self) -> dict[str, NDArray[Any]]:
        """Scalars or small arrays that belong to each sample, ``[N, ...]``."""
        names = [*self._named(PARAMETER), *self.scalar_names]
        return {name: self.dataset[name].values for name in sorted(names)}

    @property
    def equation(self) -> str:
        """Name of the equation, ``""`` where the file does not tell."""
        return str(self.dataset.attrs.get("equation", ""))

    @property
    def provenance(self) -> dict[str, Any]:
        """How the data were made, plain JSON types."""
        return dict(json.loads(self.dataset.attrs.get("provenance", "{}")))

    @cached_property
    def split(self) -> dict[str, Indices]:
        """Sample numbers of ``"train"``, ``"valid"`` and ``"test"``.

        In order 0.7/0.1/0.2 where the file has no ``part``.
        """
        if "part" not in self.dataset:
            return split_in_order(self.num_samples)
        where = self.dataset["part"].values
        return {name: np.flatnonzero(where == i) for i, name in enumerate(SPLITS)}

    @cached_property
    def units(self) -> dict[str, str]:
        """Units of fields, inputs, axes and ``time`` by name, as far as they are told.

        Degrees on a sphere; fields without dimension, of unit ``"1"``, are left out.
        """
        names = [*self.component_names, *self.forcing_names, *self.static_names]
        there, found = self.dataset.variables, {}
        for name in (*names, "time", *self.space):
            unit = there[name].attrs.get("units", "") if name in there else ""
            if name in self.space and self.dataset.attrs.get("sphere"):
                unit = "°"
            if isinstance(unit, str) and unit not in ("", "1"):
                found[name] = unit
        return found

    @property
    def time_unit(self) -> str:
        """Unit of the times, ``""`` where the file tells none."""
        return self.units.get("time", "")

    @cached_property
    def space(self) -> tuple[str, ...]:
        """Names of the axes of the domain, ``("x", "y")`` in the plane."""
        return tuple(axis for axis in SPACE if axis in self.dataset.variables)

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Dimensions of space: those of a grid, ``("point",)`` or ``("obs",)``."""
        dims = self.dataset[self.space[0]].dims
        if dims == (self.space[0],):
            return self.space
        return tuple(str(dim) for dim in dims if dim != "sample")

    @cached_property
    def axes(self) -> tuple[Doubles, ...] | None:
        """Coordinates of each axis of the grid, float64; None for point clouds."""
        if self.places != self.space:
            return None
        return tuple(self.dataset[a].values.astype(np.float64) for a in self.space)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Points along each axis of the grid, None for point clouds."""
        return None if self.axes is None else tuple(map(len, self.axes))

    @cached_property
    def own_meshes(self) -> bool:
        """Whether each sample has coordinates of its own."""
        return bool({"sample", "obs"}.intersection(self.dataset[self.space[0]].dims))

    @cached_property
    def sample_mesh(self) -> Indices:
        """Number of the mesh of each sample; equal numbers mean equal points."""
        if not self.own_meshes:
            return np.zeros(self.num_samples, np.int64)
        known: dict[bytes, int] = {}
        digests = (hashlib.blake2b(each.tobytes()).digest() for each in self._meshes())
        return np.array([known.setdefault(d, len(known)) for d in digests], np.int64)

    def coordinates(self, sample: int = 0) -> Doubles:
        """Points of a sample, float64 ``[n, d]``, a grid in row-major order."""
        if self.axes is not None:
            grids = np.meshgrid(*self.axes, indexing="ij")
            return np.stack([grid.ravel() for grid in grids], axis=-1)
        points, there = self._points(sample)
        return points if there is None else points[there]

    def num_points(self, sample: int = 0) -> int:
        """Number of points of a sample."""
        if self.shape is not None:
            return prod(self.shape)
        return len(self.coordinates(sample))

    def rows(self, sample: int) -> slice | None:
        """Where a sample lies along ``obs``; None for other layouts."""
        if self._ends is None:
            return None
        return slice(int(self._ends[sample]), int(self._ends[sample + 1]))

    @cached_property
    def _ends(self) -> Indices | None:
        if "row_size" not in self.dataset:
            return None
        return np.cumsum([0, *self.dataset["row_size"].values], dtype=np.int64)

    @cached_property
    def _cached_points(self) -> dict[int, tuple[Doubles, NDArray[np.bool_] | None]]:
        return {}  # of the last sample that was asked for

    def _points(self, sample: int) -> tuple[Doubles, NDArray[np.bool_] | None]:
        """Points of a cloud, and which of them exist; None for all of them."""
        sample = sample if self.own_meshes else 0
        if sample not in self._cached_points:
            with reading(self.path, f"points of sample {sample} to be readable"):
                one = slice(0, 1)
                columns = [self._values(axis, sample, one)[0] for axis in self.space]
            points = np.stack(columns, axis=-1).astype(np.float64)
            there = np.asarray(np.isfinite(points).all(axis=1))
            if np.isinf(points).any() or not there.any():
                raise self._refused(f"points of sample {sample}", "finite coordinates")
            self._cached_points.clear()
            self._cached_points[sample] = points, None if there.all() else there
        return self._cached_points[sample]

    def _meshes(self) -> Iterator[Doubles]:
        """Points of each sample, once where they are shared; of a grid the ends."""
        if self.axes is not None:
            yield np.stack([[axis[0], axis[-1]] for axis in self.axes], axis=1)
            return
        for sample in range(self.num_samples if self.own_meshes else 1):
            yield self.coordinates(sample)

    def _values(self, name: str, sample: int, steps: slice) -> NDArray[Any]:
        """A variable of a sample, ``[T', *S]``, repeated where it does not vary."""
        sizes = {"sample": self.num_samples, "time": len(self.times)}
        sizes |= {dim: self.dataset.sizes[dim] for dim in self.places}
        sample = range(self.num_samples)[sample]
        key: list[int | slice] = [sample, steps, *[slice(None)] * len(self.places)]
        if (rows := self.rows(sample)) is not None:
            key[2] = rows
        return part(self.dataset[name].variable, sizes, tuple(key))

    def _named(self, role: str) -> list[str]:
        each = self.dataset.data_vars.items()
        return [str(name) for name, v in each if v.attrs.get("role") == role]

    def _refused(
        self, given: str, expected: str, todo: str = "repair the data"
    ) -> UserError:
        return UserError(f"{self.path} with {given}", expected, todo)
