"""Small changes of a large value keep their digits, from the file to the errors."""

from pathlib import Path

import numpy as np
import pytest
import torch

import nfsgeo

RNG = np.random.default_rng(0)
POINTS, TIMES = RNG.random((40, 2)), np.arange(8.0)
WAVE = np.sin(6 * POINTS[:, :1] + 6 * RNG.random((20, 1, 1)) + TIMES / 4)


@pytest.mark.slow
@pytest.mark.parametrize("prediction", ["direct", "residual"])
def test_an_offset_changes_no_error(tiny, prediction):
    chosen = tiny | {"data.n_in": 3, "data.n_out": 3, "model.prediction": prediction}
    scales = [(0.0, 1.0), (101325.0, 0.01), (-2.5e9, 10.0)]
    found, predicted = [], []
    for number, (offset, size) in enumerate(scales):
        fields = nfsgeo.from_arrays(offset + size * WAVE, POINTS, TIMES)
        run = nfsgeo.fit(nfsgeo.prepare(fields, chosen), Path(f"run-{number}"))
        summary = nfsgeo.evaluate(run)
        errors = {name: each["mae"] for name, each in summary["baselines"].items()}
        found.append((summary["test"]["mae"] / size, errors))
        ahead = nfsgeo.predict(run, fields, Path(f"{number}.nc")).read(0, slice(None))
        assert ahead.dtype == np.float64
        predicted.append((ahead - offset) / size)
    for (_, size), (mae, errors), ahead in zip(scales, found, predicted, strict=True):
        assert mae == pytest.approx(found[0][0], rel=0.01)
        for name in ("persistence", "linear_extrapolation", "mean"):
            assert errors[name] / size == pytest.approx(found[0][1][name], rel=1e-3)
        np.testing.assert_allclose(ahead, predicted[0], atol=0.05)


def test_values_and_predictions_have_the_precision_of_the_file(tiny):
    chosen = tiny | {"data.n_in": 3, "data.n_out": 3, "trainer.epochs": 1}
    for kind in (np.float32, np.float64):
        fields = nfsgeo.from_arrays(WAVE.astype(kind), POINTS, TIMES)
        experiment = nfsgeo.prepare(fields, chosen)
        item = experiment.data.parts["train"][0]
        expected = torch.from_numpy(np.zeros(1, kind)).dtype
        assert item.x.dtype == item.y.dtype == expected
        assert experiment.forecaster(item.x, item.pos).dtype == expected
        parameters = experiment.forecaster.model.parameters()
        assert {each.dtype for each in parameters} <= {torch.float32, torch.complex64}
