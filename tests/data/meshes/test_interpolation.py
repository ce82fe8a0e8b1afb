"""Interpolation off the grid is exact for band-limited fields."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fields import Array, build

from nfsgeo.data import Fields
from nfsgeo.data.meshes import off_grid
from nfsgeo.data.meshes.interpolation import (
    TrigonometricInterpolation,
    is_band_limited,
    periodic_weights,
)
from nfsgeo.geometry import Domain


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_weights_are_exact_below_the_highest_mode(num, seed):
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


class Waves:
    """Two components and two time steps of band-limited fields, a shift in the box."""

    def __init__(self, shape: tuple[int, ...], periodic: tuple[bool, ...]) -> None:
        low, high = (-1.0, -2.0, -3.0), (2.0, 2.0, 2.0)
        dim = len(shape)
        self.domain = Domain(low[:dim], high[:dim], periodic)
        box = zip(low, self.domain.lengths, shape, strict=False)
        self.axes = [v + length * (np.arange(n) + 0.5) / n for v, length, n in box]

    @property
    def file(self) -> Fields:
        """The fields, on the axes as they are now."""
        values = self.exact(np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1))
        u = Array(values.astype("f4"), "xyz"[: len(self.axes)] + "tc", ["a", "b"])
        about = {"axes": self.axes, "domain": self.domain, "times": [0.0, 1.0]}
        return build(Path("waves"), [u], **about)

    def exact(self, pos: np.ndarray) -> np.ndarray:
        phase = 2 * np.pi * (pos - self.domain.lower) / self.domain.lengths
        modes = np.arange(1, 1 + len(self.axes))
        waves = np.cos(phase @ modes + 0.3), np.sin(phase @ modes[::-1]) + 2
        values = np.stack(waves, axis=-1)
        return np.stack([values, 3 * values[..., ::-1]], axis=-2)


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
def test_fields_are_exact_off_the_grid(shape, periodic):
    waves = Waves(shape, periodic)
    file = waves.file
    pos = off_grid(file, 37, seed=1).pos
    found = TrigonometricInterpolation(file, pos)(file.read(0, slice(None)))
    np.testing.assert_allclose(found, waves.exact(pos), atol=2e-6)


def test_what_cannot_be_interpolated_is_refused(one_line):
    waves = Waves((8, 9), (True, False))
    off, pos = waves.file.coordinates() + 0.01, waves.file.coordinates()
    assert "not periodic" in one_line(TrigonometricInterpolation, waves.file, off)
    waves.axes[0] = 2 - (2 - waves.axes[0]) ** 1.01
    assert "equispaced" in one_line(TrigonometricInterpolation, waves.file, pos)
    waves = Waves((8, 9), (True, True))
    waves.axes[0] = waves.axes[0][:-1]
    assert "period" in one_line(TrigonometricInterpolation, waves.file, pos)


def bump(x: np.ndarray, ratio: float) -> np.ndarray:
    """Of frequencies that fall off as ``ratio ** k``."""
    return 5 + 1 / (1 - 2 * ratio * np.cos(2 * np.pi * x) + ratio**2)


def bumps(axis: np.ndarray, ratio: float, *, periodic: bool = True) -> Fields:
    """A bump on a periodic axis, and a smooth component of thousands beside it."""
    both = [bump(axis, ratio), 1000 * np.cos(2 * np.pi * axis)]
    values = np.broadcast_to(np.stack(both, -1)[None, :, None], (3, len(axis), 4, 2))
    return build(
        Path("bump"),
        [Array(values, "txyc", ["a", "b"])],
        axes=[axis, np.linspace(0, 1, 4)],
        times=np.arange(3.0),
        domain=Domain((0.0, 0.0), (1.0, 1.0), (periodic, False)),
    )


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(8, 300), st.floats(0.05, 0.99))
def test_band_limited_fields_are_known_between_the_points(num, ratio):
    axis, x = np.arange(num) / num, (np.arange(999) + 0.5) / 999
    found, exact = periodic_weights(num, x) @ bump(axis, ratio), bump(x, ratio)
    error = np.sqrt(np.mean((found - exact) ** 2)) / exact.std()
    if is_band_limited(bumps(axis, ratio), [0]):
        assert error < 1e-3
    else:
        assert error > 1e-5  # nothing is refused that is as good as exact


def test_which_files_are_band_limited():
    axis = np.arange(128) / 128
    assert is_band_limited(bumps(axis, 0.8), [0])
    assert not is_band_limited(bumps(axis, 0.99), [0])
    assert not is_band_limited(bumps(axis, 0.8, periodic=False), [0])
    assert not is_band_limited(bumps(axis**1.1, 0.8), [0])
    u = Array(np.ones((3, 9)), "tp", ["a"])
    cloud = build(Path("a"), [u], points=np.random.rand(9, 2), times=np.arange(3.0))
    assert not is_band_limited(cloud, [0])
