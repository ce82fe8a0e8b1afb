"""Axes of grids: where they end and how they are spaced, in any units and origin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data import GridWriter
from nfsgeo.data.axes import is_at, is_equispaced
from nfsgeo.data.meshes.on_grids import sub_grid, sub_grid_sizes
from nfsgeo.geometry import Domain

UNITS = [(1.0, 0.0), (1.0, 100.0), (100.0, 5e6), (1e-8, 0.0), (1e-8, 3e-5), (3e7, -2e8)]


def axis_file(path: Path, axis: np.ndarray, upper: float, periodic: bool) -> Path:
    """Waves along one axis that begins at the lower end of its domain."""
    domain = Domain((axis[0],), (upper,), (periodic,))
    with GridWriter(
        path,
        equation="test",
        domain=domain,
        axes=[axis],
        times=[0.0],
        num_samples=1,
        component_names=["u"],
    ) as writer:
        writer.write(0, np.sin(axis)[None, None, :, None])
    return path


@pytest.mark.parametrize(("length", "origin"), UNITS)
@pytest.mark.parametrize("periodic", [True, False])
def test_sub_grids_depend_on_neither_units_nor_origin(
    tmp_path: Path, length: float, origin: float, periodic: bool
) -> None:
    num = 1024 + (not periodic)
    axis = origin + length * np.arange(num) / 1024
    path = axis_file(tmp_path / "axis.h5", axis, origin + length, periodic)
    with nfsgeo.data.open(path) as file:
        sizes = [2**power + (not periodic) for power in range(11)]
        assert sub_grid_sizes(file) == sizes
        mesh = sub_grid(file, 256 + (not periodic))
    assert mesh.index is not None
    assert np.array_equal(mesh.index, np.arange(0, num, 4))


@given(
    st.integers(2, 300),
    st.sampled_from(UNITS),
    st.integers(0, 9),
)
def test_ends_and_spacings(num: int, unit: tuple[float, float], seed: int) -> None:
    length, origin = unit
    period = origin + length * np.arange(num) / num
    assert is_at(period, 0, origin) and not is_at(period, -1, origin + length)
    assert is_equispaced(period, length)
    closed = origin + length * np.linspace(0, 1, num)
    assert is_at(closed, 0, origin) and is_at(closed, -1, origin + length)
    assert not is_equispaced(closed, length)
    inner = np.sort(np.random.default_rng(seed).random(num - 1))
    if num > 3 and np.ptp(np.diff(inner)) > 1e-2 / num:
        assert not is_equispaced(origin + length * inner, length)
