"""Space-time fields in a file, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["FieldFile", "GridFile", "reading"]

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]


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


class FieldFile(ABC):
    """Samples of a field ``u(t, x)`` at points, read lazily, one sample at a time.

    Every reader returns one of these. It pickles into worker processes by its path,
    and closes as a context manager.

    Attributes:
        path: Where the samples come from.
        equation: Name of the equation, ``""`` where the file does not tell.
        domain: Box that holds the points, with its periodic axes.
        domain_is_known: Whether it is the file's own, not just drawn around the points.
        provenance: How the data were made, plain JSON types; ``units`` maps names to
            units, see :attr:`units`.
        num_samples: Number of samples ``N``.
        times: Time of each record, float64 ``[T]``, in the data's own units.
        times_are_known: Whether they are the file's own, not just 0, 1, 2, ...
        component_names: One name for each of the ``C`` components of ``u``.
        static_names: One name for each of the ``C_a`` components of the static field.
        static_role: ``"coefficient"`` (a model input), ``"initial condition"`` or None.
        axes: Coordinates of each grid axis, float64; None for point clouds.
        split: Sample numbers of ``"train"``, ``"valid"`` and ``"test"``.
        parameters: Scalars or small arrays that belong to each sample, ``[N, ...]``.
    """

    path: Path
    equation: str
    domain: Domain
    domain_is_known: bool = True
    provenance: dict[str, Any]
    num_samples: int
    times: Doubles
    times_are_known: bool = True
    component_names: list[str]
    static_names: list[str]
    static_role: str | None
    axes: tuple[Doubles, ...] | None
    split: dict[str, Indices]
    parameters: dict[str, NDArray[Any]]

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
        told = self.provenance.get("units")
        if not isinstance(told, dict):
            return {}
        names = [*self.component_names, *self.static_names]
        units = {name: told.get(name) for name in names}
        return {
            name: unit
            for name, unit in units.items()
            if isinstance(unit, str) and unit not in ("", "1")
        }

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Points along each grid axis, None for point clouds."""
        return None if self.axes is None else tuple(len(axis) for axis in self.axes)

    @abstractmethod
    def mesh_id(self, sample: int) -> int:
        """Number of the mesh that the sample lives on; equal numbers, equal points."""

    @abstractmethod
    def coordinates(self, sample: int = 0) -> Doubles:
        """Points of a sample, float64 ``[n, d]``; of a grid, row-major."""

    @abstractmethod
    def num_points(self, sample: int = 0) -> int:
        """Number of points of a sample."""

    @abstractmethod
    def read(
        self, sample: int, records: slice, points: Indices | None = None
    ) -> Floats:
        """Values of a sample, float32 ``[n, T', C]``.

        Args:
            sample: Sample number.
            records: Records to read; they must exist.
            points: Flat numbers of the points to keep, all of them when None.

        Raises:
            UserError: The sample or a record does not exist, or the file is damaged.
        """

    @abstractmethod
    def read_static(self, sample: int, points: Indices | None = None) -> Floats:
        """Static field of a sample, float32 ``[n, C_a]``."""

    def cells(self, sample: int = 0) -> dict[str, Indices]:
        """Cells between a sample's points by type, each ``[cells, nodes]``."""
        return {}

    def close(self) -> None:  # noqa: B027  (many formats hold nothing open)
        """Releases the file; reading afterwards is an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    def __repr__(self) -> str:
        points = self.shape if self.shape is not None else "points"
        return (
            f"{type(self).__name__}({str(self.path)!r}, samples={self.num_samples}, "
            f"records={len(self.times)}, components={self.components}, {points})"
        )

    def _check_sample(self, sample: int) -> None:
        if not 0 <= sample < self.num_samples:
            raise UserError(
                f"sample {sample} of {self.path}",
                f"a number from 0 to {self.num_samples - 1}",
                "choose a sample that the file holds",
            )

    def _check_records(self, records: slice) -> slice:
        """The slice with its ends filled in, never past the last record."""
        total = len(self.times)
        start, stop, step = records.start or 0, records.stop, records.step or 1
        stop = total if stop is None else stop
        if not (0 <= start < stop <= total and step > 0):
            raise UserError(
                f"records {start}:{stop} of {self.path}",
                f"a range within its {total} records",
                "ask for fewer records or use a longer file",
            )
        return slice(start, stop, step)


class GridFile(FieldFile):
    """Fields on one rectilinear grid: a subclass reads whole slabs, this one points."""

    axes: tuple[Doubles, ...]

    @abstractmethod
    def slab(self, sample: int, records: slice) -> NDArray[Any]:
        """Records of a sample on the whole grid, ``[T', *S, C]``."""

    def static_slab(self, sample: int) -> NDArray[Any]:
        """Static field of a sample on the whole grid, ``[*S, C_a]``."""
        return np.empty((*(len(axis) for axis in self.axes), 0), np.float32)

    def mesh_id(self, sample: int) -> int:
        self._check_sample(sample)
        return 0

    def coordinates(self, sample: int = 0) -> Doubles:
        self._check_sample(sample)
        grids = np.meshgrid(*self.axes, indexing="ij")
        return np.stack([grid.ravel() for grid in grids], axis=-1)

    def num_points(self, sample: int = 0) -> int:
        self._check_sample(sample)
        return int(np.prod([len(axis) for axis in self.axes]))

    def read(
        self, sample: int, records: slice, points: Indices | None = None
    ) -> Floats:
        self._check_sample(sample)
        records = self._check_records(records)
        with reading(self.path, f"sample {sample} to be readable"):
            values = _single(self.slab(sample, records))
            values = values.reshape(len(values), -1, self.components)
            if points is not None:
                values = values[:, points]
            return np.ascontiguousarray(values.swapaxes(0, 1))

    def read_static(self, sample: int, points: Indices | None = None) -> Floats:
        self._check_sample(sample)
        with reading(self.path, f"sample {sample} to be readable"):
            values = _single(self.static_slab(sample))
            values = values.reshape(self.num_points(), self.static_components)
            return np.ascontiguousarray(values if points is None else values[points])


def _single(values: NDArray[Any]) -> Floats:
    if values.dtype.kind not in "biuf":
        raise ValueError(f"values of type {values.dtype}, which are no real numbers")
    # What float32 cannot hold becomes infinite and is refused where it is used.
    with np.errstate(over="ignore"):
        return values.astype(np.float32, copy=False)
