"""What layers say of arguments that do not fit."""

from functools import partial

import pytest
import torch

from nfsgeo.geometry import Domain, equispaced_grid, nearest_neighbour_graph
from nfsgeo.nn import (
    AdaptiveConv,
    AdaptiveGRU,
    Attention,
    BipartiteMessages,
    ChebConvGRU,
    ChebyshevConv,
    DiffusionConv,
    DiffusionGRU,
    EdgeNetwork,
    FieldLayerNorm,
    GaussianKernel,
    GlobalFilter,
    InteractionLayer,
    KernelInterpolation,
    MPPDELayer,
    PatchEmbedding,
    PhysicsAttention,
    PointSpectralConv,
    Pointwise,
    SpectralConv,
    SphericalConv,
    SphericalTransform,
    TemporalDecoder,
    TokenMLP,
    neighbour_sum,
    node_graph,
    scaled_laplacian,
    transition_matrices,
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


EDGES, POS = torch.stack([torch.arange(9), torch.arange(9).roll(1)]), torch.rand(9, 2)
CHEBYSHEV, DIFFUSION = ChebConvGRU(3, 5), DiffusionGRU(3, 5)
LAPLACIAN = scaled_laplacian(node_graph(EDGES, 9))
WALKS = transition_matrices(node_graph(EDGES, 9))
MESSAGES, INTERACTION = (
    MPPDELayer(8, 3, 2, 1),
    InteractionLayer(8, 1, "sum", torch.nn.GELU),
)
LAYER = KernelInterpolation(3, 5, num_features=2, scale=0.2)


@pytest.mark.parametrize(
    ("layer", "arguments", "given", "expected"),
    [
        *((cell, [(9, 4), EDGES], (9, 4), "3") for cell in (CHEBYSHEV, DIFFUSION)),
        (CHEBYSHEV, [(9, 3), EDGES, None, (9, 4)], (9, 4), "9, 5"),
        (DIFFUSION, [(9, 3), EDGES, None, (8, 5)], (8, 5), "9, 5"),
        (CHEBYSHEV, [(9, 3), (9, 4), LAPLACIAN], (9, 4), "9, 5"),
        (DIFFUSION, [(9, 3), EDGES.t()], (9, 2), "2, E"),
        (AdaptiveGRU(9, 3, 5), [(9, 4)], (9, 4), "3"),
        (ChebyshevConv(3, 5), [(9, 4), LAPLACIAN], (9, 4), "3"),
        (DiffusionConv(3, 5), [(9, 4), WALKS], (9, 4), "3"),
        (AdaptiveConv(3, 5), [(1, 9, 4), (9, 2), (9, 9)], (1, 9, 4), "9, 3"),
        (MESSAGES, [(9, 8), (9, 4), (9, 2), (9, 1), EDGES], (9, 4), "9, 3"),
        (MESSAGES, [(9, 8), (9, 3), (7, 2), (9, 1), EDGES], (7, 2), "9, 2"),
        (INTERACTION, [(9, 8), (9, 7), (9, 8), EDGES], (9, 7), "8"),
        (TemporalDecoder(128, 10), [(9, 64)], (9, 64), "128"),
        (LAYER, [(9, 4), POS, EDGES, (9, 2)], (9, 4), "9, 3"),
        (LAYER, [(9, 3), (9, 3), EDGES, (9, 2)], (9, 3), "n, 2"),
        (LAYER, [(9, 3), POS, EDGES, (9, 3)], (9, 3), "9, 2"),
        (LAYER, [(9, 3), POS, EDGES, None], None, "9, 2"),
        (PointSpectralConv(3, 5, (2, 2)), [(9, 1, 4), None], (9, 1, 4), "3"),
        (Attention(8, 2), [(1, 6, 9)], (1, 6, 9), "8"),
        (PhysicsAttention(8, 2, 4), [(9, 6), [9]], (9, 6), "9, 8"),
        (GlobalFilter(2, (4, 6)), [(1, 3, 4, 6)], (1, 3, 4, 6), "2, 4, 6"),
        (Pointwise(3, 4), [(1, 2, 16)], (1, 2, 16), "3"),
    ],
)
def test_of_sizes(layer, arguments, given, expected):
    shapes = [isinstance(a, tuple) and isinstance(a[0], int) for a in arguments]
    pairs = zip(shapes, arguments, strict=True)
    made = [torch.rand(a) if is_shape else a for is_shape, a in pairs]
    with pytest.raises(ValueError) as error:
        layer(*made)
    came, _, wanted = str(error.value).partition("expected")
    assert expected in wanted and (given is None or str(given) in came)


@pytest.mark.parametrize("cell", [CHEBYSHEV, DIFFUSION, AdaptiveGRU(9, 3, 5)])
def test_of_a_hidden_state_in_the_place_of_weights(cell):
    with pytest.raises(ValueError, match="h=h"):
        cell(torch.rand(9, 3), EDGES, torch.rand(9, 5))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(SpectralConv, 1, 1, ()), "one positive number"),
        (partial(TemporalDecoder, 16, 10), "16 hidden channels.*at least 24"),
        (partial(PhysicsAttention, 12, 5, 4), "5 heads for 12 channels"),
        (partial(KernelInterpolation, 3, scale=-0.1), "positive"),
        (partial(EdgeNetwork, 2, 0, 8, scale=0.0), "positive"),
        (partial(GaussianKernel, 3, 2, scale=-1.0), "positive"),
    ],
)
def test_of_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()
