"""Learned interpolation between two sets of points."""

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import bipartite_graph
from nfsgeo.nn import (
    BipartiteMessages,
    ChannelKernel,
    DenseKernel,
    EdgeNetwork,
    GaussianKernel,
    KernelInterpolation,
)
from nfsgeo.testing import assert_same

RADIUS = 0.3


def written_out(layer: KernelInterpolation, case, weight: Tensor | None) -> Tensor:
    """Equation (7) as a double sum, the kernel from its own definition.

    ``weight`` is that of the base interpolation, edge by edge; None for the mean.
    """
    kernel = layer.kernel
    rows, edge = [], 0
    for target in case.target:
        away = case.domain.displacement(case.source, target.expand_as(case.source))
        near = (away.norm(dim=1) <= RADIUS).nonzero()[:, 0].tolist()
        if not near:
            pytest.skip("a neighbourhood is empty")
        total = torch.zeros(case.x.shape[1:], dtype=torch.float64)
        for i in near:
            base = 1.0 if weight is None else len(near) * float(weight[edge])
            given = away[i], case.source[i], case.features[i], base
            total += case.x[i] @ matrix(kernel, *given).T
            edge += 1
        rows.append(total / len(near) + layer.bias)
    return torch.stack(rows)


def matrix(kernel, delta, source, features, base) -> Tensor:
    relative = delta / RADIUS
    if isinstance(kernel, GaussianKernel):
        offset = relative - kernel.centre
        exponent = (offset**2 / kernel.log_gamma.exp()).sum()
        return kernel.log_beta.exp() * torch.exp(-exponent) * torch.eye(4).double()
    network = kernel.network
    inputs = torch.cat([relative, relative.norm()[None], source, features])
    weight = torch.cat([network.edge.weight, network.node.weight], dim=1)
    hidden = torch.nn.functional.gelu(weight @ inputs + network.edge.bias)
    identity = base * torch.eye(4, dtype=torch.float64)
    if isinstance(kernel, DenseKernel):
        return identity + kernel.mix(hidden).view(4, 4)
    assert isinstance(kernel, ChannelKernel)
    diagonal = kernel.mix(hidden).repeat_interleave(4 // kernel.groups)
    return identity + torch.diag(diagonal)


@pytest.fixture
def layer(kernel) -> KernelInterpolation:
    layer = KernelInterpolation(kernel).double()
    torch.nn.init.normal_(layer.bias)
    return layer


@pytest.mark.parametrize("base", [False, True])
def test_equals_the_double_sum(case, layer, base):
    """From the mean on, or from the weights of another base interpolation."""
    weight = torch.rand(case.graph.num_edges, dtype=torch.float64) if base else None
    if base:
        case.graph.base_weight = weight
    out = layer(case.x, case.source, case.graph, case.features)
    torch.testing.assert_close(out, written_out(layer, case, weight))


def test_sparse_sums_equal_messages(case, kernel):
    fused = KernelInterpolation(kernel).double()
    plain = KernelInterpolation(kernel, fused=False).double()
    plain.bias = fused.bias
    assert_same(
        lambda x, a: fused(x, case.source, case.graph, a),
        lambda x, a: plain(x, case.source, case.graph, a),
        (case.x, case.features),
        fused.parameters(),
    )


def test_commutes_with_translations_of_the_torus(case, blind_kernel):
    layer = KernelInterpolation(blind_kernel).double()
    out = layer(case.x, case.source, case.graph, case.features)
    shift = torch.rand(case.domain.dim, dtype=torch.float64)
    source, target = (
        case.domain.wrap(points + shift) for points in (case.source, case.target)
    )
    graph = bipartite_graph(source, target, RADIUS, case.domain)
    moved = layer(case.x, source, graph, case.features)
    # The displacements of a graph are of single precision.
    torch.testing.assert_close(moved, out, rtol=1e-5, atol=1e-5)


def test_says_what_does_not_fit(case, layer):
    x, *args = case.x, case.source, case.graph, case.features
    for given, kind, message in (
        ((x[:, 0, 0], *args), ValueError, r"expected \[14, 4\] or \[14, T, 4\]"),
        ((x[1:], *args), ValueError, r"expected \[14, 4\] or \[14, T, 4\]"),
        ((x, case.target, *args[1:]), ValueError, "of the graph's 14 sources"),
        ((x, args[1], args[0], args[2]), TypeError, "pos is a BipartiteGraph and"),
        ((x, args[0], []), TypeError, "edge_index a list; expected positions"),
        ((x, *args[:2], None), ValueError, r"expected \[14, 3\]"),
    ):
        if given[-1] is not None or hasattr(layer.kernel, "network"):
            with pytest.raises(kind, match=message):
                layer(*given)


def test_weights_of_edges_are_of_full_precision_under_mixed_precision(case):
    network = EdgeNetwork(case.domain.dim, 3, 5)
    given = [t.float() for t in (case.graph.offset(torch.float32), case.source)]
    given += [case.features.float(), case.graph.edge_index[0]]
    exact = network(*given)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(network(*given), exact, rtol=0, atol=0)


X, POS = torch.ones(6, 3), (torch.ones(6, 2), torch.ones(4, 2))
EDGES = torch.stack([torch.arange(12) % 6, torch.arange(12) % 4])


@pytest.mark.parametrize(
    ("pos", "edges", "message"),
    [
        ((POS[0], torch.ones(4, 3)), EDGES, r"\(4, 3\); expected \[m, 2\]"),
        (POS, EDGES.t(), r"edge_index .*\(12, 2\); expected \[2, E\]"),
        (POS, EDGES[0], r"edge_index .*\(12,\); expected \[2, E\]"),
        (POS, EDGES.float(), "edge_index of type torch.float32"),
        (POS, EDGES + 1, "sources from 1 to 6; expected .* the 6 sources"),
        (POS, EDGES.flip(0), "targets from 0 to 5; expected .* the 4 targets"),
        (POS, EDGES - 1, "sources from -1 to 4"),
    ],
)
def test_edges_that_do_not_fit_are_told(pos, edges, message):
    with pytest.raises(ValueError, match=message):
        KernelInterpolation(3, 4)(X, pos, edges)
    with pytest.raises(ValueError, match=message):
        BipartiteMessages((3, 2), 4, 2)((X, torch.ones(4, 2)), pos, edges)


def test_features_without_a_use_and_fields_without_time_steps_are_told():
    layer = KernelInterpolation(3, 4)
    with pytest.raises(ValueError, match=r"features .*\(6, 2\) and num_features is 0"):
        layer(X, POS, EDGES, features=torch.ones(6, 2))
    with pytest.raises(ValueError, match=r"\(6, 0, 3\).* one or more time steps"):
        layer(X[:, None][:, :0], POS, EDGES)


@pytest.mark.parametrize(
    "make",
    [
        lambda: KernelInterpolation(3, 4, dim=0),
        lambda: KernelInterpolation(0, 4),
        lambda: KernelInterpolation(3, 0),
        lambda: KernelInterpolation(3, 4, hidden=0),
        lambda: GaussianKernel(3, 0),
        lambda: BipartiteMessages((3, 3), 4, 0),
    ],
)
def test_sizes_are_positive(make):
    with pytest.raises(ValueError, match="=0; expected 1 or more"):
        make()
