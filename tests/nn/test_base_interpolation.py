"""Interpolation of scattered data without anything learned."""

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
        angle = 2 * math.pi * pos
        return (angle.sin().sum(1) + (2 * angle[:, 0]).cos())[:, None, None]

    errors = []
    for size in (16, 64):
        pos = equispaced_grid(domain, (size,) * dim, dtype=torch.float64)
        jitter = 0.6 / size * (torch.rand_like(pos) - 0.5)
        pos = domain.wrap(pos + jitter)
        out = interpolate(field(pos), pos, queries, domain)
        errors.append((out - field(queries)).abs().mean())
    assert math.log(errors[0] / errors[1], 4) > 2.6


def test_samples_of_a_batch_do_not_mix():
    domain, sizes, asked = Domain.unit(2), (40, 50), (3, 4)
    x, pos, queries = torch.randn(90, 3, 2), torch.rand(90, 2), torch.rand(7, 2)
    batch, query_batch = (
        torch.arange(2).repeat_interleave(torch.tensor(n)) for n in (sizes, asked)
    )
    found = interpolate(x, pos, queries, domain, batch=batch, query_batch=query_batch)
    samples = zip(x.split(sizes), pos.split(sizes), queries.split(asked), strict=True)
    alone = torch.cat([interpolate(*sample, domain) for sample in samples])
    torch.testing.assert_close(found, alone)
