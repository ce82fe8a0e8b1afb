"""Message passing layers and the decoder of MP-PDE, written out."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, silu

from nfsgeo.geometry import Domain, bipartite_graph
from nfsgeo.nn import InteractionLayer, MPPDELayer, TemporalDecoder
from nfsgeo.testing import assert_same

CHANNELS, FIELDS, VARIABLES, RADIUS = 6, 4, 2, 0.35
SIZES = (9, 13)


def written_out(
    layer: MPPDELayer, domain: Domain, pos: Tensor, h: Tensor, u: Tensor, v: Tensor
) -> Tensor:
    """Equations (8) and (9) of one sample, pair by pair, and the instance norm."""
    rows = []
    for i in range(len(pos)):
        messages = []
        for j in range(len(pos)):
            delta = domain.displacement(pos[j], pos[i])
            if delta.norm() <= RADIUS:
                both = torch.cat([h[i], h[j], u[i] - u[j], delta, v[i]])
                messages.append(silu(layer.message_out(silu(layer.message_in(both)))))
        message = torch.stack(messages).mean(0)
        update = torch.cat([h[i], message, v[i]])
        rows.append(h[i] + silu(layer.update_out(silu(layer.update_in(update)))))
    out = torch.stack(rows)
    variance = out.var(0, unbiased=False)
    return (out - out.mean(0)) / (variance + 1e-5).sqrt()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_layer_is_its_equations(dim):
    layer = MPPDELayer(CHANNELS, FIELDS, dim, VARIABLES).double()
    domain, pos = Domain.unit(dim), torch.rand(sum(SIZES), dim, dtype=torch.float64)
    batch = torch.arange(2).repeat_interleave(torch.tensor(SIZES))
    samples = {"source_batch": batch, "target_batch": batch}
    graph = bipartite_graph(pos, pos, RADIUS, domain, **samples)
    source, target = graph.edge_index
    exact = domain.displacement(pos[source], pos[target])

    def fast(h: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return layer(h, u, exact, v, graph.edge_index, batch)

    def plain(h: Tensor, u: Tensor, v: Tensor) -> Tensor:
        samples = zip(*(f.split(SIZES) for f in (pos, h, u, v)), strict=True)
        return torch.cat([written_out(layer, domain, *sample) for sample in samples])

    given = [torch.randn(len(pos), c).double() for c in (CHANNELS, FIELDS, VARIABLES)]
    assert_same(fast, plain, given, layer.parameters())


@pytest.mark.parametrize("activation", [nn.ReLU, nn.SiLU])
@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_interactions_are_their_equations(aggregation, activation):
    """Edge by edge and node by node; a target without an edge has a message of 0."""
    layer = InteractionLayer(CHANNELS, 2, aggregation, activation).double()
    linear = [each for each in layer.modules() if isinstance(each, nn.Linear)]
    norms = [each for each in layer.modules() if isinstance(each, nn.LayerNorm)]
    edge_index = torch.tensor([[0, 2, 2, 1, 3], [1, 1, 0, 1, 3]])

    def network(x: Tensor, maps: list[nn.Linear], norm: nn.LayerNorm) -> Tensor:
        for each in maps[:-1]:
            x = activation()(each.weight @ x + each.bias)
        x = maps[-1].weight @ x + maps[-1].bias
        spread = (x - x.mean()).square().mean()
        return norm.weight * (x - x.mean()) / (spread + 1e-5).sqrt() + norm.bias

    def plain(e: Tensor, s: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        sent, nodes = [], []
        for edge, (j, i) in zip(e, edge_index.t().tolist(), strict=True):
            sent.append(network(torch.cat([s[j], h[i], edge]), linear[:3], norms[0]))
        for i, node in enumerate(h):
            own = [m for m, k in zip(sent, edge_index[1], strict=True) if k == i]
            total = sum(own, torch.zeros_like(node))
            total = total / max(1, len(own)) if aggregation == "mean" else total
            nodes.append(node + network(torch.cat([node, total]), linear[3:], norms[1]))
        return e + torch.stack(sent), torch.stack(nodes)

    given = [torch.randn(n, CHANNELS).double() for n in (5, 4, 5)]
    for which in (0, 1):
        assert_same(
            lambda e, s, h, which=which: layer(e, s, h, edge_index)[which],
            lambda e, s, h, which=which: plain(e, s, h)[which],
            given,
            [],
        )
    edges, nodes = layer(*given, edge_index)
    (edges.sum() + nodes.square().sum()).backward()
    assert all(p.grad is not None for p in layer.parameters())


def test_decoder_is_its_convolutions():
    """The paper's sizes: strides of 6, kernels of 15 and 10."""
    decoder = TemporalDecoder(128, 10)
    assert sum(p.numel() for p in decoder.parameters()) == 209
    first, _, last = decoder
    assert (first.stride, last.kernel_size) == ((6,), (10,))
    h = torch.randn(3, 128)
    hidden = silu(conv1d(h[:, None], first.weight, first.bias, stride=6))
    expected = conv1d(hidden, last.weight, last.bias)
    assert expected.shape == (3, 1, 10)
    torch.testing.assert_close(decoder(h), expected.transpose(1, 2))
