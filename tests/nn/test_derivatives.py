"""Derivatives of the layer with respect to fields and positions."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from nfsgeo.geometry import bipartite_graph
from nfsgeo.nn import (
    ChannelKernel,
    DenseKernel,
    EdgeNetwork,
    InterpolationKernel,
    KernelInterpolation,
    Projector,
    interpolate,
    neighbour_sum,
)
from nfsgeo.testing import assert_same

CHANNELS, RADIUS = 4, 0.3


@pytest.fixture(params=[1, 2], ids="{}d".format)
def case(request: pytest.FixtureRequest, make_case):
    return make_case(request.param, num_source=8, num_target=3)


def leaves(case) -> list[Tensor]:
    given = (case.x, case.features, case.source, case.target)
    return [tensor.clone().requires_grad_() for tensor in given]


def check(function, inputs) -> None:
    assert torch.autograd.gradcheck(function, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


@pytest.mark.parametrize("fused", [True, False])
def test_along_given_edges(case, kernel, fused):
    layer = KernelInterpolation(kernel, fused=fused, domain=case.domain).double()
    edges = case.graph.edge_index
    check(lambda x, a, s, t: layer(x, (s, t), edges, features=a), leaves(case))


def test_fused_sums_have_second_derivatives(case, kernel):
    """On a constant graph, in fields and parameters."""
    if not hasattr(kernel, "network"):
        pytest.skip("the Gaussian does not depend on the inputs")
    fused, plain = (
        KernelInterpolation(kernel, fused=f).double() for f in (True, False)
    )
    plain.bias = fused.bias

    def slopes(layer: KernelInterpolation, x: Tensor, features: Tensor) -> Tensor:
        out = layer(x, case.source, case.graph, features).sin().sum()
        return torch.autograd.grad(out, (x, features), create_graph=True)[0]

    pair = [partial(slopes, layer) for layer in (fused, plain)]
    assert_same(*pair, (case.x, case.features), fused.parameters())


def test_plain_layers_have_second_derivatives(case):
    x, _, *ends = leaves(case)
    check(lambda x, s, t: interpolate(x, s, t, case.domain), [x, *ends])
    x, weight = torch.randn(2, 8, 3).double(), torch.randn(2, case.graph.num_edges)
    leaf = [each.double().requires_grad_() for each in (x, weight)]
    check(lambda *given: neighbour_sum(*given, case.graph), leaf)
    projector = Projector(3, 2, hidden=4).double()
    check(projector, [torch.randn(5, 3).double().requires_grad_()])


@pytest.mark.parametrize("shape", [(CHANNELS,), (2, CHANNELS)])
def test_called_as_layers_of_pytorch_geometric(case, kernel, shape):
    """A pair or a tensor, with time or without, edges in any order or a graph."""
    x, graph = torch.randn(8, *shape).double(), case.graph
    layer = KernelInterpolation(kernel, domain=case.domain).double()
    ends = (case.source, case.target)
    shuffled = graph.edge_index[:, torch.randperm(graph.num_edges)]
    expected = layer(x, case.source, graph, case.features)
    assert expected.shape == (3, *shape)
    for field in (x, (x, None)):
        found = layer(field, ends, shuffled, features=case.features)
        # The displacements of a constant graph are of single precision.
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    among = layer(x, case.source, shuffled[:, :0], features=case.features)
    assert torch.equal(among, layer.bias.expand(8, *shape))


def test_in_open_space_nothing_is_periodic(make_case, make_kernel):
    case = make_case(1)
    edges, given = torch.zeros(2, 1, dtype=torch.int64), (case.x[:1], case.features[:1])

    def result(kernel: InterpolationKernel, start: float, domain=None) -> Tensor:
        ends = torch.tensor([[start]]).double(), torch.tensor([[0.95]]).double()
        layer = KernelInterpolation(kernel, domain=domain).double()
        return layer(given[0], ends, edges, given[1])

    kernel = make_kernel("channel", 1)
    assert not torch.allclose(result(kernel, 1.05), result(kernel, 0.05))
    blind = make_kernel("channel", 1, absolute=False)
    periodic = result(blind, 0.05, case.domain)
    torch.testing.assert_close(periodic, result(blind, 1.05))


@pytest.mark.parametrize("kind", [ChannelKernel, DenseKernel])
def test_any_network_may_be_the_kernels(make_case, kind):
    """One of the default's weights has its results and gradients."""
    case, default = make_case(2), EdgeNetwork(2, 3, 5).double()
    linear = nn.Linear(2 + 1 + 2 + 3, 5)
    own = kind(CHANNELS, nn.Sequential(linear, nn.GELU()), hidden=5).double()
    theirs: InterpolationKernel = kind(CHANNELS, default).double()
    with torch.no_grad():
        linear.weight.copy_(torch.cat([default.edge.weight, default.node.weight], 1))
        linear.bias.copy_(default.edge.bias)
    own.mix = theirs.mix
    layers = [KernelInterpolation(kernel).double() for kernel in (own, theirs)]
    layers[0].bias = layers[1].bias
    assert_same(
        lambda x, a: layers[0](x, case.source, case.graph, a),
        lambda x, a: layers[1](x, case.source, case.graph, a),
        (case.x, case.features),
        (*own.mix.parameters(), layers[0].bias),
    )
    edges = case.graph.edge_index
    check(lambda x, a, s, t: layers[0](x, (s, t), edges, features=a), leaves(case))
    before = linear.weight.clone()
    layers[0].reset_parameters()
    assert not torch.equal(before, linear.weight)
    with pytest.raises(ValueError, match="a Sequential of unknown width"):
        kind(CHANNELS, nn.Sequential(linear))


def test_no_gradient_is_lost_in_silence(case, kernel):
    """Through the kernel alone it would not be the gradient."""
    layer = KernelInterpolation(kernel).double()
    source, target = (pos.requires_grad_() for pos in (case.source, case.target))
    for pos in (source, (source.detach(), target)):
        with pytest.raises(ValueError, match="require gradients and the graph is a co"):
            layer(case.x, pos, case.graph, case.features)
    with torch.no_grad():
        layer(case.x, source, case.graph, case.features)


def test_a_second_backward_pass_needs_no_retained_graph(case, kernel):
    """Nothing that belongs to one is cached in a graph."""
    source = case.source.requires_grad_()
    layer = KernelInterpolation(kernel).double()
    graph = bipartite_graph(source, case.target, RADIUS, case.domain)
    for _ in range(2):
        out = layer(case.x, (source, case.target), graph, case.features)
        out.sum().backward(retain_graph=True)
    assert source.grad.abs().sum() > 0
