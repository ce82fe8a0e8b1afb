"""Static inputs that are known at query points, in place of interpolated ones."""

from pathlib import Path

import numpy as np
import pytest
import torch

import nfsgeo
from nfsgeo.data.boundary import boundary_at, boundary_names, with_boundary
from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster, rollout, transforms
from nfsgeo.geometry import Domain
from nfsgeo.models import Task
from nfsgeo.testing import without_zeros

SMALL = {"width": 8, "depth": 1, "modes": 2, "point_channels": 6, "messages": 5}


@pytest.fixture(
    scope="module",
    params=[(0, None), (2, None), (0, "node_type"), (2, "node_type")],
    ids=["static", "in-time", "static-past-the-grid", "in-time-past-the-grid"],
)
def forecaster(request: pytest.FixtureRequest) -> Forecaster:
    """Of the inputs a and node_type, and a scalar, with or without time."""
    n_in, node_type = request.param
    timed = n_in > 0
    task = Task(
        domain=Domain.unit(2, periodic=False),
        components=("u",),
        static=("a", "node_type"),
        scalars=("re",),
        mean=(0.5,),
        std=(2.0,),
        n_in=n_in,
        n_out=1,
        times=tuple(range(1 - n_in, 2)),
        num_points=60,
    )
    mean = [0.5] * timed + [1.0, 0.0, 2.0]
    scale = {"mean": mean, "std": [2.0] * timed + [3.0, 1.0, 1.0]}
    stack = [
        transforms.Normalise(**scale, out_mean=[0.5], out_std=[2.0]),
        transforms.Categories(
            columns=[1 + timed],
            names=["node_type"],
            values=[[0, 4]],
            node_type=node_type,
        ),
    ]
    torch.manual_seed(0)
    made = Forecaster.build("nfs", SMALL, task, stack)
    return without_zeros(made).eval()


