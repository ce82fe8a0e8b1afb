"""Features at the points that reach a prediction past the grid."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.nn.edge_messages import BipartiteMessages

__all__ = ["PointPath"]


class PointPath(nn.Module):
    r"""Features of the points beside a mixer's grid, and learned messages among points.

    .. math::
        e_i &= \phi(a_i, x_i, \log s_i / h), \qquad
        e_i' = e_i + \mathrm{Messages}(e_k \to e_i) \\
        v(x_j) &\leftarrow v(x_j) + U \sum_i \beta_{ij} \, e_i' \\
        q_m &= (v(x_m), e_m'), \qquad q_m' = q_m + \mathrm{Messages}(e_k' \to q_m)

    The first line is at the points :math:`x_i`, with their inputs :math:`a_i` and their
    local spacing :math:`s_i`; the second at the nodes of the grid, to which the weights
    :math:`\beta` of the base interpolation bring them; the third at the query points,
    where :math:`v` is interpolated back from the grid and :math:`e` from the points.
    :math:`\phi` is a perceptron with one hidden layer; messages are those of
    :class:`~nfsgeo.nn.BipartiteMessages` from the nearest points.

    A grid cannot hold what happens between its nodes. What a point itself knows, such
    as its distance from a wall, reaches the prediction by this way. A Fourier branch
    and a local one are also side by side in "Point Cloud Neural Operator for Parametric
    PDEs on Complex and Variable Geometries".

    Args:
        num_features: inputs at a point, time steps times components.
        dim: space dimensions of positions that are inputs; 0 for none.
        space: space dimensions of displacements.
        width: channels :math:`C` of the grid's field.
        back_width: channels that are interpolated back from the grid.
        channels: channels of :math:`e`.
        hidden: channels of a message; ``None`` for no messages.
        spacing: :math:`h`, the spacing of evenly spread points.
    """

    def __init__(
        self,
        num_features: int,
        dim: int,
        space: int,
        width: int,
        back_width: int,
        channels: int,
        hidden: int | None,
        spacing: float,
    ) -> None:
        super().__init__()
        self.dim, self.spacing = dim, spacing
        self.embed = nn.Sequential(
            nn.Linear(num_features + dim + 1, channels),
            nn.GELU(),
            nn.Linear(channels, channels),
        )
        self.to_nodes = nn.Linear(channels, width)
        self.out_channels = out = back_width + channels
        self.before = self.behind = None
        if hidden is not None:
            sizes = (channels, channels), (channels, out)
            self.before, self.behind = (
                BipartiteMessages(each, each[1], space, hidden=hidden) for each in sizes
            )

    def encode(self, features: Tensor, graphs: Graphs) -> Tensor:
        """The features :math:`e'` of the points ``[N, channels]``.

        Args:
            features: inputs at the points ``[N, F]``.
            graphs: with the edges ``near`` from the nearest points to the points.
        """
        near = graphs.edges["near"]
        spacing = near.spacing(features.dtype) / self.spacing
        place = graphs.pos[:, : self.dim].to(features.dtype)
        known = torch.cat([features, place, spacing.log()[:, None]], dim=1)
        found: Tensor = self.embed(known)
        if self.before is not None:
            found = found + self.before(found, graphs.pos, near)
        return found

    def at_nodes(self, encoded: Tensor, graphs: Graphs) -> Tensor:
        """What the points add to the field at the nodes of a grid ``[B m, width]``."""
        up = interpolate_along(encoded[:, None], graphs.edges["up"])[:, 0]
        result: Tensor = self.to_nodes(up)
        return result

    def decode(
        self, back: Tensor, encoded: Tensor, graphs: Graphs, some: slice | None = None
    ) -> Tensor:
        """Features of the query points, ``[M, T, back_width + channels]``.

        Args:
            back: the field that comes back from the grid ``[M, T, back_width]``.
            encoded: from :meth:`encode`.
            graphs: if there are query points, with the edges ``own`` and
                ``near_queries`` from the points to them.
            some: which of the query points; ``None`` for all.
        """
        own, near = encoded, graphs.edges["near"]
        if graphs.query_pos is not None:
            own = interpolate_along(own[:, None], _rows(graphs.edges["own"], some))
            own, near = own[:, 0], graphs.edges["near_queries"]
        elif some is not None:
            own = own[some]
        own = own[:, None].expand(-1, back.size(1), -1)
        found = torch.cat([back, own], dim=-1)
        if self.behind is not None:
            # Messages do not depend on time.
            target = found[:, 0] if found.size(1) == 1 else found.mean(1)
            arrived = self.behind((encoded, target), graphs.pos, _rows(near, some))
            found = found + arrived[:, None]
        return found


def _rows(graph: BipartiteGraph, some: slice | None) -> BipartiteGraph:
    return graph if some is None else graph.rows(some.start, some.stop)
