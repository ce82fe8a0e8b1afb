"""Runs on meshes with types of points: a wall, an inflow, an outflow."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nfsgeo
from nfsgeo.data.conventions import NODE_TYPE
from nfsgeo.data.meshes import MeshOfFile
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.evaluation.export import program_inputs
from nfsgeo.forecast import matched, rollout
from nfsgeo.forecast.transforms import Categories, Ranks
from nfsgeo.geometry.cells import cell_edges
from nfsgeo.training import RunPaths

SIZES = {"data.n_in": 3, "data.n_out": 2, "trainer.epochs": 1}


@pytest.fixture(scope="module")
def run(around_bodies: Any, tiny: Any, tmp_path_factory: Any) -> RunPaths:
    folder = tmp_path_factory.mktemp("bodies")
    data = around_bodies().write(folder / "a.nc")
    return nfsgeo.fit(nfsgeo.prepare(data, tiny | SIZES), folder / "run")


def with_types(fields: nfsgeo.Fields, old: int, new: int) -> nfsgeo.Fields:
    """The fields with another number of a type."""
    types = fields.dataset[NODE_TYPE]
    values = np.where(types.values == old, new, types.values)
    return replace(
        fields, dataset=fields.dataset.assign({NODE_TYPE: types.copy(data=values)})
    )


def test_types_are_indicators_of_a_run(run, around_bodies):
    forecaster = nfsgeo.load(run)
    kinds = forecaster.find(Categories)
    assert kinds is not None and kinds.settings["values"] == [[0, 4, 5, 6]]
    assert forecaster.task.static == (NODE_TYPE,)
    # Two fields, and four indicators in place of one number.
    assert forecaster.model.problem.in_components == 6
    assert nfsgeo.evaluate(run)["test"]["mae"] > 0
    predicted = nfsgeo.predict(run, around_bodies(3), Path("p.nc"), steps=5)
    assert len(predicted.times) == 5 and predicted.num_samples == 3


def test_query_points_outside_the_cells_are_told(run, around_bodies, caplog):
    data = around_bodies(1)
    pos = data.coordinates(0)
    queries = np.stack([pos[:12].mean(0), pos[3], pos[30], [0.99, 0.99]])
    for where, num in ((queries, 2), (queries[1:3], 0)):
        caplog.clear()
        nfsgeo.predict(run, data, query_pos=where)
        told = [line for line in caplog.messages if "outside the cells" in line]
        assert len(told) == (num > 0)
        assert not num or told[0].startswith(f"{num} of {len(where)} query points")


def test_types_that_training_has_not_seen_are_refused_in_a_line(run, around_bodies):
    other = with_types(around_bodies(3), 5, 7)
    with pytest.raises(UserError, match="node_type of 7, which .* one of 0, 4, 5, 6"):
        nfsgeo.predict(run, other, Path("p.nc"))
    assert not Path("p.nc").exists()
    with pytest.raises(UserError, match="no static input.*1 static input .node_type"):
        nfsgeo.predict(run, around_bodies(3, types=False), Path("p.nc"))


def test_types_of_other_parts_are_checked_before_training(around_bodies, tiny):
    fields = around_bodies(10)
    types = fields.dataset[NODE_TYPE].values.copy()
    types[-1] = 3
    other = fields.dataset.assign(
        {NODE_TYPE: fields.dataset[NODE_TYPE].copy(data=types)}
    )
    data = replace(fields, dataset=other).write(Path("late.nc"))
    with pytest.raises(UserError, match="node_type of 3 in sample 9 .* test part"):
        nfsgeo.prepare(data, tiny | SIZES)


@pytest.mark.slow
def test_types_in_memory_in_rollouts_and_in_programs(run, around_bodies):
    """The program predicts the same, and the first window of a rollout, too."""
    forecaster, fields = nfsgeo.load(run), around_bodies(2)
    types = torch.from_numpy(fields.read_static(1))[:, None].expand(-1, 3, -1)
    x = torch.cat([torch.from_numpy(fields.read(1, slice(3))), types], -1).float()
    pos = torch.from_numpy(fields.coordinates(1))
    expected = torch.from_numpy(forecaster.predict(x.numpy(), pos.numpy()))
    ahead = rollout(forecaster, x, pos, 5)
    torch.testing.assert_close(ahead[:, :2], expected)
    path = nfsgeo.export(run, Path("program.pt2"))
    program = torch.export.load(path).module()
    found = program(*program_inputs(forecaster, x, pos))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module", params=[True, False], ids=["types", "cells"])
def bounded(
    request: Any, around_bodies: Any, tiny: Any, tmp_path_factory: Any
) -> tuple[bool, RunPaths]:
    """A run with boundary inputs: from node types, or else from cells."""
    folder, types = tmp_path_factory.mktemp("bounded"), request.param
    data = around_bodies(types=types).write(folder / "a.nc")
    experiment = nfsgeo.prepare(data, tiny | SIZES | {"data.boundary_inputs": True})
    return types, nfsgeo.fit(experiment, folder / "run")


@pytest.mark.slow
def test_boundary_inputs_of_meshes_of_their_own(bounded, around_bodies):
    """Also for files that are predicted."""
    types, run = bounded
    forecaster = nfsgeo.load(run)
    assert forecaster.task.boundary == ((4, 5, 6) if types else ())
    made = 3 * 3 if types else 3
    assert forecaster.task.num_inputs == 2 + types + made
    ranks, first = forecaster.find(Ranks), 2 + types  # fields, node_type
    columns = ranks.columns if ranks is not None else ()
    assert all((number - first) % 3 == 0 for number in columns)  # distances
    assert columns or not types
    problem, inputs = forecaster.model.problem, 2 + made + len(columns)
    assert len(problem.node_types) == types * (problem.in_components - inputs)
    assert nfsgeo.evaluate(run)["test"]["mae"] > 0
    found = nfsgeo.predict(run, around_bodies(3, types=types), Path("p.nc"), steps=4)
    assert found.num_samples == 3 and np.isfinite(found.read(0, slice(None))).all()
    file = matched(around_bodies(2, types=types), forecaster.task)
    inputs = torch.from_numpy(file.read_inputs(1))[:, None].expand(-1, 3, -1)
    x = torch.cat([torch.from_numpy(file.read(1, slice(5, 8))), inputs], -1)
    again = forecaster.predict(x.numpy(), file.coordinates(1))
    np.testing.assert_allclose(again, found.read(1, slice(2)), rtol=1e-4, atol=1e-5)
    other = around_bodies(3, types=False, cells=types)
    with pytest.raises(UserError, match="no node_type" if types else "no cells"):
        nfsgeo.predict(run, other, Path("q.nc"))
    if not types:  # of a file with both, cells do
        nfsgeo.predict(run, around_bodies(3), Path("r.nc"))


@pytest.mark.slow
def test_boundary_inputs_are_those_of_the_query_points(bounded, around_bodies):
    """Each sample has its own: at its points, the prediction is that at its points."""
    types, run = bounded
    fields = around_bodies(3, types=types)
    usual = nfsgeo.predict(run, fields, Path("usual.nc"))
    for sample in range(3):
        np.savez("q.npz", pos=fields.coordinates(sample))
        if types:
            kinds = fields.read_static(sample)[:, 0]
            np.savez("q.npz", pos=fields.coordinates(sample), node_type=kinds)
        out = Path(f"{sample}.nc")
        found = nfsgeo.predict(run, fields, out, query_pos="q.npz")
        same = found.read(sample, slice(None)), usual.read(sample, slice(None))
        np.testing.assert_allclose(*same, rtol=1e-3, atol=1e-4)


def test_boundary_inputs_need_types_or_cells(around_bodies):
    data = around_bodies(types=False, cells=False).write(Path("a.nc"))
    with pytest.raises(UserError, match="or meshes with node_type or cells"):
        nfsgeo.prepare(data, SIZES | {"data.boundary_inputs": True})


def test_the_shape_of_a_mesh_may_be_the_only_input(tiny):
    """Steady fields are predicted from it, and who gives no input is told so."""
    pos, u, cells = [], [], []
    for radius in np.linspace(0.1, 0.2, 6):
        angle, apart = np.meshgrid(np.linspace(0, 2 * np.pi, 17)[:-1], np.arange(4))
        around = np.stack([np.cos(angle), np.sin(angle)], -1).reshape(-1, 2)
        pos.append(0.5 + (radius + 0.08 * apart.reshape(-1, 1)) * around)
        u.append(np.exp(-apart.reshape(-1, 1, 1) + radius))
        first = (np.arange(48) // 16 * 16 + np.arange(48) % 16)[:, None]
        beside = np.arange(48) // 16 * 16 + (np.arange(48) + 1) % 16
        corners = [first[:, 0], beside, beside + 16, first[:, 0] + 16]
        cells.append({"quad": np.stack(corners, 1)})
    fields = nfsgeo.from_arrays(u, pos, cells=cells)
    with pytest.raises(UserError, match="data.boundary_inputs=true"):
        nfsgeo.prepare(fields, tiny)
    chosen = tiny | {"data.boundary_inputs": True, "trainer.epochs": 1}
    run = nfsgeo.fit(nfsgeo.prepare(fields, chosen), "run")
    assert nfsgeo.load(run).task.num_inputs == 3
    predicted = nfsgeo.predict(run, fields, Path("p.nc"))
    assert np.isfinite(predicted.read(5, slice(1))).all()


@pytest.mark.slow
def test_cells_join_the_points_of_meshgraphnets(around_bodies, tiny, caplog):
    """In training, evaluation and prediction; without cells, a triangulation."""
    fields = around_bodies()
    chosen = SIZES | {"model.name": "meshgraphnets", "trainer.device": "cpu"}
    chosen |= {"model.settings.width": 8, "model.settings.depth": 2}
    experiment = nfsgeo.prepare(fields.write(Path("a.nc")), chosen)
    collate = experiment.data.collate["train"]
    windows = experiment.data.parts["train"]
    batch = collate([windows[0], windows[1]])
    at, joined = 0, batch.graphs.edges["mesh"].edge_index
    for sample in batch.sample.tolist():
        edges = cell_edges(fields.cells(sample)) + at
        at += fields.num_points(sample)
        mine = joined[:, (joined[0] >= edges.min()) & (joined[0] < at)]
        np.testing.assert_array_equal(mine, edges)
    run = nfsgeo.fit(experiment, Path("run"))
    assert nfsgeo.evaluate(run)["test"]["mae"] > 0
    predicted = []
    for cells in (True, False):
        assert "edges of cells" not in caplog.text
        given = around_bodies(2, cells=cells)
        predicted.append(nfsgeo.predict(run, given, Path(f"{cells}.nc")))
    assert "edges of cells" in caplog.text
    forecaster = nfsgeo.load(run)
    how: dict[str, Any] = {"first_step": 5, "cells": True}
    item = WindowDataset(fields, [1], 3, 0, MeshOfFile(fields), **how)[0]
    assert "edge_index" in item
    found = forecaster.predict(item).y
    same, other = (torch.from_numpy(each.read(1, slice(None))) for each in predicted)
    torch.testing.assert_close(found, same, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(found, other, rtol=1e-3, atol=1e-4)
    # Of some of the points, cells do not tell who is beside whom.
    some = nfsgeo.prepare(Path("a.nc"), chosen | {"data.points": 30})
    assert "edge_index" not in some.data.parts["train"][0]


def test_samples_with_other_cells_on_the_same_points():
    """Each has the edges of its own cells, whatever was connected before."""
    pos, u = np.random.rand(4, 2), np.random.rand(2, 4, 5)
    cells = [{"triangle": [[0, 1, 2]]}, {"triangle": [[1, 2, 3]]}]
    fields = nfsgeo.from_arrays(u, pos, np.arange(5.0), cells=cells)
    windows = WindowDataset(fields, [0, 1], 3, 2, MeshOfFile(fields), cells=True)
    assert windows[0].mesh != windows[1].mesh
    assert windows[0].edge_index.max() == 2 and windows[1].edge_index.min() == 1


def test_errors_by_node_type(run, around_bodies):
    """They are those of the points of a type alone, and named by its meaning."""
    forecaster, fields = nfsgeo.load(run), around_bodies()
    summary = nfsgeo.evaluate(run)
    assert [*summary["by_node_type"]] == ["normal", "in", "out", "wall"]
    found, std = dict.fromkeys((0, 4, 5, 6), 0.0), np.array(forecaster.task.std)
    test = fields.split["test"]
    for sample in test:
        kinds = fields.read_static(sample)
        known = kinds[:, None].repeat(3, axis=1)
        x = np.concatenate([fields.read(sample, slice(3)), known], axis=2)
        u = forecaster.predict(x.astype("f4"), fields.coordinates(sample))
        error = np.abs(u - fields.read(sample, slice(3, 5))) / std
        for kind in found:
            found[kind] += error[kinds[:, 0] == kind].mean() / len(test)
    errors = [each["mae"] for each in summary["by_node_type"].values()]
    np.testing.assert_allclose(errors, [*found.values()], rtol=1e-4)
