"""Mixers between interpolations: any points, a small grid that suits them."""

import math
from dataclasses import replace

import pytest
import torch

from nfsgeo.geometry import Domain
from nfsgeo.models import Problem, build_model, mixer
from nfsgeo.models.settings import SpectralSettings
from nfsgeo.nn import SpectralConv

SQUARE = Domain.unit(2)
SMALL_GRID = ("nfs-vit", "nfs-mlpmixer", "nfs-fnet", "nfs-gfn", "nfs-pfno")


def problem(num_points: int = 4096, **changes) -> Problem:
    return replace(Problem(SQUARE, 1, 1, 3, 10, num_points, None, True), **changes)


@pytest.mark.parametrize(
    ("name", "domain", "changes", "shape"),
    [
        *((name, SQUARE, {}, (16, 16)) for name in SMALL_GRID),
        *((name, SQUARE, {"n_out": 40}, (16, 16)) for name in SMALL_GRID[1:]),
        # None is finer than the points.
        *((name, SQUARE, {"num_points": 100}, (10, 10)) for name in SMALL_GRID),
        ("nfs-vit", SQUARE, {"n_out": 40}, (8, 8)),
        ("nfs-vit", Domain.unit(1), {"n_out": 40}, (64,)),
        ("nfs-gfn", Domain.unit(1), {}, (256,)),
        ("nfs", SQUARE, {}, (64, 64)),
        ("nfs", Domain((0, 0), (1, 2), (True, True)), {"num_points": 60}, (6, 12)),
        ("nfs", Domain.unit(1), {"num_points": 60}, (60,)),
        ("nfs", Domain.unit(3, False), {"num_points": 60}, (4, 4, 4)),
    ],
)
def test_grid(name, domain, changes, shape):
    p = replace(problem(), domain=domain, **changes)
    with torch.device("meta"):
        model = build_model(name, p, {"width": 8})
    assert model.resampling.shape == shape


@pytest.mark.parametrize("num_points", [256, 1024, 4096])
@pytest.mark.parametrize("name", ["nfs", "nfs-vit"])
def test_every_point_has_neighbours_on_the_grid(name, num_points):
    """About as many as the setting says, of a base that looks for none of its own."""
    settings = {"width": 8, "base": "quadratic"}
    resampling = build_model(name, problem(num_points=num_points), settings).resampling
    graph = resampling.builder.grid_to_points(
        resampling.grid, torch.rand(num_points, 2)
    )
    wanted = 2.3 * math.log(min(math.prod(resampling.shape), num_points))
    assert graph.degree().double().mean() == pytest.approx(wanted, rel=0.1)
    assert graph.degree().min() >= 4


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_latent_coordinates_are_for_at_most_two_dimensions(dim):
    """By default, since in three a surface would look graded."""
    p = replace(problem(num_points=300), domain=Domain.unit(dim, periodic=False))
    model = build_model("nfs", p, {"width": 4, "depth": 1, "grid": 4, "modes": 2})
    graphs = model.connect(torch.rand(300, dim) ** 4)
    assert (graphs.nodes is not None) == model.settings.latent == (dim < 3)


@pytest.mark.parametrize("rows", [10, 70, 10**6], ids=["single", "some", "all"])
def test_many_queries_are_answered_some_at_a_time(rows, monkeypatch):
    monkeypatch.setattr(mixer, "ROWS", rows)
    p = problem(num_points=50)
    model = build_model("nfs", p, {"width": 8, "hidden": 8, "grid": 6}).eval()
    answered: list[int] = []
    model.projector.register_forward_hook(lambda *call: answered.append(len(call[2])))
    points = torch.randn(100, 3, 1), torch.rand(100, 2), torch.arange(100) // 50
    queries = {"query_pos": torch.rand(25, 2), "query_batch": torch.arange(25) // 13}
    wanted = model(*points, **queries)
    with torch.no_grad():
        out = model(*points, **queries)
    torch.testing.assert_close(out, wanted)
    # Ten time steps are as many rows.
    assert max(answered[1:]) == min(25, rows // 10)
    assert sum(answered[1:]) == 25


@pytest.mark.parametrize("has_time", [True, False])
@pytest.mark.parametrize("kernel_at", ["points", "nodes"])
def test_without_a_kernel_the_base_interpolation_is_left(kernel_at, has_time):
    """A kernel whose parameters are all zero adds nothing to it, either."""
    p = replace(problem(num_points=60), has_time=has_time, n_in=1)
    sizes = {"width": 8, "modes": 2, "back_width": None, "radius_factor": 9}
    sizes["kernel_at"] = kernel_at
    learned = build_model("nfs", p, {**sizes, "kernel": "channel"})
    for layer in (learned.resampling.to_grid, learned.resampling.from_grid):
        for parameter in layer.parameters():
            torch.nn.init.zeros_(parameter)
    plain = build_model("nfs", p, {**sizes, "kernel": "none"})
    missing, unexpected = plain.load_state_dict(learned.state_dict(), strict=False)
    left = {name.split(".")[1] for name in unexpected}
    assert not missing and left == {"to_grid", "from_grid"}
    x, pos, query_pos = torch.randn(60, 1, 1), torch.rand(60, 2), torch.rand(7, 2)
    found = plain(x, pos, query_pos=query_pos)
    torch.testing.assert_close(found, learned(x, pos, query_pos=query_pos))
    edges = [m.connect(pos).edges["down"].edge_index.size(1) for m in (plain, learned)]
    assert edges[0] < edges[1] or not has_time


@pytest.mark.parametrize(
    ("modes", "dim", "num_points", "expected"),
    [(None, 1, 512, 64), (None, 1, 20, 10), (None, 1, 1, 1), (7, 1, 512, 7)]
    + [(None, 2, 4096, 8), (12, 2, 64, 12), (None, 3, 64, 8)],
)
def test_modes(modes, dim, num_points, expected):
    p = problem(num_points, domain=Domain.unit(dim))
    assert SpectralSettings(modes=modes).modes_of(p) == expected
    if dim == 1 < num_points:
        model = build_model("nfs", p, {"modes": modes})
        mixers = [m for m in model.modules() if isinstance(m, SpectralConv)]
        assert mixers and all(mixer.modes[0] == expected for mixer in mixers)
