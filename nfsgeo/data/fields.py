"""Fields in space and time: one class over a data set of xarray."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import xarray
from numpy.typing import ArrayLike

from nfsgeo.data.checks import reading
from nfsgeo.data.conventions import (
    FIELD,
    FORCING,
    KNOWN,
    LAYOUT,
    PARAMETER,
    STATIC,
    STATION,
    Doubles,
    Floats,
    Indices,
)
from nfsgeo.data.domains import check_within, domain_of, with_domain
from nfsgeo.data.layout import Layout
from nfsgeo.data.splits import part_variable
from nfsgeo.data.times import time_variable
from nfsgeo.data.writers import writer_of
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.progress import Progress, silent

__all__ = ["Fields"]

HALVES = {"triangle": [[0, 1, 2]], "quad": [[0, 1, 2], [0, 2, 3]]}


@dataclass(frozen=True, eq=False, repr=False)
class Fields(Layout):
    """Samples of fields in space and time, on a grid or at points.

    Values are read when they are asked for, sample by sample. Nothing changes an
    object; the methods ``with_...`` return another one. Arguments and errors are those
    of :class:`~nfsgeo.data.layout.Layout`.
    """

    @cached_property
    def domain(self) -> Domain:
        """The box that holds the points; drawn around them where the file has none."""
        if (known := domain_of(self.dataset)) is not None:
            return known
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
        ends = np.array([(each.min(0), each.max(0)) for each in self._meshes()])
        return np.stack([ends[:, 0].min(0), ends[:, 1].max(0)])

    def stations(self, sample: int = 0) -> list[str]:
        """Names of the points of a sample, in their order; none if there are none."""
        if STATION not in self.dataset.coords or self.axes is not None:
            return []
        names, (_, there) = self.dataset[STATION].values, self._points(sample)
        names = names[self.rows(sample) or slice(None)]
        return [str(name) for name in (names if there is None else names[there])]

    def cells(self, sample: int = 0) -> dict[str, Indices]:
        """Cells between a sample's points by type, each ``[cells, nodes]``."""
        found = {}
        for name in self._named("cells"):
            kind, variable = name.removeprefix("cells_"), self.dataset[name].variable
            if (sizes := self.dataset.get(f"row_size_{kind}")) is not None:
                ends = np.cumsum([0, *sizes.values])
                variable = variable[int(ends[sample]) : int(ends[sample + 1])]
            if len(variable):
                found[kind] = variable.values.astype(np.int64)
        return found

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
        known: dict[bytes, int] = {}
        found = np.zeros(self.num_samples, np.int64)
        for sample, mesh in enumerate(self.sample_mesh):
            digest = hashlib.blake2b(int(mesh).to_bytes(8, "little"))
            for kind, nodes in self.cells(sample).items():
                digest.update(f"{kind} {len(nodes)}".encode() + nodes.tobytes())
            if types is not None:
                read = self._read([types], sample, slice(0, 1), None)
                digest.update(read.tobytes())
            found[sample] = known.setdefault(digest.digest(), len(known))
        return found

    def triangles(self, sample: int = 0) -> Indices | None:
        """Triangles ``[m, 3]`` between a sample's points in the plane, halves of quads.

        None without any, and where an axis is periodic, which cells do not tell of.
        """
        if self.domain.dim != 2 or any(self.domain.periodic):
            return None
        found = [
            nodes[:, corners]
            for kind, nodes in self.cells(sample).items()
            for corners in HALVES.get(kind.rstrip("0123456789"), ())
        ]
        return np.concatenate(found) if found else None

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
        """What :attr:`input_names` names, ``[n, C_a + scalars]``."""
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
            each = (
                self.read(s, slice(step - 1, step)) for s in range(self.num_samples)
            )
            if not all(np.isnan(values).all() for values in each):
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
        """With more ``names`` known ahead: of fields, which become forcings, and of
        parameters, which become inputs of a model.

        Raises:
            UserError: There is nothing of that name, or nothing is left to predict.
        """
        dataset = self.dataset.copy()
        for name in names:
            bare = name if name in dataset else name.removeprefix(FORCING)
            each = dataset.get(bare, xarray.DataArray())
            role, single = each.attrs.get("role"), each.dims == ("sample",)
            if role == FIELD or (role == PARAMETER and single):
                each.attrs["role"] = KNOWN
            elif role not in (KNOWN, STATIC):
                there = [*self.component_names, *self.forcing_names, *self.parameters]
                given = f"{name}, to be known ahead, of {self.path}"
                todo = "change the name, or add it to the file"
                raise UserError(given, f"one of {', '.join(there)}", todo)
        return replace(self, dataset=dataset)

    def with_domain(self, domain: Domain) -> Self:
        """In another domain.

        Raises:
            UserError: It does not hold the points, see
                :func:`~nfsgeo.data.domains.check_within`.
        """
        check_within(domain, self._meshes(), self.path, axes=self.axes)
        return self._changed(with_domain(self.dataset, domain))

    def with_split(self, split: Mapping[str, ArrayLike]) -> Self:
        """With other samples in ``"train"``, ``"valid"`` and ``"test"``, the numbers in
        the ``split``.

        Raises:
            UserError: A sample does not exist, or is in two parts.
        """
        part = part_variable(split, self.num_samples)
        return self._changed(self.dataset.assign(part=part))

    def with_times(self, times: ArrayLike) -> Self:
        """At other times, ``[T]``, numbers or dates.

        Raises:
            UserError: They do not increase, or are not as many as the time steps.
        """
        found = time_variable(times, "times")
        if found.shape != self.times.shape:
            given = f"{found.size} times of {len(self.times)} time steps of {self.path}"
            raise UserError(given, "one for each", "change their number")
        return self._changed(self.dataset.assign_coords(time=found))

    def select(self, names: Sequence[str]) -> Self:
        """Some of the fields and inputs, in this order."""
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

    def _read(
        self, names: Sequence[str], sample: int, steps: slice, points: Indices | None
    ) -> Floats:
        """Some variables of a sample, ``[n, T', len(names)]``."""
        with reading(self.path, f"sample {sample} to be readable"):
            num = self.num_points(sample) if points is None else len(points)
            index: Any = slice(None) if points is None else points
            there = None if self.axes is not None else self._points(sample)[1]
            if there is not None:
                index = np.flatnonzero(there)[index]
            length = len(range(len(self.times))[steps])
            found = np.empty((num, length, len(names)), self._dtype(names))
            for c, name in enumerate(names):
                values = self._values(name, sample, steps).reshape(length, -1)
                placed = self.places[0] in self.dataset[name].dims
                if there is not None and np.isfinite(values[:, ~there * placed]).any():
                    given = f"values of {name} at points without coordinates"
                    todo = f"make them NaN there, or leave {name} out"
                    raise self._refused(given, "NaN where there is no point", todo)
                found[..., c] = values[:, index].T
        return found

    def _dtype(self, names: Sequence[str]) -> np.dtype[Any]:
        # float32 holds the numbers of categories exactly, whatever their type.
        numbers = [name for name in names if name not in self.categories]
        types = (self.dataset[name].dtype for name in numbers)
        return np.result_type(np.float32, *types)

    def _changed(self, dataset: xarray.Dataset) -> Self:
        return replace(self, dataset=dataset, reopens=False)
