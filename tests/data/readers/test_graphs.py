"""Lists of PyTorch Geometric's Data, and trajectories of MeshGraphNets."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import nfsgeo.data
from nfsgeo.data.opening import open_sources
from nfsgeo.data.readers import READERS
from nfsgeo.data.readers.graphs import fields_of_graphs
from nfsgeo.errors import UserError

FAST = settings(max_examples=15, deadline=None)
SIZES = st.lists(st.integers(3, 7), min_size=1, max_size=4)


def saved(path: Path, graphs: Any) -> Path:
    torch.save(graphs, path)
    return path


@FAST
@given(sizes=SIZES, steps=st.integers(1, 4), ahead=st.integers(0, 2))
def test_graphs_are_samples(sizes: list[int], steps: int, ahead: int) -> None:
    graphs = [
        Data(
            x=torch.randn(n, steps, 2),
            pos=torch.rand(n, 3, dtype=torch.float64),
            t=torch.arange(steps + ahead) / 4,
            face=torch.tensor([[0], [1], [2]]),
            edge_index=torch.zeros(2, 5, dtype=torch.long),
            viscosity=n / 2,
            **({"y": torch.randn(n, ahead, 2)} if ahead else {}),
        )
        for n in sizes
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = saved(Path(folder) / "a.pt", graphs)
        assert sum(reader.recognise(path) for reader in READERS) == 1
        out = nfsgeo.data.convert(path, Path(folder) / "a.h5")
        for each in (path, out):
            with copy.deepcopy(nfsgeo.data.open(each)) as file:
                assert file.num_samples == len(sizes)
                assert file.times.tolist() == [k / 4 for k in range(steps + ahead)]
                assert file.parameters["viscosity"].tolist() == [n / 2 for n in sizes]
                for sample, graph in enumerate(graphs):
                    u = [graph.x, graph.y] if ahead else [graph.x]
                    found = file.read(sample, slice(None))
                    np.testing.assert_array_equal(found, torch.cat(u, 1))
                    np.testing.assert_array_equal(file.coordinates(sample), graph.pos)
                    assert file.cells(sample)["triangle"].tolist() == [[0, 1, 2]]


def test_from_coefficient_to_solution(tmp_path: Path) -> None:
    graphs = [
        Data(x=torch.randn(n, 2), y=torch.randn(n), pos=torch.rand(n, 2))
        for n in (5, 6)
    ]
    with nfsgeo.data.open(saved(tmp_path / "a.pt", graphs)) as file:
        assert file.static_names == ["a_0", "a_1"] and file.component_names == ["u"]
        np.testing.assert_array_equal(file.read_static(1), graphs[1].x)
        np.testing.assert_array_equal(file.read(1, slice(None))[:, 0, 0], graphs[1].y)


@FAST
@given(n=st.integers(2, 6), steps=st.integers(2, 5), pairs=st.booleans())
def test_graphs_that_are_time_steps(n: int, steps: int, pairs: bool) -> None:
    u, pos = torch.randn(n, steps, 1), torch.rand(n, 2)
    last = steps - 1 if pairs else steps
    graphs = [Data(x=u[:, k], pos=pos) for k in range(last)]
    for k, graph in enumerate(graphs):
        if pairs:
            graph.y = u[:, k + 1]
    times = np.arange(steps) / 2
    with tempfile.TemporaryDirectory() as folder:
        path = saved(Path(folder) / "a.pt", graphs)
        if pairs or len(graphs) > 1:
            with pytest.raises(UserError, match="--series samples or --series time-st"):
                open_sources(path, times=times)
        with open_sources(path, series="time-steps", times=times) as file:
            np.testing.assert_array_equal(file.read(0, slice(None)), u)
            assert file.times.tolist() == times.tolist()


def pair(k: int, **attributes: Any) -> Data:
    """From one time step to the next."""
    u, pos = torch.arange(12.0).reshape(4, 3, 1), torch.arange(8.0).reshape(4, 2)
    return Data(x=u[:, k], y=u[:, k + 1], pos=pos, **attributes)


def test_a_series_keeps_times_and_numbers() -> None:
    pairs = [pair(k, nu=0.1, t=torch.tensor([k / 2, k / 2 + 0.5])) for k in range(2)]
    with fields_of_graphs(Path("a"), pairs, "time-steps") as file:
        assert file.times.tolist() == [0.0, 0.5, 1.0]
        assert file.parameters["nu"].tolist() == [pairs[0].nu]
    steps = [Data(x=p.x, pos=p.pos, time=float(k)) for k, p in enumerate(pairs)]
    with fields_of_graphs(Path("a"), steps, "time-steps") as file:
        assert file.times.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("graphs", "words"),
    [
        ([pair(0), Data(x=pair(1).x, pos=pair(1).pos)], "differs from the first in y"),
        ([pair(0, nu=0.1), pair(1, nu=0.2)], "with nu that differs between them"),
        ([pair(0), pair(1, nu=0.2)], "differs from the first in nu"),
        ([pair(0, t=0.0), pair(1, t=1.0)], "two times for each graph"),
        (
            [pair(k, t=torch.tensor([0.0, 1.0])) for k in range(2)],
            "two times for each graph",
        ),
    ],
)
def test_a_series_drops_nothing(graphs: list[Data], words: str) -> None:
    with pytest.raises(UserError, match=words):
        fields_of_graphs(Path("a"), graphs, "time-steps")


def graph(**attributes: Any) -> Data:
    given = {"x": torch.zeros(4, 2, 1), "pos": torch.rand(4, 2), "t": torch.arange(2.0)}
    return Data.from_dict(
        {k: v for k, v in (given | attributes).items() if v is not None}
    )


@pytest.mark.parametrize(
    ("graphs", "words"),
    [
        ([graph(mask=torch.ones(4))], "with mask in graph 0"),
        ([graph(pos=None)], "without pos"),
        ([graph(x=None)], "without x"),
        ([graph(), graph(re=1.0)], "differs from the first in re"),
        ([graph(), graph(t=torch.arange(2.0) + 1)], "other times than the first"),
        ([graph(t=None)], "2 time steps and no times"),
        ([graph(y=torch.zeros(4))], "both at the points"),
        ([], "of other things"),
        ((Data(), {"x": 1}), "torch.save([*dataset], path)"),
    ],
)
def test_graphs_that_would_be_misread(
    graphs: Any, words: str, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path = saved(tmp_path / "a.pt", graphs)
    if not graphs:
        assert "dict of tensors" in one_line(nfsgeo.data.open, path)
        return
    assert words in one_line(nfsgeo.data.open, path)


class Planted:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("this must never be printed",)


def test_no_code_runs(
    tmp_path: Path, one_line: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = graph()
    whole.extra = Planted()
    one_line(nfsgeo.data.open, saved(tmp_path / "a.pt", [whole]))
    assert capsys.readouterr().out == ""


def trajectories(
    path: Path, sizes: list[int], steps: int, tiled: bool, cells: bool = True
) -> list[Any]:
    """As the converted files of cylinder_flow: a group for each trajectory."""
    random = np.random.default_rng(0)
    made = []
    for n in sizes:
        arrays = {
            "mesh_pos": random.random((n, 2)).astype("f4"),
            "cells": random.integers(0, n, (n + 1, 3)).astype("i4"),
            "node_type": random.choice([0, 4, 6], (n, 1)).astype("i4"),
        }
        if not cells:
            del arrays["cells"]
        if tiled:
            arrays = {k: np.tile(v, (steps, 1, 1)) for k, v in arrays.items()}
        arrays["velocity"] = random.normal(size=(steps, n, 2)).astype("f4")
        arrays["pressure"] = random.normal(size=(steps, n, 1)).astype("f4")
        made.append(arrays)
    if path.suffix == ".npz":
        np.savez(path, **made[0])
        return made[:1]
    with h5py.File(path, "w") as file:
        for number, arrays in enumerate(made):
            for name, values in arrays.items():
                file[f"{number}/{name}"] = values
    return made


@FAST
@given(
    sizes=st.lists(st.integers(3, 9), min_size=1, max_size=12),
    steps=st.integers(1, 4),
    tiled=st.booleans(),
    cells=st.booleans(),
    name=st.sampled_from(["a.h5", "a.npz"]),
)
def test_mesh_graph_nets(
    sizes: list[int], steps: int, tiled: bool, cells: bool, name: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        made = trajectories(path, sizes, steps, tiled, cells)
        assert sum(reader.recognise(path) for reader in READERS) == 1
        times = np.arange(steps) / 100
        kinds = np.unique(
            np.concatenate([np.ravel(each["node_type"]) for each in made])
        )
        with open_sources(path, times=times) as file:
            assert file.component_names == ["pressure", "velocity_0", "velocity_1"]
            assert file.static_names == [f"node_type_{kind}" for kind in kinds]
            for sample, arrays in enumerate(made):
                first = {k: v[0] if tiled else v for k, v in arrays.items()}
                u = np.concatenate([arrays["pressure"], arrays["velocity"]], axis=-1)
                found = file.read(sample, slice(None))
                np.testing.assert_array_equal(found, u.swapaxes(0, 1))
                np.testing.assert_array_equal(
                    found[:, -1:], file.read(sample, slice(steps - 1, steps))
                )
                np.testing.assert_array_equal(
                    file.coordinates(sample), first["mesh_pos"]
                )
                assert file.cells(sample).keys() == ({"triangle"} if cells else set())
                for nodes in file.cells(sample).values():
                    np.testing.assert_array_equal(nodes, first["cells"])
                marks = file.read_static(sample)
                np.testing.assert_array_equal(
                    kinds[marks.argmax(1)], first["node_type"][:, 0]
                )
                assert (marks.sum(axis=1) == 1).all()


def test_moving_meshes_are_refused(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    trajectories(tmp_path / "a.h5", [5], 3, True)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["0/mesh_pos"][1] += 1
    assert "change in time" in one_line(nfsgeo.data.open, tmp_path / "a.h5")


@pytest.mark.parametrize("name", ["a.pt", "a.h5", "a.npz"])
def test_damage_gives_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if path.suffix == ".pt":
        saved(path, [graph(), graph()])
    else:
        trajectories(path, [5, 4], 1, False)
    raw, random = path.read_bytes(), np.random.default_rng(0)
    for place in random.integers(0, len(raw), 60):
        noise = random.bytes(int(random.integers(0, 9)))
        broken = raw[:place] + noise + (raw[place + len(noise) :] if noise else b"")
        (tmp_path / f"broken_{name}").write_bytes(broken)
        try:
            with nfsgeo.data.open(tmp_path / f"broken_{name}") as file:
                file.read(0, slice(None))
                file.read_static(0)
        except UserError as error:
            assert "\n" not in str(error)
