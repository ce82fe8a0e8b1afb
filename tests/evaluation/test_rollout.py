"""Predictions further ahead than training went, window by window."""

import json
from pathlib import Path

import numpy as np
import pytest

import nfsgeo
from nfsgeo.evaluation import evaluate_run


@pytest.mark.slow
def test_as_far_as_training_it_is_the_prediction(run, waves, refuses):
    summary = evaluate_run(run.root, steps=10)
    assert summary["rollout"]["errors"]["model"] == summary["test"]
    np.testing.assert_allclose(summary["rollout"]["times"], 0.25 * np.arange(1, 11))
    longer = evaluate_run(run.root, steps=14)["rollout"]
    same, more = (r["mae_by_step"]["model"] for r in (summary["rollout"], longer))
    assert len(more) == 14 and np.allclose(more[:10], same, rtol=1e-5)
    assert json.loads(run.summary.read_text())["rollout"] == longer
    persistence = longer["mae_by_step"]["persistence"]
    assert len(persistence) == 14 and persistence[13] > persistence[0]
    refuses("15 output time steps.*24 time steps", evaluate_run, run.root, steps=15)


@pytest.mark.slow
def test_predictions_of_any_length(run, waves):
    usual, long, short = (
        nfsgeo.predict(run, waves, Path(f"{n}.nc"), steps=n) for n in (None, 25, 4)
    )
    last = nfsgeo.open(waves).times[-1]
    np.testing.assert_allclose(long.times, last + 0.25 * np.arange(1, 26))
    whole, expected = long.read(3, slice(None)), usual.read(3, slice(None))
    np.testing.assert_allclose(whole[:, :10], expected, atol=1e-6)
    np.testing.assert_array_equal(short.read(3, slice(None)), whole[:, :4])
    np.save(Path("q.npy"), np.random.default_rng(0).random((6, 2)))
    more = {"query_pos": Path("q.npy"), "steps": 25}
    elsewhere = nfsgeo.predict(run, waves, Path("q.nc"), **more)
    assert elsewhere.read(3, slice(None)).shape == (6, 25, 1)
