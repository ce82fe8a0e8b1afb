"""A transform of PyTorch Geometric that joins points to a regular grid."""

from __future__ import annotations

from collections.abc import Sequence

from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import BaseTransform

from nfsgeo.geometry.bipartite import BipartiteGraph, pointers
from nfsgeo.geometry.domain import Domain
from nfsgeo.geometry.grids import equispaced_grid
from nfsgeo.geometry.latent import LatentCoordinates
from nfsgeo.geometry.radius_graph import GraphBuilder, Interpolation

__all__ = ["GRID_TO_POINT", "POINT_TO_GRID", "PointsAndGrid", "graph_between"]

POINT_TO_GRID = ("point", "to", "grid")
GRID_TO_POINT = ("grid", "to", "point")


class PointsAndGrid(BaseTransform):
    """Joins the points of a sample to the nodes of a regular grid, and back.

    It turns a :class:`~torch_geometric.data.Data` with ``pos [n, d]`` into a
    :class:`~torch_geometric.data.HeteroData` with

    - node type ``point``: all attributes of the points,
    - node type ``grid``: ``pos [m, d]``, the last axis running fastest,
    - edge types ``POINT_TO_GRID`` and ``GRID_TO_POINT``: ``edge_index [2, E]``,
      ``displacement [E, d]`` and ``base_weight [E]``, from which
      :func:`graph_between` makes a :class:`~nfsgeo.geometry.BipartiteGraph`,

    and all other attributes unchanged. Samples may differ in their points. As a
    ``pre_transform`` it searches each sample once.

    With ``latent``, neighbours are found in the latent coordinates of the sample, see
    :class:`~nfsgeo.geometry.LatentCoordinates`. These are ``latent [n, d]`` of the
    points, and ``pos`` of the grid are the positions of nodes that are equispaced in
    latent coordinates.

    Args:
        domain: The box of the points.
        shape: Number of nodes on each axis.
        radius: Radius of all neighbourhoods, in the units of the positions, the same
            for all samples; see :func:`~nfsgeo.geometry.radius_for`.
        interpolation: Base interpolation, see
            :func:`~nfsgeo.geometry.bipartite_graph`.
        latent: Whether the grid is equispaced in latent coordinates.

    Raises:
        UserError: When called, if a point is outside the domain.
        ValueError: If ``shape`` does not fit the domain; when called, if the sample is
            a batch, has edges of its own, or has no points.
    """

    def __init__(
        self,
        domain: Domain,
        shape: Sequence[int],
        radius: float,
        *,
        interpolation: Interpolation = "mean",
        latent: bool = False,
    ) -> None:
        self.grid, self.latent = equispaced_grid(domain, shape), latent
        self.builder = GraphBuilder(domain, radius, interpolation)

    def forward(self, data: Data) -> HeteroData:
        """Join the points of one sample, ``data`` with ``pos [n, d]``, to the grid."""
        batched = isinstance(data, Batch) or data.edge_index is not None
        if batched or data.pos is None:
            raise ValueError(
                f"{data}: expected one sample with positions pos [n, d] and without "
                "edges; transform samples before they are batched or joined"
            )
        pos, grid = data.pos, self.grid.to(data.pos)
        joined = HeteroData()
        for key, value in data:
            if key == "num_nodes":  # It is inferred for each type.
                continue
            store = joined["point"] if data.is_node_attr(key) else joined
            store[key] = value
        joined["grid"].pos = grid
        if self.latent:
            coordinates = LatentCoordinates.of(pos, self.builder.domain)
            joined["grid"].pos = coordinates.inverse(grid)
            joined["point"].latent = pos = coordinates(pos)
        for edge_type, graph in (
            (POINT_TO_GRID, self.builder.points_to_grid(pos, grid)),
            (GRID_TO_POINT, self.builder.grid_to_points(grid, pos)),
        ):
            for name in ("edge_index", "displacement", "base_weight"):
                joined[edge_type][name] = getattr(graph, name)
        return joined


def graph_between(data: HeteroData, edge_type: tuple[str, str, str]) -> BipartiteGraph:
    """Return the edges of one type as a graph, for one sample or a batch.

    Args:
        data: Result of :class:`PointsAndGrid`, or a batch of such samples.
        edge_type: ``POINT_TO_GRID`` or ``GRID_TO_POINT``.

    Raises:
        ValueError: If a later transform has replaced or added edges.
    """
    store = data[edge_type]
    source, _, target = edge_type
    edge_index, num_target = store.get("edge_index"), data[target].num_nodes
    made = store.get("displacement")
    if edge_index is None or made is None or len(made) != edge_index.size(1):
        raise ValueError(
            f"{edge_type} has {', '.join(store.keys())}; expected the edge_index and a "
            "displacement of each edge as PointsAndGrid makes them; leave out "
            "transforms that change edges, such as ToSparseTensor, or apply them before"
        )
    # Sorted in any case, as a look at the order would wait for the device.
    num_source = data[source].num_nodes
    order = (edge_index[1] * num_source + edge_index[0]).argsort()
    edge_index = edge_index.index_select(1, order)
    return BipartiteGraph(
        edge_index,
        pointers(edge_index[1], num_target),
        made.index_select(0, order),
        store.base_weight.index_select(0, order),
        num_source,
        num_target,
    )
