"""Features of points that reach a prediction beside the grid."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import Domain, LatentCoordinates, nearest_neighbour_graph
from nfsgeo.models import Model, Problem, build_model
from nfsgeo.nn import PointPath
from nfsgeo.testing import without_zeros

SMALL = {"width": 8, "depth": 1, "modes": 2, "point_channels": 6, "messages": 5}
DOMAINS = {
    "torus": Domain.unit(2),
    "box": Domain((-2.0, 0.0), (2.0, 1.0), (False, False)),
    "line": Domain.unit(1, periodic=False),
    "cube": Domain.unit(3),
}


def model(domain: Domain, num: int = 40, **settings: object) -> Model:
    torch.manual_seed(0)
    problem = Problem(domain, 2, 1, 2, 3, num, None, True)
    return without_zeros(build_model("nfs", problem, {**SMALL, **settings})).eval()


def points(domain: Domain, num: int, graded: bool = False, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(num, domain.dim, generator=generator)
    unit = 0.4 + (unit - 0.5) ** 3 * 2.4 if graded else unit
    low, lengths = torch.tensor([domain.lower, domain.lengths])
    return low + unit * lengths


@pytest.mark.parametrize("graded", [False, True], ids=["even", "graded"])
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_batch_equals_loop_order_does_not_matter_and_queries_agree(domain, graded):
    made = model(domain, 60, neighbours=4)
    x, pos = torch.randn(120, 2, 2), points(domain, 120, graded)
    batch = torch.arange(2).repeat_interleave(60)
    together = made(x, pos, batch)
    alone = [made(*each) for each in zip(x.split(60), pos.split(60), strict=True)]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-4, atol=1e-4)
    order = torch.randperm(60)
    shuffled = made(x[:60][order], pos[:60][order])
    torch.testing.assert_close(shuffled, alone[0][order], rtol=1e-4, atol=1e-4)
    more = torch.cat([points(domain, 7, seed=1), pos[:60]])
    at_queries = made(x[:60], pos[:60], query_pos=more)
    assert at_queries.shape == (67, 3, 1)
    torch.testing.assert_close(at_queries[7:], alone[0], rtol=1e-4, atol=1e-4)


def test_what_a_point_knows_alone_reaches_its_prediction():
    """A grid of few nodes cannot hold a value at one of many points."""
    domain = Domain.unit(2)
    x, pos = torch.zeros(400, 2, 2), points(domain, 400)
    changed = x.clone()
    changed[7] = 5.0
    effects = []
    for channels in (0, 6):
        few = {"point_channels": channels, "neighbours": 0, "grid": 4}
        made = model(domain, 400, **few)
        away = (made(changed, pos) - made(x, pos)).abs().flatten(1).amax(1)
        others = torch.cat([away[:7], away[8:]])
        effects.append(float(away[7] / others.max()))
    assert effects[0] < 1.2 < 1.5 < effects[1]


def test_messages_reach_the_neighbours():
    domain = Domain.unit(2)
    pos, num = points(domain, 50), 50
    near = nearest_neighbour_graph(pos, pos, 4, domain)
    path = without_zeros(PointPath(3, 2, 2, 8, 8, 6, 5))
    features = torch.randn(num, 3)
    graphs = model(domain, num).connect(pos)
    graphs = replace(graphs, edges={**graphs.edges, "near": near})
    changed = features.clone()
    changed[3] += 1
    ends = (path.encode(each, graphs).mixed for each in (changed, features))
    away = torch.sub(*ends).abs().sum(1)
    reached = set(away.nonzero().flatten().tolist())
    assert reached == set(near.edge_index[1, near.edge_index[0] == 3].tolist())


def test_spacings_are_relative_to_those_of_the_sample():
    domain, made = Domain.unit(2, periodic=False), PointPath(3, 0, 2, 8, 8, 6, 5)
    pos = torch.rand(50, 2, dtype=torch.float64) ** 3
    # The second sample has the same mesh at half its size.
    both = torch.cat([pos, pos / 2])
    graphs = model(domain, 50).connect(both, torch.arange(100) // 50)
    spacing = made.encode(torch.randn(100, 3), graphs).inputs[:, -1]
    first, second = spacing.chunk(2)
    torch.testing.assert_close(first, second, rtol=0, atol=1e-4)
    assert first.mean().abs() < 1e-4
    assert first.std() > 0.3


def test_coincident_points_do_not_change_the_spacings_of_others():
    domain, made = Domain.unit(2, periodic=False), PointPath(1, 0, 2, 8, 8, 6, 5)
    pos = torch.rand(30, 2, dtype=torch.float64)
    same = torch.full((12, 2), 0.5, dtype=torch.float64)
    alone, joined = (
        made.encode(torch.zeros(len(p), 1), model(domain, 40).connect(p)).inputs[:, -1]
        for p in (pos, torch.cat([pos, same]))
    )
    assert joined.isfinite().all() and (joined[30:] == -20).all()
    # Only points that are near them have others as neighbours.
    assert (joined[:30] - alone).abs().median() < 0.5


def test_the_grid_follows_the_points_of_each_sample():
    domain = DOMAINS["box"]
    made = model(domain, 300)
    even, dense = points(domain, 300), points(domain, 300, graded=True)
    graphs = made.connect(torch.cat([even, dense]), torch.arange(600) // 300)
    first, second = graphs.nodes.chunk(2)
    normalised = domain.normalised
    torch.testing.assert_close(first, made.resampling.grid)
    latent = LatentCoordinates.of(graphs.pos[300:], normalised)
    assert not latent.identity
    torch.testing.assert_close(latent(second), made.resampling.grid, rtol=0, atol=1e-4)
    assert made.connect(even).nodes.shape == first.shape
    assert model(domain, 300, latent=False).connect(dense).nodes is None


def test_without_the_path_nothing_passes_the_grid_by():
    made = build_model(
        "fno-spline", Problem(Domain.unit(2), 1, 1, 2, 3, 40, None, True)
    )
    assert made.path is None
    assert set(made.connect(torch.rand(40, 2)).edges) == {"up", "down"}


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_a_margin_keeps_opposite_sides_apart_where_axes_do_not_wrap(domain):
    made = model(domain, 300)
    for wraps, size, more in zip(
        domain.periodic, made.resampling.shape, made.margin, strict=True
    ):
        assert more == (0 if wraps else pytest.approx(size / 4, abs=1))
    assert made(torch.randn(300, 2, 2), points(domain, 300)).shape == (300, 3, 1)


@pytest.mark.parametrize("forcings", [0, 2])
def test_node_types_change_nothing_on_the_grid(forcings):
    """They reach their own point and those that receive messages from it."""
    domain, pos = Domain.unit(2, periodic=False), points(Domain.unit(2), 200)
    problem = Problem(domain, 4, 1, 2, 3, 200, forcings=forcings, node_types=(2, 3))
    fields = problem.num_features // 2
    shifted = [2 + forcings * problem.folds, 3 + forcings * problem.folds]
    assert problem.type_features == [*shifted, *(fields + k for k in shifted)]
    torch.manual_seed(0)
    made = without_zeros(build_model("nfs", problem, {**SMALL, "neighbours": 4})).eval()
    assert made.grid_features == problem.num_features - 4
    x = torch.randn(200, 2, 4)
    forcing = torch.randn(200, 5, forcings) if forcings else None
    changed = x.clone()
    changed[7, :, 2:] += 1
    with torch.no_grad():
        found, base = (made(each, pos, forcing=forcing) for each in (changed, x))
    reached = ((found - base).abs().amax((1, 2)) > 0).nonzero().flatten()
    near = nearest_neighbour_graph(pos.double(), pos.double(), 4, domain).edge_index
    assert set(reached.tolist()) == set(near[1, near[0] == 7].tolist())
