"""Models that work on the points themselves, from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

Command = Callable[..., Result]
OPTIONS = ["--points", "30", "--n-in", "4", "--n-out", "4", "--epochs", "2"]


def settings(**values: object) -> list[str]:
    return [f"--set=model.settings.{key}={value}" for key, value in values.items()]


@pytest.mark.slow
def test_train_evaluate_and_predict(
    nfsgeo: Command, waves: Path, tmp_path: Path
) -> None:
    small = settings(width=18, depth=1, window=4)
    options = ["--model", "mppde", "--data", waves, *OPTIONS, *small]
    assert nfsgeo("train", *options, "--out", "run").exit_code == 0
    found = nfsgeo("evaluate", "run", "--unseen", 2, "--repeats", 2, "--json")
    assert found.exit_code == 0, found.output
    summary = json.loads(found.stdout)
    assert summary["model"] == "mppde" and summary["test"]["rel_l2"] > 0
    done = nfsgeo("predict", "run", "--input", waves, "--output", "out.nc")
    assert done.exit_code == 0, done.output
    np.save(tmp_path / "queries.npy", np.random.default_rng(0).random((5, 2)))
    refused = nfsgeo(
        *("predict", "run", "--input", waves, "--output", "other.nc"),
        *("--query-points", "queries.npy"),
    )
    assert refused.exit_code == 2
    assert "train nfs, which predicts anywhere" in refused.stderr
