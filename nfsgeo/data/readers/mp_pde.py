"""The MP-PDE solvers' files: combined equation (periodic) and wave equation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.numbers import with_gaps
from nfsgeo.data.readers.gridded import ArrayFile, Field
from nfsgeo.data.readers.reader import Reader
from nfsgeo.data.splits import SPLITS
from nfsgeo.geometry import Domain

__all__ = ["MP_PDE"]


def _is_mp_pde(path: Path) -> bool:
    with h5py.File(path, "r") as file:
        parts = [file[name] for name in SPLITS if name in file]
        return bool(parts) and all(_finest(part) for part in parts)


def _mp_pde(path: Path) -> FieldFile:
    """The finest ``pde_{nt}-{nx}`` of every part, with its coefficients as parameters.

    Files with ``alpha``, ``beta`` and ``gamma`` are periodic and repeat the first
    node as the last, which is left out; files with ``bc_left`` are bounded.
    """
    file = h5py.File(path, "r")
    parts = {name: file[name] for name in SPLITS if name in file}
    sets = [part[_finest(part)] for part in parts.values()]
    about = sets[0].attrs
    x = np.asarray(about["x"], dtype=np.float64)
    if len({(*s.shape[1:], s.attrs["tmax"]) for s in sets}) > 1:
        raise ValueError("parts that differ in grid or time")
    periodic = "bc_left" not in next(iter(parts.values()))
    domain = Domain((x[0],), (x[-1],), (periodic,))
    values = _Chained(sets, 1 if periodic else 0)
    ends = np.cumsum([0] + [len(s) for s in sets])
    split = {name: np.empty(0, np.int64) for name in SPLITS}
    for name, start, stop in zip(parts, ends[:-1], ends[1:], strict=True):
        split[name] = np.arange(start, stop)
    names = [
        name
        for name in ("alpha", "beta", "gamma", "c", "bc_left", "bc_right")
        if all(name in part for part in parts.values())
    ]
    return ArrayFile(
        path,
        fields=[Field(values, "ntx", ["u"])],
        axes=[x[:-1] if periodic else x],
        times=np.linspace(about["tmin"], about["tmax"], sets[0].shape[1]),
        domain=domain,
        equation="combined" if periodic else "wave",
        parameters={
            name: np.concatenate([part[name][:] for part in parts.values()])
            for name in names
        },
        split=split if len(parts) > 1 else None,
        handle=file,
    )


class _Chained:
    """Data sets one after the other, without their last ``cut`` points."""

    def __init__(self, sets: list[h5py.Dataset], cut: int) -> None:
        self._sets = sets
        self._ends = np.cumsum([len(values) for values in sets])
        num_steps, points = sets[0].shape[1:]
        self._points = points - cut
        self.shape = (int(self._ends[-1]), num_steps, self._points)

    def __getitem__(self, index: tuple[Any, ...]) -> NDArray[Any]:
        sample, steps, _ = index
        number = int(np.searchsorted(self._ends, sample, side="right"))
        start = self._ends[number] - len(self._sets[number])
        values = self._sets[number]
        return with_gaps(values[sample - start, steps, : self._points], values)


def _finest(part: h5py.Group) -> str | None:
    """Name of the trajectories with the most values."""
    names = [name for name in part if name.startswith("pde_")]
    return max(names, key=lambda name: int(np.prod(part[name].shape)), default=None)


MP_PDE = Reader("MP-PDE (.h5)", _is_mp_pde, _mp_pde)
