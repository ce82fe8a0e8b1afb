"""Two linear maps with a GELU between."""

from __future__ import annotations

import pytest
import torch

from nfsgeo.nn import Projector
from nfsgeo.nn import hidden_layer as module
from nfsgeo.nn.hidden_layer import hidden_layer, hidden_layer_reference
from nfsgeo.testing import assert_same

ROWS, CHANNELS, HIDDEN = 11, 3, 5


@pytest.fixture(params=[1, 4 * HIDDEN, 10**6], ids=["single", "blocks", "at once"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one row, of some, and of all."""
    monkeypatch.setattr(module, "BLOCK_CPU", request.param)
    monkeypatch.setattr(module, "BLOCK_CUDA", request.param)


def arguments(out: int, transposed: bool = False) -> list[torch.Tensor]:
    sizes = ((ROWS, CHANNELS), (HIDDEN, CHANNELS), (HIDDEN,), (out, HIDDEN), (out,))
    x, *others = (torch.randn(*size, dtype=torch.float64) for size in sizes)
    return [x.t().contiguous().t() if transposed else x, *others]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("out", [1, 2])
def test_equals_all_rows_at_a_time(block, out, transposed, device):
    given = [a.to(device) for a in arguments(out, transposed)]
    assert_same(hidden_layer, hidden_layer_reference, given)


def test_no_rows():
    x, *others = arguments(1)
    out = hidden_layer(x[:0], *(a.requires_grad_() for a in others))
    assert out.shape == (0, 1)
    out.sum().backward()
    assert others[0].grad.abs().max() == 0


def test_keeps_no_hidden_layer():
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t.numel()) or t, lambda t: t
    ):
        hidden_layer(*(a.requires_grad_() for a in arguments(1)))
    assert max(kept) < ROWS * HIDDEN


def test_mixed_precision_is_that_of_plain_layers():
    given = [a.float() for a in arguments(2)]
    with torch.autocast("cpu", torch.bfloat16):
        out = hidden_layer(*given)
        assert out.dtype == torch.bfloat16
        assert torch.equal(out, hidden_layer_reference(*given))


def test_projector_is_its_layers_in_turn():
    projector = Projector(CHANNELS, 2, HIDDEN).double()
    x = torch.randn(CHANNELS, 4, 6, dtype=torch.float64).permute(1, 2, 0)

    def in_turn(x: torch.Tensor) -> torch.Tensor:
        for layer in projector:
            x = layer(x)
        return x

    assert_same(projector, in_turn, (x,), projector.parameters())
