"""Laplacians and random walks of graphs."""

import torch

from nfsgeo.geometry import Domain, bipartite_graph
from nfsgeo.nn import scaled_laplacian, transition_matrices
from nfsgeo.nn.graph_shift import shifted


def test_self_loops_belong_to_the_walk_but_not_to_the_laplacian():
    pos = torch.rand(30, 2)
    graph = bipartite_graph(pos, pos, 0.3, Domain.unit(2))
    loop = graph.edge_index[0] == graph.edge_index[1]
    assert int(loop.sum()) == 30
    assert (scaled_laplacian(graph).base_weight[loop] == 0).all()
    walk, _ = transition_matrices(graph)
    assert (walk.base_weight[loop] > 0).all()
    # What a point holds is shared out, none is lost.
    x = torch.rand(30, 2)
    torch.testing.assert_close(shifted(x, walk).sum(0), x.sum(0))


def test_a_lonely_point_keeps_to_itself():
    pos = torch.tensor([[0.1, 0.1], [0.15, 0.1], [0.6, 0.6]])
    graph = bipartite_graph(pos, pos, 0.1, Domain.unit(2))
    x = torch.rand(3, 1)
    assert (shifted(x, scaled_laplacian(graph))[2] == 0).all()
    torch.testing.assert_close(shifted(x, transition_matrices(graph)[0])[2], x[2])
