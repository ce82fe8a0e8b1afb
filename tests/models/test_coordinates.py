"""Origin and units of the coordinates, of every model that takes points."""

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS, Model, Problem, build_model

POINTS, SAMPLES = 48, 2
# Origin and unit of both axes.
UNITS = [(1e6, 1.0), (0.0, 1e-3), (0.0, 1e3), (-250.0, 0.1), (1e6, 1e3)]
NAMES = [name for name, info in MODELS.items() if info.points]
AT_QUERIES = [n for n in NAMES if MODELS[n].predicts_anywhere]
BY_RADIUS = [n for n in NAMES if "radius" in MODELS[n].Settings.model_fields]
SMALL = {"width": 32, "depth": 1, "modes": 4, "time_modes": 2, "window": 3}


def made(name: str, domain: Domain, has_time: bool = True, **settings) -> Model:
    times = (3, 4) if has_time else (1, 1)
    problem = Problem(domain, 2, 1, *times, POINTS, None, has_time)
    fields = MODELS[name].Settings.model_fields
    settings = {k: v for k, v in SMALL.items() if k in fields} | settings
    torch.manual_seed(0)
    return build_model(name, problem, settings).eval()


def in_units(origin: float, unit: float, periodic: bool = True) -> Domain:
    return Domain((origin,) * 2, (origin + unit,) * 2, (periodic,) * 2)


def assert_near(found: Tensor, expected: Tensor) -> None:
    assert (found - expected).abs().max() < 1e-5 * expected.abs().max()


def cloud() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Fields, positions on the unit box (half of them nodes of a grid), queries."""
    random = torch.Generator().manual_seed(1)
    nodes = torch.randperm(50 * 50, generator=random)[: POINTS // 2]
    nodes = torch.stack([nodes // 50, nodes % 50], 1) / 50
    rest = torch.rand(POINTS // 2, 2, generator=random, dtype=torch.float64)
    pos = torch.cat([nodes.double(), rest]).repeat(SAMPLES, 1)
    x = torch.randn(len(pos), 3, 2, generator=random)
    queries = torch.rand(10, 2, generator=random, dtype=torch.float64)
    return x, pos, torch.arange(SAMPLES).repeat_interleave(POINTS), queries


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("has_time", [True, False], ids=["time", "static"])
@pytest.mark.parametrize("periodic", [True, False], ids=["torus", "box"])
@pytest.mark.parametrize("name", NAMES)
def test_predictions_know_neither_origin_nor_units(name, periodic, has_time):
    x, pos, batch, _ = cloud()
    x = x if has_time else x[:, :1]
    expected = made(name, Domain.unit(2, periodic), has_time)(x, pos, batch)
    for origin, unit in UNITS:
        model = made(name, in_units(origin, unit, periodic), has_time)
        assert_near(model(x, origin + unit * pos, batch), expected)


@torch.no_grad()
@pytest.mark.parametrize("name", AT_QUERIES)
def test_nor_do_predictions_elsewhere(name):
    x, pos, _, queries = (each[:POINTS] for each in cloud())
    expected = made(name, Domain.unit(2))(x, pos, query_pos=queries)
    for origin, unit in UNITS:
        ends = origin + unit * pos, origin + unit * queries
        found = made(name, in_units(origin, unit))(x, ends[0], query_pos=ends[1])
        assert_near(found, expected)


@torch.no_grad()
@pytest.mark.parametrize("name", NAMES)
def test_networks_see_numbers_of_order_one_in_degrees(name):
    """Longitude and latitude: predictions are as large as on the unit box."""
    x, pos, batch, _ = cloud()
    expected = made(name, Domain.unit(2))(x, pos, batch)
    degrees = Domain((0, -90), (360, 90), (True, True))
    pos = pos * torch.tensor([360, 180]) - torch.tensor([0, 90])
    found = made(name, degrees)(x, pos, batch)
    assert 0.25 < found.std() / expected.std() < 4


@pytest.mark.parametrize("name", BY_RADIUS)
def test_a_radius_is_in_the_units_of_the_positions(name):
    _, pos, batch, _ = cloud()
    graphs, unit = (
        made(name, in_units(0, size), radius=0.3 * size).connect(size * pos, batch)
        for size in (20, 1)
    )
    reach = max(g.displacement.norm(dim=1).max() for g in graphs.edges.values())
    assert name != "gino" or 0.25 < reach <= 0.3
    for key, graph in unit.edges.items():
        assert torch.equal(graph.edge_index, graphs.edges[key].edge_index)
