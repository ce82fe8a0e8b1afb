"""Interpolation by the covariance of the fields."""

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph, Domain
from nfsgeo.nn import kriging
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.nn.kriging import NEIGHBOURS, StationaryCovariance, kriging_graph

BOX = Domain.unit(2)


def covariance(
    domain: Domain = BOX, *, noise: float = -23.0, mean: float = 1.0
) -> StationaryCovariance:
    """Of smooth fields: Matérn, with a length of an eighth of a wave."""
    fitted = [0.0] * domain.dim + [1.5, -9.0, mean, noise]
    return StationaryCovariance(domain, torch.tensor(fitted), torch.zeros(1))


def points(num: int, seed: int = 0, domain: Domain = BOX) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(num, domain.dim, generator=generator, dtype=torch.float64)
    return torch.tensor(domain.lower) + unit * torch.tensor(domain.lengths)


def weights(graph: BipartiteGraph) -> Tensor:
    dense = torch.zeros(graph.num_target, graph.num_source, dtype=torch.float64)
    source, target = graph.edge_index
    return dense.index_put((target, source), graph.base_weight)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("periodic", [False, True])
def test_covariances_are_positive_definite_and_know_periods(dim, periodic):
    box = Domain((-1.0,) * dim, (2.0,) * dim, (periodic,) * dim)
    pos = points(20, domain=box)
    own, moved = covariance(box).matrices(20, pos, pos + 3.0 * torch.eye(dim)[0])
    assert torch.linalg.eigvalsh(own).min() > 0
    variance = 1 + torch.e * torch.ones(20, dtype=torch.float64)
    torch.testing.assert_close(own.diagonal(), variance)
    assert torch.allclose(own, moved, atol=1e-9) == periodic


def test_weights_are_those_of_the_best_prediction():
    """No other weights have a smaller expected error: its gradient is zero."""
    model, pos, queries = covariance(noise=-4.0), points(30), points(7, 1)
    own, others = model.matrices(30, pos, queries)
    found = weights(kriging_graph(model, pos, queries)).requires_grad_()
    error = (found @ own * found).sum() - 2 * (found * others).sum()
    error = error + model.noise * found.square().sum()
    (gradient,) = torch.autograd.grad(error, found)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-9)


def test_a_mean_that_varies_is_kept_and_one_that_is_conserved_is_known():
    free, known = (
        weights(kriging_graph(covariance(mean=mean), points(30), points(7, 1))).sum(1)
        for mean in (5.0, -25.0)
    )
    torch.testing.assert_close(free, torch.ones_like(free), rtol=0, atol=0.02)
    assert (known - 1).abs().max() > 0.02


@pytest.mark.parametrize("num", [20, 3 * NEIGHBOURS])
def test_observed_points_keep_their_values(num):
    pos = points(num)
    graph = kriging_graph(covariance(noise=-3.0), pos, pos[5:9])
    torch.testing.assert_close(weights(graph), torch.eye(num).double()[5:9])


def test_neighbours_are_enough(monkeypatch):
    """A smooth field, which all points together tell best, loses little."""
    monkeypatch.setattr(kriging, "ONE_SYSTEM", 0)
    model, pos, queries = covariance(), points(2 * NEIGHBOURS), points(50, 1)

    def field(at: Tensor) -> Tensor:
        angle = 2 * torch.pi * at
        return (angle[:, 0].sin() * (2 * angle[:, 1]).cos())[:, None, None]

    found = interpolate_along(field(pos), kriging_graph(model, pos, queries))
    own, others = model.matrices(len(pos), pos, queries)
    own = own + model.noise * torch.eye(len(pos))
    by_all = others @ torch.linalg.solve(own, field(pos)[:, 0])
    error = (found[:, 0] - field(queries)[:, 0]).abs().mean()
    assert error < 4 * (by_all - field(queries)[:, 0]).abs().mean() + 1e-6


@pytest.mark.parametrize("shift, scale", [(1e6, 1.0), (0.0, 1e-3), (-7.0, 360.0)])
def test_weights_do_not_depend_on_origin_and_units(shift, scale):
    ends, units = (points(40), points(9, 1)), torch.tensor([scale, 1.0])
    other = Domain((shift, shift), (shift + scale, shift + 1.0), (True, True))
    graph = kriging_graph(covariance(), *ends)
    moved = kriging_graph(covariance(other), *(shift + units * pos for pos in ends))
    torch.testing.assert_close(weights(graph), weights(moved), rtol=0, atol=1e-4)
