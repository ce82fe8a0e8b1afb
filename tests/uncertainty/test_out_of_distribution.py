"""Inputs that are unlike those of training."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import Subset

import nfsgeo
from nfsgeo.data.meshes import MeshOfFile
from nfsgeo.data.windows import WindowDataset
from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import Normalise
from nfsgeo.geometry import Domain
from nfsgeo.uncertainty.out_of_distribution import InputStatistics, TrainingInputs

Make = Callable[..., Forecaster]
Trained = tuple[Forecaster, TrainingInputs]


def cloud(num: int, seed: int) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    mix = torch.tensor([[1.0, 0.9, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 3.0]]).double()
    return torch.randn(num, 3, generator=draw).double() @ mix


def test_the_distance_of_a_gaussian_cloud():
    values = cloud(4000, 0)
    known = TrainingInputs.fit(["a", "b", "c"], values)
    # The square of the distance has the mean 1, and the limit is the 99 % quantile of
    # chi squared with three degrees of freedom, 11.34, over three, and 1.1 times that.
    square = (known.limit * known.distance(cloud(4000, 1))).square()
    assert square.mean().item() == pytest.approx(1, abs=0.05)
    assert known.limit == pytest.approx(1.1 * (11.34 / 3) ** 0.5, rel=0.05)
    assert (known.distance(cloud(4000, 2)) > 1).double().mean() < 0.01
    # Against the correlation, two standard deviations are far.
    along, across = torch.tensor([[2.0, 2.0, 0.0], [2.0, -2.0, 0.0]]).double()
    assert known.distance(along[None]) < 1 < known.distance(across[None])
    assert (known.distance(cloud(100, 1) + 20 * along) > 1).all()


def waves(
    seed: int,
    noise: float = 0.0,
    unit: float = 1.0,
    order: slice = slice(None),
    gaps: float = 0.0,
) -> WindowDataset:
    """Sums of waves of random phases at 200 points, of 100 samples at two times."""
    draw = np.random.default_rng(seed)
    pos = np.random.default_rng(9).random((200, 2))
    turns = pos @ np.array([[1, 0], [0, 1], [1, 1], [2, -1]]).T
    phase = draw.random((100, 1, 1, 4)) + 0.1 * np.arange(2)[:, None]
    u = unit * np.sin(2 * np.pi * (turns[:, None] + phase)).sum(-1)
    u += unit * noise * draw.standard_normal(u.shape)
    u[draw.random(u.shape) < gaps] = np.nan
    pos, u = pos[order], u[:, order]
    file = nfsgeo.from_arrays(u, pos, np.arange(2.0), domain=Domain.unit(2))
    return WindowDataset(file, range(100), 2, 0, MeshOfFile(file))


@pytest.fixture
def trained(forecaster_of: Make) -> Callable[[float], Trained]:
    """A forecaster that was trained on waves in a unit, and its training inputs."""

    def make(unit: float) -> Trained:
        scale = {"mean": [0.0], "std": [1.5 * unit]}
        transform = Normalise(**scale, out_mean=[0.0], out_std=scale["std"])
        task = {"n_in": 2, "num_points": 200, "domain": Domain.unit(2)}
        made = forecaster_of(lambda x, graphs: x, transform, **task)
        seen = InputStatistics.of(made, waves(0, unit=unit), gaps=0.2)
        return made, TrainingInputs.fit(*seen.table())

    return make


def unlike(of: Trained, windows: WindowDataset) -> tuple[dict[str, Any], Any]:
    forecaster, known = of
    return InputStatistics.of(forecaster, windows).out_of_distribution(known)


@pytest.mark.slow
def test_samples_as_in_training_are_not_told_of(trained, caplog):
    of = trained(1.0)
    for usual in (waves(1), waves(2, gaps=0.2)):
        found = unlike(of, usual)[0]
        assert found["total"] == 100 and found["samples"] <= 2
    caplog.clear()
    found, distance = unlike(of, waves(3, noise=0.3))
    assert found["samples"] == 100 == (distance > 1).sum()
    assert "100 of 100 samples are unlike" in caplog.text
    assert found["statistic"] in caplog.text
    for other in (waves(4, unit=1.5), waves(5, unit=1e-3)):
        assert unlike(of, other)[0]["samples"] == 100


def test_the_order_of_points_does_not_matter_if_some_are_looked_at(forecaster_of):
    task = {"n_in": 2, "num_points": 20, "domain": Domain.unit(2)}
    made = forecaster_of(lambda x, graphs: x, **task)
    tables = [
        InputStatistics.of(made, Subset(waves(1, order=order), range(3))).table()[1]
        for order in (slice(None), slice(None, None, -1))
    ]
    torch.testing.assert_close(*tables, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_neither_units_nor_the_order_of_points_matter(trained):
    of = trained(1.0)
    expected = unlike(of, waves(1))[1]
    turned = unlike(of, waves(1, order=slice(None, None, -1)))[1]
    assert np.allclose(turned, expected, rtol=1e-6)
    large = unlike(trained(1e4), waves(1, unit=1e4))[1]
    assert np.allclose(large, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("points", "told"),
    [((150, 250), False), ((100, 150), False), ((60, 120), True), ((350, 400), True)],
)
def test_meshes_that_are_much_finer_or_coarser_are_told_of(
    forecaster_of, caplog, points, told
):
    task = {"n_in": 2, "num_points": 200, "domain": Domain.unit(2)}
    here = InputStatistics.of(
        forecaster_of(lambda x, graphs: x, **task), Subset(waves(1), range(20))
    )
    known = TrainingInputs.fit(*here.table())
    here.out_of_distribution(known)
    assert "points, those of training" not in caplog.text
    here.out_of_distribution(replace(known, points=points))
    text = f"samples have 200 points, those of training {points[0]} to {points[1]}"
    assert (text in caplog.text) == told


def test_held_out_stations_are_no_other_place(forecaster_of):
    """All stations are observed at prediction, four fifths of them in training."""
    draw = np.random.default_rng(3)
    pos, height = draw.random((25, 2)), draw.standard_normal(25)
    kept = draw.permutation(25)[:20]

    def windows(num: int, stations: slice | np.ndarray, height: np.ndarray) -> Any:
        phase = draw.random((num, 1, 1)) + 0.1 * np.arange(2)
        u = np.sin(2 * np.pi * (pos.sum(1)[:, None] + phase))
        u += 0.3 * draw.standard_normal(u.shape)
        static = np.repeat(height[None, stations, None], num, 0)
        more = {"static": static, "domain": Domain.unit(2, periodic=False)}
        file = nfsgeo.from_arrays(u[:, stations], pos[stations], np.arange(2.0), **more)
        return WindowDataset(file, range(num), 2, 0, MeshOfFile(file))

    task = {"n_in": 2, "num_points": 20, "static": ("height",)}
    made = forecaster_of(lambda x, graphs: x, **task)
    seen = InputStatistics.of(made, windows(60, kept, height), gaps=0.2)
    names, values = seen.table()
    assert not [name for name in names if "65" in name]
    of = made, TrainingInputs.fit(names, values)
    assert unlike(of, windows(10, slice(None), height))[0]["samples"] == 0
    assert unlike(of, windows(3, slice(None), 4 * height + 4))[0]["samples"] == 3


def test_steady_fields_of_scalars_alone_have_statistics_of_their_points(forecaster_of):
    draw = np.random.default_rng(0)
    u, pos, speed = draw.random((3, 30)), draw.random((30, 2)), np.arange(3.0)
    file = nfsgeo.from_arrays(u, pos, scalars={"speed": speed})
    windows = WindowDataset(file, range(3), 0, 1, MeshOfFile(file))
    task = {"n_in": 0, "n_out": 1, "num_points": 30, "scalars": ("speed",)}
    made = forecaster_of(lambda x, graphs: x, **task)
    names, values = InputStatistics.of(made, windows).table()
    assert "spacing of points" in names and values.isfinite().all()
