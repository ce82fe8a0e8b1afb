"""Interpolation between points and the grid of any mixer, and its settings."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from nfsgeo.errors import UserError
from nfsgeo.geometry import radius_for
from nfsgeo.models.grid_shape import grid_shape_for
from nfsgeo.models.mixer_settings import MixerSettings
from nfsgeo.models.problem import Problem
from nfsgeo.nn import (
    ChannelKernel,
    DenseKernel,
    EdgeNetwork,
    GaussianKernel,
    InterpolationKernel,
    InterpolationResampling,
    KernelInterpolation,
)

__all__ = ["InterpolationSettings", "back_width", "interpolation"]


class InterpolationSettings(MixerSettings):
    """Settings of the interpolation to and from the grid.

    Attributes:
        grid: nodes along each axis, or along the shortest of a box that is no cube;
            ``None`` for about as many nodes as points, fewer where the model says so.
        radius_factor: the radius is that which gives every node ``c log n`` neighbours
            among ``n`` points on average, or every point among ``n`` nodes where
            there are fewer nodes than points; this is ``c``.
        radius: the radius itself, in the units of the positions, in place of
            ``radius_factor``.
        kernel: a ``dense`` matrix for each edge, one of low ``rank``, a weight for
            each ``channel``, or a ``gaussian``.
        rank: number of learned matrices of the ``low-rank`` kernel.
        shared_by: number of channels that share a weight of the ``channel`` kernel, a
            divisor of ``width``.
        hidden: width of the kernel's network.
        back_width: channels of every record that go back to the points, linear maps
            of those at the nodes; ``None`` for all of them, as in the paper and
            wherever the problem has no time.
        base: the interpolation that a learned kernel adds to and starts from: the
            ``mean`` of the neighbours, as in the paper, or moving least squares that
            are exact for ``linear`` or ``quadratic`` fields, or a ``spline`` through
            the nearest points; ``None`` for a spline, or ``linear`` where the problem
            has no time: coefficients may jump, and splines overshoot there.
        kernel_at: where the kernel on the way to the grid finds its sources: at the
            ``points``, or at the ``nodes`` of the grid after the base interpolation;
            ``None`` for points with the mean, else nodes.
        quadrature: whether the kernel's mean over points takes quadrature weights, the
            volumes of their Voronoi cells, in place of their number.
        exact_for: polynomials that the learned part of the ``channel`` kernel leaves to
            the base interpolation, ``constants`` or all that are ``linear``.
        absolute_position: whether the kernel sees the position of the source.
        inputs: whether it sees the inputs there.
        backend: of the radius search.
    """

    grid: PositiveInt | None = None
    radius_factor: PositiveFloat = 2.3
    radius: PositiveFloat | None = None
    kernel: Literal["dense", "low-rank", "channel", "gaussian"] = "channel"
    rank: PositiveInt = 8
    shared_by: PositiveInt = 4
    hidden: PositiveInt = 16
    back_width: PositiveInt | None = 8
    base: Literal["mean", "linear", "quadratic", "spline"] | None = None
    kernel_at: Literal["points", "nodes"] | None = None
    quadrature: bool = False
    exact_for: Literal["constants", "linear"] | None = None
    absolute_position: bool = True
    inputs: bool = True
    backend: Literal["auto", "scipy", "cell_list", "torch_cluster"] = "auto"


def interpolation(
    problem: Problem, settings: InterpolationSettings, *, max_nodes: int | None = None
) -> InterpolationResampling:
    """Interpolation layers for any mixer, on a grid that suits the problem.

    Args:
        problem: domain and number of points.
        settings: of the grid and the kernels.
        max_nodes: most nodes of a grid whose size the settings leave open, about.
    """
    domain, num_points = problem.domain.normalised, problem.num_points
    base = settings.base or ("spline" if problem.has_time else "linear")
    shape = grid_shape_for(
        domain, settings.grid, min(num_points, max_nodes or num_points)
    )
    # Where the grid is the coarser of the two, points would miss it at the radius of
    # points that miss each other.
    if settings.radius is not None:
        radius = problem.normalised_length(settings.radius)
    else:
        num_ends = min(num_points, math.prod(shape))
        radius = radius_for(num_ends, domain, settings.radius_factor)

    def layer(width: int) -> KernelInterpolation:
        kernel = _kernel(problem, settings, radius, width)
        return KernelInterpolation(kernel, exact_for=settings.exact_for)

    return InterpolationResampling(
        layer(settings.width),
        layer(back_width(problem, settings) or settings.width),
        domain,
        shape,
        radius,
        interpolation=base,
        quadrature=settings.quadrature,
        # The mean of neighbours is too coarse to be followed by the learned kernel.
        kernel_at=settings.kernel_at or ("points" if base == "mean" else "nodes"),
        backend=settings.backend,
    )


def back_width(problem: Problem, settings: InterpolationSettings) -> int | None:
    """Channels that go back, where these are not those of the mixer."""
    return settings.back_width if problem.has_time else None


def _kernel(
    problem: Problem, settings: InterpolationSettings, radius: float, width: int
) -> InterpolationKernel:
    dim = problem.domain.dim
    if settings.exact_for is not None and settings.kernel != "channel":
        raise UserError(
            f"exact_for {settings.exact_for} with the {settings.kernel} kernel",
            "the channel kernel, of which nothing but weights is learned",
            "set model.settings.kernel=channel or leave exact_for out",
        )
    if settings.kernel == "gaussian":
        return GaussianKernel(width, dim, scale=radius)
    network = EdgeNetwork(
        dim,
        problem.num_features if settings.inputs else 0,
        settings.hidden,
        scale=radius,
        absolute_position=settings.absolute_position,
    )
    if settings.kernel == "channel":
        if width % settings.shared_by:
            raise UserError(
                f"shared_by {settings.shared_by} of {width} channels",
                "a divisor of model.settings.width and back_width",
                "set model.settings.shared_by=1 or change one of them",
            )
        return ChannelKernel(width, network, groups=width // settings.shared_by)
    rank = settings.rank if settings.kernel == "low-rank" else None
    return DenseKernel(width, network, rank=rank)
