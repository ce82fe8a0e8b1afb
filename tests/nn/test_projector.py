"""Two linear maps with a GELU between, a block of rows at a time."""

import pytest
import torch

from nfsgeo.nn import Projector, mixer_block
from nfsgeo.testing import assert_same

ROWS, CHANNELS, HIDDEN = 24, 3, 5


@pytest.fixture(params=[1, 4 * HIDDEN, 10**6], ids=["single", "blocks", "at once"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one row, of some, and of all."""
    monkeypatch.setattr(mixer_block, "BLOCK_CPU", request.param)
    monkeypatch.setattr(mixer_block, "BLOCK_CUDA", request.param)


@pytest.mark.parametrize("out", [1, 2])
def test_is_its_layers_in_turn(block, out, device):
    """Results, first and second derivatives."""
    projector = Projector(CHANNELS, out, HIDDEN).to(device, torch.float64)
    x = torch.randn(CHANNELS, 4, 6, dtype=torch.float64, device=device)
    x, weights = x.permute(1, 2, 0), list(projector.parameters())
    pair = projector, torch.nn.Sequential(*projector)
    assert_same(*pair, (x,), weights)

    def slopes(layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        total = layer(x).sin().sum()
        grads = torch.autograd.grad(total, (x, *weights), create_graph=True)
        return torch.cat([grad.flatten() for grad in grads])

    assert_same(*(lambda x, f=f: slopes(f, x) for f in pair), (x,), weights)


def test_no_rows():
    projector = Projector(CHANNELS, 1, HIDDEN)
    out = projector(torch.empty(0, CHANNELS))
    assert out.shape == (0, 1)
    out.sum().backward()
    assert projector[0].weight.grad.abs().max() == 0


def test_keeps_no_hidden_layer():
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t.numel()) or t, lambda t: t
    ):
        Projector(CHANNELS, 1, HIDDEN)(torch.randn(ROWS, CHANNELS))
    assert max(kept, default=0) < ROWS * HIDDEN


def test_mixed_precision_is_that_of_plain_layers():
    projector, x = Projector(CHANNELS, 2, HIDDEN), torch.randn(ROWS, CHANNELS)
    with torch.autocast("cpu", torch.bfloat16):
        out = projector(x)
        assert out.dtype == torch.bfloat16
        assert torch.equal(out, torch.nn.Sequential(*projector)(x))
