"""Two linear maps with a GELU between."""

from functools import partial

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


def arguments(out: int, *, edges: bool = False) -> list[torch.Tensor]:
    """With ``edges``, a bias for each of four sources."""
    bias = (4, HIDDEN) if edges else (HIDDEN,)
    sizes = ((ROWS, CHANNELS), (HIDDEN, CHANNELS), bias, (out, HIDDEN), (out,))
    return [torch.randn(*size, dtype=torch.float64) for size in sizes]


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("out", [1, 2])
def test_equals_all_rows_at_a_time(block, out, transposed, edges, device):
    """Results, first and second derivatives."""
    given = [a.to(device) for a in arguments(out, edges=edges)]
    if transposed:
        given[0] = given[0].t().contiguous().t()
    source = torch.randint(4, (ROWS,), device=device) if edges else None
    pair = [partial(f, source=source) for f in (hidden_layer, hidden_layer_reference)]
    assert_same(*pair, given)

    def slopes(*given: torch.Tensor, layer) -> torch.Tensor:
        out = layer(*given).sin().sum()
        grads = torch.autograd.grad(out, given, create_graph=True)
        return torch.cat([grad.flatten() for grad in grads])

    assert_same(*(partial(slopes, layer=each) for each in pair), given)


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
    in_turn = torch.nn.Sequential(*projector)
    assert_same(projector, in_turn, (x,), projector.parameters())
