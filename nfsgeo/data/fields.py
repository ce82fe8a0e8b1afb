"""Fields in space and time: one class over a data set of xarray, as CF lays it out.

=============  =========================================================================
in the data    meaning
=============  =========================================================================
samples, time  dimensions ``sample`` and ``time`` with the coordinate ``time``; the
               variable ``part(sample)`` is 0, 1 or 2 for training, validation or test
grid           dimensions ``x``, ``y``, ``z`` with coordinates of these names
points         dimension ``point`` and coordinates ``x(point)``, or ``x(sample, point)``
               where each sample has points of its own
ragged         a mesh for each sample: dimension ``obs``, ``row_size(sample)`` points of
               each sample, one after the other, ``x(obs)`` (CF 1.11, section 9.3.3)
domain         attributes ``lower``, ``upper`` and ``periodic`` of each coordinate, see
               :mod:`nfsgeo.data.domains`
roles          attribute ``role`` of each variable, one of :data:`ROLES`
=============  =========================================================================

A variable that does not vary along a dimension is without it. NaN is a missing value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
import xarray
from numpy.typing import ArrayLike, NDArray

from nfsgeo.data.domains import check_within, domain_of, with_domain
from nfsgeo.data.lazy import part
from nfsgeo.data.splits import SPLITS, check_split, split_in_order
from nfsgeo.data.times import time_variable
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["ROLES", "SPACE", "Fields", "reading"]

Doubles = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]

SPACE = "xyz"  # names of the axes
FIELD, KNOWN, STATIC, INITIAL, PARAMETER = ROLES = (
    "field",  # to be predicted
    "known",  # in time: a forcing, known ahead; of samples alone: an input of a model
    "static",  # an input that does not change in time
    "initial condition",  # kept with the data, no input
    "parameter",  # of samples alone, kept with the data
)
# Roles of variables that describe the mesh, the region and the parts of the data.
LAYOUT = ("cells", "facets", "rows", "part")
FORCING = "forcing_"  # how names of forcings begin in formats that hold no roles
STEPS = 64  # read at once in search of the last one that is observed


@contextmanager
def reading(path: Path, what: str, todo: str = "check or replace it") -> Iterator[None]:
    """Turns whatever a parser raises on a damaged file into one line.

    Args:
        path: The file being read.
        what: What it should hold, for the message.
        todo: What the user can do.

    Raises:
        UserError: In place of any other exception raised inside the block. Parsers
            of foreign formats raise nearly every built-in exception on broken input.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = lines[0][:200] if lines else type(error).__name__
        raise UserError(f"{path} ({reason})", what, todo) from error


