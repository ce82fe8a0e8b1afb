"""Samples as they are read: fields at the points of a mesh, cached."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from nfsgeo.data.checks import finite, not_infinite
from nfsgeo.data.fields import Doubles, Fields, Floats, Indices
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.meshes.trigonometric import TrigonometricInterpolation
from nfsgeo.errors import UserError

__all__ = ["Sample", "SampleReader", "as_slice"]


class Sample(NamedTuple):
    """A sample at some time steps, at the points of a mesh.

    Attributes:
        steps: Numbers of the time steps in the file.
        u: Fields ``[n, T, C]``, at observed points and after them at query points.
        a: Inputs that do not change in time ``[num_observed, C_a]``.
        f: Forcings ``[num_observed, T, C_f]``.
        pos: Positions, float64 ``[n, d]``.
        volume: Quadrature weights ``[n]``, where they are wanted.
        num_observed: Number of observed points.
        has_queries: Whether others follow them.
    """

    steps: Indices
    u: Floats
    a: Floats
    f: Floats
    pos: Doubles
    volume: Floats
    num_observed: int
    has_queries: bool

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self[1:-2])

    def without_absent(self) -> Sample:
        """Without the points that have no value, unless none would be left."""
        there = np.asarray(~np.isnan(self.u).all(axis=(1, 2)))
        observed = there[: self.num_observed]
        if there.all() or not observed.any():
            return self
        return self._replace(
            u=self.u[there],
            a=self.a[observed],
            f=self.f[observed],
            pos=self.pos[there],
            volume=self.volume[there] if len(self.volume) else self.volume,
            num_observed=int(observed.sum()),
        )


class SampleReader:
    """Reads samples of a file when they are asked for, and caches them.

    Each process has a cache of its own.

    Args:
        file: Where the samples come from.
        inputs: Whether inputs that do not change in time are read.
        volumes: Whether quadrature weights are computed.
        cache_bytes: Memory for decoded samples, in bytes.
    """

    def __init__(
        self, file: Fields, *, inputs: bool, volumes: bool, cache_bytes: int
    ) -> None:
        self.file, self.inputs, self.volumes = file, inputs, volumes
        self.cache_bytes = cache_bytes
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        hidden = ("_cache", "_used", "_last")
        return {k: v for k, v in vars(self).items() if k not in hidden}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def _forget(self) -> None:
        self._cache: OrderedDict[Any, Sample] = OrderedDict()
        self._used = 0
        self._last: tuple[Mesh, TrigonometricInterpolation] | None = None

    def read(
        self, sample: int, key: Any, where: Callable[[], tuple[Mesh, Indices]]
    ) -> Sample:
        """A sample at some time steps, on a mesh.

        Args:
            sample: Its number.
            key: The same for the same mesh and time steps.
            where: Gives the mesh and the numbers of the time steps, increasing.

        Raises:
            UserError: It is damaged or infinite, or lacks values of the static input,
                of a forcing, or between which others are to be interpolated.
        """
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        found = self._cache[key] = self._load(sample, *where())
        self._used += found.nbytes
        while self._used > self.cache_bytes:  # those unused for longest go first
            self._used -= self._cache.popitem(last=False)[1].nbytes
        return found

    def _load(self, sample: int, observed: Mesh, steps: Indices) -> Sample:
        mesh, num = observed.with_queries_joined(), len(observed)
        u = self._snapshots(sample, mesh, steps)
        a = np.empty((len(u), 0), np.float32)
        if self.inputs:
            a = self.file.read_inputs(sample, mesh.index)
        what = f"sample {sample} of {self.file.path}"
        if mesh.index is None:
            missing = np.isnan(u)
            # Time steps at which nothing is observed are missing everywhere.
            if missing[:, ~missing.all(axis=(0, 2))].any():
                raise UserError(
                    f"{what} with missing values",
                    "a value at every grid point, to interpolate between them",
                    "choose points of the file, such as --mesh random-subset",
                )
            at = self._at(observed, mesh)
            u, a = at(u), at(a)
        f = u[:num, :, self.file.components :]
        u = u[..., : self.file.components] if f.size else u
        self._check_forcing(f, steps, what)
        not_infinite(u, what)
        finite(a, what)
        pos = self.file.domain.wrap(torch.from_numpy(mesh.pos)).numpy()
        volume = np.empty(0, np.float32)
        if self.volumes:
            volume = np.ones(len(mesh), np.float32)
            volume[:num] = observed.volumes(self.file.domain)
        queries = observed.queries is not None
        return Sample(steps, u, a[:num], f, pos, volume, num, queries)

    def _snapshots(self, sample: int, mesh: Mesh, steps: Indices) -> Floats:
        """Fields and forcings at some time steps, at points of the file."""
        if not len(steps):
            num = self.file.num_points(sample) if mesh.index is None else len(mesh)
            return np.empty((num, 0, self.file.components), np.float32)
        span = as_slice(steps)
        if isinstance(span, slice):
            return self.file.read_all(sample, span, mesh.index)
        span = slice(int(steps[0]), int(steps[-1]) + 1)
        return self.file.read_all(sample, span, mesh.index)[:, steps - steps[0]]

    def _check_forcing(self, f: Floats, steps: Indices, what: str) -> None:
        bad = ~np.isfinite(f)
        if bad.any():
            _, step, component = np.argwhere(bad)[0]
            raise UserError(
                f"{what} without a value of the forcing "
                f"{self.file.forcing_names[component]} at t = "
                f"{self.file.times[steps[step]]:g}",
                "a value at every point and time step of a window",
                "add it, or make a component of what is not known ahead",
            )

    def _at(self, observed: Mesh, mesh: Mesh) -> TrigonometricInterpolation:
        """The interpolation to a mesh, kept for the next sample on it."""
        if self._last is None or self._last[0] is not observed:
            made = TrigonometricInterpolation(self.file, mesh.pos)
            self._last = observed, made
        return self._last[1]


def as_slice(numbers: Indices) -> slice | Indices:
    """Increasing numbers as a slice, where they are equally far apart."""
    apart = np.unique(np.diff(numbers)).tolist() or [1]
    if len(apart) > 1 or not len(numbers):
        return numbers
    return slice(int(numbers[0]), int(numbers[-1]) + 1, apart[0])
