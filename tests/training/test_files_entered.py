"""How many files of nfsgeo a training step and a prediction go through."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import nfsgeo
from nfsgeo.training import load_config, prepare

ROOT = Path(nfsgeo.__file__).parent


def entered(call: Callable[[], object]) -> set[str]:
    """The files of which a call runs functions, when it is made for the second time."""
    files: set[str] = set()

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(ROOT):
            files.add(frame.f_code.co_filename)

    call()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return files


def test_a_step_on_a_batch_with_its_graphs(waves, tiny):
    """Prediction, loss, gradient and the step of the optimiser."""
    experiment = prepare(load_config(overrides=tiny | {"data.file": str(waves)}))
    module, train = experiment.module, experiment.data.parts["train"]
    module.log = lambda *_, **__: None  # type: ignore[method-assign]
    batch = experiment.data.collate["train"]([train[0], train[1]])
    optimiser = torch.optim.Adam(module.parameters())

    def step() -> None:
        optimiser.zero_grad()
        module.training_step(batch, 0).backward()
        optimiser.step()

    files = entered(step)
    assert 10 < len(files) <= 20, sorted(files)


def test_a_prediction_at_query_points():
    forecaster = nfsgeo.load("ns-small")
    x, pos, query_pos = torch.randn(60, 10, 1), torch.rand(60, 2), torch.rand(9, 2)
    files = entered(lambda: forecaster.predict(x, pos, query_pos=query_pos))
    assert 10 < len(files) <= 26, sorted(files)
