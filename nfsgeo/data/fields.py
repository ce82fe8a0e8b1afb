"""Space-time fields in a file, whatever its format."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.known_ahead import KnownAhead
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["SPACE", "FieldFile", "padded_box", "reading"]

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]

SPACE = "xyz"  # names of the axes
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


class FieldFile(KnownAhead, ABC):
    """Samples of a field ``u(t, x)`` at points, read lazily, one sample at a time.

    Every reader returns one of these. It pickles into worker processes by its path,
    and closes as a context manager. A subclass sets the attributes and reads whole
    samples in :meth:`slab` and :meth:`static_slab`; where the points are not those of
    a grid, it overrides :meth:`coordinates`. What a slab holds it names by
    :meth:`name_fields`.

    Attributes:
        path: Where the samples come from.
        equation: Name of the equation, ``""`` where the file does not tell.
        domain: Box that holds the points, with its periodic axes.
        domain_is_known: Whether the file gives it; else it is drawn around the points.
        provenance: How the data were made, plain JSON types; ``units`` maps names to
            units, see :attr:`units`.
        num_samples: Number of samples ``N``.
        longitude: Degrees that the first axis spans, where it is a longitude that may
            or may not be periodic; else None.
        times: Time of each time step, float64 ``[T]``, in the data's own units.
        times_are_known: Whether the file gives them; else they are 0, 1, 2, ...
        component_names: One name for each of the ``C`` components of ``u``.
        forcing_names, scalar_names: What is known ahead, see
            :class:`~nfsgeo.data.known_ahead.KnownAhead`.
        static_names: One name for each of the ``C_a`` components of the static field.
        static_role: ``"coefficient"`` (a model input), ``"initial condition"`` or None.
        axes: Coordinates of each grid axis, float64; None for point clouds.
        sample_mesh: Number of the mesh of each sample; None where there is only one.
        split: Sample numbers of ``"train"``, ``"valid"`` and ``"test"``.
        parameters: Scalars or small arrays that belong to each sample, ``[N, ...]``.
        as_opened: What it said of its parts, times and domain when it was opened.
        reopen: Opens the file again from its path, in another process; the class itself
            where it is None.
    """

    equation: str
    domain: Domain
    domain_is_known: bool = True
    longitude: float | None = None
    provenance: dict[str, Any]
    num_samples: int
    times: Doubles
    times_are_known: bool = True
    axes: tuple[Doubles, ...] | None = None
    sample_mesh: Sequence[int] | Indices | None = None
    split: dict[str, Indices]
    as_opened: Any = None
    reopen: Callable[[Path], FieldFile] | None = None
    _num_observed: int | None = None

    @abstractmethod
    def slab(self, sample: int, steps: slice) -> NDArray[Any]:
        """Some time steps of a sample, all arguments checked.

        Returns:
            ``[T', *S, C + C_f]`` on a grid, ``[n, T', C + C_f]`` at points: all fields
            that vary in time, components and forcings.
        """

    def static_slab(self, sample: int) -> NDArray[Any]:
        """Static field of a sample, ``[*S, C_a]`` on a grid, ``[n, C_a]`` at points."""
        return np.empty((self.num_points(sample), 0), np.float32)

    @property
    def components(self) -> int:
        """Number of components ``C`` of the field."""
        return len(self.component_names)

    @property
    def static_components(self) -> int:
        """Number of components ``C_a`` of the static field, 0 where there is none."""
        return len(self.static_names)

    @property
    def units(self) -> dict[str, str]:
        """Units of the components by name, as far as the provenance tells them.

        Components without dimension, of unit ``"1"``, are left out.
        """
        names = [*self.component_names, *self.forcing_names, *self.static_names]
        return {name: unit for name in names if (unit := self._unit(name))}

    @property
    def time_unit(self) -> str:
        """Unit of the times, ``""`` where the provenance tells none."""
        short = "" if "t" in self._stored or "t" in self.component_names else "t"
        return self._unit("time") or self._unit(short)

    @property
    def axis_units(self) -> list[str]:
        """Units of the axes x, y and z, ``""`` where the provenance tells none.

        Degrees on a sphere.
        """
        if self.domain.curved:
            return ["°"] * self.domain.dim
        return [self._unit(axis) for axis in SPACE[: self.domain.dim]]

    @property
    def all_units(self) -> dict[str, str]:
        """Units of fields, axes and ``time`` by name, as far as the file tells them."""
        axes = zip(SPACE, self.axis_units, strict=False)
        found = self.units | dict(axes) | {"time": self.time_unit}
        return {name: unit for name, unit in found.items() if unit}

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Points along each grid axis, None for point clouds."""
        return None if self.axes is None else tuple(len(axis) for axis in self.axes)

    def mesh_id(self, sample: int) -> int:
        """Number of the mesh of a sample; equal numbers mean equal points."""
        self._check_sample(sample)
        return 0 if self.sample_mesh is None else int(self.sample_mesh[sample])

    def coordinates(self, sample: int = 0) -> Doubles:
        """Points of a sample, float64 ``[n, d]``, a grid in row-major order."""
        self._check_sample(sample)
        grids = np.meshgrid(*(self.axes or ()), indexing="ij")
        return np.stack([grid.ravel() for grid in grids], axis=-1)

    def num_points(self, sample: int = 0) -> int:
        """Number of points of a sample."""
        self._check_sample(sample)
        return prod(self.shape) if self.shape else len(self.coordinates(sample))

    def read(self, sample: int, steps: slice, points: Indices | None = None) -> Floats:
        """Values of a sample, float32 ``[n, T', C]``.

        Args:
            sample: Sample number.
            steps: Time steps to read; they must exist.
            points: Flat numbers of the points to keep, all of them when None.

        Raises:
            UserError: The sample or a time step does not exist, or the file is damaged.
        """
        values = self.read_all(sample, steps, points)
        if not self.forcing_names:
            return values
        return np.ascontiguousarray(values[..., : self.components])

    def read_all(
        self, sample: int, steps: slice, points: Indices | None = None
    ) -> Floats:
        """Values of a sample and its forcings behind them, ``[n, T', C + C_f]``.

        Arguments and errors as :meth:`read`: ``sample``, ``steps``, ``points``.
        """
        self._check_sample(sample)
        steps = self._check_steps(steps)
        names = [*self.component_names, *self.forcing_names]
        stored = list(self._stored) or names
        with reading(self.path, f"sample {sample} to be readable"):
            values = _single(self.slab(sample, steps))
            if self.axes is None:
                values = values if points is None else values[points]
            else:
                values = values.reshape(len(values), -1, len(stored))
                values = values if points is None else values[:, points]
                values = np.ascontiguousarray(values.swapaxes(0, 1))
            if names != stored:
                values = values[..., [stored.index(name) for name in names]]
            return values

    def num_observed(self) -> int:
        """Number of time steps up to the last one with a value of any sample.

        Later ones hold at most forcings, which tell what is to come.
        """
        if self._num_observed is None:
            self._num_observed = self._find_last_observed() + 1
        return self._num_observed

    def read_static(self, sample: int, points: Indices | None = None) -> Floats:
        """Static field of a sample, float32 ``[n, C_a]``."""
        self._check_sample(sample)
        if not self.static_names:
            num = self.num_points(sample) if points is None else len(points)
            return np.empty((num, 0), np.float32)
        with reading(self.path, f"sample {sample} to be readable"):
            values = _single(self.static_slab(sample))
            stored = list(self._stored_static) or self.static_names
            values = values.reshape(-1, len(stored))
            if stored != self.static_names:
                values = values[:, [stored.index(name) for name in self.static_names]]
            return np.ascontiguousarray(values if points is None else values[points])

    def read_inputs(self, sample: int, points: Indices | None = None) -> Floats:
        """What :attr:`input_names` names, float32 ``[n, C_a + scalars]``."""
        static = self.read_static(sample, points)
        if self.static_role != "coefficient":
            static = static[:, :0]
        if not self.scalar_names:
            return static
        scalars = [float(self.parameters[name][sample]) for name in self.scalar_names]
        same = np.broadcast_to(scalars, (len(static), len(scalars)))
        return np.concatenate([static, same.astype(np.float32)], axis=1)

    def fingerprint(self) -> str:
        """Digest of times, and of the ends of the first and the last sample."""
        digest = hashlib.blake2b(self.times.tobytes(), digest_size=8)
        for sample in (0, self.num_samples - 1):
            digest.update(self.coordinates(sample).tobytes())
            for step in (0, len(self.times) - 1):
                digest.update(self.read_all(sample, slice(step, step + 1)).tobytes())
            digest.update(self.read_inputs(sample).tobytes())
        return digest.hexdigest()

    def cells(self, sample: int = 0) -> dict[str, Indices]:
        """Cells between a sample's points by type, each ``[cells, nodes]``."""
        return {}

    def triangles(self, sample: int = 0) -> Indices | None:
        """Triangles ``[m, 3]`` between a sample's points in the plane, halves of quads.

        None without any, and where an axis is periodic, which cells do not tell of.
        """
        if self.domain.dim != 2 or any(self.domain.periodic):
            return None
        found = []
        for kind, nodes in self.cells(sample).items():
            halves = {"triangle": [[0, 1, 2]], "quad": [[0, 1, 2], [0, 2, 3]]}
            for corners in halves.get(kind.rstrip("0123456789"), ()):
                found.append(nodes[:, corners])
        return np.concatenate(found) if found else None

    def close(self) -> None:  # noqa: B027  (many formats hold nothing open)
        """Releases the file; reading afterwards is an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        chosen = ("component_names", "forcing_names", "scalar_names", "static_names")
        names = (*chosen, "_stored", "_stored_static")
        roles = {name: vars(self)[name] for name in names if name in vars(self)}
        return self.reopen or type(self), (self.path,), roles

    def __repr__(self) -> str:
        points = self.shape if self.shape is not None else "points"
        return (
            f"{type(self).__name__}({str(self.path)!r}, samples={self.num_samples}, "
            f"time_steps={len(self.times)}, components={self.components}, {points})"
        )

    def _unit(self, name: str) -> str:
        told = self.provenance.get("units")
        unit = told.get(name) if isinstance(told, dict) else None
        return unit if isinstance(unit, str) and unit != "1" else ""

    def _find_last_observed(self) -> int:
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


def padded_box(file: FieldFile, pad: float = 0.05) -> Domain:
    """The box around the points of every mesh, with room on each side.

    Args:
        file: Point clouds.
        pad: Room as a fraction of the extent.
    """
    samples = {file.mesh_id(each): each for each in reversed(range(file.num_samples))}
    meshes = (file.coordinates(each) for each in samples.values())
    ends = [end for mesh in meshes for end in (mesh.min(axis=0), mesh.max(axis=0))]
    return Domain.bounding(np.stack(ends), pad)


def _single(values: NDArray[Any]) -> Floats:
    if values.dtype.kind not in "biuf":
        raise ValueError(f"values of type {values.dtype}, which are no real numbers")
    # What float32 cannot hold becomes infinite and is refused where it is used.
    with np.errstate(over="ignore"):
        return values.astype(np.float32, copy=False)
