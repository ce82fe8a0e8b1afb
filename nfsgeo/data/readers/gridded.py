"""What the readers of gridded formats share: arrays whose axes have names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.axes import check_axes
from nfsgeo.data.fields import SPACE, Doubles, FieldFile, Indices
from nfsgeo.data.numbers import (
    as_times,
    check_distinct,
    check_num_names,
    dated,
    with_gaps,
)
from nfsgeo.data.splits import split_in_order
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["ArrayFile", "Field", "even_axis", "cell_centres", "nodes"]


@dataclass
class Field:
    """Components of a field in one array.

    Attributes:
        array: Anything that slices into numpy: an array or a data set of a file.
        order: A letter for each of its axes: ``n`` sample, ``t`` time, ``x``, ``y``,
            ``z`` space; any other letter runs over components. What the field does
            not depend on is left out.
        names: Names of its components.
    """

    array: Any
    order: str
    names: list[str]

    def take(self, sample: int, steps: slice, dim: int) -> NDArray[Any]:
        """Time steps of a sample, ``[T', *S, c]``, axes of length 1 where constant."""
        chosen = {"n": sample, "t": steps}
        index = tuple(chosen.get(letter, slice(None)) for letter in self.order)
        values = with_gaps(self.array[index], self.array)
        left = self.order.replace("n", "")
        ahead = [letter for letter in "t" + SPACE[:dim] if letter in left]
        behind = [letter for letter in left if letter not in ahead]
        values = values.transpose([left.index(letter) for letter in ahead + behind])
        sizes = dict(zip(ahead, values.shape, strict=False))
        shape = [sizes.get(letter, 1) for letter in "t" + SPACE[:dim]]
        return values.reshape(*shape, len(self.names))


class ArrayFile(FieldFile):
    """Gridded fields in arrays of a foreign file.

    Args:
        path: The file.
        fields: The components of ``u``.
        axes: Coordinates of each grid axis.
        times: Time of each time step; None where the file does not tell.
        domain: Box that holds the grid.
        static: The components of the static field.
        static_role: ``"coefficient"``, ``"initial condition"`` or None.
        equation: Name of the equation.
        parameters: Scalars of each sample.
        provenance: What the file says about its making.
        split: Its own split; in order 0.7/0.1/0.2 when None.
        handle: To be closed with the file.

    Raises:
        UserError: An array's size contradicts the axes, the times or another array.
    """

    axes: tuple[Doubles, ...]

    def __init__(
        self,
        path: Path,
        *,
        fields: Sequence[Field],
        axes: Sequence[Doubles],
        times: Any,
        domain: Domain,
        static: Sequence[Field] = (),
        static_role: str | None = None,
        equation: str = "",
        parameters: Mapping[str, NDArray[Any]] | None = None,
        provenance: Mapping[str, Any] | None = None,
        split: Mapping[str, Indices] | None = None,
        handle: Any = None,
    ) -> None:
        self.path, self._handle = path, handle
        self._fields, self._static = list(fields), list(static)
        self.axes = tuple(np.asarray(axis, dtype=np.float64) for axis in axes)
        self.times_are_known = times is not None
        self.times = as_times(
            np.arange(self._num_steps()) if times is None else times,
            f"times of {path}",
        )
        self.domain, self.equation, self.static_role = domain, equation, static_role
        names = [name for field in fields for name in field.names]
        self.static_names = [name for field in static for name in field.names]
        check_distinct(path, names)
        check_distinct(path, self.static_names)
        self.name_fields(names)
        self.parameters = dict(parameters or {})
        self.provenance = dated(provenance, times)
        self.num_samples = self._count()
        self.split = dict(split or split_in_order(self.num_samples))

    def slab(self, sample: int, steps: slice) -> NDArray[Any]:
        length = len(range(len(self.times))[steps])
        return self._joined(self._fields, sample, steps, length)

    def static_slab(self, sample: int) -> NDArray[Any]:
        return self._joined(self._static, sample, slice(None), 1)[0]

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()

    def _joined(
        self, fields: list[Field], sample: int, steps: slice, length: int
    ) -> NDArray[Any]:
        parts = [field.take(sample, steps, len(self.axes)) for field in fields]
        shape = (length, *map(len, self.axes))
        parts = [np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts]
        return np.concatenate(parts, axis=-1)

    def _num_steps(self) -> int:
        """Time steps of the first field that varies in time, 1 where none does."""
        varying = (field for field in self._fields if "t" in field.order)
        return next((f.array.shape[f.order.index("t")] for f in varying), 1)

    def _count(self) -> int:
        """Number of samples, once all sizes agree."""
        check_axes(self.path, self.axes, self.domain, least=2)
        sizes = dict(zip(SPACE, map(len, self.axes), strict=False))
        sizes["t"] = len(self.times)
        if self.times.ndim != 1 or not np.all(np.diff(self.times) > 0):
            raise UserError(f"{self.path}", "increasing times", "repair the file")
        for field in [*self._fields, *self._static]:
            shape, width = field.array.shape, 1
            if len(shape) != len(field.order):
                raise self._misfit(field, sizes)
            for letter, size in zip(field.order, shape, strict=True):
                if letter not in "nt" + SPACE:
                    width *= size
                elif size != sizes.setdefault(letter, size) or not size:
                    raise self._misfit(field, sizes)
            check_num_names(self.path, "fields", field.names, shape, width)
        for name, values in self.parameters.items():
            if len(values) != sizes.get("n", 1):
                raise UserError(
                    f"{self.path} with {len(values)} values of {name}",
                    f"one for each of {sizes.get('n', 1)} samples",
                    "repair the file",
                )
        return sizes.get("n", 1)

    def _misfit(self, field: Field, sizes: Mapping[str, int]) -> UserError:
        wanted = ", ".join(f"{letter} {sizes.get(letter)}" for letter in field.order)
        return UserError(
            f"{self.path} with {'/'.join(field.names[:3])} of shape "
            f"{tuple(field.array.shape)}",
            f"axes ({wanted})",
            "restore the format's order of axes",
        )


def nodes(num: int, *, periodic: bool) -> Doubles:
    """Equispaced nodes of [0, 1]; a periodic axis leaves its end point out."""
    return np.arange(num) / num if periodic else np.linspace(0, 1, num)


def cell_centres(num: int) -> Doubles:
    """Centres of ``num`` equal cells of [0, 1]."""
    return (np.arange(num) + 0.5) / num


def even_axis(values: Any, *, centred: bool) -> tuple[Doubles, float, float]:
    """An equispaced axis freed of float32 rounding, and the ends of its cells.

    Args:
        values: Coordinates as stored, increasing by one step.
        centred: Whether they are the centres of cells; else the first is an end of
            the box and the last lies one step before the other (periodic nodes).

    Returns:
        The axis, the lower and the upper end of the box.

    Raises:
        ValueError: The coordinates are not equispaced.
    """
    stored = np.asarray(values, dtype=np.float64)
    if stored.ndim != 1 or len(stored) < 2:
        raise ValueError(f"an axis of shape {stored.shape}")
    step = (stored[-1] - stored[0]) / (len(stored) - 1)
    if step <= 0 or not np.allclose(np.diff(stored), step, rtol=1e-2, atol=0):
        raise ValueError("coordinates that do not increase by equal steps")
    lower = stored[0] - (step / 2 if centred else 0)
    length = step * len(stored)
    digits = 6 - int(np.floor(np.log10(length)))
    lower, upper = round(lower, digits), round(lower + length, digits)
    shift = 0.5 if centred else 0.0
    axis = lower + (np.arange(len(stored)) + shift) * ((upper - lower) / len(stored))
    return axis, float(lower), float(upper)
