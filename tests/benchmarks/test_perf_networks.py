"""What the benchmarks of speed compare is the same network."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nfsgeo.models import MODELS, num_parameters
from nfsgeo_benchmarks.perf import (
    interpolation,
    neuraloperator,
    recurrent,
    search,
    solver,
)

FNO = {"size": 8, "time_steps": 4, "samples": 2, "width": 8, "depth": 2, "modes": 2}
DCRNN = {"points": 20, "time_steps": 3, "samples": 2, "radius": 0.4}


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> list[torch.nn.Module]:
    """Collects the networks that learn."""
    found: list[torch.nn.Module] = []
    for module in (neuraloperator, recurrent, solver):
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
    learns(neuraloperator.our_fno(tmp_path, **FNO))
    learns(neuraloperator.their_fno(tmp_path, **FNO))
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


def test_nfs_with_everything_saved_is_nfs_written_out(tmp_path: Path) -> None:
    sizes = {"points": 16, "time_steps": 3, "samples": 2}
    small = {"width": 4, "depth": 1, "modes": 1, "hidden": 4}
    settings = {**MODELS["nfs"].paper, **small}
    run = solver.nfs_step(tmp_path, **sizes, settings=settings)
    plain = solver.plain_nfs_step(tmp_path, **sizes, settings=settings)
    for tolerance in (1e-6, 1e-3, 1e-3):
        assert run() == pytest.approx(plain(), rel=tolerance)


def test_the_core_is_nfs_without_interpolation(
    tmp_path: Path, networks: list[torch.nn.Module]
) -> None:
    sizes = {"points": 16, "time_steps": 3, "samples": 2}
    learns(solver.nfs_step(tmp_path, **sizes, settings={"back_width": None}))
    learns(solver.core_step(tmp_path, **sizes))
    nfs, core = networks
    for part in ("lift", "blocks", "projector"):
        assert num_parameters(getattr(nfs, part)) == num_parameters(getattr(core, part))
    with pytest.raises(ValueError, match="15 points: expected a square"):
        solver.core_step(tmp_path, points=15, time_steps=3, samples=2)


def test_predictions_at_other_points(tmp_path: Path) -> None:
    run = solver.nfs_prediction(tmp_path, points=16, time_steps=3, queries=50)
    assert run() == run()


@pytest.mark.parametrize("training", [False, True])
def test_interpolation_written_out_is_the_same(tmp_path: Path, training: bool) -> None:
    sizes = {"points": 64, "time_steps": 3, "training": training}
    fused = interpolation.up_and_down(tmp_path, **sizes)
    plain = interpolation.up_and_down(tmp_path, **sizes, fused=False)
    assert fused() == pytest.approx(plain(), rel=1e-5)


def test_searches_find_the_same(tmp_path: Path) -> None:
    sizes = {"points": 300, "neighbours": 8}
    found = [
        search.our_search(tmp_path, **sizes, backend=backend)().shape[1]
        for backend in ("scipy", "cell_list")
    ]
    found.append(len(search.dense_search(tmp_path, **sizes)()))
    if importlib.util.find_spec("torch_cluster"):
        found.append(search.torch_cluster_search(tmp_path, **sizes)().shape[1])
    assert set(found) == {found[0]} and found[0] > 1000


def test_gino_is_of_the_same_size(
    tmp_path: Path, networks: list[torch.nn.Module]
) -> None:
    if importlib.util.find_spec("torch_scatter") is None:
        pytest.skip("torch-scatter is not installed")
    sizes = {"side": 8, "samples": 2, "width": 8, "depth": 2, "modes": 2}
    for time_steps in (None, 3):
        networks.clear()
        for make in (neuraloperator.nfs_beside_gino, neuraloperator.their_gino):
            learns(make(tmp_path, **sizes, hidden=8, radius=0.2, time_steps=time_steps))
        ours, theirs = networks
        block, convolution = ours.blocks[0].mix, theirs.fno_blocks.convs[0]
        if time_steps is None:
            # A complex weight counts once; theirs is complex, ours pairs of numbers.
            assert num_parameters(block) == convolution.weight.numel()
