"""Mixers between interpolations from points to a grid and back."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Self

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from nfsgeo.geometry import (
    Domain,
    Graphs,
    LatentCoordinates,
    equispaced_grid,
    nearest_neighbour_graph,
)
from nfsgeo.models.mixer import MixerOperator, MixerSettings
from nfsgeo.models.settings import GraphSettings, GridSize, Strength
from nfsgeo.models.task import Problem
from nfsgeo.nn import (
    ChannelKernel,
    DenseKernel,
    EdgeNetwork,
    GaussianKernel,
    InterpolationResampling,
    KernelInterpolation,
    PointPath,
    Resampling,
)

__all__ = ["InterpolationSettings", "KernelName", "PointMixer", "grid_shape_for"]

logger = logging.getLogger(__name__)

# The paper's kernel has a matrix for every edge and adds to the mean of the neighbours.
PAPER_KERNEL = {"kernel": "dense", "base": "mean", "hidden": 64, "back_width": None}
# Neighbours whose mean distance is the local spacing if there are no messages.
SPACING_OF = 8
# Channels that share a weight of a kernel by channels.
SHARED_BY = 4

KernelName = Literal["dense", "channel", "gaussian", "none"]


class InterpolationSettings(MixerSettings, GraphSettings):
    """Settings of the interpolation to and from the grid.

    Attributes:
        grid: nodes along the shortest axis; on a sphere, the root of the number of
            nodes. ``None`` for about as many nodes as points, or fewer in some models.
        radius_factor: factor ``c`` of the radius at which every node has ``c log n``
            neighbours among ``n`` points on average, or every point among ``n`` nodes
            if there are fewer nodes than points.
        kernel: a ``dense`` matrix for each edge, a weight for each ``channel``, or a
            ``gaussian``; ``none`` for the base interpolation only.
        hidden: width of the kernel's network.
        back_width: channels at each time step that are interpolated to the points,
            linear maps of those at the nodes; ``None`` for all channels, as in the
            paper and if time steps are not tokens.
        base: base interpolation, to which a learned kernel adds: the ``mean`` of the
            neighbours, as in the paper, moving least squares that are exact for
            ``linear`` or ``quadratic`` fields, or a local polyharmonic ``spline``.
            ``None`` for a spline, or ``linear`` without time, because splines overshoot
            where coefficients jump.
        kernel_at: whether the sources of the kernel on the way to the grid are the
            ``points``, or the ``nodes`` of the grid after the base interpolation;
            ``None`` for points with the mean, and else nodes.
        absolute_position: whether the kernel depends on the position of the source. On
            a sphere, without it the model depends on no position and no direction, and
            commutes with rotations.
        latent: whether the grid is equispaced in latent coordinates, in which the
            points of a graded mesh are spread evenly, see
            :class:`~nfsgeo.geometry.LatentCoordinates`.
        latent_strengths: strength of their map for each axis; ``None`` if the points of
            each sample decide. Training on meshes of the samples takes the medians over
            training samples, so that all meshes of a density have one map.
        point_channels: channels of the point features that bypass the grid, see
            :class:`~nfsgeo.nn.PointPath`; 0 for none.
        neighbours: nearest points from which a point or query point receives learned
            messages, itself included; 0 for no messages.
        messages: channels of a message.
        margin: padding of each axis that is not periodic, over its number of nodes. It
            separates opposite sides of the box, which touch on the torus of the Fourier
            layers.
    """

    grid: GridSize | None = None
    radius_factor: PositiveFloat = 2.3
    kernel: KernelName = "channel"
    hidden: PositiveInt = 16
    back_width: PositiveInt | None = 8
    base: Literal["mean", "linear", "quadratic", "spline"] | None = None
    kernel_at: Literal["points", "nodes"] | None = None
    absolute_position: bool = True
    latent: bool = False
    latent_strengths: tuple[Strength, ...] | None = None
    point_channels: NonNegativeInt = 0
    neighbours: NonNegativeInt = 0
    messages: PositiveInt = 16
    margin: NonNegativeFloat = 0.0

    def completed(self, problem: Problem) -> Self:
        """Return the settings with the base interpolation filled in."""
        base = self.base or ("spline" if problem.has_time else "linear")
        # The mean of neighbours is too inaccurate as input of a kernel at the nodes.
        kernel_at = self.kernel_at or ("points" if base == "mean" else "nodes")
        return self.model_copy(update={"base": base, "kernel_at": kernel_at})


class PointMixer(MixerOperator):
    """Base class of mixers between interpolations from points to a grid and back.

    "Non-equispaced Fourier Neural Solvers for PDEs" (Lin et al., 2022), section 4.4. A
    subclass also inherits from a mixer on a grid, which makes the blocks.
    """

    source = "Non-equispaced Fourier Neural Solvers for PDEs (Lin et al., 2022)"
    points = True
    unseen_meshes = True
    predicts_anywhere = True
    differentiable_points = True
    # With 16 point sets, errors on unseen meshes hardly exceed those on the mesh of
    # training. No other number was tried.
    point_sets = 16
    query_points = 16
    least_fraction = 0.4
    loss_weighting = "quadrature"

    @property
    def sees_positions(self) -> bool:  # type: ignore[override]
        """Return whether positions are inputs, so that rotations matter on a sphere."""
        return self.settings.absolute_position or not self.problem.domain.curved

    @property
    def precise_positions(self) -> bool:  # type: ignore[override]
        """Return whether graphs are made in float64, as graded meshes need."""
        return self.settings.latent or self.settings.point_channels > 0

    @property
    def grid_features(self) -> int:
        """Number of inputs at each node: without node types if they bypass the grid."""
        left_out = self.problem.type_features if self.settings.point_channels else []
        return self.problem.num_features - len(left_out)

    def max_nodes(self) -> int:
        """Return the largest default number of nodes, up to rounding."""
        return 256

    def make_resampling(self) -> tuple[Resampling, Sequence[int], int | None]:
        """Make the interpolations; see :meth:`MixerOperator.make_resampling`."""
        problem, settings = self.problem, self.settings
        domain, num_points = problem.domain.normalised, problem.num_points
        back_width = settings.back_width if self.time_tokens else None
        num_nodes = min(num_points, self.max_nodes())
        shape = grid_shape_for(domain, settings.grid, num_nodes)
        # With fewer nodes than points, a radius that follows from the number of points
        # would leave points without nodes.
        ends = min(num_points, math.prod(shape))
        radius = settings.builder(problem, ends).radius
        if settings.grid and settings.base != "spline" and math.prod(shape) > ends:
            logger.warning(
                "model.settings.grid=%d has more nodes than the %d points, whose "
                "spacing the radius of base=%s follows: a finer grid changes little",
                *(settings.grid, num_points, settings.base),
            )
        to_grid = to_points = None
        if settings.kernel != "none":
            width = settings.width
            to_grid = self.learned(radius, width)
            to_points = self.learned(radius, back_width or width)
        resampling = InterpolationResampling(
            to_grid,
            to_points,
            domain,
            shape,
            radius,
            interpolation=settings.base,
            kernel_at=settings.kernel_at,
        )
        return resampling, shape, back_width

    def margin_of(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the padding of the axes; see :meth:`MixerOperator.margin_of`."""
        domain = self.problem.domain.normalised
        if domain.curved:
            return (0,)
        sizes = zip(shape, domain.periodic, strict=True)
        share = self.settings.margin
        return [0 if wraps else 2 * round(share * size / 2) for size, wraps in sizes]

    def make_path(self, back_width: int) -> PointPath | None:
        """Make the path of point features; see :meth:`MixerOperator.make_path`."""
        problem, settings = self.problem, self.settings
        if not settings.point_channels:
            return None
        return PointPath(
            problem.num_features,
            problem.dim if settings.absolute_position else 0,
            problem.dim,
            settings.width,
            back_width,
            settings.point_channels,
            settings.messages if settings.neighbours else None,
            latent=settings.latent,
            types=problem.type_features,
        )

    def _connected(
        self,
        pos: Tensor,
        query_pos: Tensor | None,
        given: tuple[Tensor, Tensor | None] | None = None,
    ) -> Graphs:
        """Make the graphs of one sample; see :class:`Model`."""
        domain, settings = self.problem.domain.normalised, self.settings
        graphs = super()._connected(pos, query_pos, given)
        latent = LatentCoordinates(domain)
        if settings.latent:
            latent = LatentCoordinates.of(pos, domain, settings.latent_strengths)
        resampling, queries = self.resampling, graphs.queries
        assert isinstance(resampling, InterpolationResampling)
        place = latent(pos)
        others = place if queries is pos else latent(queries)
        edges = resampling.connect(place, others)
        if self.path is not None:
            near = partial(nearest_neighbour_graph, pos, domain=domain)
            num = settings.neighbours or SPACING_OF
            edges["near"] = near(pos, num)
            if graphs.query_pos is not None:
                edges["near_queries"] = near(queries, num)
                edges["own"] = resampling.builder.points_to_queries(place, others)
        graphs = replace(graphs, edges=edges)
        if settings.latent:
            nodes = latent.inverse(equispaced_grid(domain, resampling.shape).to(pos))
            asked = None if graphs.query_pos is None else others
            graphs = replace(graphs, nodes=nodes, latent=place, query_latent=asked)
        return graphs.rounded(self._precision) if self.precise_positions else graphs

    def learned(self, radius: float, width: int) -> KernelInterpolation:
        """Make an interpolation of ``width`` channels by the kernel of the settings."""
        problem, settings, dim = self.problem, self.settings, self.problem.dim
        if settings.kernel == "gaussian":
            return KernelInterpolation(GaussianKernel(width, dim, scale=radius))
        network = EdgeNetwork(
            dim,
            self.grid_features,
            settings.hidden,
            scale=radius,
            absolute_position=settings.absolute_position,
            directions=settings.absolute_position or not problem.domain.curved,
        )
        if settings.kernel == "channel":
            groups = width // math.gcd(width, SHARED_BY)
            return KernelInterpolation(ChannelKernel(width, network, groups=groups))
        return KernelInterpolation(DenseKernel(width, network))


def grid_shape_for(domain: Domain, grid: int | None, num_nodes: int) -> tuple[int, ...]:
    """Return the nodes along each axis, even numbers with the same spacing.

    On a sphere, whose nodes have no axes, there is one number.

    Args:
        domain: the normalised domain.
        grid: nodes along the shortest axis; ``None`` for about ``num_nodes`` in all.
        num_nodes: default number of nodes.
    """
    if domain.curved:
        return (num_nodes if grid is None else grid**2,)
    shortest = min(domain.lengths)
    if grid is None:
        spacing = (domain.volume / num_nodes) ** (1 / domain.dim)
        grid = max(2, 2 * math.ceil(shortest / spacing / 2))
    return tuple(
        grid if length == shortest else max(2, 2 * round(grid * length / shortest / 2))
        for length in domain.lengths
    )
