"""Features at the points that reach a prediction past the grid."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.nn.edge_messages import BipartiteMessages

__all__ = ["PointPath"]


class Encoded(NamedTuple):
    """The points as a path encodes them, in the notation of :class:`PointPath`.

    Attributes:
        known: inputs and the logarithm of the spacing ``[N, n_t F + 1]``.
        plain: :math:`e`, ``[N, channels]``.
        found: :math:`e'`, likewise.
    """

    known: Tensor
    plain: Tensor
    found: Tensor


class PointPath(nn.Module):
    r"""Features of the points beside a mixer's grid, and learned messages among points.

    .. math::
        e_i &= \phi(a_i, x_i, \xi_i, \log s_i / h), \qquad
        e_i' = e_i + \mathrm{Messages}(e_k \to e_i) \\
        v(x_j) &\leftarrow v(x_j) + U \sum_i \beta_{ij} \, e_i' \\
        q_m &= (v(x_m), e_m'), \qquad q_m' = q_m + \mathrm{Messages}(e_k' \to q_m)

    The first line is at the points :math:`x_i`, with their inputs :math:`a_i`, their
    latent coordinates :math:`\xi_i` and their local spacing :math:`s_i`; the second at
    the nodes of the grid, to which the weights :math:`\beta` of the base interpolation
    bring them; the third at the query points, where :math:`v` is interpolated back from
    the grid, and :math:`e'` is made as at the points, of what is known there or else
    interpolated from the points. :math:`\phi` is a perceptron with one hidden layer;
    messages are those of :class:`~nfsgeo.nn.BipartiteMessages` from the nearest points.

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
        latent: whether latent coordinates are inputs, where positions are.
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
        latent: bool = False,
    ) -> None:
        super().__init__()
        self.dim, self.spacing, self.latent = dim, spacing, latent
        self.embed = nn.Sequential(
            nn.Linear(num_features + dim * (1 + latent) + 1, channels),
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

    def encode(self, features: Tensor, graphs: Graphs) -> Encoded:
        """What the points know, and their features.

        Args:
            features: inputs at the points ``[N, n_t F]``.
            graphs: with the edges ``near`` from the nearest points to the points.
        """
        near = graphs.edges["near"]
        spacing = near.spacing(features.dtype) / self.spacing
        known = torch.cat([features, spacing.log()[:, None]], dim=1)
        plain = self._embedded(known, graphs.pos, graphs.latent)
        found = plain
        if self.before is not None:
            found = plain + self.before(plain, graphs.pos, near)
        return Encoded(known, plain, found)

    def at_nodes(self, encoded: Encoded, graphs: Graphs) -> Tensor:
        """What the points add to the field at the nodes of a grid ``[B m, width]``."""
        up = interpolate_along(encoded.found[:, None], graphs.edges["up"])[:, 0]
        result: Tensor = self.to_nodes(up)
        return result

    def decode(
        self, back: Tensor, encoded: Encoded, graphs: Graphs, some: slice | None = None
    ) -> Tensor:
        """Features of the query points, ``[M, T, back_width + channels]``.

        Args:
            back: the field that comes back from the grid ``[M, T, back_width]``.
            encoded: from :meth:`encode`.
            graphs: if there are query points, with the edges ``own`` and
                ``near_queries`` from the points to them.
            some: which of the query points; ``None`` for all.
        """
        if graphs.query_pos is None:
            own, near = encoded.found, _rows(graphs.edges["near"], some)
            own = own if some is None else own[some]
        else:
            near = _rows(graphs.edges["near_queries"], some)
            own = self._at_queries(encoded, graphs, near, some)
        own = own[:, None].expand(-1, back.size(1), -1)
        found = torch.cat([back, own], dim=-1)
        if self.behind is not None:
            # Messages do not depend on time.
            target = found[:, 0] if found.size(1) == 1 else found.mean(1)
            found = (
                found + self.behind((encoded.found, target), graphs.pos, near)[:, None]
            )
        return found

    def _at_queries(
        self, encoded: Encoded, graphs: Graphs, near: BipartiteGraph, some: slice | None
    ) -> Tensor:
        """The features of the query points ``[M, channels]``."""
        own, given = graphs.edges["own"], graphs.query_x
        pos, latent = graphs.queries, graphs.query_latent
        if some is not None:
            own, pos = _rows(own, some), pos[some]
            given = None if given is None else given[some]
            latent = None if latent is None else latent[some]
        known = interpolate_along(encoded.known[:, None], own)[:, 0]
        if given is not None:
            inputs, spacing = known[:, :-1], known[:, -1:]
            given = given.repeat(1, inputs.size(1) // given.size(1))
            known = torch.cat([given.where(~given.isnan(), inputs), spacing], dim=1)
        found = self._embedded(known, pos, latent)
        if self.before is not None:
            found = found + self.before((encoded.plain, found), graphs.pos, near)
        return found

    def _embedded(self, known: Tensor, pos: Tensor, latent: Tensor | None) -> Tensor:
        """Features of points at ``pos [n, d]`` that know ``[n, n_t F + 1]``."""
        places = [pos[:, : self.dim]]
        if self.latent:
            assert latent is not None
            places.append(latent[:, : self.dim])
        inputs = [known, *(place.to(known) for place in places)]
        result: Tensor = self.embed(torch.cat(inputs, dim=1))
        return result


def _rows(graph: BipartiteGraph, some: slice | None) -> BipartiteGraph:
    return graph if some is None else graph.rows(some.start, some.stop)
