"""Points and grid as PyTorch Geometric's heterogeneous data."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import ToSparseTensor

from nfsgeo.geometry import (
    BipartiteGraph,
    Domain,
    LatentCoordinates,
    bipartite_graph,
    equispaced_grid,
    radius_edges,
)
from nfsgeo.geometry.transforms import (
    GRID_TO_POINT,
    POINT_TO_GRID,
    PointsAndGrid,
    graph_between,
)

SHAPE, RADIUS = (5, 4), 0.3
DOMAIN = Domain((0.0, -1.0), (1.0, 1.0), (True, False))


def sample(num_points: int) -> Data:
    pos = torch.rand(num_points, 2) * torch.tensor([1.0, 2.0]) - torch.tensor([0, 1.0])
    label = torch.tensor([num_points])
    return Data(x=torch.randn(num_points, 3), pos=pos, y=label, name=f"{num_points}")


def transform() -> PointsAndGrid:
    return PointsAndGrid(DOMAIN, SHAPE, RADIUS, interpolation="linear")


def fields(graph: BipartiteGraph) -> dict:
    sizes = {"num_source": graph.num_source, "num_target": graph.num_target}
    return sizes | graph.tensors()._asdict()


def test_nodes_and_edges_are_those_of_a_graph_built_by_hand():
    data = sample(30)
    joined = transform()(data)
    grid = equispaced_grid(DOMAIN, SHAPE)
    for edge_type, pair in {
        POINT_TO_GRID: (data.pos, grid),
        GRID_TO_POINT: (grid, data.pos),
    }.items():
        by_hand = bipartite_graph(*pair, RADIUS, DOMAIN, interpolation="linear")
        torch.testing.assert_close(
            fields(graph_between(joined, edge_type)), fields(by_hand), rtol=0, atol=0
        )
    assert joined.node_types == ["point", "grid"]
    assert joined["point"].x is data.x and joined["point"].pos is data.pos
    assert torch.equal(joined["grid"].pos, grid)
    assert joined.y is data.y and joined.name == "30"
    assert joined.validate()


def test_a_grid_in_latent_coordinates_is_fine_where_points_are_dense():
    data = sample(400)
    data.pos = data.pos**3  # dense around (0, 0)
    made = PointsAndGrid(DOMAIN, (12, 12), RADIUS, latent=True)(data)
    latent = LatentCoordinates.of(data.pos, DOMAIN)
    grid = equispaced_grid(DOMAIN, (12, 12))
    torch.testing.assert_close(made["point"].latent, latent(data.pos))
    torch.testing.assert_close(latent(made["grid"].pos), grid, rtol=0, atol=1e-4)
    near = (made["grid"].pos[:, 1].abs() < 0.1).sum()
    assert near > 1.4 * (grid[:, 1].abs() < 0.1).sum()
    # Edges are those of neighbours in latent coordinates.
    edges = radius_edges(latent(data.pos), grid, RADIUS, DOMAIN)
    torch.testing.assert_close(made[POINT_TO_GRID].edge_index, edges)


def test_edges_may_be_in_any_order_and_others_are_refused():
    joined = transform()(sample(30))
    store, before = joined[POINT_TO_GRID], fields(graph_between(joined, POINT_TO_GRID))
    order = torch.randperm(store.edge_index.size(1))
    store.edge_index = store.edge_index[:, order]
    for name in ("displacement", "base_weight"):
        store[name] = store[name][order]
    after = fields(graph_between(joined, POINT_TO_GRID))
    torch.testing.assert_close(after, before, rtol=0, atol=0)
    with pytest.raises(ValueError, match="ToSparseTensor"):
        graph_between(ToSparseTensor()(transform()(sample(30))), POINT_TO_GRID)
    store.edge_index = store.edge_index[:, :-1]
    with pytest.raises(ValueError, match="of each edge"):
        graph_between(joined, POINT_TO_GRID)
