"""Several files as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import Doubles, FieldFile, Indices, reading
from nfsgeo.data.splits import split_in_order
from nfsgeo.data.static_names import changing
from nfsgeo.data.times import time_text
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["JoinedFile"]


# Attributes that the first file tells for all.
ADOPTED = (
    "equation",
    "provenance",
    "domain",
    "domain_is_known",
    "times_are_known",
    "longitude",
    "component_names",
    "forcing_names",
    "scalar_names",
    "series_names",
    "_stored",
    "static_names",
    "static_role",
    "axes",
)


class JoinedFile(FieldFile):
    """Files of one kind, one after the other as samples or as time steps.

    Only the file that was read last stays open. Meshes of equal points count as one.

    Args:
        paths: The files, in order.
        opener: Opens one of them.
        along: ``"samples"``, or ``"time-steps"`` where every file has time steps of one
            sample. None for samples, where they cannot be the other: on different
            points, or of several time steps each.

    Raises:
        UserError: The files differ in what they hold.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        opener: Callable[[Path], FieldFile],
        *,
        along: str | None = None,
    ) -> None:
        self._paths, self._opener, self._given = list(paths), opener, along
        self._along = along or "samples"
        self._number = -1
        self._file: FieldFile | None = None
        self._counts: list[int] = []
        self._first: list[int] = []
        self.sample_mesh: list[int] = []
        for name in ADOPTED:
            setattr(self, name, getattr(self._open(0), name))
        self.path = self._paths[0]
        self._survey()

    def coordinates(self, sample: int = 0) -> Doubles:
        file, inner = self._find(sample)
        return file.coordinates(inner)

    def cells(self, sample: int = 0) -> dict[str, Indices]:
        file, inner = self._find(sample)
        return file.cells(inner)

    def slab(self, sample: int, steps: slice) -> NDArray[Any]:
        if self._along == "samples":
            file, inner = self._find(sample)
            with reading(file.path, f"sample {inner} to be readable"):
                return file.slab(inner, steps)
        wanted, parts = np.arange(len(self.times))[steps], []
        for number, first in enumerate(self._first):
            inside = wanted[(wanted >= first) & (wanted < first + self._counts[number])]
            if len(inside):
                part = slice(inside[0] - first, inside[-1] - first + 1, steps.step)
                parts.append(self._open(number).slab(0, part))
        return np.concatenate(parts, axis=1 if self.axes is None else 0)

    def static_slab(self, sample: int) -> NDArray[Any]:
        file, inner = self._find(sample)
        with reading(file.path, f"sample {inner} to be readable"):
            return file.static_slab(inner)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._number = None, -1

    def __reduce__(self) -> tuple[Any, ...]:
        if self.reopen is not None:
            return super().__reduce__()
        return partial(JoinedFile, along=self._given), (self._paths, self._opener)

    def _survey(self) -> None:
        """Looks into every file once: that they agree, and how much each holds."""
        meshes: dict[bytes, int] = {}
        times: list[Doubles] = []
        parameters: dict[str, list[Any]] = {}
        domain, static = self.domain, self._open(0).read_static(0)
        for number in range(len(self._paths)):
            file = self._open(number)
            self._agree(file)
            if file.domain != domain:
                domain = _around(domain, file.domain, file.path)
            by_samples = self._along == "samples"
            if not by_samples:
                self._check_static(static, file)
            self._first.append(sum(self._counts))
            self._counts.append(file.num_samples if by_samples else len(file.times))
            times.append(file.times)
            self.times_are_known &= file.times_are_known
            self.longitude = max(self.longitude or 0, file.longitude or 0) or None
            inner_meshes: dict[int, int] = {}
            for sample in range(file.num_samples):
                inner = file.mesh_id(sample)
                if inner not in inner_meshes:
                    points = file.coordinates(sample).tobytes()
                    inner_meshes[inner] = meshes.setdefault(points, len(meshes))
                self.sample_mesh.append(inner_meshes[inner])
            for name, values in file.parameters.items():
                parameters.setdefault(name, []).append(values)
        self.domain = domain
        self._settle(times, len(meshes))
        complete = len(self._paths) if self._along == "samples" else -1
        self.parameters = {
            name: np.concatenate(values)
            for name, values in parameters.items()
            if len(values) == complete
        }
        self.scalar_names = [n for n in self.scalar_names if n in self.parameters]

    def _settle(self, times: list[Doubles], num_meshes: int) -> None:
        steps = num_meshes == 1 and len(self.sample_mesh) == len(self._paths)
        if self._given is None and steps and len(times[0]) == 1:
            raise UserError(
                f"{len(self._paths)} files of one time step each on the same points, "
                f"from {self.path}",
                "to be told whether they are samples or time steps of one sample",
                "give --series samples or --series time-steps",
            )
        if self._along == "samples":
            self.times = times[0]
            for path, other in zip(self._paths, times, strict=True):
                if not _same(other, self.times):
                    raise UserError(
                        f"{path} with other times than {self.path}",
                        "samples with the same times",
                        "give --series time-steps if they are those of one sample, "
                        "else convert it by itself",
                    )
            self.num_samples = sum(self._counts)
            self.split = split_in_order(self.num_samples)
            return
        if not steps:
            raise UserError(
                f"{len(self._paths)} files from {self.path} as time steps",
                "one sample a file, all on one mesh",
                "join them as samples",
            )
        joined = np.concatenate(times)
        # Without a time of its own a file has one time step, at 0.
        self.times_are_known &= len(joined) == 1 or bool(np.any(joined != joined[0]))
        if self.times_are_known:
            joined = self._follow_times(times)
        self.times = joined if self.times_are_known else np.arange(float(len(joined)))
        self.sample_mesh, self.num_samples = [0], 1
        self.split = split_in_order(1)

    def _follow_times(self, times: list[Doubles]) -> Doubles:
        """Puts files in the order of their times, and returns all of these.

        Raises:
            UserError: A file begins before another has ended.
        """
        order = sorted(range(len(times)), key=lambda number: float(times[number][0]))
        self.close()
        self._paths = [self._paths[number] for number in order]
        self._counts = [self._counts[number] for number in order]
        self._first = [sum(self._counts[:k]) for k in range(len(order))]
        times = [times[number] for number in order]
        for k in range(1, len(times)):
            if times[k][0] <= times[k - 1][-1]:
                begin, end = (
                    time_text(time, self.time_unit)
                    for time in (times[k][0], times[k - 1][-1])
                )
                raise UserError(
                    f"{self._paths[k]}, which begins at {begin}, and "
                    f"{self._paths[k - 1]}, which ends at {end}",
                    "time steps of one sample, each in one file",
                    "leave the repeated ones out, or give --series samples",
                )
        return np.concatenate(times)

    def _agree(self, file: FieldFile) -> None:
        for name in (
            "component_names",
            "forcing_names",
            "static_names",
            "static_role",
            "shape",
        ):
            if getattr(file, name) != getattr(self, name):
                raise _differs(file.path, name.replace("_", " "))
        if file.axes is not None and self.axes is not None:
            pairs = zip(file.axes, self.axes, strict=True)
            if not all(_same(a, b) for a, b in pairs):
                raise _differs(file.path, "grid")
        ours, theirs = self.all_units, file.all_units
        for name in sorted({*ours, *theirs}):
            unit, other = ours.get(name, ""), theirs.get(name, "")
            # Numbers and dates are not the same times, whatever the one is in.
            told = (unit and other) or (name == "time" and file.times_are_known)
            if told and unit != other:
                raise _differs(
                    file.path,
                    f"units of {name} ({other or 'none'}, not {unit or 'none'})",
                )

    def _check_static(self, first: NDArray[Any], file: FieldFile) -> None:
        """Makes sure that static fields are the same at all time steps."""
        found = file.read_static(0)
        if found.shape == first.shape:  # else on other points, which is refused later
            same = np.isclose(found, first, rtol=0, atol=0, equal_nan=True).all(axis=0)
            if not same.all():
                raise changing(file.path, self.static_names[int(same.argmin())])

    def _open(self, number: int) -> FieldFile:
        if self._file is None or self._number != number:
            self.close()
            self._file, self._number = self._opener(self._paths[number]), number
        return self._file

    def _find(self, sample: int) -> tuple[FieldFile, int]:
        self._check_sample(sample)
        if self._along == "time-steps":
            return self._open(0), 0
        number = int(np.searchsorted(self._first, sample, side="right")) - 1
        return self._open(number), sample - self._first[number]


def _same(values: Doubles, first: Doubles) -> bool:
    """Whether times or coordinates are equal but for rounding, as their steps tell."""
    rounding = 1e-3 * np.diff(first).min() if len(first) > 1 else 0.0
    return values.shape == first.shape and np.allclose(
        values, first, rtol=0, atol=rounding
    )


def _differs(path: Path, what: str) -> UserError:
    return UserError(
        f"{path} with other {what} than the file before",
        "files of one kind",
        "convert it by itself",
    )


def _around(a: Domain, b: Domain, path: Path) -> Domain:
    """The smallest box around two without periodic axes."""
    if a.dim != b.dim or any(a.periodic) or any(b.periodic) or a.region != b.region:
        raise _differs(path, "domain")
    lower = tuple(map(min, a.lower, b.lower))
    return Domain(lower, tuple(map(max, a.upper, b.upper)), a.periodic, a.region)
