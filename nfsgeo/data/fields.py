"""Fields in space and time: one class over a data set of xarray."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import xarray
from numpy.typing import ArrayLike

from nfsgeo.data.domains import check_within, with_domain
from nfsgeo.data.layout import (
    FIELD,
    INITIAL,
    KNOWN,
    LAYOUT,
    PARAMETER,
    ROLES,
    SPACE,
    STATIC,
    STATION,
    Doubles,
    Floats,
    Indices,
    reading,
)
from nfsgeo.data.places import Places
from nfsgeo.data.splits import part_variable
from nfsgeo.data.times import time_variable
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = [
    "FIELD",
    "FORCING",
    "INITIAL",
    "KNOWN",
    "LAYOUT",
    "PARAMETER",
    "ROLES",
    "SPACE",
    "STATIC",
    "STATION",
    "Doubles",
    "Fields",
    "Floats",
    "Indices",
    "reading",
]

FORCING = "forcing_"  # how names of forcings begin in formats that hold no roles


@dataclass(frozen=True, eq=False, repr=False)
class Fields(Places):
    """Samples of fields in space and time, on a grid or at points.

    Values are read when they are asked for, sample by sample. Nothing changes an
    object; the methods ``with_...`` return another one. What they hold and where tell
    :class:`~nfsgeo.data.layout.Layout`, whose are the arguments and errors, and
    :class:`~nfsgeo.data.places.Places`.
    """

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
            for sample in range(self.num_samples):
                if not np.isnan(self.read(sample, slice(step - 1, step))).all():
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

    def write(self, path: str | Path, **options: Any) -> Path:
        """Writes the fields in the format of the target's ending.

        Args:
            path: The file to make, such as ``"fields.nc"``.
            options: ``progress``, see :func:`nfsgeo.data.write`.
        """
        from nfsgeo.data.opening import write

        return write(self, path, **options)

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
        """Some of the fields and inputs, in this order; all other ones are left out."""
        roles = {n: v.attrs.get("role") for n, v in self.dataset.data_vars.items()}
        rest = [n for n, role in roles.items() if role in (*LAYOUT, PARAMETER)]
        return self._changed(self.dataset[[*names, *rest]])

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

    def _read(
        self, names: Sequence[str], sample: int, steps: slice, points: Indices | None
    ) -> Floats:
        """Some variables of a sample, ``[n, T', len(names)]``."""
        with reading(self.path, f"sample {sample} to be readable"):
            there = None if self.axes is not None else self._points(sample)[1]
            num = self.num_points(sample) if points is None else len(points)
            length = len(range(len(self.times))[steps])
            found = np.empty((num, length, len(names)), self._dtype(names))
            for c, name in enumerate(names):
                values = self._values(name, sample, steps).reshape(length, -1)
                if there is not None:
                    placed = self.places[0] in self.dataset[name].dims
                    if placed and np.isfinite(values[:, ~there]).any():
                        raise ValueError("values at points without coordinates")
                    values = values[:, there]
                found[..., c] = (values if points is None else values[:, points]).T
        return found

    def _dtype(self, names: Sequence[str]) -> np.dtype[Any]:
        return np.result_type(np.float32, *(self.dataset[name].dtype for name in names))

    def _changed(self, dataset: xarray.Dataset) -> Self:
        return replace(self, dataset=dataset, reopens=False)
