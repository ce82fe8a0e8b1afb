"""What the benchmarks of speed compare is the same network."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nfsgeo.models import num_parameters
from nfsgeo_benchmarks.perf import fourier, recurrent

FNO = {"size": 8, "records": 4, "samples": 2, "width": 8, "depth": 2, "modes": 2}
DCRNN = {"points": 20, "records": 3, "samples": 2, "radius": 0.4}


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> list[torch.nn.Module]:
    """Collects the networks that learn."""
    found: list[torch.nn.Module] = []
    for module in (fourier, recurrent):
        plain = module.step

        def step(network, predict, target, plain=plain):
            found.append(network)
            return plain(network, predict, target)

        monkeypatch.setattr(module, "step", step)
    return found


def learns(run: Callable[[], float]) -> None:
    losses = [run() for _ in range(5)]
    assert losses[-1] < losses[0]


def test_fno_has_as_many_weights_as_neuraloperators(
    tmp_path: Path, networks: list[torch.nn.Module]
) -> None:
    learns(fourier.our_fno(tmp_path, **FNO))
    learns(fourier.their_fno(tmp_path, **FNO))
    ours, theirs = networks
    assert num_parameters(ours) == num_parameters(theirs)


@pytest.mark.parametrize(
    "reference", [recurrent.their_dcrnn, recurrent.their_batched_dcrnn]
)
def test_dcrnn_is_the_published_one(
    tmp_path: Path,
    networks: list[torch.nn.Module],
    reference: Callable[..., Callable[[], float]],
) -> None:
    if importlib.util.find_spec("torch_geometric_temporal") is None:
        pytest.skip("torch-geometric-temporal is not installed")
    run = recurrent.our_dcrnn(tmp_path, **DCRNN)
    their_run = reference(tmp_path, **DCRNN)
    ours, theirs = networks
    theirs.output.load_state_dict(ours.output.state_dict())
    for cell, their_cell in zip(ours.cells, theirs.cells, strict=True):
        matrices = [*cell.gates.weight.chunk(2, -1), cell.candidate.weight]
        for gate, matrix in zip("zrh", matrices, strict=True):
            # Biases start at zero in both.
            convolution = getattr(their_cell.cell, f"conv_x_{gate}")
            convolution.weight.data.copy_(matrix.detach())
    # The first agrees by the outputs, the others by the gradients, whose smallest
    # Adam makes as large as any.
    for tolerance in (1e-6, 1e-3, 1e-3):
        assert run() == pytest.approx(their_run(), rel=tolerance)
