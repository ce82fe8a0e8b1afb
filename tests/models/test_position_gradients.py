"""Derivatives of whole models with respect to positions."""

import pytest
import torch
from torch import Tensor, nn

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.models import Model, Problem, build_model

SMALL = {"width": 4, "depth": 1, "modes": 2, "hidden": 4, "back_width": 4}

NUM = 20
PROBLEM = Problem(Domain.unit(2), 1, 1, 2, 2, NUM, None, True)


def nfs(**settings: object) -> Model:
    torch.manual_seed(0)
    model = build_model("nfs", PROBLEM, {**SMALL, **settings}).double()
    for part in model.modules():
        if type(part).__name__ == "SpectralConv":
            part.weight = nn.Parameter(part.weight.double())
    return model.eval()


def case() -> tuple[Tensor, Tensor, Tensor]:
    """Fields, observed positions, query positions."""
    generator = torch.Generator().manual_seed(1)
    sizes = (NUM, 2, 1), (NUM, 2), (3, 2)
    return tuple(
        torch.rand(size, generator=generator, dtype=torch.float64) for size in sizes
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [{}, {"kernel": "dense", "base": "mean"}, {"kernel": "gaussian", "base": "linear"}]
    + [{"base": "quadratic", "kernel_at": "points"}],
    ids=["default", "paper", "gaussian", "at points"],
)
def test_derivatives_are_those_of_finite_differences(settings):
    """In inputs, observed positions and query positions, first and second."""
    model = nfs(**settings)
    inputs = [tensor.requires_grad_() for tensor in case()]

    def predicted(x: Tensor, pos: Tensor, query_pos: Tensor) -> Tensor:
        return model(x, pos, query_pos=query_pos)

    assert torch.autograd.gradcheck(predicted, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(predicted, inputs, fast_mode=True)


def test_predictions_do_not_depend_on_whether_gradients_are_wanted():
    model = nfs()
    x, pos, query_pos = case()
    constant = model(x, pos, query_pos=query_pos)
    found = model(x, pos, query_pos=query_pos.requires_grad_())
    # The displacements of a constant graph are of single precision.
    torch.testing.assert_close(found, constant, rtol=1e-5, atol=1e-6)
    graphs = model.connect(pos, query_pos=query_pos)
    assert graphs.differentiable
    given = model(x, pos, query_pos=query_pos, graphs=graphs)
    torch.testing.assert_close(given, found)


def test_samples_on_one_mesh_have_gradients_of_their_own():
    model = nfs()
    x, pos, query_pos = case()
    both = query_pos.repeat(2, 1).requires_grad_()
    batch, query_batch = (torch.arange(2).repeat_interleave(n) for n in (NUM, 3))
    x = torch.cat([x, 2 * x])
    out = model(x, pos.repeat(2, 1), batch, query_pos=both, query_batch=query_batch)
    first, second = torch.autograd.grad(out.sum(), both)[0].split(3)
    alone = query_pos.requires_grad_()
    out = model(x[NUM:], pos, query_pos=alone)
    torch.testing.assert_close(second, torch.autograd.grad(out.sum(), alone)[0])
    assert not torch.allclose(first, second)


def test_what_has_no_full_gradient_says_what_to_use(refuses):
    x, pos, _ = case()
    x, moving = x.float(), pos.float().requires_grad_()
    mppde = build_model("mppde", PROBLEM, {"width": 32, "window": 2})
    refuses(r"observed positions.*\n?.*nfs", mppde, x, moving)
    with pytest.raises(UserError, match=r"query positions.*\n?.*such as nfs"):
        mppde(x, moving.detach(), query_pos=moving)
    model = nfs().float()
    graphs = model.connect(pos.float())
    refuses("graphs that are constants", model, x, moving, graphs=graphs)
    with torch.no_grad():
        assert not model.connect(moving).differentiable
