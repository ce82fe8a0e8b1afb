"""Kriging: interpolation of scattered data by the covariance of the fields."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Domain
from nfsgeo.geometry.bipartite import outside_inference

__all__ = ["StationaryCovariance", "kriging_graph", "seen_points", "within_reach"]

# Frequencies on an axis over those that a grid of as many points resolves.
FREQUENCIES = 3.0
# Points with weights at a query; a larger system gains nothing.
NEIGHBOURS = 64
# Most points for which one system is solved faster than one for each query.
ONE_SYSTEM = 128
# Most points times waves for which covariances are affordable.
MOST_WAVES = 2**24
# Queries whose systems are solved at a time.
ROWS = 1024


class StationaryCovariance(nn.Module):
    r"""Stationary covariance of a field at two points.

    .. math:: k(x, y) = \sum_f S(f) \cos 2\pi f \cdot (x - y), \qquad
        S(f) \propto (1 + |\ell f|^2)^{-p} \, e^{-(s |\ell f|)^2}

    with a length scale :math:`\ell` on every axis: a Matérn covariance with a Gaussian
    cut-off, as viscosity causes it. The sum over the frequencies of the box is a
    covariance on the torus. Axes that are not periodic are embedded in a torus of twice
    their length, so that their ends are not correlated. Positions are taken in units of
    the box.

    Args:
        domain: the normalised box, with its periodic axes.
        parameters: :math:`\log \ell` of each axis in units of the box, :math:`\log p`,
            :math:`\log s`, and the logarithms of the variances of the spatial mean and
            of the noise over that of the field, ``[d + 4]``.
        expected: expected value of each component, in the units of the data, ``[C]``.
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
        """Return the covariances of several sets of points with the first set.

        Args:
            num_points: number of points that the frequencies should resolve.
            pos: sets of points ``[n, d]``, ``[m, d]``, ...

        Returns:
            ``[n, n]``, ``[m, n]``, ..., float64; those of a field of variance 1, plus
            the variance of the spatial mean.
        """
        waves, spectrum = self._spectrum(num_points, pos[0].device)
        features = [self._features(points, waves) for points in pos]
        first = features[0] * spectrum.repeat(2)
        mean = self.fitted[-2].exp().to(pos[0].device)
        return [feature @ first.T + mean for feature in features]

    def _features(self, pos: Tensor, waves: Tensor) -> Tensor:
        lower = torch.tensor(self.domain.lower, dtype=torch.float64)
        lengths = torch.tensor(self.domain.lengths, dtype=torch.float64)
        unit = (pos.double() - lower.to(pos.device)) / lengths.to(pos.device)
        phase = (2 * math.pi) * unit @ waves.T
        return torch.cat([phase.cos(), phase.sin()], dim=1)

    def _spectrum(self, num_points: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return frequencies ``[M, d]``, one of each opposite pair, and ``S [M]``."""
        axes = [
            torch.arange(-most, most + 1, dtype=torch.float64, device=device) / period
            for most, period in _frequencies(self.domain, num_points)
        ]
        waves = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)
        # The first half, without the constant, whose variance is a parameter.
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
    """Return whether the covariances of so many points are affordable."""
    waves = math.prod(2 * most + 1 for most, _ in _frequencies(domain, num_points))
    return num_points * waves <= MOST_WAVES


@outside_inference
def kriging_graph(
    covariance: StationaryCovariance,
    pos: Tensor,
    query_pos: Tensor,
    seen: Tensor | None = None,
) -> BipartiteGraph:
    r"""Return the best linear prediction at query points as a graph with weights.

    .. math:: (K + \sigma^2 I) \, \omega = k

    This is simple kriging (Cressie, *Statistics for Spatial Data*, section 3.4.5) of a
    field of expected value zero. The weights of a query add up to about 1 if the
    spatial mean varies, but not if it is conserved. Among more than :data:`ONE_SYSTEM`
    points, only the :data:`NEIGHBOURS` of the largest covariance with a query have
    weights. A query at an observed point has that point's value. Points behind a wall
    have no weight.

    Args:
        covariance: covariance of the field.
        pos: observed points ``[n, d]``.
        query_pos: query points ``[m, d]``.
        seen: result of :func:`seen_points`; None to compute it.
    """
    seen = seen_points(covariance.domain, pos, query_pos) if seen is None else seen
    num = len(pos) if seen is None and len(pos) <= ONE_SYSTEM else NEIGHBOURS
    num = min(len(pos), num)
    gram, others = covariance.matrices(len(pos), pos, query_pos)
    gram = gram + covariance.noise.to(gram.device) * torch.eye(len(pos)).to(gram)
    if num == len(pos) and seen is None:
        near = torch.arange(num, device=pos.device).expand(len(query_pos), -1)
        weight = torch.linalg.solve(gram, others.T).T
    else:
        if seen is not None:
            others = others.where(seen, -torch.inf)
        near = others.topk(num, dim=1).indices.sort(dim=1).values
        pairs = zip(near.split(ROWS), others.split(ROWS), strict=True)
        weight = torch.cat(
            [_solved(gram, k.gather(1, some), some) for some, k in pairs]
        )
    count = len(query_pos)
    target = torch.arange(count, device=pos.device).repeat_interleave(num)
    edges, domain = torch.stack([near.flatten(), target]), covariance.domain
    graph = BipartiteGraph.from_edges(edges, (pos, query_pos), domain)
    here = (graph.displacement == 0).all(1).view(count, num)
    here = here & (here.cumsum(1) == 1)
    alone, one_hot = here.any(1, keepdim=True), here.to(weight)
    if weight.requires_grad:  # Queries at points have the derivatives nearby.
        weight = weight + torch.where(alone, one_hot - weight.detach(), 0)
    else:
        weight = torch.where(alone, one_hot, weight)
    return replace(graph, base_weight=weight.flatten())


def seen_points(domain: Domain, pos: Tensor, query_pos: Tensor) -> Tensor | None:
    """Return which points each query sees ``[m, n]``; None without walls."""
    if domain.walls is None:
        return None
    shape = len(query_pos), len(pos), domain.dim
    pairs = query_pos[:, None].expand(shape), pos[None].expand(shape)
    return domain.visible(*pairs)


def _solved(gram: Tensor, others: Tensor, near: Tensor) -> Tensor:
    """Solve for the weights ``[m, k]`` of ``near``; 0 where ``others`` is infinite."""
    systems = gram[near[:, :, None], near[:, None]]
    hidden = others == -torch.inf
    if hidden.any():
        one = torch.eye(near.size(1)).to(gram)
        systems = torch.where(hidden[:, :, None] | hidden[:, None], one, systems)
        others = others.masked_fill(hidden, 0)
    return torch.linalg.solve(systems, others)


def _frequencies(domain: Domain, num_points: int) -> list[tuple[int, int]]:
    """Return the highest wave number and the period of each axis, over the box."""
    side = FREQUENCIES / 2 * num_points ** (1 / domain.dim)
    periods = [1 if periodic else 2 for periodic in domain.periodic]
    return [(math.ceil(side * period), period) for period in periods]
