"""Fields in space and time: one class over a data set of xarray, as CF lays it out.

Dimensions, coordinates and cells are those of :mod:`nfsgeo.data.layout`. Besides,

==============  ========================================================================
in the data     meaning
==============  ========================================================================
roles           attribute ``role`` of variables, see :mod:`nfsgeo.data.conventions`
``part``        along ``sample``: 0 for training, 1 for validation, 2 for test, 3 for
                none of them, or words, see :func:`nfsgeo.data.splits.part_of`
categories      inputs of whole numbers that are called ``node_type``, or that have the
                attributes ``flag_values`` and ``flag_meanings`` (CF 1.11, section 3.5)
==============  ========================================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import xarray
from numpy.typing import ArrayLike, NDArray

from nfsgeo.data.checks import not_infinite
from nfsgeo.data.conventions import (
    FIELD,
    FLAGS,
    FORCING,
    KNOWN,
    NODE_TYPE,
    PARAMETER,
    ROLES,
    SPACE,
    STATIC,
    STRUCTURE,
    Floats,
    Indices,
    field_name,
)
from nfsgeo.data.domains import check_within, with_domain
from nfsgeo.data.fingerprints import fingerprint_of, is_fingerprint_of
from nfsgeo.data.flat_axes import with_flat_axes
from nfsgeo.data.layout import Layout
from nfsgeo.data.splits import part_variable, split_in_order, split_of
from nfsgeo.data.times import time_variable
from nfsgeo.data.writers import writer_of
from nfsgeo.errors import UserError, option
from nfsgeo.geometry import Domain
from nfsgeo.progress import Progress, silent

__all__ = ["Fields"]


@dataclass(frozen=True, eq=False, repr=False)
class Fields(Layout):
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

    reopens: bool = False

    def __post_init__(self) -> None:
        allowed = {"sample", "time", *self.places}
        for name in self.dataset.data_vars:
            variable = self.dataset.variables[name]
            role, dims = variable.attrs.get("role"), set(variable.dims)
            fits = "sample" in dims if role == PARAMETER else dims <= allowed
            fits &= role in ROLES and variable.dtype.kind in "biuf"
            if role not in STRUCTURE and not fits:
                along = ", ".join(map(str, variable.dims))
                given = f"{name} of type {variable.dtype} along {along}, role {role}"
                expected = f"real numbers along {', '.join(sorted(allowed))} and a "
                raise self._refused(given, f"{expected}role of {', '.join(ROLES)}")
        axes = zip(SPACE, self.axes or (), strict=False)
        for name, values in [("time", self.times), *axes]:
            finite = values.ndim == 1 and values.size and np.isfinite(values).all()
            if not (finite and (np.diff(values) > 0).all()):
                given = f"{name} {'that falls' if finite else 'not finite'}"
                expected = "a finite number for each step along it, which increase"
                todo = "repair it, or sort it and the fields with it, as xarray's "
                todo += f"dataset.sortby({name!r}) does"
                if finite and len(np.unique(values)) < values.size:
                    given = f"{name} with several steps at one {name}"
                    todo = "leave all but one of them out, as xarray's dataset."
                    todo += f"drop_duplicates({name!r}) does, or give each its own"
                raise self._refused(given, expected, todo)
        if not self.component_names:
            inputs = ", ".join([*self.forcing_names, *self.static_names])
            given = "no field to predict" + f" but the inputs {inputs}" * bool(inputs)
            todo = "rename it if it is one, or leave it out of what is known ahead"
            raise self._refused(given, "a field to predict", todo)

    def __repr__(self) -> str:
        sizes = [self.num_points(i) for i in (0, self.num_samples - 1)]
        if self._ends is not None:  # else reading all coordinates would take long
            sizes = np.diff(self._ends).tolist()
        points = "points=" + " to ".join(map(str, sorted({min(sizes), max(sizes)})))
        if self.shape is not None:
            points = f"grid={self.shape}"
        return (
            f"{type(self).__name__}({str(self.path)!r}, samples={self.num_samples}, "
            f"time_steps={len(self.times)}, components={self.component_names}, "
            f"{points})"
        )

    def __len__(self) -> int:
        return self.num_samples

    def __getitem__(self, samples: Any) -> Self:
        """Return the fields of some samples, in their order.

        Args:
            samples: A number, a slice, or numbers or a mask of samples, as numpy takes
                them.

        Raises:
            IndexError: There is no such sample, or none is left.
        """
        numbers = np.atleast_1d(np.arange(self.num_samples)[samples])
        if not numbers.size:
            raise IndexError(f"no sample of {self.path} is left")
        if "sample" not in self.dataset.sizes:
            if numbers.tolist() != [0]:
                raise IndexError(f"{self.path} has one sample")
            return self
        return self.with_dataset(self.dataset.isel(self.entries_of(numbers)))

    @cached_property
    def component_names(self) -> list[str]:
        """Names of the ``C`` components of the fields to predict."""
        return self.names_of(FIELD)

    @cached_property
    def forcing_names(self) -> list[str]:
        """Names of the ``C_f`` fields that are known ahead of time, such as the height
        of the sun: inputs of a model at all time steps of a window.
        """
        return [n for n in self.names_of(KNOWN) if self.dataset[n].dims != ("sample",)]

    @cached_property
    def scalar_names(self) -> list[str]:
        """Names of the parameters of each sample that are inputs of a model."""
        return [n for n in self.names_of(KNOWN) if self.dataset[n].dims == ("sample",)]

    @cached_property
    def static_names(self) -> list[str]:
        """Names of the ``C_a`` components of the static input."""
        return self.names_of(STATIC)

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

    @cached_property
    def sample_geometry(self) -> Indices:
        """Number of the mesh of each sample with its cells, its graph and node types;
        equal numbers mean that all of these are equal.
        """
        return self.same_geometry(self.node_types)

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
        names = [*self.names_of(PARAMETER), *self.scalar_names]
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
        return split_of(self.dataset["part"].variable)

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
        return self.read_values(self.component_names, sample, steps, points)

    def read_all(
        self, sample: int, steps: slice, points: Indices | None = None
    ) -> Floats:
        """Fields to predict and the forcings behind them, ``[n, T', C + C_f]``.

        Arguments, result and errors as :meth:`read`: ``sample``, ``steps``, ``points``;
        also an error of infinite values.
        """
        names = [*self.component_names, *self.forcing_names]
        values = self.read_values(names, sample, steps, points)
        return not_infinite(values, f"sample {sample} of {self.path}", names)

    def read_static(self, sample: int, points: Indices | None = None) -> Floats:
        """Static inputs of a sample, ``[n, C_a]``."""
        return self.read_values(self.static_names, sample, points=points)[:, 0]

    def read_inputs(self, sample: int, points: Indices | None = None) -> Floats:
        """Read the inputs :attr:`input_names` of a sample, ``[n, C_a + scalars]``."""
        static = self.read_static(sample, points)
        scalars = [self.parameters[name][sample] for name in self.scalar_names]
        same = np.tile(np.array(scalars, static.dtype), (len(static), 1))
        inputs = np.concatenate([static, same], axis=1)
        return not_infinite(inputs, f"sample {sample} of {self.path}", self.input_names)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the fields, float64 where float32 cannot hold their digits."""
        return self._precision([*self.component_names, *self.forcing_names])

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
        """Return a digest of the source, by which a run recognises its data."""
        return fingerprint_of(self)

    def holds(self, fingerprint: str) -> bool:
        """Return whether these are the data of a fingerprint, be it an earlier one."""
        return is_fingerprint_of(self, fingerprint)

    def write(self, path: str | Path, *, progress: Progress = silent) -> Path:
        """Write the fields in the format of the target's ending.

        Args:
            path: The file to make, such as ``"fields.nc"``.
            progress: Called with what is being done, how many samples are through with
                it, and of how many.

        Raises:
            UserError: It exists, no format of its ending can hold the fields, or the
                disk is full.
        """
        path, writer = Path(path), writer_of(Path(path))
        fields = self if writer.keeps_attributes else with_flat_axes(self)
        writer.write(fields, path, progress)
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
            bare = bare if bare in dataset else field_name(bare)[0]
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
        check_within(domain, self.meshes(), self.path, axes=self.axes)
        return self.with_dataset(with_domain(self.dataset, domain))

    def with_split(self, split: Mapping[str, ArrayLike]) -> Self:
        """Return the fields with other parts of training, validation and test.

        The ``split`` has numbers of samples by ``"train"``, ``"valid"`` and ``"test"``.

        Raises:
            UserError: A sample does not exist, or is in two parts.
        """
        part = part_variable(split, self.num_samples)
        return self.with_dataset(self.dataset.assign(part=part))

    def with_times(self, times: ArrayLike) -> Self:
        """Return the fields at other times, ``[T]``, numbers or dates.

        Raises:
            UserError: They do not increase, or are not as many as the time steps.
        """
        time, steps = time_variable(times, "times"), len(self.times)
        if time.shape != (steps,):
            given = f"{time.size} times of {steps} time steps of {self.path}"
            raise UserError(given, "one for each", "change their number")
        return self.with_dataset(self.dataset.assign_coords(time=time))

    def select(self, names: Sequence[str]) -> Self:
        """Return some of the fields and inputs, in this order."""
        roles = {n: v.attrs.get("role") for n, v in self.dataset.data_vars.items()}
        rest = [n for n, role in roles.items() if role in (*STRUCTURE, PARAMETER)]
        return self.with_dataset(self.dataset[[*names, *rest]])

    def check_known(self) -> None:
        """Raise a UserError if a field to predict varies in time alone."""
        along, components = {"sample", "time"}, self.component_names
        if left := [n for n in components if along.issuperset(self.dataset[n].dims)]:
            names = ",".join(left)
            raise self._refused(
                f"{', '.join(left)} along time alone",
                "fields in space, or inputs that are known ahead",
                f"say so, {option('known', names)} or in training "
                f"{option('data.known', f'[{names}]')}, or leave them out",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Files are closed when nothing refers to them any more."""

    def with_dataset(self, dataset: xarray.Dataset) -> Self:
        """Return fields of another data set, which the file does not hold."""
        return replace(self, dataset=dataset, reopens=False)

    def _precision(self, names: Sequence[str]) -> np.dtype[Any]:
        # float32 holds the numbers of categories exactly, whatever their type.
        return super()._precision([n for n in names if n not in self.categories])
