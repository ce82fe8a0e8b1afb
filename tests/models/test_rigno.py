"""RIGNO and MeshGraphNets: their graphs, and the edges that training leaves out."""

import pytest
import torch

from nfsgeo.geometry import Domain
from nfsgeo.models import RIGNO, MeshGraphNets, Model, Problem

NUM = 60


def made(kind: type[Model], dim: int, periodic: bool = True, **settings) -> Model:
    domain = Domain.unit(dim, periodic)
    return kind(Problem(domain, 1, 1, 2, 3, NUM, None, True), width=8, **settings)


@pytest.mark.parametrize("periodic", [True, False], ids=["torus", "box"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_point_is_in_a_support_and_the_nodes_are_connected(dim, periodic):
    model, pos = made(RIGNO, dim, periodic), torch.rand(NUM, dim)
    graphs = model.connect(pos)
    edges, chosen = graphs.edges, graphs.edges["chosen"].edge_index[0]
    nodes = NUM // 4
    assert len(chosen.unique()) == nodes == edges["into"].num_target
    assert edges["back"].degree().min() >= 1 and edges["into"].degree().min() >= 1
    # Twice the radius, and the nodes of points that no support has.
    into, back = (edges[name] for name in ("into", "back"))
    forth = {(b, a) for a, b in into.edge_index.t().tolist()}
    assert forth <= {tuple(edge) for edge in back.edge_index.t().tolist()}
    shares = len(into.edge_index[0].unique()) / NUM
    assert shares == 1 if periodic else shares > 0.7
    joined = torch.eye(nodes)
    joined[tuple(edges["among"].edge_index)] = 1
    assert bool((torch.matrix_power(joined, nodes) > 0).all())
    away = pos[chosen[edges["among"].edge_index[0]]]
    found = model.problem.domain.displacement(
        away, pos[chosen[edges["among"].edge_index[1]]]
    )
    torch.testing.assert_close(edges["among"].displacement, found)


def test_training_leaves_edges_out_and_prediction_none():
    x, pos = torch.randn(NUM, 2, 1), torch.rand(NUM, 2)
    model = made(RIGNO, 2, dropout=0.5)
    graphs = model.connect(pos)
    for name in ("into", "among", "back"):
        whole = graphs.edges[name].num_edges
        edges, index = model.train().embedded_edges(name, graphs)
        assert len(edges) == index.size(1) == -(-whole // 2)
        assert len(model.eval().embedded_edges(name, graphs)[0]) == whole
    assert torch.equal(model(x, pos), model(x, pos))
    assert not torch.equal(model.train()(x, pos), model(x, pos))


@pytest.mark.parametrize("graph", ["radius", "delaunay"])
def test_a_step_of_message_passing_reaches_the_neighbours_alone(graph):
    model = made(MeshGraphNets, 2, depth=1, graph=graph)
    x, pos = torch.randn(NUM, 2, 1, requires_grad=True), torch.rand(NUM, 2)
    graphs = model.connect(pos)
    (gradient,) = torch.autograd.grad(model(x, pos, graphs=graphs)[7].sum(), x)
    source, target = graphs.edges["mesh"].edge_index
    near = {7, *source[target == 7].tolist()}
    assert set(gradient.flatten(1).any(1).nonzero().flatten().tolist()) == near
