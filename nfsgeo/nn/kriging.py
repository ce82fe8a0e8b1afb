"""Interpolation of scattered data by the covariance of the fields."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Domain
from nfsgeo.geometry.bipartite import outside_inference

__all__ = ["StationaryCovariance", "kriging_graph", "seen_points", "within_reach"]

# Frequencies on an axis, as a multiple of those that as many points on a grid resolve.
FREQUENCIES = 3.0
# Points that the value at a query is taken from; a larger system gains nothing.
NEIGHBOURS = 64
# One system of so many points is solved sooner than one of the nearest for each query.
ONE_SYSTEM = 128
# Points times waves: what is computed at once for every pair of points.
MOST_WAVES = 2**24
# Rows of queries whose systems are solved at a time.
ROWS = 1024


class StationaryCovariance(nn.Module):
    r"""The covariance of a field at two points, a function of their difference.

    .. math:: k(x, y) = \sum_f S(f) \cos 2\pi f \cdot (x - y), \qquad
        S(f) \propto (1 + |\ell f|^2)^{-p} \, e^{-(s |\ell f|)^2}

    with a length :math:`\ell` on every axis: a Matérn covariance, whose spectrum
    viscosity may have cut. A sum over the frequencies of the box is a covariance on
    the torus; axes that are not periodic lie in a torus of twice their length, so that
    their ends know nothing of each other. Positions are taken in units of the box.

    Args:
        domain: the normalised box, with its periodic axes.
        parameters: :math:`\log \ell` of each axis in units of the box, :math:`\log p`,
            :math:`\log s`, and the logarithms of the variances of the spatial mean and
            of the noise over that of the field, ``[d + 4]``.
        expected: value of each component, in the units of the data, ``[C]``.
    """

    fitted: Tensor
    expected: Tensor

    def __init__(self, domain: Domain, parameters: Tensor, expected: Tensor) -> None:
        super().__init__()
        self.domain = domain
        self.register_buffer("fitted", parameters.to(torch.float64))
        self.register_buffer("expected", expected.to(torch.float64))

    @property
    def noise(self) -> Tensor:
        """Variance of the noise over that of the field."""
        return self.fitted[-1].exp()

    def matrices(self, num_points: int, *pos: Tensor) -> list[Tensor]:
        """Covariances of the first points with those of each set, itself the first.

        Args:
            num_points: as many as the frequencies should resolve.
            pos: sets of points ``[n, d]``, ``[m, d]``, ...

        Returns:
            ``[n, n]``, ``[m, n]``, ..., float64; 1 for a point with itself, and the
            variance of the spatial mean for any two.
        """
        waves, spectrum = self._spectrum(num_points, pos[0].device)
        features = [self._features(points, waves) for points in pos]
        first = features[0] * spectrum.repeat(2)
        mean = self.fitted[-2].exp().to(pos[0].device)
        return [each @ first.T + mean for each in features]

    def _features(self, pos: Tensor, waves: Tensor) -> Tensor:
        lower = torch.tensor(self.domain.lower, dtype=torch.float64)
        lengths = torch.tensor(self.domain.lengths, dtype=torch.float64)
        unit = (pos.double() - lower.to(pos.device)) / lengths.to(pos.device)
        phase = (2 * math.pi) * unit @ waves.T
        return torch.cat([phase.cos(), phase.sin()], dim=1)

    def _spectrum(self, num_points: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Frequencies ``[M, d]``, one of each pair of opposite ones, and ``S [M]``."""
        axes = [
            torch.arange(-most, most + 1, dtype=torch.float64, device=device) / period
            for most, period in _frequencies(self.domain, num_points)
        ]
        waves = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)
        # The first half of all but the constant, whose variance is a parameter.
        waves = waves.flatten(0, -2)
        waves = waves[: len(waves) // 2]
        dim = self.domain.dim
        power, decay = self.fitted[dim : dim + 2].to(device).exp()
        square = (waves * self.fitted[:dim].to(device).exp()).square().sum(1)
        logarithm = -power * square.log1p() - decay.square() * square
        return waves, logarithm.softmax(0)

    def extra_repr(self) -> str:
        return f"parameters={[round(p, 3) for p in self.fitted.tolist()]}"


def within_reach(domain: Domain, num_points: int) -> bool:
    """Whether there are few enough points for their covariances to be computed."""
    waves = math.prod(2 * most + 1 for most, _ in _frequencies(domain, num_points))
    return num_points * waves <= MOST_WAVES


@outside_inference
def kriging_graph(
    covariance: StationaryCovariance,
    pos: Tensor,
    query_pos: Tensor,
    seen: Tensor | None = None,
) -> BipartiteGraph:
    r"""The best linear prediction at the queries, as the weights of a graph.

    .. math:: (K + \sigma^2 I) \, \omega = k

    Simple kriging (Cressie, *Statistics for Spatial Data*, section 3.4.5) of a field
    whose expected value is zero. The weights of a query add up to about 1 where the
    spatial mean varies; where it is conserved, they know it. Among more than
    :data:`ONE_SYSTEM` points a query takes from the :data:`NEIGHBOURS` of the largest
    covariance with it. One that is an observed point has that point's value. Points
    behind a wall have no weight.

    Args:
        covariance: of the field.
        pos: observed points ``[n, d]``.
        query_pos: where the field is wanted ``[m, d]``.
        seen: which points each query sees, of :func:`seen_points`; None to find out.
    """
    seen = seen_points(covariance.domain, pos, query_pos) if seen is None else seen
    num = len(pos) if seen is None and len(pos) <= ONE_SYSTEM else NEIGHBOURS
    num = min(len(pos), num)
    own, others = covariance.matrices(len(pos), pos, query_pos)
    own = own + covariance.noise.to(own.device) * torch.eye(len(pos)).to(own)
    if num == len(pos) and seen is None:
        near = torch.arange(num, device=pos.device).expand(len(query_pos), -1)
        weight = torch.linalg.solve(own, others.T).T
    else:
        if seen is not None:
            others = others.where(seen, -torch.inf)
        near = others.topk(num, dim=1).indices.sort(dim=1).values
        pairs = zip(near.split(ROWS), others.split(ROWS), strict=True)
        weight = torch.cat([_solved(own, k.gather(1, some), some) for some, k in pairs])
    count = len(query_pos)
    target = torch.arange(count, device=pos.device).repeat_interleave(num)
    edges, domain = torch.stack([near.flatten(), target]), covariance.domain
    graph = BipartiteGraph.from_edges(edges, (pos, query_pos), domain)
    here = (graph.displacement == 0).all(1).view(count, num)
    here = here & (here.cumsum(1) == 1)
    alone, own = here.any(1, keepdim=True), here.to(weight)
    if weight.requires_grad:  # Derivatives are those of queries nearby.
        weight = weight + torch.where(alone, own - weight.detach(), 0)
    else:
        weight = torch.where(alone, own, weight)
    return replace(graph, base_weight=weight.flatten())


def seen_points(domain: Domain, pos: Tensor, query_pos: Tensor) -> Tensor | None:
    """Which points each query sees ``[m, n]``; None where there are no walls."""
    if domain.walls is None:
        return None
    shape = len(query_pos), len(pos), domain.dim
    pairs = query_pos[:, None].expand(shape), pos[None].expand(shape)
    return domain.visible(*pairs)


def _solved(own: Tensor, others: Tensor, near: Tensor) -> Tensor:
    """Weights ``[m, k]`` of the points ``near``; none where ``others`` is infinite."""
    systems = own[near[:, :, None], near[:, None]]
    hidden = others == -torch.inf
    if hidden.any():
        one = torch.eye(near.size(1)).to(own)
        systems = torch.where(hidden[:, :, None] | hidden[:, None], one, systems)
        others = others.masked_fill(hidden, 0)
    return torch.linalg.solve(systems, others)


def _frequencies(domain: Domain, num_points: int) -> list[tuple[int, int]]:
    """Highest number of waves in a period, and the period in units of the box."""
    side = FREQUENCIES / 2 * num_points ** (1 / domain.dim)
    periods = [1 if periodic else 2 for periodic in domain.periodic]
    return [(math.ceil(side * period), period) for period in periods]
