"""Fields in any units, with any offset, train alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nfsgeo
from nfsgeo.geometry import Domain

SETTINGS = {
    "data.n_in": 2,
    "data.n_out": 2,
    "model.settings.width": 8,
    "model.settings.depth": 2,
    "optimiser.lr": 5e-3,
}


def components(folder: Path, factor: float, offset: float, prediction: str):
    """Errors of a pressure in some unit, and of a velocity, after short training."""
    rng = np.random.default_rng(0)
    pos, times = rng.random((60, 2)), 0.5 * np.arange(4)
    shift = rng.random((2, 24, 1, 1))
    along = pos[:, 0] + 0.5 * pos[:, 1], pos[:, 1] - 0.5 * pos[:, 0]
    p, v = (
        np.sin(2 * np.pi * (x + a - times[:, None] / 8))
        for x, a in zip(along, shift, strict=True)
    )
    both = np.stack([factor * p + offset, v], axis=-1).swapaxes(1, 2)
    field = nfsgeo.from_arrays(both, pos, times, domain=Domain.unit(2, periodic=False))
    prepared = nfsgeo.prepare(
        field, {**SETTINGS, "trainer.epochs": 8, "model.prediction": prediction}
    )
    return nfsgeo.evaluate(nfsgeo.fit(prepared, folder))["components"]


@pytest.mark.parametrize("prediction", ["residual", "direct"])
def test_an_offset_of_one_component_costs_nothing(
    tmp_path: Path, prediction: str
) -> None:
    """Pressure around 1013 hPa, or around nothing in units of 3 hPa."""
    plain = components(tmp_path / "plain", 1.0, 0.0, prediction)
    moved = components(tmp_path / "moved", 3.0, 1013.0, prediction)
    for one, other, factor in zip(plain.values(), moved.values(), (3, 1), strict=True):
        assert other["rmse"] == pytest.approx(factor * one["rmse"], rel=0.02)
        assert one["rmse"] < one["baselines"]["persistence"]["rmse"]
