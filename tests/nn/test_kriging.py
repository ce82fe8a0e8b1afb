"""Interpolation by the covariance of the fields."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import BipartiteGraph, Domain
from nfsgeo.nn import interpolate, kriging
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.nn.kriging import (
    NEIGHBOURS,
    StationaryCovariance,
    kriging_graph,
)


def covariance(
    domain: Domain, power: float = 1.5, noise: float = -23.0, mean: float = 1.0
) -> StationaryCovariance:
    """Of smooth fields: Matérn, with a length of an eighth of a wave."""
    fitted = [0.0] * domain.dim + [power, -9.0, mean, noise]
    return StationaryCovariance(domain, torch.tensor(fitted), torch.zeros(1))


def points(num: int, domain: Domain, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(num, domain.dim, generator=generator, dtype=torch.float64)
    return torch.tensor(domain.lower) + unit * torch.tensor(domain.lengths)


def weights(graph: BipartiteGraph) -> Tensor:
    dense = torch.zeros(graph.num_target, graph.num_source, dtype=torch.float64)
    source, target = graph.edge_index
    return dense.index_put((target, source), graph.base_weight)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("periodic", [False, True])
def test_covariances_are_positive_definite_and_know_periods(
    dim: int, periodic: bool
) -> None:
    box = Domain((-1.0,) * dim, (2.0,) * dim, (periodic,) * dim)
    pos = points(20, box)
    own, moved = covariance(box).matrices(20, pos, pos + 3.0 * torch.eye(dim)[0])
    assert torch.linalg.eigvalsh(own).min() > 0
    variance = 1 + torch.e * torch.ones(20, dtype=torch.float64)
    torch.testing.assert_close(own.diagonal(), variance)
    assert torch.allclose(own, moved, atol=1e-9) == periodic


def test_weights_are_those_of_the_best_prediction() -> None:
    """No other weights have a smaller expected error: its gradient is zero."""
    box = Domain.unit(2)
    model, pos, queries = (
        covariance(box, noise=-4.0),
        points(30, box),
        points(7, box, 1),
    )
    own, others = model.matrices(30, pos, queries)
    found = weights(kriging_graph(model, pos, queries)).requires_grad_()
    error = (found @ own * found).sum() - 2 * (found * others).sum()
    error = error + model.noise * found.square().sum()
    (gradient,) = torch.autograd.grad(error, found)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-9)


def test_a_mean_that_varies_is_kept_and_one_that_is_conserved_is_known() -> None:
    box = Domain.unit(2)
    pos, queries = points(30, box), points(7, box, 1)
    free = weights(kriging_graph(covariance(box, mean=5.0), pos, queries)).sum(1)
    torch.testing.assert_close(free, torch.ones_like(free), rtol=0, atol=0.02)
    known = weights(kriging_graph(covariance(box, mean=-25.0), pos, queries)).sum(1)
    assert (known - 1).abs().max() > 0.02


@pytest.mark.parametrize("num", [20, 3 * NEIGHBOURS])
def test_observed_points_keep_their_values(num: int) -> None:
    box = Domain.unit(2)
    pos = points(num, box)
    graph = kriging_graph(covariance(box, noise=-3.0), pos, pos[5:9])
    torch.testing.assert_close(weights(graph), torch.eye(num).double()[5:9])


def test_neighbours_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smooth field, which all points together tell best, loses little."""
    monkeypatch.setattr(kriging, "ONE_SYSTEM", 0)
    box = Domain.unit(2)
    pos, queries = points(2 * NEIGHBOURS, box), points(50, box, 1)
    model = covariance(box)

    def field(at: Tensor) -> Tensor:
        angle = 2 * torch.pi * at
        return (angle[:, 0].sin() * (2 * angle[:, 1]).cos())[:, None, None]

    found = interpolate_along(field(pos), kriging_graph(model, pos, queries))
    own, others = model.matrices(len(pos), pos, queries)
    own = own + model.noise * torch.eye(len(pos))
    by_all = others @ torch.linalg.solve(own, field(pos)[:, 0])
    error = (found[:, 0] - field(queries)[:, 0]).abs().mean()
    assert error < 4 * (by_all - field(queries)[:, 0]).abs().mean() + 1e-6


def test_sparse_points_tell_more_of_a_field_whose_covariance_is_known() -> None:
    """Fields drawn from the covariance: kriging is ahead of a spline."""
    box = Domain.unit(2)
    model, pos, queries = covariance(box), points(64, box), points(100, box, 1)
    together = torch.cat([pos, queries])
    matrix = model.matrices(64, together)[0] + 1e-9 * torch.eye(164)
    normal = torch.randn(164, 20, generator=torch.Generator().manual_seed(2)).double()
    fields = (torch.linalg.cholesky(matrix) @ normal)[:, None]
    truth = fields[64:]
    kriged = interpolate_along(fields[:64], kriging_graph(model, pos, queries))
    spline = interpolate(fields[:64], pos, queries, box)
    assert (kriged - truth).square().mean() < (spline - truth).square().mean()


@pytest.mark.parametrize("shift, scale", [(1e6, 1.0), (0.0, 1e-3), (-7.0, 360.0)])
def test_weights_do_not_depend_on_origin_and_units(shift: float, scale: float) -> None:
    box, pos, queries = (
        Domain.unit(2),
        points(40, Domain.unit(2)),
        points(9, Domain.unit(2), 1),
    )
    units = torch.tensor([scale, 1.0])
    other = Domain((shift, shift), (shift + scale, shift + 1.0), (True, True))
    graph = kriging_graph(covariance(box), pos, queries)
    moved = kriging_graph(
        covariance(other), shift + units * pos, shift + units * queries
    )
    torch.testing.assert_close(weights(graph), weights(moved), rtol=0, atol=1e-4)
