"""How many files of nfsgeo a training step goes through."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

import nfsgeo
from nfsgeo.training import load_config, prepare

ROOT = Path(nfsgeo.__file__).parent


def test_a_step_on_a_batch_with_its_graphs(waves: Path, tiny: dict[str, Any]) -> None:
    """Prediction, loss, gradient and the step of the optimiser, for the second time."""
    experiment = prepare(load_config(overrides=tiny | {"data.file": str(waves)}))
    module, train = experiment.module, experiment.data.parts["train"]
    module.log = lambda *_, **__: None  # type: ignore[method-assign]
    batch = experiment.data.collate["train"]([train[0], train[1]])
    optimiser = torch.optim.Adam(module.parameters())
    files: set[str] = set()

    def entered(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(ROOT):
            files.add(frame.f_code.co_filename)

    def step() -> None:
        optimiser.zero_grad()
        module.training_step(batch, 0).backward()
        optimiser.step()

    step()
    sys.setprofile(entered)
    try:
        step()
    finally:
        sys.setprofile(None)
    assert 10 < len(files) <= 25, sorted(files)