def inputs(forecaster: Forecaster, num: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    task = forecaster.task
    x = torch.randn(num, max(1, task.n_in), task.num_inputs)
    static = torch.stack([x[:, 0, -3], torch.randint(0, 2, (num,)) * 4.0], dim=1)
    x[..., -3:-1] = static[:, None]
    x[..., -1] = 2.5
    return x, torch.rand(num, 2)


def test_what_is_known_at_a_query_takes_the_place_of_what_is_interpolated(forecaster):
    x, pos = inputs(forecaster)
    queries = torch.cat([torch.rand(9, 2), pos])
    plain = forecaster(x, pos, query_pos=queries)
    static = torch.full((69, 2), torch.nan)
    unknown = forecaster(x, pos, query_pos=queries, query_static=static)
    torch.testing.assert_close(unknown, plain)
    static[9:] = x[:, 0, -3:-1]
    same = forecaster(x, pos, query_pos=queries, query_static=static)
    torch.testing.assert_close(same, plain, rtol=1e-4, atol=1e-4)
    for number, value in ((0, 7.0), (1, 4.0), (1, 0.0)):
        changed = static.clone()
        changed[3, number] = value
        found = forecaster(x, pos, query_pos=queries, query_static=changed)
        differs = (found - same).abs().amax((1, 2)) > 1e-6
        assert differs.nonzero().flatten().tolist() == [3]


def test_every_way_to_predict_takes_it(forecaster):
    x, pos = inputs(forecaster)
    queries, static = torch.rand(5, 2), torch.tensor([[0.3, 4.0]] * 5)
    known = {"query_pos": queries, "query_static": static}
    with torch.no_grad():
        expected = forecaster(x, pos, **known)
    torch.testing.assert_close(forecaster.predict(x, pos, **known), expected)
    if forecaster.task.has_time:
        graphs = forecaster.connect(pos, query_pos=queries)
        found = rollout(forecaster, x, pos, 1, graphs=graphs, query_static=static)
        torch.testing.assert_close(found, expected)
    for wrong in (static[:, :1], static[:3]):
        with pytest.raises(UserError, match=r"query_static \[queries, 2\]"):
            forecaster(x, pos, query_pos=queries, query_static=wrong)
    with pytest.raises(UserError, match="query_static without query points"):
        forecaster(x, pos, query_static=x[:, 0, -3:-1])
    odd = static.clone()
    odd[2, 1] = 3
    with pytest.raises(UserError, match="node_type of 3"):
        forecaster(x, pos, query_pos=queries, query_static=odd)


@pytest.fixture(scope="module")
def plate(tmp_path_factory) -> tuple[Path, Path]:
    """A run on samples with a static input each, and its data."""
    folder = tmp_path_factory.mktemp("plate")
    rng = np.random.default_rng(0)
    pos = [rng.random((40, 2)) for _ in range(12)]
    a = [np.sin(3 * each[:, :1] + n) for n, each in enumerate(pos)]
    u = [each[:, None] ** 2 for each in a]
    box = Domain.unit(2, periodic=False)
    names = {"component_names": ["u"], "static_names": ["a"]}
    fields = nfsgeo.from_arrays(u, pos, static=a, domain=box, **names)
    fields.write(folder / "plate.nc")
    settings = {f"model.settings.{k}": v for k, v in SMALL.items()}
    config = {"trainer.epochs": 1, "trainer.logger": "none", **settings}
    nfsgeo.fit(nfsgeo.prepare(folder / "plate.nc", config), folder / "run")
    return folder / "run", folder / "plate.nc"


@pytest.mark.slow
def test_a_table_of_query_points_may_hold_them(plate, tmp_path, caplog):
    run, data = plate
    queries = np.random.default_rng(1).random((6, 2))
    known = np.linspace(-3, 3, 6)
    rows = [f"{x},{y},{a}" for (x, y), a in zip(queries, known, strict=True)]
    (tmp_path / "q.csv").write_text("\n".join(["x,y,a", *rows]))
    np.savez(tmp_path / "q.npz", pos=queries, a=known)
    np.save(tmp_path / "q.npy", queries)
    found = {}
    for name in ("q.csv", "q.npz", "q.npy"):
        made = nfsgeo.predict(
            run, data, tmp_path / f"{name}.nc", query_pos=tmp_path / name
        )
        found[name] = made.read(0, slice(None))
    assert caplog.text.count("a at the query points is that of all 12 samples") == 2
    np.testing.assert_allclose(found["q.csv"], found["q.npz"], atol=1e-6)
    assert np.abs(found["q.csv"] - found["q.npy"]).max() > 1e-4
    np.savez(tmp_path / "short.npz", pos=queries, a=known[:4])
    with pytest.raises(UserError, match="a of shape"):
        short = tmp_path / "short.npz"
        nfsgeo.predict(run, data, tmp_path / "s.nc", query_pos=short)
    np.savez(tmp_path / "typo.npz", pos=queries, aa=known)
    np.savez(tmp_path / "huge.npz", pos=queries, a=1e300 * known)
    for name, said in (("typo", "array aa, .* of pos and a"), ("huge", "float32")):
        with pytest.raises(UserError, match=said):
            wrong = tmp_path / f"{name}.npz"
            nfsgeo.predict(run, data, tmp_path / "s.nc", query_pos=wrong)


def test_boundary_inputs_are_computed_at_other_points():
    rng = np.random.default_rng(0)
    pos = rng.random((30, 2))
    kinds = np.where(np.arange(30) < 8, 4, 0)[:, None].astype(float)
    box = Domain.unit(2, periodic=False)
    fields = nfsgeo.from_arrays(
        [pos[:, None, :1]],
        [pos],
        static=[kinds],
        static_names=["node_type"],
        domain=box,
    )
    made = with_boundary(fields, (4,))
    at_points = boundary_at(made, (4,), 0, torch.from_numpy(pos))
    own = made.read_static(0)[:, -3:]
    for column, name in enumerate(boundary_names(box, (4,))):
        np.testing.assert_allclose(at_points[name], own[:, column], atol=1e-6)
    elsewhere = torch.rand(5, 2, dtype=torch.float64)
    distance = torch.cdist(elsewhere, torch.from_numpy(pos[:8])).amin(1)
    there = boundary_at(made, (4,), 0, elsewhere)["distance_node_type_4"]
    np.testing.assert_allclose(there, distance, atol=1e-6)
    assert boundary_at(made, None, 0, elsewhere) == {}