@dataclass(frozen=True, eq=False, repr=False)
class Fields:
    """Samples of fields in space and time, on a grid or at points.

    Values are read when they are asked for, sample by sample. Nothing changes an
    object; the methods ``with_...`` return another one.

    Args:
        dataset: Laid out as :mod:`nfsgeo.data.fields` says.
        path: The file that the fields come from, for messages.
        reopens: Whether opening ``path`` gives the same, but for what is known ahead.

    Raises:
        UserError: The data set is not laid out like this.
    """

    dataset: xarray.Dataset
    path: Path
    reopens: bool = False

    def __post_init__(self) -> None:
        for name, variable in self.dataset.data_vars.items():
            role, dims = variable.attrs.get("role"), set(variable.dims)
            allowed = {"sample", "time", *self.places}
            if role in LAYOUT:
                continue
            fits = "sample" in dims if role == PARAMETER else dims <= allowed
            if role not in ROLES or not fits or variable.dtype.kind not in "biuf":
                along = ", ".join(map(str, variable.dims))
                given = f"{name} of type {variable.dtype} along {along}, role {role}"
                expected = f"real numbers along {', '.join(sorted(allowed))} and a "
                raise self._refused(given, f"{expected}role of {', '.join(ROLES)}")
        axes = zip(SPACE, self.axes or (), strict=False)
        for name, values in [("time", self.times), *axes]:
            if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
                given = f"{name} of shape {values.shape}"
                raise self._refused(given, "a finite number for each step along it")
            if not np.all(np.diff(values) > 0):
                given = f"{name} from {values[0]:g} to {values[-1]:g}"
                todo = "sort it and the fields with it"
                raise self._refused(given, "values that increase along it", todo)
        if not self.component_names:
            known = ", ".join([*self.forcing_names, *self.static_names])
            raise self._refused(
                "no field to predict" + f" but the inputs {known}" * bool(known),
                "a field to predict",
                "rename it if it is one, or leave it out of what is known ahead",
            )

    # What there is.

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

    @property
    def times_are_known(self) -> bool:
        """Whether the file gives the times, or has a single time step."""
        return "time" in self.dataset.variables or len(self.times) == 1

    @cached_property
    def component_names(self) -> list[str]:
        """One name for each of the ``C`` components of the fields to predict."""
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
        """One name for each of the ``C_a`` components of the static input."""
        return self._named(STATIC)

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs that do not change in time: static ones, then scalars."""
        return [*self.static_names, *self.scalar_names]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the fields, float64 where float32 cannot hold their digits."""
        return self._dtype([*self.component_names, *self.forcing_names])

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
        found = {}
        for name in (*names, "time", *self.space):
            about = self.dataset[name].attrs if name in self.dataset.variables else {}
            unit = about.get("units", "")
            if name in self.space and self.dataset.attrs.get("sphere"):
                unit = "°"
            if isinstance(unit, str) and unit not in ("", "1"):
                found[name] = unit
        return found

    @property
    def time_unit(self) -> str:
        """Unit of the times, ``""`` where the file tells none."""
        return self.units.get("time", "")

    @property
    def axis_units(self) -> list[str]:
        """Units of the axes x, y and z, ``""`` where the file tells none."""
        return [self.units.get(axis, "") for axis in self.space]

    # Where it is.

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
    def domain(self) -> Domain:
        """The box that holds the points; drawn around them where the file has none."""
        known = domain_of(self.dataset)
        if known is not None:
            return known
        lower, upper = self._ends_of_points
        if self.axes is None or (lower == upper).any():
            return Domain.bounding(np.stack([lower, upper]))
        return Domain(tuple(lower), tuple(upper), (False,) * len(lower))

    @cached_property
    def _ends_of_points(self) -> tuple[Doubles, Doubles]:
        """The lowest and the highest coordinate of the points of all samples."""
        lows, highs = zip(*((p.min(0), p.max(0)) for p in self._meshes()), strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    @property
    def domain_is_known(self) -> bool:
        """Whether the file gives the domain; else it is drawn around the points."""
        return domain_of(self.dataset) is not None

    @cached_property
    def longitude(self) -> float | None:
        """Degrees that the first axis spans where it is a longitude of more than half
        of the globe, and the file does not tell whether it closes; else None.
        """
        about = self.dataset[self.space[0]].attrs
        if self.domain_is_known or about.get("standard_name") != "longitude":
            return None
        lower, upper = self._ends_of_points
        degrees = float(upper[0] - lower[0])
        return degrees if degrees > 180.0 else None

    @cached_property
    def sample_mesh(self) -> Indices:
        """Number of the mesh of each sample; equal numbers mean equal points."""
        if not self._own_meshes:
            return np.zeros(self.num_samples, np.int64)
        known: dict[bytes, int] = {}
        points = (self.coordinates(each).tobytes() for each in range(self.num_samples))
        digests = (hashlib.blake2b(each).digest() for each in points)
        return np.array([known.setdefault(d, len(known)) for d in digests], np.int64)

    def mesh_id(self, sample: int) -> int:
        """Number of the mesh of a sample; equal numbers mean equal points."""
        self._check_sample(sample)
        return int(self.sample_mesh[sample])

    def coordinates(self, sample: int = 0) -> Doubles:
        """Points of a sample, float64 ``[n, d]``, a grid in row-major order."""
        self._check_sample(sample)
        if self.axes is not None:
            grids = np.meshgrid(*self.axes, indexing="ij")
            return np.stack([grid.ravel() for grid in grids], axis=-1)
        points, there = self._points(sample)
        return points if there is None else points[there]

    def num_points(self, sample: int = 0) -> int:
        """Number of points of a sample."""
        self._check_sample(sample)
        if self.shape is not None:
            return prod(self.shape)
        if self._ends is not None:
            return int(self._ends[sample + 1] - self._ends[sample])
        return len(self.coordinates(sample))

    def cells(self, sample: int = 0) -> dict[str, Indices]:
        """Cells between a sample's points by type, each ``[cells, nodes]``."""
        self._check_sample(sample)
        found = {}
        for name in self._named("cells"):
            kind, variable = name.removeprefix("cells_"), self.dataset[name].variable
            sizes = self.dataset.get(f"row_size_{kind}")
            if sizes is not None:
                ends = np.concatenate([[0], np.cumsum(sizes.values)])
                variable = variable[int(ends[sample]) : int(ends[sample + 1])]
            if len(variable):
                found[kind] = variable.values.astype(np.int64)
        return found

    def triangles(self, sample: int = 0) -> Indices | None:
        """Triangles ``[m, 3]`` between a sample's points in the plane, halves of quads.

        None without any, and where an axis is periodic, which cells do not tell of.
        """
        if self.domain.dim != 2 or any(self.domain.periodic):
            return None
        halves = {"triangle": [[0, 1, 2]], "quad": [[0, 1, 2], [0, 2, 3]]}
        found = [
            nodes[:, corners]
            for kind, nodes in self.cells(sample).items()
            for corners in halves.get(kind.rstrip("0123456789"), ())
        ]
        return np.concatenate(found) if found else None

    # Its values.

    def read(self, sample: int, steps: slice, points: Indices | None = None) -> Floats:
        """Fields to predict of a sample, ``[n, T', C]``.

        Args:
            sample: Sample number.
            steps: Time steps to read; they must exist.
            points: Flat numbers of the points to keep, all of them when None.

        Returns:
            float64 where the file has digits that float32 cannot hold, else float32.

        Raises:
            UserError: The sample or a time step does not exist, or the file is damaged.
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
        """What :attr:`input_names` names, ``[n, C_a + scalars]``."""
        static = self.read_static(sample, points)
        if not self.scalar_names:
            return static
        scalars = [float(self.parameters[name][sample]) for name in self.scalar_names]
        same = np.broadcast_to(scalars, (len(static), len(scalars)))
        return np.concatenate([static, same.astype(static.dtype)], axis=1)

    def num_observed(self) -> int:
        """Number of time steps up to the last one with a value of any sample.

        Later ones hold at most forcings, which tell what is to come.
        """
        return self._last_observed + 1

    def fingerprint(self) -> str:
        """Digest of times, and of the ends of the first and the last sample."""
        digest = hashlib.blake2b(self.times.tobytes(), digest_size=8)
        for sample in (0, self.num_samples - 1):
            digest.update(self.coordinates(sample).tobytes())
            for step in (0, len(self.times) - 1):
                digest.update(self.read_all(sample, slice(step, step + 1)).tobytes())
            digest.update(self.read_inputs(sample).tobytes())
        return digest.hexdigest()

    def write(self, path: str | Path, **options: Any) -> Path:
        """Writes the fields in the format of the target's ending.

        Args:
            path: The file to make, such as ``"fields.nc"``.
            options: ``progress``, see :func:`nfsgeo.data.write`.
        """
        from nfsgeo.data.opening import write

        return write(self, path, **options)

    # The same but for one thing.

    def with_known(self, names: Iterable[str]) -> Self:
        """With more fields and parameters that are known ahead.

        Args:
            names: Of fields, which become forcings, and of parameters, which become
                inputs of a model. What is an input already stays one.

        Raises:
            UserError: There is nothing of that name, or nothing is left to predict.
        """
        dataset = self.dataset.copy()
        for name in names:
            if name not in dataset:
                name = name.removeprefix(FORCING)
            role = dataset[name].attrs.get("role") if name in dataset else None
            single = name in dataset and dataset[name].dims == ("sample",)
            if role == FIELD or (role == PARAMETER and single):
                dataset[name].attrs["role"] = KNOWN
            elif role not in (KNOWN, STATIC):
                there = [*self.component_names, *self.forcing_names, *self.parameters]
                raise UserError(
                    f"{name}, to be known ahead, of {self.path}",
                    f"one of {', '.join(there)}",
                    "change the name, or add it to the file",
                )
        return replace(self, dataset=dataset)

    def with_domain(self, domain: Domain) -> Self:
        """In another domain.

        Raises:
            UserError: The domain has another number of axes, or does not hold the
                points. Along periodic axes these may be up to one period outside, as
                long as they span no more than a period.
        """
        check_within(domain, self._meshes(), self.path, axes=self.axes)
        return self._changed(with_domain(self.dataset, domain))

    def with_split(self, split: Mapping[str, ArrayLike]) -> Self:
        """With other training, validation and test samples.

        Args:
            split: Sample numbers of ``"train"``, ``"valid"`` and ``"test"``.

        Raises:
            UserError: The sample numbers are none of the file, or a sample is in two
                parts.
        """
        num = self.num_samples
        try:
            parts = {name: np.asarray(each) for name, each in split.items()}
            check_split(parts, num)
        except (AttributeError, TypeError, ValueError) as error:
            raise UserError(
                f"a split of {num} samples that is none ({error})",
                "sample numbers of train, valid and test, each number at most once",
                'give split={"train": [...], "valid": [...], "test": [...]}',
            ) from error
        where = np.full(num, len(SPLITS), np.int8)
        for i, name in enumerate(SPLITS):
            where[parts[name].astype(np.int64)] = i
        about = {"flag_values": np.arange(4, dtype=np.int8), "role": "part"}
        about["flag_meanings"] = " ".join([*SPLITS, "unused"])
        return self._changed(self.dataset.assign(part=("sample", where, about)))

    def with_times(self, times: ArrayLike) -> Self:
        """At other times, ``[T]``, numbers or dates.

        Raises:
            UserError: They do not increase, or are not as many as the time steps.
        """
        found = time_variable(times, "times")
        if found.shape != self.times.shape or not np.all(np.diff(found) > 0):
            raise UserError(
                f"times {found.values.tolist() if found.size < 9 else found.shape}",
                f"an increasing time for each of the {len(self.times)} time steps of "
                f"{self.path}",
                "change their number or order",
            )
        return self._changed(self.dataset.assign_coords(time=found))

    def select(
        self,
        components: Sequence[str],
        static: Sequence[str],
        forcings: Sequence[str],
        scalars: Sequence[str],
    ) -> Self:
        """Some of the fields and inputs, in this order; all else is left out.

        Args:
            components: Names of the fields to predict.
            static: Names of the static inputs.
            forcings: Names of the fields that are known ahead.
            scalars: Names of the parameters that are inputs.
        """
        chosen = [*components, *static, *forcings, *scalars]
        rest = [
            name
            for name, variable in self.dataset.data_vars.items()
            if variable.attrs.get("role") in (*LAYOUT, PARAMETER)
        ]
        kept = self.dataset[[*chosen, *rest]].copy()
        for name in (*forcings, *scalars):
            kept[name].attrs["role"] = KNOWN
        return self._changed(kept)

    def check_known(self) -> None:
        """Makes sure that what varies in time alone is known ahead, and that there is a
        time along which forcings are.

        Raises:
            UserError: It is not, or there is a single time step.
        """
        along = {"sample", "time"}
        names = self.component_names
        if left := [n for n in names if along.issuperset(self.dataset[n].dims)]:
            raise self._refused(
                f"{', '.join(left)} along time alone",
                "fields in space, or inputs that are known ahead",
                f"say so, convert --known {','.join(left)} or train --set data.known="
                f"[{','.join(left)}], in Python known={left}, or leave them out",
            )
        if (known := self.forcing_names) and len(self.times) == 1:
            raise self._refused(
                f"one time step and {', '.join(known)} known ahead",
                "time, or the inputs of a problem without time as static inputs",
                f"name them {', '.join('a_' + name for name in known)} in the source",
            )

    def close(self) -> None:
        """Releases the file; reading afterwards is an error."""
        self.dataset.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        points = self.shape if self.shape is not None else "points"
        return (
            f"{type(self).__name__}({str(self.path)!r}, samples={self.num_samples}, "
            f"time_steps={len(self.times)}, components={self.components}, {points})"
        )

    # How it is read.

    @cached_property
    def _own_meshes(self) -> bool:
        """Whether each sample has coordinates of its own."""
        return "sample" in self.dataset[self.space[0]].dims or self._ends is not None

    @cached_property
    def _ends(self) -> Indices | None:
        """Where each sample begins and ends along ``obs``; None for other layouts."""
        if "row_size" not in self.dataset:
            return None
        sizes = self.dataset["row_size"].values.astype(np.int64)
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def _cached_points(self) -> dict[int, tuple[Doubles, NDArray[np.bool_] | None]]:
        """Points of the last samples that were asked for, all samples' where shared."""
        return {}

    def _points(self, sample: int) -> tuple[Doubles, NDArray[np.bool_] | None]:
        """Points of a cloud, and which of them exist; None for all of them."""
        sample = sample if self._own_meshes else 0
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
        """The points of every sample, once where samples share them."""
        if self.axes is not None:
            yield np.stack([[axis[0], axis[-1]] for axis in self.axes], axis=1)
            return
        for sample in range(self.num_samples if self._own_meshes else 1):
            yield self.coordinates(sample)

    def _read(
        self, names: Sequence[str], sample: int, steps: slice, points: Indices | None
    ) -> Floats:
        """Some variables of a sample, ``[n, T', len(names)]``."""
        self._check_sample(sample)
        steps = self._check_steps(steps)
        length = len(range(*steps.indices(len(self.times))))
        there = None if self.axes is not None else self._points(sample)[1]
        num = self.num_points(sample)
        shape = (num if points is None else len(points), length, len(names))
        found = np.empty(shape, self._dtype(names))
        with reading(self.path, f"sample {sample} to be readable"):
            for c, name in enumerate(names):
                values = self._values(name, sample, steps)
                values = values.reshape(len(values), -1)
                if there is not None:
                    placed = self.places[0] in self.dataset[name].dims
                    if placed and np.isfinite(values[:, ~there]).any():
                        raise ValueError("values at points without coordinates")
                    values = values[:, there]
                found[..., c] = (values if points is None else values[:, points]).T
        return found

    def _values(self, name: str, sample: int, steps: slice) -> NDArray[Any]:
        """A variable of a sample, ``[T', *S]``, repeated where it does not vary."""
        sizes = {"sample": self.num_samples, "time": len(self.times)}
        sizes |= {dim: self.dataset.sizes[dim] for dim in self.places}
        key: list[int | slice] = [sample, steps, *[slice(None)] * len(self.places)]
        if self._ends is not None:
            key[2] = slice(*map(int, self._ends[sample : sample + 2]))
        return part(self.dataset[name].variable, sizes, tuple(key))

    def _dtype(self, names: Sequence[str]) -> np.dtype[Any]:
        kinds = [self.dataset[name].dtype for name in names]
        return np.result_type(np.float32, *kinds)

    @cached_property
    def _last_observed(self) -> int:
        """Number of the last time step with a value of any sample, -1 without any."""
        for end in range(len(self.times), 0, -STEPS):
            last, some = -1, slice(max(0, end - STEPS), end)
            for sample in range(self.num_samples):
                there = ~np.isnan(self.read(sample, some)).all(axis=(0, 2))
                last = max(last, *np.flatnonzero(there), -1)
                if some.start + last + 1 == len(self.times):
                    break
            if last >= 0:
                return some.start + int(last)
        return -1

    def _named(self, role: str) -> list[str]:
        each = self.dataset.data_vars.items()
        return [str(name) for name, v in each if v.attrs.get("role") == role]

    def _changed(self, dataset: xarray.Dataset) -> Self:
        return replace(self, dataset=dataset, reopens=False)

    def _refused(
        self, given: str, expected: str, todo: str = "repair the data"
    ) -> UserError:
        return UserError(f"{self.path} with {given}", expected, todo)

    def _check_sample(self, sample: int) -> None:
        if not 0 <= sample < self.num_samples:
            raise UserError(
                f"sample {sample} of {self.path}",
                f"a number from 0 to {self.num_samples - 1}",
                "choose a sample that the file holds",
            )

    def _check_steps(self, steps: slice) -> slice:
        """The slice with its ends filled in, never past the last time step."""
        total = len(self.times)
        start, stop, step = steps.start or 0, steps.stop, steps.step or 1
        stop = total if stop is None else stop
        if not (0 <= start < stop <= total and step > 0):
            raise UserError(
                f"time steps {start}:{stop} of {self.path}",
                f"a range within its {total} time steps",
                "ask for fewer time steps or use a longer file",
            )
        return slice(start, stop, step)
