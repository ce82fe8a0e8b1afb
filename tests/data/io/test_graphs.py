"""Lists of PyTorch Geometric's Data."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import (
    Batch,
    Data,
    HeteroData,
    InMemoryDataset,
    TemporalData,
)
from torch_geometric.loader import DataLoader

import nfsgeo.data
from nfsgeo.data.io.graphs import fields_of_graphs
from nfsgeo.errors import UserError

T4, T5 = torch.arange(4.0), torch.arange(5.0)
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
    named = nfsgeo.from_pyg(graphs, time_axis=1, node_types={0: "inside", 2: "wall"})
    assert named.categories == {"node_type": {0: "inside", 2: "wall"}}
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


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("width", [0, 1, 2])
def test_a_solution_without_a_coefficient(shared, width, tmp_path, one_line):
    """Fields of a steady problem, whose inputs are node types and numbers."""
    sizes = [5, 5] if shared else [5, 6]
    graphs = [
        Data(
            pos=torch.eye(n, 2, dtype=torch.float64) + torch.arange(n)[:, None],
            y=torch.rand(n, width) if width else torch.rand(n),
            node_type=torch.arange(n) % 3,
            inflow_speed=k / 2,
        )
        for k, n in enumerate(sizes)
    ]
    fields = nfsgeo.from_pyg(graphs)
    assert fields.component_names == (["u_0", "u_1"] if width == 2 else ["u"])
    assert fields.input_names == ["node_type", "inflow_speed"]
    for sample, graph in enumerate(graphs):
        expected = graph.y.view(len(graph.y), -1)
        found = fields.read(sample, slice(None))[:, 0]
        np.testing.assert_array_equal(found, expected)
        assert (fields.read_inputs(sample)[:, 1] == sample / 2).all()
        assert graph.x is None
    read = nfsgeo.data.open(saved(tmp_path / "a.pt", graphs))
    assert read.component_names == fields.component_names
    graphs[1].y = None
    assert "graph 1 without x" in one_line(nfsgeo.from_pyg, graphs)
    assert "data.x or data.y" in one_line(nfsgeo.from_pyg, graphs)


@FAST
@given(n=st.integers(2, 6), steps=st.integers(2, 5))
def test_graphs_that_are_time_steps(tmp_path, n, steps, one_line):
    u, times = torch.randn(n, steps, 1), np.arange(steps) / 2
    pos = torch.arange(2.0 * n).reshape(n, 2)
    graphs = [Data(x=u[:, k], pos=pos, nu=0.1) for k in range(steps)]
    path = saved(tmp_path / "a.pt", graphs)
    with pytest.raises(UserError, match="series='samples'.*time-steps"):
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
        ([graph(y=torch.zeros(4))], "y of shape (4,) and 2 t"),
        ([graph(batch=torch.tensor([0, 0, 1, 1]))], "to_data_list()"),
        ([Batch.from_data_list([graph(), graph()])], "batch.to_data_list()"),
        ([graph(forcing=torch.zeros(4, 1, 1))], "t and forcing at the steps of x"),
        ((graph(), {"x": 1}), "torch.save([*dataset], path)"),
    ],
)
def test_graphs_that_would_be_misread(graphs, words, tmp_path, one_line):
    assert words in one_line(nfsgeo.data.open, saved(tmp_path / "a.pt", graphs))


def test_attributes_at_points_that_are_told(caplog, one_line):
    normals = torch.randn(2, 4, 2)
    graphs = [graph(normal=each, edge_attr=torch.ones(3, 1)) for each in normals]
    assert "--columns static=normal" in one_line(nfsgeo.from_pyg, graphs)
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


N, STEPS = 6, 5
SERIES = torch.randn(N, STEPS, 1)
PAIR = torch.randn(N, STEPS, 2)
AHEAD = torch.randn(N, 3, 1)
ASKED = "--time-axis none, or --time-axis 1 and times"
POS = torch.rand(N, 2)


def series_of(t: int | None = STEPS, **attributes: Any) -> list[Data]:
    times = {} if t is None else {"t": torch.arange(float(t))}
    return [Data(pos=POS, **times, **attributes) for _ in range(3)]


@pytest.mark.parametrize(
    ("graphs", "options", "expected"),
    [
        (series_of(x=SERIES[..., 0]), {}, SERIES),
        (series_of(x=SERIES[..., 0]), {"series": "samples"}, SERIES),
        (series_of(x=SERIES.mT), {}, SERIES),
        (series_of(x=PAIR), {}, PAIR),
        (series_of(x=PAIR.mT), {}, PAIR),
        (series_of(x=PAIR.transpose(0, 1)), {"time_axis": 0}, PAIR),
        (series_of(x=PAIR.mT), {"time_axis": -1}, PAIR),
        (series_of(8, x=SERIES[..., 0], y=AHEAD[..., 0]), {}, [SERIES, AHEAD]),
        (series_of(8, x=SERIES.mT, y=AHEAD[..., 0]), {}, [SERIES, AHEAD]),
        (series_of(8, x=SERIES.mT, y=AHEAD.mT), {"time_axis": 2}, [SERIES, AHEAD]),
        (series_of(6, x=SERIES[..., 0], y=AHEAD[:, 0, 0]), {}, [SERIES, AHEAD[:, :1]]),
        (series_of(6, x=PAIR.mT, y=PAIR[:, 0]), {}, [PAIR, PAIR[:, :1]]),
        (series_of(None, x=SERIES.mT), {"time_axis": 1}, SERIES.mT),
        (series_of(1, x=SERIES[..., 0]), {"series": "samples"}, SERIES.mT),
    ],
)
def test_the_axis_of_time(graphs, options, expected):
    """The number of times tells which axis is time, or else a user does."""
    whole = torch.cat(expected, 1) if isinstance(expected, list) else expected
    fields = nfsgeo.from_pyg(graphs, **options)
    assert fields.num_samples == 3
    np.testing.assert_array_equal(fields.read(2, slice(None)), whole)


@pytest.mark.parametrize(
    ("graphs", "options", "words"),
    [
        (series_of(None, x=POS, y=POS), {}, ASKED),
        (series_of(None, x=POS, y=POS), {"series": "samples"}, ASKED),
        (series_of(None, x=POS, y=POS[:, 0]), {}, ASKED),
        (series_of(None, x=POS), {}, ASKED),
        (series_of(None, x=POS), {"series": "samples"}, ASKED),
        (series_of(None, x=POS[:, 0], y=POS[:, 0]), {}, ASKED),
        (series_of(None, x=SERIES.mT), {}, "--time-axis 2, or --time-axis 1"),
        (series_of(None, x=POS, y=POS), {"time_axis": 1}, "4 time steps and no times"),
        (series_of(None, x=PAIR), {"time_axis": None}, "--time-axis none: expected"),
        (series_of(x=PAIR), {"time_axis": None}, "--time-axis none: expected"),
        (series_of(x=PAIR), {"time_axis": 3}, "--time-axis 3: expected"),
        (
            series_of(x=PAIR),
            {"time_axis": 2},
            "--time-axis 2: expected an axis of 6 points",
        ),
        (series_of(x=SERIES[..., 0]), {"series": "time-steps"}, "--series samples"),
        (series_of(4, x=SERIES[..., 0]), {}, "x of shape (6, 5) and 4 t"),
        (series_of(8, x=PAIR, y=AHEAD), {}, "8 t: expected an axis"),
        (series_of(x=SERIES[1:, :, 0]), {}, "an axis of 6 points"),
        (series_of(None, x=POS[1:, :1]), {}, "an axis of 6 points"),
        ([*series_of(x=PAIR), *series_of(x=SERIES)], {}, "the first in x"),
    ],
)
def test_axes_that_are_asked_for_or_refused(graphs, options, words, one_line):
    message = one_line(nfsgeo.from_pyg, graphs, **options)
    assert words in message
    for foreign in ("dimension", "concatenate", "tuple", "object"):
        assert foreign not in message


def test_a_reading_of_two_is_told(caplog):
    """Names of components are an answer, too."""
    twins = series_of(None, x=POS, y=POS)
    names = {"component_names": ["p", "q"]}
    for options in ({"time_axis": None}, names):
        fields = nfsgeo.from_pyg(twins, **options)
        assert fields.static_names == ["a_0", "a_1"] and fields.components == 2
    assert not caplog.messages
    square = torch.randn(N, STEPS, STEPS)
    fields = nfsgeo.from_pyg(series_of(x=square))
    np.testing.assert_array_equal(fields.read(0, slice(None)), square)
    nfsgeo.from_pyg(series_of(None, x=POS, y=POS[:, 0]), series="samples")
    for line, words in zip(
        caplog.messages, ("time_axis=2", "time_axis=1"), strict=True
    ):
        assert words in line


def test_the_axis_of_time_of_a_file(tmp_path, one_line):
    graphs = series_of(None, x=POS, y=POS)
    path = saved(tmp_path / "a.pt", graphs)
    assert ASKED in one_line(nfsgeo.open, path)
    steady = nfsgeo.open(path, time_axis=None)
    assert steady.static_names == ["a_0", "a_1"] and not steady.reopens
    moving = nfsgeo.open(path, time_axis=1, times=np.arange(4.0))
    np.testing.assert_array_equal(
        moving.read(0, slice(None))[..., 0], torch.cat([POS, POS], 1)
    )


def one_hetero() -> HeteroData:
    graph = HeteroData()
    graph["cell"].pos, graph["cell"].x = POS, SERIES
    return graph


def in_memory(folder: Path, graphs: list[Data]) -> Path:
    InMemoryDataset.save(graphs, str(folder / "processed.pt"))
    return folder / "processed.pt"


def test_ways_to_hand_over_graphs(tmp_path, one_line):
    graphs = [Data(pos=torch.rand(n, 2), x=torch.randn(n, 4), t=T4) for n in (5, 7)]
    ways: list[Any] = [tuple(graphs), iter(graphs), Batch.from_data_list(graphs)]
    ways += [DataLoader(graphs, batch_size=2), [Batch.from_data_list(graphs)]]
    opened = [nfsgeo.from_pyg(way) for way in ways]
    opened.append(nfsgeo.open(in_memory(tmp_path, graphs)))
    opened.append(nfsgeo.open(saved(tmp_path / "a.pt", graphs)))
    for fields in opened:
        assert fields.num_samples == 2
        np.testing.assert_array_equal(fields.read(1, slice(None))[..., 0], graphs[1].x)
    assert nfsgeo.from_pyg(graphs[0]).num_samples == 1
    unsliced = Batch(pos=POS, x=SERIES, t=T5, batch=torch.zeros(N).long())
    temporal = TemporalData(src=torch.arange(2), dst=torch.arange(2), t=torch.arange(2))
    for wrong, words in (
        (DataLoader(graphs, shuffle=True), "loader.dataset"),
        (unsliced, "the list of Data that it was made of"),
        (one_hetero(), "Data(pos=graph['cell'].pos, x=graph['cell'].x)"),
        (Batch.from_data_list([one_hetero()]), "a HeteroDat"),
        (temporal, "a TemporalData"),
        ("a.pt", "a str"),
        ([graphs], "a list"),
        ([], "no graph"),
    ):
        assert words in one_line(nfsgeo.from_pyg, wrong)
    path = saved(tmp_path / "b.pt", [one_hetero()])
    assert "with a HeteroData" in one_line(nfsgeo.open, path)


@pytest.mark.parametrize(
    ("kind", "read"),
    [(torch.float64, "f8"), (torch.float16, "f4"), (torch.bfloat16, "f4")]
    + [(torch.int64, "f8"), (torch.bool, "f4")],
)
def test_types_of_numbers(kind, read):
    x = (3 * SERIES[..., 0]).to(kind)
    x = x.requires_grad_() if kind == torch.float64 else x
    fields = nfsgeo.from_pyg(series_of(x=x))
    assert fields.dtype == np.dtype(read)
    np.testing.assert_array_equal(
        fields.read(0, slice(None))[..., 0], x.detach().float()
    )


def test_attributes_that_are_left_out_with_a_line(caplog, one_line):
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    masks = {f"{part}_mask": torch.ones(N) > 0 for part in ("train", "val", "test")}
    more = {"edge_weight": torch.ones(3), "lengths": torch.ones(3), "name": "wing"}
    types = torch.tensor([0, 4, 5, 6, 0, 4])
    more |= {"node_type": torch.nn.functional.one_hot(types, 9).float()}
    graphs = series_of(x=SERIES, edge_index=edges, surf=types > 4, **masks, **more)
    for item in graphs:
        item.adj_t = torch.eye(N).to_sparse_csr()
    fields = nfsgeo.from_pyg(graphs)
    assert fields.static_names == ["node_type", "surf"] and not fields.scalar_names
    assert fields.read_static(0)[:, 0].tolist() == types.tolist()
    assert [*fields.categories] == ["node_type"]
    assert fields.graph()[1].tolist() == [1, 1, 1]
    left = "adj_t, lengths, name, test_mask, train_mask, val_mask"
    assert caplog.messages == [f"graphs: left out {left}"]
    for wrong, words in (
        ({"x": SERIES + 1j}, "two components"),
        ({"time": T5}, "both"),
        ({"u": 0.5}, "named 'u'"),
    ):
        attributes = {"x": SERIES, **wrong}
        assert words in one_line(nfsgeo.from_pyg, series_of(**attributes))


def test_graphs_whose_times_say_what_they_are(one_line):
    steps = [Data(pos=POS, x=POS + k, t=float(k)) for k in range(3)]
    message = one_line(nfsgeo.from_pyg, steps)
    assert "--series time-steps" in message and "--series samples" not in message
    message = one_line(nfsgeo.from_pyg, series_of(1, x=POS))
    assert "--series samples" in message and "--series time-steps" not in message
    assert len(nfsgeo.from_pyg(steps, series="time-steps").times) == 3


class Planted:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("this must never be printed",)


@pytest.mark.parametrize("name", ["a.pt", "darcy_train_16.pt"])
def test_no_code_runs(name, tmp_path, one_line, capsys):
    tensors = {"x": Planted(), "y": torch.zeros(3)}
    for content, words in (([graph(extra=Planted())], "graphs"), (tensors, "print")):
        assert words in one_line(nfsgeo.data.open, saved(tmp_path / name, content))
    assert capsys.readouterr().out == ""
