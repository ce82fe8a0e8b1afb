"""Lists of PyTorch Geometric's Data."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

import nfsgeo.data
from nfsgeo.data.io.graphs import fields_of_graphs
from nfsgeo.errors import UserError

FAST = settings(max_examples=15)


def saved(path: Path, graphs: Any) -> Path:
    torch.save(graphs, path)
    return path


@FAST
@given(
    sizes=st.lists(st.integers(3, 7), min_size=1, max_size=4),
    steps=st.integers(1, 4),
    ahead=st.integers(0, 2),
    corners=st.integers(3, 4),
)
def test_graphs_are_samples(tmp_path, sizes, steps, ahead, corners, sent):
    graphs = [
        Data(
            x=torch.randn(n, steps, 2, dtype=torch.float64),
            pos=torch.rand(n, 3, dtype=torch.float64),
            t=torch.arange(steps + ahead) / 4,
            face=torch.tensor([[0], [1], [2], [0]][:corners]),
            node_type=torch.arange(n) % 3,
            surf=torch.arange(n)[:, None] > 1,
            edge_index=torch.zeros(2, 5, dtype=torch.long),
            viscosity=n / 2,
            log_pe=torch.tensor(n + 0.5),
        )
        for n in sizes
    ]
    for graph in graphs * bool(ahead):
        graph.y = torch.randn(len(graph.pos), ahead, 2, dtype=torch.float64)
    fields = nfsgeo.data.open(saved(tmp_path / "a.pt", graphs))
    batches = fields_of_graphs(Path("a"), [Batch.from_data_list(graphs)])
    assert fields.scalar_names == ["log_pe", "viscosity"]
    assert fields.static_names == ["node_type", "surf"] == batches.static_names
    for each in (fields, sent(fields), batches):
        assert [*each.categories] == ["node_type"]
        assert each.parameters["log_pe"].tolist() == [n + 0.5 for n in sizes]
        assert each.num_samples == len(sizes)
        assert each.times.tolist() == [k / 4 for k in range(steps + ahead)]
        assert each.parameters["viscosity"].tolist() == [n / 2 for n in sizes]
        for sample, graph in enumerate(graphs):
            u = torch.cat([graph.x, graph.y], 1) if ahead else graph.x
            np.testing.assert_array_equal(each.read(sample, slice(None)), u)
            np.testing.assert_array_equal(each.coordinates(sample), graph.pos)
            kind = {3: "triangle", 4: "quad"}[corners]
            assert each.cells(sample)[kind].tolist() == [[0, 1, 2, 0][:corners]]
            marks = torch.stack([graph.node_type, graph.surf[:, 0]], 1)
            np.testing.assert_array_equal(each.read_static(sample), marks)


def test_from_coefficient_to_solution():
    arrays = [(torch.randn(n, 2), torch.randn(n), torch.rand(n, 2)) for n in (5, 6)]
    graphs = [Data(x=x, y=y, pos=pos) for x, y, pos in arrays]
    fields = fields_of_graphs(Path("a"), graphs, "samples")
    assert fields.static_names == ["a_0", "a_1"] and fields.component_names == ["u"]
    np.testing.assert_array_equal(fields.read_static(1), graphs[1].x)
    np.testing.assert_array_equal(fields.read(1, slice(None))[:, 0, 0], graphs[1].y)


@FAST
@given(n=st.integers(2, 6), steps=st.integers(2, 5))
def test_graphs_that_are_time_steps(tmp_path, n, steps, one_line):
    u, times = torch.randn(n, steps, 1), np.arange(steps) / 2
    pos = torch.arange(2.0 * n).reshape(n, 2)
    graphs = [Data(x=u[:, k], pos=pos, nu=0.1) for k in range(steps)]
    path = saved(tmp_path / "a.pt", graphs)
    with pytest.raises(UserError, match="--series samples.*time-steps"):
        nfsgeo.data.open(path, times=times)
    fields = nfsgeo.data.open(path, series="time-steps", times=times)
    np.testing.assert_array_equal(fields.read(0, slice(None)), u)
    assert fields.parameters["nu"].tolist() == [graphs[0].nu]
    for k, graph in enumerate(graphs):
        graph.time, graph.forcing = k / 2, u[:, k] + k
    fields = fields_of_graphs(Path("a"), graphs, "time-steps")
    assert fields.times.tolist() == times.tolist() and fields.forcing_names == ["f"]
    found = fields.read_all(0, slice(None))[..., 1]
    np.testing.assert_array_equal(found, u[..., 0] + torch.arange(steps))
    graphs[1].nu = 0.2
    with pytest.raises(UserError, match="differs from the first in nu"):
        fields_of_graphs(Path("a"), graphs, "time-steps")
    graphs[0].y = graphs[0].x
    assert "leave y out" in one_line(fields_of_graphs, Path("a"), graphs, "time-steps")


def graph(**attributes: Any) -> Data:
    x = torch.arange(8.0).reshape(4, 2, 1)
    given = {"x": x, "pos": torch.rand(4, 2), "t": torch.arange(2.0)} | attributes
    return Data.from_dict({k: v for k, v in given.items() if v is not None})


@pytest.mark.parametrize(
    ("graphs", "words"),
    [
        ([graph(mask=torch.ones(4))], "with mask in graph 0"),
        ([graph(mask=torch.ones(3) > 0)], "with mask in graph 0"),
        ([graph(face=torch.zeros(5, 2, dtype=torch.long))], "with face of shape"),
        ([graph(face=torch.full((3, 2), 4))], "whole numbers from 0 to 3"),
        ([graph(pos=None)], "without pos"),
        ([graph(x=None)], "without x"),
        ([graph(), graph(re=1.0)], "differs from the first in re"),
        ([graph(), graph(t=torch.arange(1.0, 3))], "the first in its times"),
        ([graph(t=None)], "2 time steps and no times"),
        ([graph(y=torch.zeros(4))], "same number of dimensions"),
        ([graph(batch=torch.tensor([0, 0, 1, 1]))], "to_data_list()"),
        ([Batch.from_data_list([graph(), graph()])], "batch.to_data_list()"),
        ([graph(forcing=torch.zeros(4, 1, 1))], "sizes for dimension 'time'"),
        ((graph(), {"x": 1}), "torch.save([*dataset], path)"),
    ],
)
def test_graphs_that_would_be_misread(graphs, words, tmp_path, one_line):
    assert words in one_line(nfsgeo.data.open, saved(tmp_path / "a.pt", graphs))


def test_attributes_at_points_that_are_told(caplog, one_line):
    normals = torch.randn(2, 4, 2)
    graphs = [graph(normal=each, edge_attr=torch.ones(3, 1)) for each in normals]
    assert 'columns={"static": "normal"}' in one_line(nfsgeo.from_pyg, graphs)
    names = {"component_names": ["T"], "units": {"T": "K"}}
    fields = nfsgeo.from_pyg(graphs, columns={"static": "normal"}, **names)
    assert fields.component_names == ["T"] and fields.units == {"T": "K"}
    assert fields.static_names == ["normal_0", "normal_1"]
    np.testing.assert_array_equal(fields.read_static(1), normals[1])
    assert caplog.messages == ["graphs: left out edge_attr"]
    fields = nfsgeo.from_pyg(graphs, columns={"ignore": "normal"})
    assert fields.input_names == []
    assert "2 names" in one_line(nfsgeo.from_pyg, [graph()], component_names=["a", "b"])
    steady = [Data(x=torch.randn(4, 2), y=torch.randn(4), pos=torch.rand(4, 2))]
    called = {"static_names": ["k", "q"], "component_names": ["p"]}
    fields = nfsgeo.from_pyg(steady, series="samples", **called)
    assert fields.static_names == ["k", "q"] and fields.component_names == ["p"]


class Planted:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("this must never be printed",)


@pytest.mark.parametrize("name", ["a.pt", "darcy_train_16.pt"])
def test_no_code_runs(name, tmp_path, one_line, capsys):
    tensors = {"x": Planted(), "y": torch.zeros(3)}
    for content, words in (([graph(extra=Planted())], "graphs"), (tensors, "print")):
        assert words in one_line(nfsgeo.data.open, saved(tmp_path / name, content))
    assert capsys.readouterr().out == ""
