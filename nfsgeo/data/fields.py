"""Fields in space and time: one class over a data set of xarray, as CF lays it out.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas
import xarray
from numpy.typing import ArrayLike, NDArray

from nfsgeo.data.checks import reading
from nfsgeo.data.conventions import (
    FIELD,
    FLAGS,
    FORCING,
    KNOWN,
    LAYOUT,
    NODE_TYPE,
    PARAMETER,
    ROLES,
    SPACE,
    STATIC,
    STATION,
    Doubles,
    Floats,
    Indices,
)
from nfsgeo.data.domains import check_within, domain_of, with_domain
from nfsgeo.data.lazy import part
from nfsgeo.data.splits import SPLITS, part_variable, split_in_order
from nfsgeo.data.times import time_variable
from nfsgeo.data.writers import writer_of
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.progress import Progress, silent

__all__ = ["Fields"]

HALVES = {"triangle": [[0, 1, 2]], "quad": [[0, 1, 2], [0, 2, 3]]}


@dataclass(frozen=True, eq=False, repr=False)
class Fields:
    """Samples of fields in space and time, on a grid or at points.

    Values are read when they are asked for, sample by sample. Nothing changes an
    object; the methods ``with_...`` return another one.

    Args:
        dataset: Laid out as :mod:`nfsgeo.data.fields` says.
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
            inputs = ", ".join([*self.forcing_names, *self.static_names])
            given = "no field to predict" + f" but the inputs {inputs}" * bool(inputs)
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
        categories = {}
        for name in self.input_names:
            about, whole = self.dataset[name].attrs, self.dataset[name].dtype.kind
            if whole in "iu" and (name == NODE_TYPE or FLAGS[0] in about):
                values = np.ravel(about.get(FLAGS[0], [])).tolist()
                meanings = str(about.get(FLAGS[1], "")).split()
                categories[name] = dict(zip(map(int, values), meanings, strict=False))
        return categories

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
        """Settings that the data were made with, in plain JSON types."""
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
        variables, units = self.dataset.variables, {}
        for name in (*names, "time", *self.space):
            unit = variables[name].attrs.get("units", "") if name in variables else ""
            if name in self.space and self.dataset.attrs.get("sphere"):
                unit = "°"
            if isinstance(unit, str) and unit not in ("", "1"):
                units[name] = unit
        return units

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
        return _numbers(hashlib.blake2b(points.tobytes()) for points in self._meshes())

    def coordinates(self, sample: int = 0) -> Doubles:
        """Points of a sample, float64 ``[n, d]``, a grid in row-major order."""
        if self.axes is not None:
            grids = np.meshgrid(*self.axes, indexing="ij")
            return np.stack([grid.ravel() for grid in grids], axis=-1)
        points, exists = self._points(sample)
        return points if exists is None else points[exists]

    def num_points(self, sample: int = 0) -> int:
        """Number of points of a sample."""
        if self.shape is not None:
            return prod(self.shape)
        return len(self.coordinates(sample))

    def rows(self, sample: int) -> slice | None:
        """Return the slice of a sample along ``obs``; None in other layouts."""
        if self._ends is None:
            return None
        return slice(int(self._ends[sample]), int(self._ends[sample + 1]))

    @cached_property
    def domain(self) -> Domain:
        """The box that holds the points; drawn around them where the file has none."""
        if (domain := domain_of(self.dataset)) is not None:
            return domain
        lower, upper = self.extent
        if self.axes is None or (lower == upper).any():
            return Domain.bounding(self.extent)
        return Domain(tuple(lower), tuple(upper), (False,) * len(lower))

    @property
    def domain_is_known(self) -> bool:
        """Whether the file gives the domain; else it is drawn around the points."""
        return domain_of(self.dataset) is not None

    @cached_property
    def extent(self) -> Doubles:
        """The lowest and the highest coordinates of all points ``[2, d]``."""
        ends = np.array([(points.min(0), points.max(0)) for points in self._meshes()])
        return np.stack([ends[:, 0].min(0), ends[:, 1].max(0)])

    def stations(self, sample: int = 0) -> list[str]:
        """Names of the points of a sample, in their order; none if there are none."""
        if STATION not in self.dataset.coords or self.axes is not None:
            return []
        names, (_, exists) = self.dataset[STATION].values, self._points(sample)
        names = names[self.rows(sample) or slice(None)]
        return [str(name) for name in (names if exists is None else names[exists])]

    def cells(self, sample: int = 0) -> dict[str, Indices]:
        """Cells between a sample's points by type, each ``[cells, nodes]``."""
        cells = {}
        for name in self._named("cells"):
            kind, variable = name.removeprefix("cells_"), self.dataset[name].variable
            if (sizes := self.dataset.get(f"row_size_{kind}")) is not None:
                ends = np.cumsum([0, *sizes.values])
                variable = variable[int(ends[sample]) : int(ends[sample + 1])]
            if len(variable):
                cells[kind] = variable.values.astype(np.int64)
        return cells

    @cached_property
    def sample_geometry(self) -> Indices:
        """Number of the mesh of each sample with its cells and node types; equal
        numbers mean that all of these are equal.
        """
        variables = self.dataset.variables
        rows = [name.replace("cells", "row_size", 1) for name in self._named("cells")]
        own = any(name in variables for name in rows)
        if (types := self.node_types) is not None:
            own |= bool({"sample", "obs"}.intersection(variables[types].dims))
        if not own:
            return self.sample_mesh
        digests = []
        for sample, mesh in enumerate(self.sample_mesh):
            digest = hashlib.blake2b(int(mesh).to_bytes(8, "little"))
            for kind, nodes in self.cells(sample).items():
                digest.update(f"{kind} {len(nodes)}".encode() + nodes.tobytes())
            if types is not None:
                read = self._read([types], sample, slice(0, 1), None)
                digest.update(read.tobytes())
            digests.append(digest)
        return _numbers(digests)

    def triangles(self, sample: int = 0) -> Indices | None:
        """Triangles ``[m, 3]`` between a sample's points in the plane, halves of quads.

        None without any, and where an axis is periodic, which cells do not tell of.
        """
        if self.domain.dim != 2 or any(self.domain.periodic):
            return None
        triangles = [
            nodes[:, corners]
            for kind, nodes in self.cells(sample).items()
            for corners in HALVES.get(kind.rstrip("0123456789"), ())
        ]
        return np.concatenate(triangles) if triangles else None

    def read(self, sample: int, steps: slice, points: Indices | None = None) -> Floats:
        """Fields to predict of a sample, ``[n, T', C]``.

        Args:
            sample: Sample number.
            steps: Time steps to read, as numpy slices.
            points: Flat numbers of the points to keep, all of them when None.

        Returns:
            float64 where the file has digits that float32 cannot hold, else float32.

        Raises:
            UserError: The sample or a point does not exist, or the file is damaged.
        """
        return self._read(self.component_names, sample, steps, points)

    def read_all(
        self, sample: int, steps: slice, points: Indices | None = None
    ) -> Floats:
        """Fields to predict and the forcings behind them, ``[n, T', C + C_f]``.

        Arguments, result and errors as :meth:`read`: ``sample``, ``steps``, ``points``.
        """
        names = [*self.component_names, *self.forcing_names]
        return self._read(names, sample, steps, points)

    def read_static(self, sample: int, points: Indices | None = None) -> Floats:
        """Static inputs of a sample, ``[n, C_a]``."""
        return self._read(self.static_names, sample, slice(0, 1), points)[:, 0]

    def read_inputs(self, sample: int, points: Indices | None = None) -> Floats:
        """Read the inputs :attr:`input_names` of a sample, ``[n, C_a + scalars]``."""
        static = self.read_static(sample, points)
        scalars = [self.parameters[name][sample] for name in self.scalar_names]
        same = np.tile(np.array(scalars, static.dtype), (len(static), 1))
        return np.concatenate([static, same], axis=1)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the fields, float64 where float32 cannot hold their digits."""
        return self._dtype([*self.component_names, *self.forcing_names])

    def num_observed(self) -> int:
        """Number of time steps up to the last one with a value of any sample.

        Later ones hold at most forcings, which tell what is to come.
        """
        for step in range(len(self.times), 0, -1):
            snapshots = (
                self.read(s, slice(step - 1, step)) for s in range(self.num_samples)
            )
            if not all(np.isnan(values).all() for values in snapshots):
                return step
        return 0

    def fingerprint(self) -> str:
        """Digest of times, and of the ends of the first and the last sample."""
        digest = hashlib.blake2b(self.times.tobytes(), digest_size=8)
        for sample in (0, self.num_samples - 1):
            digest.update(self.coordinates(sample).tobytes())
            for step in (0, len(self.times) - 1):
                digest.update(self.read_all(sample, slice(step, step + 1)).tobytes())
            digest.update(self.read_inputs(sample).tobytes())
        return digest.hexdigest()

    def write(self, path: str | Path, *, progress: Progress = silent) -> Path:
        """Writes the fields in the format of the target's ending.

        Args:
            path: The file to make, such as ``"fields.nc"``.
            progress: Called with what is being done, how many samples are through with
                it, and of how many.

        Raises:
            UserError: It exists, no format of its ending can hold the fields, or the
                disk is full.
        """
        path = Path(path)
        writer_of(path).write(self, path, progress)
        return path

    def with_known(self, names: Iterable[str]) -> Self:
        """Return fields in which more variables are known ahead.

        Fields among the ``names`` become forcings, parameters inputs of a model.

        Raises:
            UserError: There is nothing of that name, or nothing is left to predict.
        """
        dataset = self.dataset.copy()
        for name in names:
            bare = name if name in dataset else name.removeprefix(FORCING)
            variable = dataset.get(bare, xarray.DataArray())
            role, single = variable.attrs.get("role"), variable.dims == ("sample",)
            if role == FIELD or (role == PARAMETER and single):
                variable.attrs["role"] = KNOWN
            elif role not in (KNOWN, STATIC):
                choices = [*self.component_names, *self.forcing_names, *self.parameters]
                given = f"{name}, to be known ahead, of {self.path}"
                todo = "change the name, or add it to the file"
                raise UserError(given, f"one of {', '.join(choices)}", todo)
        return replace(self, dataset=dataset)

    def with_domain(self, domain: Domain) -> Self:
        """Return the fields in another domain.

        Raises:
            UserError: It does not hold the points, see
                :func:`~nfsgeo.data.domains.check_within`.
        """
        check_within(domain, self._meshes(), self.path, axes=self.axes)
        return self._changed(with_domain(self.dataset, domain))

    def with_split(self, split: Mapping[str, ArrayLike]) -> Self:
        """Return the fields with other parts of training, validation and test.

        The ``split`` has numbers of samples by ``"train"``, ``"valid"`` and ``"test"``.

        Raises:
            UserError: A sample does not exist, or is in two parts.
        """
        part = part_variable(split, self.num_samples)
        return self._changed(self.dataset.assign(part=part))

    def with_times(self, times: ArrayLike) -> Self:
        """Return the fields at other times, ``[T]``, numbers or dates.

        Raises:
            UserError: They do not increase, or are not as many as the time steps.
        """
        time, steps = time_variable(times, "times"), len(self.times)
        if time.shape != (steps,):
            given = f"{time.size} times of {steps} time steps of {self.path}"
            raise UserError(given, "one for each", "change their number")
        return self._changed(self.dataset.assign_coords(time=time))

    def select(self, names: Sequence[str]) -> Self:
        """Return some of the fields and inputs, in this order."""
        roles = {n: v.attrs.get("role") for n, v in self.dataset.data_vars.items()}
        rest = [n for n, role in roles.items() if role in (*LAYOUT, PARAMETER)]
        return self._changed(self.dataset[[*names, *rest]])

    def check_known(self) -> None:
        """Raises a UserError if a field to predict varies in time alone."""
        along, names = {"sample", "time"}, self.component_names
        if left := [n for n in names if along.issuperset(self.dataset[n].dims)]:
            raise self._refused(
                f"{', '.join(left)} along time alone",
                "fields in space, or inputs that are known ahead",
                f"say so, convert --known {','.join(left)} or train --set data.known="
                f"[{','.join(left)}], in Python known={left}, or leave them out",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Files are closed when nothing refers to them any more."""

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
            exists = np.asarray(np.isfinite(points).all(axis=1))
            if np.isinf(points).any() or not exists.any():
                raise self._refused(f"points of sample {sample}", "finite coordinates")
            self._cached_points.clear()
            self._cached_points[sample] = points, None if exists.all() else exists
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
        variables = self.dataset.data_vars.items()
        return [str(name) for name, v in variables if v.attrs.get("role") == role]

    def _refused(
        self, given: str, expected: str, todo: str = "repair the data"
    ) -> UserError:
        return UserError(f"{self.path} with {given}", expected, todo)

    def _read(
        self, names: Sequence[str], sample: int, steps: slice, points: Indices | None
    ) -> Floats:
        """Read some variables of a sample, ``[n, T', len(names)]``."""
        with reading(self.path, f"sample {sample} to be readable"):
            num = self.num_points(sample) if points is None else len(points)
            index: Any = slice(None) if points is None else points
            exists = None if self.axes is not None else self._points(sample)[1]
            if exists is not None:
                index = np.flatnonzero(exists)[index]
            length = len(range(len(self.times))[steps])
            result = np.empty((num, length, len(names)), self._dtype(names))
            for c, name in enumerate(names):
                values = self._values(name, sample, steps).reshape(length, -1)
                placed = self.places[0] in self.dataset[name].dims
                absent: Any = [] if exists is None else ~exists * placed
                if np.isfinite(values[:, absent]).any():
                    given = f"values of {name} at points without coordinates"
                    todo = f"make them NaN there, or leave {name} out"
                    raise self._refused(given, "NaN where there is no point", todo)
                result[..., c] = values[:, index].T
        return result

    def _dtype(self, names: Sequence[str]) -> np.dtype[Any]:
        # float32 holds the numbers of categories exactly, whatever their type.
        numbers = [name for name in names if name not in self.categories]
        types = (self.dataset[name].dtype for name in numbers)
        return np.result_type(np.float32, *types)

    def _changed(self, dataset: xarray.Dataset) -> Self:
        return replace(self, dataset=dataset, reopens=False)


def _numbers(digests: Iterable[Any]) -> Indices:
    """Number digests from 0 in their order; equal ones have the same number."""
    texts = np.array([digest.hexdigest() for digest in digests])
    return pandas.factorize(texts)[0].astype(np.int64)
