"""How many frequencies are kept where nothing is said."""

from __future__ import annotations

import pytest

from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS, Problem, build_model
from nfsgeo.models.settings import SpectralSettings
from nfsgeo.nn import SpectralConv


def problem(dim: int, num_points: int) -> Problem:
    return Problem(Domain.unit(dim), 1, 1, 2, 3, num_points, None, True)


@pytest.mark.parametrize(
    ("modes", "dim", "num_points", "expected"),
    [(None, 1, 512, 64), (None, 1, 20, 10), (None, 1, 1, 1), (7, 1, 512, 7)]
    + [(None, 2, 4096, 8), (12, 2, 64, 12), (None, 3, 64, 8)],
)
def test_modes(modes: int | None, dim: int, num_points: int, expected: int) -> None:
    settings = SpectralSettings(modes=modes)
    assert settings.modes_of(problem(dim, num_points)) == expected


def test_a_model_keeps_them() -> None:
    settings = MODELS["nfs"].config()
    model = build_model("nfs", problem(1, 40), settings.model_dump())
    kept = [layer.modes for layer in model.modules() if isinstance(layer, SpectralConv)]
    assert kept == [(20, 2)] * 2
