"""Runs in a domain with walls, and runs that must not notice them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain, Region
from nfsgeo.nn.kriging import StationaryCovariance, kriging_graph
from nfsgeo_cli import main

BOX = Domain((0.0, 0.0), (2.0, 1.0), (False, False))
WALL = [[0.99, -1.0], [1.01, -1.0], [1.01, 2.0], [0.99, 2.0]]
CHAMBERS = replace(BOX, region=Region.polygons([WALL]))
AROUND = Region.polygons([[[-50, -50], [50, -50], [50, 50], [-50, 50]]], inside=True)
SIZES = {"data.n_in": 3, "data.n_out": 3}
FAR = replace(BOX, region=AROUND)


def chambers(path: Path, domain: Domain) -> Path:
    """A constant that drifts in each of two chambers, another in each sample."""
    random = np.random.default_rng(0)
    points = random.random((80, 2)) * [2, 1]
    points = points[abs(points[:, 0] - 1) > 0.02]
    times = np.arange(6.0)
    start, slope = np.moveaxis(random.normal(size=(12, 2, 2, 1)), 1, 0)
    side = (points[:, 0] > 1).astype(int)
    u = (start[:, side] + 0.1 * slope[:, side] * times).astype("f4")
    return nfsgeo.from_arrays(u, points, times, domain=domain).write(path)


@pytest.fixture
def settings(tiny: dict[str, Any]) -> dict[str, Any]:
    return tiny | SIZES | {"model.name": "nfs"}


@pytest.mark.slow
def test_a_run_keeps_its_walls(settings):
    data = chambers(Path("a.nc"), CHAMBERS)
    settings |= {"data.boundary_inputs": True, "trainer.epochs": 1}
    run = nfsgeo.fit(nfsgeo.prepare(data, settings), Path("run"))
    errors = nfsgeo.evaluate(run)
    assert errors["test"]["mae"] < 0.5 * errors["baselines"]["mean"]["mae"]
    forecaster = nfsgeo.load(run)
    assert forecaster.model.problem.domain == CHAMBERS
    with nfsgeo.open(data) as file:
        x = torch.from_numpy(file.read(0, slice(0, 3)))
        pos = torch.from_numpy(file.coordinates())
    query = torch.tensor([[0.97, 0.5], [1.03, 0.5]], dtype=torch.float64)
    found = forecaster.predict(x, pos, query_pos=query)
    assert found.shape == (2, 3, 1) and found.isfinite().all()
    with pytest.raises(UserError, match="1 of 1 points in an obstacle"):
        forecaster.predict(x, pos, query_pos=torch.tensor([[1.0, 0.5]]))
    # Data without the wall are on another domain.
    with pytest.raises(UserError, match="a region with 4 facets, as in training"):
        nfsgeo.evaluate(run, data=chambers(Path("b.nc"), BOX))
    np.savetxt(Path("q.csv"), [[0.5, 0.5], [1.0, 0.2]], delimiter=",")
    options = ["--input", str(data), "--output", str(Path("p.nc"))]
    options += ["--query-points", str(Path("q.csv"))]
    done = CliRunner().invoke(main, ["predict", str(run.root), *options])
    assert done.exit_code == 2
    assert "1 of 2 points in an obstacle, the first is number 1" in done.output
    assert len(done.output.strip().splitlines()) == 1


@pytest.mark.slow
def test_walls_out_of_reach_change_nothing(settings):
    predicted = []
    for name, domain in (("plain", BOX), ("far", FAR)):
        data = chambers(Path(f"{name}.nc"), domain)
        chosen = settings | {"data.points": 50, "loss.weighting": "quadrature"}
        run = nfsgeo.fit(nfsgeo.prepare(data, chosen), Path(name))
        errors = nfsgeo.evaluate(run)["test"]
        predicted.append([errors[key] for key in ("mae", "rmse", "rel_l2")])
    assert predicted[0] == predicted[1]


def test_boundary_inputs_need_a_region():
    data = chambers(Path("a.nc"), BOX)
    with pytest.raises(UserError, match="=true .*: expected a domain with obstacles"):
        nfsgeo.prepare(data, SIZES | {"data.boundary_inputs": True})


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", ["mppde", "meshgraphnets", "rigno", "transolver", "dse", "gcgru"]
)
def test_other_models_train_beside_a_wall(model):
    data = chambers(Path("a.nc"), CHAMBERS)
    chosen = SIZES | {"data.boundary_inputs": True}
    chosen |= {"model.name": model, "data.max_train": 2, "data.query_points": 0}
    forecaster = nfsgeo.prepare(data, chosen).forecaster.eval()
    with nfsgeo.open(data) as file:
        x = torch.from_numpy(file.read(0, slice(0, 3)))
        found = forecaster.predict(x, torch.from_numpy(file.coordinates()))
    assert found.shape == (len(x), 3, 1) and found.isfinite().all()


def test_kriging_does_not_reach_through_a_wall():
    generator = torch.Generator().manual_seed(0)
    box = CHAMBERS.normalised
    pos = torch.rand(100, 2, generator=generator, dtype=torch.float64)
    pos = pos * torch.tensor([1.0, 0.5])
    pos = pos[box.contains(pos)]
    queries = torch.tensor([[0.49, 0.2], [0.51, 0.3], [0.2, 0.4]], dtype=torch.float64)
    fitted = torch.tensor([0.0, 0.0, 1.5, -9.0, 1.0, -6.0])
    graph = kriging_graph(
        StationaryCovariance(box, fitted, torch.zeros(1)), pos, queries
    )
    weight = torch.zeros(3, len(pos), dtype=torch.float64)
    weight.index_put_((graph.edge_index[1], graph.edge_index[0]), graph.base_weight)
    for row, query in zip(weight, queries, strict=True):
        own = (pos[:, 0] > 0.5) == (query[0] > 0.5)
        assert not row[~own].any()
        # The same as if there were no other chamber, but for the choice of frequencies.
        model = StationaryCovariance(replace(box, region=None), fitted, torch.zeros(1))
        k, all_of_them = model.matrices(len(pos), pos[own], query[None])
        k = k + model.noise * torch.eye(len(k))
        if int(own.sum()) <= 64:
            expected = torch.linalg.solve(k, all_of_them[0])
            torch.testing.assert_close(row[own], expected, atol=1e-6, rtol=1e-5)
