"""Point features that bypass the grid of a mixer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.geometry.bipartite import SMALLEST
from nfsgeo.nn.base_interpolation import interpolate_along
from nfsgeo.nn.edge_messages import BipartiteMessages

__all__ = ["PointPath"]

LARGEST = 20.0  # ratio of spacings that is told apart, logarithmic


class Encoded(NamedTuple):
    """Encoded points, in the notation of :class:`PointPath`.

    Attributes:
        inputs: inputs and the logarithm of the relative spacing ``[N, n_t F + 1]``.
        features: :math:`e`, ``[N, channels]``.
        mixed: :math:`e'`, likewise.
        types: :math:`b`, ``[N, K]``, or ``None``.
    """

    inputs: Tensor
    features: Tensor
    mixed: Tensor
    types: Tensor | None = None


class PointPath(nn.Module):
    r"""Features of the points that bypass a mixer's grid, with learned messages.

    .. math::
        e_i &= \phi(a_i, x_i, \xi_i, \log s_i / \bar s), \qquad
        e_i' = e_i + \mathrm{Messages}(e_k \to e_i) \\
        v(x_j) &\leftarrow v(x_j) + U \sum_i \beta_{ij} \, e_i' \\
        q_m &= (v(x_m), e_m' + B b_m), \qquad
        q_m' = q_m + \mathrm{Messages}(e_k' + B b_k \to q_m)

    The first line holds at the points :math:`x_i`, with inputs :math:`a_i`, latent
    coordinates :math:`\xi_i` and local spacings :math:`s_i` over their geometric mean
    :math:`\bar s`, so that meshes of other resolutions have the same inputs. The second
    holds at the nodes of the grid, with weights :math:`\beta` of the base
    interpolation. The third holds at the query points: :math:`v` is interpolated from
    the grid, and :math:`e'` computed as at the points, from inputs known there or
    interpolated. Indicators of node types :math:`b`, if there are any, enter here alone
    and not in :math:`a`. :math:`\phi` is a perceptron with one hidden layer, and
    messages are those of :class:`~nfsgeo.nn.BipartiteMessages` from the nearest points.

    A grid does not resolve scales below its spacing. By this path, inputs of a point
    such as its distance from a wall reach the prediction directly. "Point Cloud Neural
    Operator for Parametric PDEs on Complex and Variable Geometries" also combines a
    Fourier branch and a local one.

    Args:
        num_features: inputs at a point, time steps times components.
        dim: space dimensions of positions as inputs; 0 for no positions.
        space: space dimensions of displacements.
        width: channels :math:`C` of the grid's field.
        back_width: channels that are interpolated back from the grid.
        channels: channels of :math:`e`.
        hidden: channels of a message; ``None`` for no messages.
        latent: whether latent coordinates are inputs in addition to positions.
        types: numbers of the inputs that indicate node types.
    """

    types: Tensor
    others: Tensor

    def __init__(
        self,
        num_features: int,
        dim: int,
        space: int,
        width: int,
        back_width: int,
        channels: int,
        hidden: int | None,
        latent: bool = False,
        types: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.dim, self.latent = dim, latent
        others = [number for number in range(num_features) if number not in types]
        for name, columns in {"types": types, "others": others}.items():
            numbers = torch.tensor(columns, dtype=torch.int64)
            self.register_buffer(name, numbers, persistent=False)
        self.by_type = nn.Linear(len(types), channels, bias=False) if types else None
        self.encoder = nn.Sequential(
            nn.Linear(len(others) + dim * (1 + latent) + 1, channels),
            nn.GELU(),
            nn.Linear(channels, channels),
        )
        self.to_nodes = nn.Linear(channels, width)
        self.out_channels = out = back_width + channels
        self.before = self.behind = None
        if hidden is not None:
            sizes = (channels, channels), (channels, out)
            self.before, self.behind = (
                BipartiteMessages(size, size[1], space, hidden=hidden) for size in sizes
            )

    def split(self, features: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the inputs ``[N, n_t F]`` without node types, and the node types."""
        if self.by_type is None:
            return features, None
        return features.index_select(1, self.others), features[:, self.types]

    def encode(
        self, features: Tensor, graphs: Graphs, types: Tensor | None = None
    ) -> Encoded:
        """Encode the points.

        Args:
            features: inputs at the points ``[N, n_t F]``, without node types.
            graphs: graphs with the edges ``near`` from the nearest points.
            types: node types, see :meth:`split`.
        """
        near = graphs.edges["near"]
        dtype = torch.promote_types(features.dtype, torch.float32)
        spacings = near.spacing(dtype).split([*graphs.sizes])
        relative = torch.cat([_relative(spacing) for spacing in spacings])
        inputs = torch.cat([features, relative[:, None].to(features)], dim=1)
        plain = self._embedded(inputs, graphs.pos, graphs.latent)
        mixed = plain
        if self.before is not None:
            mixed = plain + self.before(plain, graphs.pos, near)
        return Encoded(inputs, plain, mixed, types)

    def at_nodes(self, encoded: Encoded, graphs: Graphs) -> Tensor:
        """Return the term of the field at the nodes of the grid, ``[B m, width]``."""
        up = interpolate_along(encoded.mixed[:, None], graphs.edges["up"])[:, 0]
        result: Tensor = self.to_nodes(up)
        return result

    def decode(
        self, back: Tensor, encoded: Encoded, graphs: Graphs, some: slice | None = None
    ) -> Tensor:
        """Return features of the query points, ``[M, T, back_width + channels]``.

        Args:
            back: field interpolated from the grid ``[M, T, back_width]``.
            encoded: result of :meth:`encode`.
            graphs: graphs; if there are query points, with the edges ``own`` and
                ``near_queries`` from the points to them.
            some: range of query points; ``None`` for all.
        """
        points = self._typed(encoded.mixed, encoded.types)
        if graphs.query_pos is None:
            near = _rows(graphs.edges["near"], some)
            features = points if some is None else points[some]
        else:
            near = _rows(graphs.edges["near_queries"], some)
            features = self._at_queries(encoded, graphs, near, some)
        features = features[:, None].expand(-1, back.size(1), -1)
        field = torch.cat([back, features], dim=-1)
        if self.behind is not None:
            # Messages do not depend on time.
            target = field[:, 0] if field.size(1) == 1 else field.mean(1)
            ends = points, target
            field = field + self.behind(ends, graphs.pos, near)[:, None]
        return field

    def _at_queries(
        self, encoded: Encoded, graphs: Graphs, near: BipartiteGraph, some: slice | None
    ) -> Tensor:
        """Return the point features at the query points ``[M, channels]``."""
        to_queries, query_x = graphs.edges["own"], graphs.query_x
        pos, latent = graphs.queries, graphs.query_latent
        if some is not None:
            to_queries, pos = _rows(to_queries, some), pos[some]
            query_x = None if query_x is None else query_x[some]
            latent = None if latent is None else latent[some]
        inputs = interpolate_along(encoded.inputs[:, None], to_queries)[:, 0]
        types = encoded.types
        if types is not None:
            types = interpolate_along(types[:, None], to_queries)[:, 0]
        if query_x is not None:
            near_x, spacing = inputs[:, :-1], inputs[:, -1:]
            steps = (len(self.others) + len(self.types)) // query_x.size(1)
            query_x, known = self.split(query_x.repeat(1, steps))
            query_x = query_x.where(~query_x.isnan(), near_x)
            inputs = torch.cat([query_x, spacing], dim=1)
            if types is not None and known is not None:
                types = known.where(~known.isnan(), types)
        features = self._embedded(inputs, pos, latent)
        if self.before is not None:
            ends = encoded.features, features
            features = features + self.before(ends, graphs.pos, near)
        return self._typed(features, types)

    def _typed(self, features: Tensor, types: Tensor | None) -> Tensor:
        """Add the term of the node types to features ``[n, channels]``."""
        if self.by_type is None:
            return features
        assert types is not None
        result: Tensor = features + self.by_type(types.to(features))
        return result

    def _embedded(self, inputs: Tensor, pos: Tensor, latent: Tensor | None) -> Tensor:
        """Apply the perceptron to ``inputs [n, n_t F + 1]`` at ``pos [n, d]``."""
        places = [pos[:, : self.dim]]
        if self.latent:
            assert latent is not None
            places.append(latent[:, : self.dim])
        columns = [inputs, *(place.to(inputs) for place in places)]
        result: Tensor = self.encoder(torch.cat(columns, dim=1))
        return result


def _relative(spacing: Tensor) -> Tensor:
    """Return the logarithm of spacings over their geometric mean ``[n]``.

    Spacings of points that coincide with all of their neighbours do not count.
    """
    log, apart = spacing.log(), spacing > 2 * SMALLEST
    mean = (log * apart).sum() / apart.sum().clamp_min(1)
    return (log - mean).clamp_min(-LARGEST)


def _rows(graph: BipartiteGraph, some: slice | None) -> BipartiteGraph:
    return graph if some is None else graph.rows(some.start, some.stop)
