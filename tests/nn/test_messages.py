"""What layers say of arguments that do not fit."""

from functools import partial

import pytest
import torch

from nfsgeo.geometry import Domain, equispaced_grid, nearest_neighbour_graph
from nfsgeo.nn import (
    BipartiteMessages,
    ChannelKernel,
    EdgeNetwork,
    FieldLayerNorm,
    GlobalFilter,
    InterpolationResampling,
    KernelInterpolation,
    PatchEmbedding,
    PhysicsAttention,
    SpectralConv,
    SphericalConv,
    SphericalTransform,
    TemporalDecoder,
    TokenMLP,
    neighbour_sum,
)

TORUS, BALL = Domain.unit(2), Domain.sphere().normalised
GRAPH = nearest_neighbour_graph(torch.rand(9, 2), torch.rand(5, 2), 3, TORUS)
NODES = equispaced_grid(BALL, (160,), torch.float64)
SUM = partial(neighbour_sum, graph=GRAPH)
SPHERICAL = SphericalConv(2, 2, SphericalTransform(NODES, 4), 3)


@pytest.mark.parametrize(
    ("layer", "shapes", "message"),
    [
        (SpectralConv(2, 2, (2, 2)), [(1, 3, 4, 4)], r"expected \[B, 2, n_1, n_2\]"),
        (SPHERICAL, [(1, 2, 160)], r"expected \[B, 2, 160, T\]"),
        (SPHERICAL, [(2, 2, 9, 5)], r"expected \[B, 2, 160, T\]"),
        (TokenMLP((4, 6)), [(1, 2, 8, 6)], r"\(8, 6\).*\(4, 6\).*nfs"),
        (GlobalFilter(2, (4, 6)), [(1, 2, 8, 6)], r"\(8, 6\).*\(4, 6\).*nfs"),
        (FieldLayerNorm(2, (4, 4)), [(1, 2, 8, 8)], r"8, 8\).*made for \(2, 4, 4\)"),
        *(
            (PatchEmbedding(1, (4, 2)), [(1, 1, *sizes)], "patches of")
            for sizes in [(8, 7), (6, 6), (8, 6, 2), (8,)]
        ),
        (SUM, [(1, 7, 2), (1, 15)], "an entry for each source"),
        (SUM, [(1, 9, 2), (1, 3)], "an entry for each edge"),
        (SUM, [(2, 9, 2), (3, 15)], "as many for each weight"),
    ],
)
def test_of_tensors(layer, shapes, message):
    with pytest.raises(ValueError, match=message):
        layer(*map(torch.zeros, shapes))


def test_of_features():
    pair = torch.zeros(5, 4), torch.zeros(9, 3)
    with pytest.raises(ValueError, match="expected"):
        BipartiteMessages((3, 4), 5, 2)(pair, torch.zeros(9, 2), GRAPH)


KERNEL = KernelInterpolation(ChannelKernel(4, EdgeNetwork(2, 4, 8)))
WIDER = partial(InterpolationResampling, KERNEL, KERNEL, TORUS, (4, 4), 0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(SpectralConv, 1, 1, ()), "one positive number"),
        (partial(TemporalDecoder, 16, 10), "16 hidden channels.*at least 24"),
        (partial(PhysicsAttention, 12, 5, 4), "5 heads for 12 channels"),
        (partial(WIDER, wider=[(0.3, KERNEL)]), "1 wider kernels with kernel_at='po"),
    ],
)
def test_of_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()
