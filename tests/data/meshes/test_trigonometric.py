"""Interpolation off the grid is exact for band-limited fields."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.meshes import off_grid
from nfsgeo.data.meshes.trigonometric import (
    TrigonometricInterpolation,
    is_band_limited,
    periodic_weights,
)
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_weights_are_exact_below_the_highest_mode(num: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    phase = np.concatenate([rng.random(20), np.arange(num) / num, [1e-14, 1 - 1e-14]])
    weights = periodic_weights(num, phase)
    grid = np.arange(num) / num
    for mode in range((num + 1) // 2):
        for wave in (np.cos, np.sin):
            found = weights @ wave(2 * np.pi * mode * grid)
            np.testing.assert_allclose(
                found, wave(2 * np.pi * mode * phase), atol=2e-12
            )
    if num % 2 == 0:
        found = weights @ np.cos(np.pi * num * grid)
        np.testing.assert_allclose(found, np.cos(np.pi * num * phase), atol=2e-12)


class Waves(FieldFile):
    """Two components and two time steps of band-limited fields, a shift in the box."""

    def __init__(self, shape: tuple[int, ...], periodic: tuple[bool, ...]) -> None:
        self.path, self.num_samples = Path("waves"), 1
        self.times, self.component_names = np.arange(2.0), ["a", "b"]
        low = tuple(-1.0 - i for i in range(len(shape)))
        self.domain = Domain(
            low, tuple(v + 3.0 + i for i, v in enumerate(low)), periodic
        )
        self.axes = tuple(
            v + length * (np.arange(n) + 0.5) / n
            for v, length, n in zip(low, self.domain.lengths, shape, strict=True)
        )

    def exact(self, pos: np.ndarray) -> np.ndarray:
        phase = (pos - self.domain.lower) / self.domain.lengths
        modes = np.arange(1, 1 + phase.shape[1])
        first = np.cos(2 * np.pi * phase @ modes + 0.3)
        second = np.sin(2 * np.pi * phase @ modes[::-1]) + 2
        values = np.stack([first, second], axis=-1)
        return np.stack([values, 3 * values[:, ::-1]], axis=1)

    def slab(self, sample: int, records: slice) -> np.ndarray:
        values = self.exact(self.coordinates())
        values = values.reshape(*(len(axis) for axis in self.axes), 2, 2)
        return np.moveaxis(values, -2, 0)[records]


@pytest.mark.parametrize(
    ("shape", "periodic"),
    [
        ((9,), (True,)),
        ((8, 11), (True, True)),
        ((11, 9), (True, False)),
        ((9, 10), (False, True)),
        ((9, 8, 7), (True, True, True)),
        ((9, 3, 10), (True, False, True)),
    ],
)
def test_fields_are_exact_off_the_grid(
    shape: tuple[int, ...], periodic: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Waves(shape, periodic)
    mesh = off_grid(file, 37, seed=1)
    values = file.read(0, slice(None))
    found = TrigonometricInterpolation(file, mesh.pos)(values)
    np.testing.assert_allclose(found, file.exact(mesh.pos), atol=2e-6)
    # In small pieces the result is the same.
    monkeypatch.setattr("nfsgeo.data.meshes.trigonometric.WORK_BYTES", 1)
    pieces = TrigonometricInterpolation(file, mesh.pos)(values)
    np.testing.assert_allclose(pieces, found, rtol=1e-6, atol=1e-6)


def test_grid_points_get_their_own_values() -> None:
    file = Waves((6, 5), (True, True))
    values = file.read(0, slice(None))
    found = TrigonometricInterpolation(file, file.coordinates())(values)
    np.testing.assert_allclose(found, values, atol=1e-6)


def test_what_cannot_be_interpolated_is_refused() -> None:
    file = Waves((8, 9), (True, False))
    with pytest.raises(UserError, match="not periodic"):
        TrigonometricInterpolation(file, file.coordinates() + 0.01)
    file.axes = (file.axes[0] ** 3, file.axes[1])
    with pytest.raises(UserError, match="equispaced"):
        TrigonometricInterpolation(file, file.coordinates())
    file = Waves((8, 9), (True, True))
    file.axes = (file.axes[0][:-1], file.axes[1])
    with pytest.raises(UserError, match="period"):
        TrigonometricInterpolation(file, file.coordinates())


class Bump(FieldFile):
    """A bump on a periodic axis, of frequencies that fall off as ``ratio ** k``."""

    def __init__(self, num: int, ratio: float, *, periodic: bool = True) -> None:
        self.path, self.num_samples, self.static_role = Path("bump"), 1, None
        self.times, self.component_names = np.arange(3.0), ["a", "b"]
        self.domain = Domain((0.0, 0.0), (1.0, 1.0), (periodic, False))
        self.axes = (np.arange(num) / num, np.linspace(0, 1, 4))
        self.ratio = ratio

    def exact(self, x: np.ndarray) -> np.ndarray:
        return 5 + 1 / (1 - 2 * self.ratio * np.cos(2 * np.pi * x) + self.ratio**2)

    def slab(self, sample: int, records: slice) -> np.ndarray:
        bump = self.exact(self.axes[0])[None, :, None, None]
        # A component of thousands, smooth, hides nothing of the other.
        smooth = 1000 * np.cos(2 * np.pi * self.axes[0])[None, :, None, None]
        both = np.concatenate([bump, smooth], axis=-1)
        return np.broadcast_to(both, (3, len(self.axes[0]), 4, 2))[records]


@settings(max_examples=60, deadline=None)
@given(st.integers(8, 300), st.floats(0.05, 0.99))
def test_band_limited_fields_are_known_between_the_points(
    num: int, ratio: float
) -> None:
    file = Bump(num, ratio)
    x = (np.arange(999) + 0.5) / 999
    found = periodic_weights(num, x) @ file.exact(file.axes[0])
    error = np.sqrt(np.mean((found - file.exact(x)) ** 2)) / file.exact(x).std()
    if is_band_limited(file, [0]):
        assert error < 1e-3
    else:
        assert error > 1e-5  # nothing is refused that is as good as exact


def test_which_files_are_band_limited() -> None:
    assert is_band_limited(Bump(128, 0.8), [0])
    assert not is_band_limited(Bump(128, 0.99), [0])
    assert not is_band_limited(Bump(128, 0.8, periodic=False), [0])
    uneven = Bump(128, 0.8)
    uneven.axes = (uneven.axes[0] ** 1.1, uneven.axes[1])
    assert not is_band_limited(uneven, [0])
    cloud = Bump(128, 0.8)
    cloud.axes = None  # type: ignore[assignment]
    assert not is_band_limited(cloud, [0])
