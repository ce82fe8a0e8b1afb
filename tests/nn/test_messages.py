"""What layers say of arguments that do not fit."""

from functools import partial

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import (
    BipartiteGraph,
    Domain,
    bipartite_graph,
    equispaced_grid,
    moving_least_squares,
    nearest_neighbour_graph,
    occupancy,
    polyharmonic_spline,
    spherical_harmonics,
)
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
    Lift,
    ModulusGELU,
    MPPDELayer,
    PatchEmbedding,
    PatchUnembedding,
    PhysicsAttention,
    PointSpectralConv,
    PointWaves,
    Pointwise,
    Projector,
    SpectralConv,
    SphericalConv,
    SphericalTransform,
    TemporalDecoder,
    TokenMLP,
    Trunk,
    UNet,
    interpolate,
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


RANDOM = torch.randint(10, (2, 30))
NODE_GRAPH = node_graph(RANDOM, 10)
BETWEEN = bipartite_graph(torch.rand(10, 2), torch.rand(6, 2), 0.3, TORUS)


def ones(*shape: int) -> Tensor:
    return torch.ones(shape)


def message_passing(edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
    layer = MPPDELayer(8, 3, 2, 1)
    return layer(ones(10, 8), ones(10, 3), ones(30, 2), ones(10, 1), edge_index, batch)


def interaction(edge_index: Tensor) -> tuple[Tensor, Tensor]:
    layer = InteractionLayer(8, 1, "sum", torch.nn.SiLU)
    return layer(ones(30, 8), ones(10, 8), ones(10, 8), edge_index)


def waves(frequencies: list[list[int]]) -> PointWaves:
    return PointWaves.of(ones(10, 2), [10], TORUS, frequencies)


SHAPES = {
    "attention": (lambda: Attention(8, 2)(ones(8)), r"\(8,\).*\[B, 8, n\]"),
    "heads": (lambda: Attention(8, 0), "heads=0; expected 1"),
    "pointwise": (lambda: Pointwise(3, 4)(ones(3)), r"\(3,\).*\[B, 3, n\]"),
    "lift": (lambda: Lift(3, 2, 8)(ones(10, 4), ones(10, 2)), r"\(10, 4\).*\[N, 3\]"),
    "places": (lambda: Lift(3, 2, 8)(ones(9, 3), ones(10, 2)), r"\(10, 2\).*\[9, d\]"),
    "projector": (lambda: Projector(8, 2)(ones(5, 7)), r"\(5, 7\).*N, 8\]"),
    "modulus": (lambda: ModulusGELU(3)(ones(2, 3, 4)), "float32; expected complex"),
    "patches": (
        lambda: PatchUnembedding(8, (2, 2))(ones(2, 8, 4)),
        r"\(2, 8, 4\).*\[B, 8, m, m\]",
    ),
    "nodes": (lambda: SphericalTransform(ones(9, 2), 2), r"\(9, 2\).*\[n, 3\]"),
    "harmonics": (lambda: spherical_harmonics(ones(9, 2), 2), r"\(9, 2\).*\[n, 3\]"),
    "trunk": (lambda: Trunk(2, 8)(ones(9, 2), None), "times is missing"),
    "U-Net": (lambda: UNet(3, 8, 2)(ones(2, 3, 8)), r"\(2, 3, 8\).*\[B, 3, n, n\]"),
    "waves": (
        lambda: PointWaves.of(ones(10, 2), [4], TORUS, []),
        r"\(10, 2\).*\[4, 2\]",
    ),
    "modes": (
        lambda: PointSpectralConv(3, 4, (2, 2))(ones(10, 1, 3), waves([[0], [0]])),
        r"matrix of the waves has shape \(10, 1\)",
    ),
    "adaptive": (
        lambda: AdaptiveConv(3, 4)(ones(2, 9, 3), ones(9, 2), ones(8, 8)),
        r"adjacency .*\(8, 8\).*\[9, 9\]",
    ),
    "Laplacian": (lambda: scaled_laplacian(NODE_GRAPH, edge_weight=ones(4)), r"\[30\]"),
    "walks": (lambda: transition_matrices(BETWEEN), "from 10 sources to 6 targets"),
    "weights": (lambda: node_graph(RANDOM, 10, ones(4)), r"edge_weight .*\[30\]"),
    "messages": (lambda: message_passing(RANDOM[0]), r"\(30,\).*\[2, E\]"),
    "batch": (
        lambda: message_passing(RANDOM, RANDOM[0, :7]),
        r"batch .*\(7,\).*\[10\]",
    ),
    "interaction": (lambda: interaction(RANDOM[0]), r"\(30,\).*\[2, E\]"),
    "interpolate": (
        lambda: interpolate(ones(9, 1, 1), ones(10, 2), ones(5, 2), TORUS),
        r"\(9, 1, 1\).*\[10, T, F\]",
    ),
    "neighbours": (
        lambda: nearest_neighbour_graph(ones(4, 2), ones(5, 2), 0, TORUS),
        "num=0; expected 1",
    ),
    "base": (
        lambda: bipartite_graph(
            ones(4, 2), ones(5, 2), 1, TORUS, interpolation="cubic"
        ),
        "'cubic'; expected one of mean",
    ),
    "edges": (
        lambda: BipartiteGraph.from_edges(RANDOM, (ones(10), ones(10, 2))),
        r"sources has shape \(10,\).*\[n, d\]",
    ),
    "occupancy": (lambda: occupancy(ones(9, 3), TORUS), r"\(9, 3\).*\[n, 2\]"),
    "spline": (lambda: polyharmonic_spline(ones(9, 2)), r"\(9, 2\).*\[m, k, d\]"),
    "fit": (
        lambda: moving_least_squares(ones(9, 2), RANDOM[0, :4], 10, 1.0, 1),
        r"target .*\(4,\).*\[9\]",
    ),
}


@pytest.mark.parametrize(("call", "message"), SHAPES.values(), ids=SHAPES)
def test_of_shapes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
