"""Graphs of the data, such as roads: kept, given to `gcgru` and `dcrnn`, and used."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from torch_geometric.data import Data

import nfsgeo
from nfsgeo.data import Fields, convert
from nfsgeo.data.io.edges import with_graph_of
from nfsgeo.data.io.joining import joined
from nfsgeo.data.meshes import MeshOfFile, random_subset
from nfsgeo.data.windows import WindowDataset
from nfsgeo.nn import DiffusionGRU

N, T = 8, 40
RANDOM = np.random.default_rng(0)
POS, U = RANDOM.random((N, 2)), RANDOM.normal(size=(1, N, T, 1))
EDGES = np.array([[0, 1, 2, 3, 4, 5, 6, 7, 2, 5], [1, 2, 3, 4, 5, 6, 7, 0, 0, 1]])
WEIGHT = RANDOM.random(10) + 0.1
NAMES = [str(700 + 37 * i) for i in range(N)]
SIZES = {
    **{"data.n_in": 3, "data.n_out": 2, "data.window_stride": 2, "data.batch_size": 2},
    **{"trainer.epochs": 1, "trainer.device": "cpu", "trainer.logger": "none"},
    **{"model.settings.width": 4, "model.settings.depth": 1},
}


def roads(edges: Any = EDGES, weight: Any = WEIGHT, samples: int = 1) -> Fields:
    u = np.repeat(U, samples, axis=0)
    return nfsgeo.from_arrays(u, POS, np.arange(T), edges=edges, edge_weight=weight)


@pytest.fixture
def speeds() -> Path:
    """A column for each sensor, named by its number, and tables of both ends."""
    times = pandas.date_range("2024-01-01", periods=T, freq="5min")
    table = pandas.DataFrame(U[0, ..., 0].T, columns=NAMES, index=times)
    table.to_csv("speeds.csv")
    places = {"sensor": NAMES, "x": POS[:, 0], "y": POS[:, 1]}
    pandas.DataFrame(places).to_csv("sensors.csv", index=False)
    return Path("speeds.csv")


def table_of(name: str, *, ends: Any = NAMES, **columns: Any) -> str:
    both = {"from": np.array(ends)[EDGES[0]], "to": np.array(ends)[EDGES[1]]}
    pandas.DataFrame(both | columns).to_csv(name, index=False)
    return name


def same_graph(fields: Fields, sample: int, edges: Any, weight: Any) -> None:
    found, weights = fields.graph(sample)
    np.testing.assert_array_equal(found, edges)
    assert (weights is None) == (weight is None)
    np.testing.assert_array_equal(weights if weights is not None else 0, weight or 0)


@pytest.mark.parametrize("ending", ["nc", "npz"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("own", [True, False])
def test_graphs_are_kept(ending, weighted, own):
    """In files, in some of the samples, and where files are joined."""
    sizes = [10, 3, 0] if own else [10] * 3
    edges = [EDGES[:, :size] for size in sizes]
    weights = [WEIGHT[:size].tolist() for size in sizes] if weighted else [None] * 3
    fields = roads(edges, weights if weighted else None, 3)
    assert len({*fields.sample_geometry}) == (3 if own else 1)
    fields = nfsgeo.open(fields.write(Path(f"a.{ending}")))
    twice = joined([fields, fields[[2, 0]]], "samples")
    for number, sample in enumerate([0, 1, 2, 2, 0]):
        same_graph(twice, number, edges[sample], weights[sample])
    assert not roads(None, None).has_graph


def test_graphs_of_pyg():
    """Where all have edges; of time steps, the same in all of them."""
    more: dict[str, Any] = {"pos": torch.tensor(POS), "edge_index": torch.tensor(EDGES)}
    more["edge_weight"] = torch.tensor(WEIGHT)
    x = torch.tensor(U[0])
    samples = [Data(x=x, t=torch.arange(T), **more) for _ in range(2)]
    same_graph(nfsgeo.from_pyg(samples), 1, EDGES, WEIGHT.tolist())
    steps = [Data(x=x[:, k], t=float(k), **more) for k in range(3)]
    same_graph(nfsgeo.from_pyg(steps, series="time-steps"), 0, EDGES, WEIGHT.tolist())
    steps[1].edge_index = steps[1].edge_index.flip(0)
    assert not nfsgeo.from_pyg(steps, series="time-steps").has_graph
    del samples[1].edge_index
    assert not nfsgeo.from_pyg(samples).has_graph


@pytest.mark.parametrize(
    ("edges", "weight", "words"),
    [
        (EDGES.T, None, "number the points"),
        (EDGES + 1, None, "0 to 7"),
        (EDGES * 1.0, None, "whole numbers"),
        (EDGES, WEIGHT[1:], "a weight of each edge"),
        (EDGES, -WEIGHT, "some of them negative"),
        (EDGES, WEIGHT * np.nan, "not finite"),
        ([EDGES, EDGES], None, "those of 1"),
    ],
)
def test_graphs_that_do_not_fit(edges, weight, words, one_line):
    assert words in one_line(roads, edges, weight)


def test_tables_of_edges(speeds, one_line, caplog):
    """Names or numbers; distances are no weights unless that is said."""
    columns: dict[str, Any] = {"columns": {"points": "sensors.csv"}}
    named, bare = nfsgeo.open(speeds, **columns), roads(None, None)
    assert named.stations() == NAMES
    for fields, ends in ((named, NAMES), (bare, range(N))):
        found = with_graph_of(fields, table_of("e.csv", ends=ends, weight=WEIGHT))
        np.testing.assert_array_equal(found.graph()[0], EDGES)
        np.testing.assert_allclose(found.graph()[1], WEIGHT)
        assert with_graph_of(fields, table_of("f.csv", ends=ends)).graph()[1] is None
    cost = table_of("cost.csv", cost=100 * WEIGHT)
    assert "cost.csv:gaussian" in one_line(with_graph_of, named, cost)
    found = with_graph_of(named, f"{cost}:gaussian")
    kernel = np.exp(-((WEIGHT / WEIGHT.std()) ** 2))
    np.testing.assert_array_equal(found.graph()[0], EDGES[:, kernel >= 0.1])
    np.testing.assert_allclose(found.graph()[1], kernel[kernel >= 0.1])
    assert "from 0 to 7" in one_line(with_graph_of, bare, table_of("names.csv"))
    assert "columns" in one_line(with_graph_of, named, "sensors.csv")
    assert "columns" in one_line(with_graph_of, named, "e.csv:gaussian")
    other = table_of("other.csv", ends=[f"A{i}" for i in range(N)])
    assert "A0" in one_line(with_graph_of, named, other)
    assert not caplog.messages
    some = table_of("some.csv", ends=[*NAMES[:-1], "Z"])
    there = (EDGES < N - 1).all(axis=0)
    same_graph(with_graph_of(named, some), 0, EDGES[:, there], None)
    assert len(caplog.messages) == 1 and "Z" in caplog.text
    convert(speeds, "s.nc", graph=f"{cost}:gaussian", **columns)
    np.testing.assert_array_equal(nfsgeo.open("s.nc").graph()[0], found.graph()[0])


def test_the_graph_of_the_points_that_are_there():
    """Edges between observed points alone, also where points are absent."""
    fields = roads()
    mesh = random_subset(fields, 5, 0)
    number = {int(point): at for at, point in enumerate(mesh.index)}
    kept = np.isin(EDGES, mesh.index).all(axis=0)
    item = WindowDataset(fields, [0], 3, 2, mesh, graph=True)[0]
    wanted = [[number[point] for point in ends] for ends in EDGES[:, kept].tolist()]
    assert 0 < kept.sum() < 10 and item.edge_index.tolist() == wanted
    np.testing.assert_array_equal(item.edge_weight, WEIGHT[kept])
    u = U.copy()
    u[0, 3, :6] = np.nan
    gaps = nfsgeo.from_arrays(u, POS, np.arange(T), edges=EDGES)
    windows = WindowDataset(
        *(gaps, [0, 0], 3, 2, MeshOfFile(gaps)),
        **{"first_step": np.array([0, 10]), "graph": True, "drop_absent": True},
    )
    without, whole = windows[0], windows[1]
    assert without.mesh != whole.mesh and whole.edge_index.tolist() == EDGES.tolist()
    assert len(without.pos) == N - 1 and without.edge_index.shape == (2, 8)
    assert "edge_weight" not in whole


def step(forecaster: Any, x: torch.Tensor, **edges: Any) -> torch.Tensor:
    graphs = forecaster.connect(torch.tensor(POS), **edges)
    return forecaster.model(x, graphs.pos, graphs=graphs)


@pytest.mark.slow
def test_dcrnn_is_its_cells_on_the_graph():
    """By hand, with the same gradients; weights and directions of edges matter."""
    experiment = nfsgeo.prepare(roads(), SIZES | {"model.name": "dcrnn"})
    assert experiment.config.model.settings["graph"] == "given"
    assert experiment.task.graph
    windows, collate = experiment.data.parts["train"], experiment.data.collate["train"]
    forecaster, model = experiment.forecaster, experiment.forecaster.model
    batch = collate([windows[0], windows[3]])
    inputs = forecaster.inputs_of(batch)
    given = forecaster.transforms.inputs(inputs)[-1].joined(torch.float32).x
    index, weight = torch.tensor(EDGES), torch.tensor(WEIGHT)
    cell = model.cells[0]
    assert isinstance(cell, DiffusionGRU)
    h, last = torch.zeros(2, N, 4), torch.zeros(2, N, 1)
    samples, predicted = given.unflatten(0, (2, N)), []
    for t in range(3):
        h = cell(samples[:, :, t], index, weight, h)
    for _ in range(2):
        h = cell(torch.cat([last, samples[:, :, -1, 1:]], -1), index, weight, h)
        last = samples[:, :, -1, :1] + model.output(h)
        predicted.append(last)
    by_hand = torch.stack(predicted, 2).flatten(0, 1)
    whole = model(given, inputs.graphs.pos, graphs=inputs.graphs)
    torch.testing.assert_close(whole, by_hand)
    weights = list(model.parameters())
    grads = [torch.autograd.grad((y**2).sum(), weights) for y in (whole, by_hand)]
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-6)
    x = given[:N]
    one = step(forecaster, x, edge_index=index, edge_weight=weight)
    torch.testing.assert_close(one, whole[:N])
    for edges in ((index, None), (index.flip(0), weight), (index[:, 1:], weight[1:])):
        other = step(forecaster, x, edge_index=edges[0], edge_weight=edges[1])
        assert not torch.allclose(one, other, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gcgru", "dcrnn"])
def test_runs_on_roads(name, speeds, refuses, caplog):
    """From a table, with its graph; of fewer sensors, or without their graph."""
    caplog.set_level("WARNING")
    columns = {"points": "sensors.csv", "field": "speed"}
    chosen = SIZES | {"model.name": name, "data.columns": columns}
    chosen["data.graph"] = table_of("cost.csv", cost=WEIGHT) + ":gaussian"
    run = nfsgeo.fit(nfsgeo.prepare(speeds, chosen), Path("run"))
    assert "edges of the graph" in caplog.text
    assert nfsgeo.evaluate(run)["test"]["mae"] > 0
    usual = nfsgeo.predict(run, speeds, "p.nc").read(0, slice(None))
    table = pandas.read_csv(speeds, index_col=0)
    table.drop(columns=NAMES[3]).to_csv("fewer.csv")
    fewer = nfsgeo.predict(run, "fewer.csv", "q.nc").read(0, slice(None))
    assert len(fewer) == N - 1 and np.isfinite(fewer).all()
    # The graph is that of the run, also in memory, by the names of the stations.
    fields = nfsgeo.open(speeds, columns=columns)
    again = nfsgeo.predict(run, fields, "r.nc").read(0, slice(None))
    np.testing.assert_allclose(again, usual, rtol=1e-5)
    item = Data(x=torch.tensor(fields.read(0, slice(-3, None))), pos=torch.tensor(POS))
    refuses("edge_index", nfsgeo.load(run).predict, item)
    graph = with_graph_of(fields, chosen["data.graph"]).graph()
    item.edge_index, item.edge_weight = map(torch.tensor, graph)
    np.testing.assert_allclose(nfsgeo.load(run).predict(item).y, usual, rtol=1e-4)


@pytest.mark.slow
def test_the_radius_graph_remains(caplog, refuses):
    """Where the data have none, or the settings say so; a run says what it lacks."""
    chosen = SIZES | {"model.name": "dcrnn"}
    within = chosen | {"model.settings.graph": "radius"}
    plain = roads(None, None)
    one, other = nfsgeo.prepare(roads(), within), nfsgeo.prepare(plain, chosen)
    assert not caplog.messages and not one.task.graph
    assert other.config.model.settings["graph"] == "radius"
    index = [
        each.data.collate["train"]([each.data.parts["train"][0]]).graphs.edges
        for each in (one, other)
    ]
    assert [*index[0]] == [*index[1]] == ["shift", "climatology"]
    assert torch.equal(*(edges["shift"].edge_index for edges in index))
    given = chosen | {"model.settings.graph": "given"}
    refuses("--graph", nfsgeo.prepare, plain, given)
    run = nfsgeo.fit(nfsgeo.prepare(roads(), chosen), Path("run"))
    refuses("no graph", nfsgeo.predict, run, plain, "p.nc")
    nfsgeo.predict(run, roads(), "q.nc")
    held = nfsgeo.prepare(roads(), chosen | {"data.hold_out": 0.25})
    assert held.data.parts["train"][0].edge_index.max() < 6
