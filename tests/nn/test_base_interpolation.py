"""Interpolation of scattered data without anything learned."""

from __future__ import annotations

import math

import pytest
import torch

from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.nn import interpolate


@pytest.mark.parametrize("dim", [1, 2])
def test_converges_on_the_torus(dim):
    """Third order, at points on the seam as well."""
    domain = Domain.unit(dim)
    queries = torch.rand(60, dim, dtype=torch.float64)
    queries[:5] = 0

    def field(pos: torch.Tensor) -> torch.Tensor:
        values = torch.sin(2 * math.pi * pos).sum(1) + torch.cos(
            4 * math.pi * pos[:, 0]
        )
        return values[:, None, None]

    errors = []
    for size in (16, 64):
        pos = equispaced_grid(domain, (size,) * dim, dtype=torch.float64)
        jitter = 0.6 / size * (torch.rand_like(pos) - 0.5)
        pos = domain.wrap(pos + jitter)
        out = interpolate(field(pos), pos, queries, domain)
        errors.append((out - field(queries)).abs().mean())
    assert math.log(errors[0] / errors[1], 4) > 2.6


def test_samples_of_a_batch_do_not_mix():
    domain = Domain.unit(2)
    pos, queries = torch.rand(90, 2), torch.rand(7, 2)
    batch = torch.tensor([0] * 40 + [1] * 50)
    query_batch = torch.tensor([0, 0, 0, 1, 1, 1, 1])
    x = torch.randn(90, 3, 2)
    together = interpolate(
        x, pos, queries, domain, batch=batch, query_batch=query_batch
    )
    assert together.shape == (7, 3, 2)
    for sample in (0, 1):
        own = batch == sample
        x_own = torch.where(own[:, None, None], x, torch.zeros_like(x))
        alone = interpolate(
            x_own, pos, queries, domain, batch=batch, query_batch=query_batch
        )
        here = query_batch == sample
        torch.testing.assert_close(together[here], alone[here])
        assert (alone[~here] == 0).all()
