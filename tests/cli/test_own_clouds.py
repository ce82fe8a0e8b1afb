"""A person's own meshes, from files of another program to predictions."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial import Delaunay
from torch_geometric.data import Data

from nfsgeo.data import open as open_file

meshio = pytest.importorskip("meshio")
RNG = np.random.default_rng(0)
SIZES = [40 + 3 * k for k in range(12)]  # points of each sample
TINY = {"width": 8, "modes": 2, "depth": 1, "grid": 8, "hidden": 8, "time_modes": 2}


@pytest.mark.slow
def test_train_on_meshes_of_different_sizes(nfsgeo, tmp_path):
    """Two components in time on triangles at z = 3, a series of files a sample."""
    for number, num in enumerate(SIZES):
        plane = RNG.random((num, 2)) * [4, 1] + [10, -2]
        points = np.concatenate([plane, np.full((num, 1), 3.0)], axis=1)
        cells = [meshio.CellBlock("triangle", Delaunay(plane).simplices)]
        path = tmp_path / f"case_{number:02}.xdmf"
        with meshio.xdmf.TimeSeriesWriter(path, data_format="XML") as series:
            series.write_points_cells(points, cells)
            for t in range(4):
                wave = np.sin(points[:, 0] + 0.1 * number - 0.3 * t)
                flow = np.stack([wave, -wave], axis=1)
                series.write_data(float(t), point_data={"flow": flow})
    sources = sorted(tmp_path.glob("*.xdmf"))
    assert nfsgeo("convert", *sources, "--out", "own.nc").exit_code == 0
    with open_file(tmp_path / "own.nc") as file:
        found = {file.num_points(sample) for sample in range(file.num_samples)}
        assert found == set(SIZES)
        assert file.domain.dim == 2 and not any(file.domain.periodic)
        assert file.cells(5)["triangle"].max() < file.num_points(5)

    settings = [f"--set=model.settings.{key}={value}" for key, value in TINY.items()]
    options = ["--n-in", 2, "--n-out", 2, "--epochs", 60, "--out", "run", "--json"]
    trained = nfsgeo("train", "--data", "own.nc", *options, *settings)
    assert trained.exit_code == 0, trained.output
    summary = json.loads(trained.stdout)
    median = f"median {summary['n_s']}"
    assert f"points  {median} (all)" in trained.stderr
    assert f"points: all, {median}" in nfsgeo("info", "run").stdout
    assert median in Path(summary["report"]).read_text()
    assert summary["test"]["mae"] < 0.5 * summary["baselines"]["mean"]["mae"]

    evaluated = json.loads(nfsgeo("evaluate", "run", "--json").stdout)
    assert evaluated["test"] == summary["test"]
    result = nfsgeo("predict", "run", "--input", "own.nc", "--output", "p.nc")
    assert result.exit_code == 0, result.output
    with open_file(tmp_path / "p.nc") as predicted:
        sizes = [predicted.num_points(s) for s in range(predicted.num_samples)]
    assert sorted(sizes) == SIZES


def test_graphs_are_told_apart_by_the_axis_of_time(nfsgeo):
    torch.manual_seed(0)
    graphs = [
        Data(pos=torch.rand(n, 2), x=torch.rand(n, 3), y=torch.rand(n, 3))
        for n in (5, 6)
    ]
    torch.save(graphs, "g.pt")
    refused = nfsgeo("convert", "g.pt", "--out", "g.nc")
    assert refused.exit_code == 2 and "--time-axis none" in refused.stderr
    assert nfsgeo("info", "g.pt", "--time-axis", "none").exit_code == 0
    answers = {"none": (1, 3), "1": (6, 1)}
    for axis, (steps, components) in answers.items():
        times = ("--times", "0:5:1") if steps > 1 else ()
        options = ("--out", f"{axis}.nc", "--time-axis", axis, *times)
        assert nfsgeo("convert", "g.pt", *options).exit_code == 0
        with open_file(f"{axis}.nc") as fields:
            assert (len(fields.times), fields.components) == (steps, components)


def test_messages_name_options_that_the_command_has(nfsgeo, tmp_path):
    """Messages name options of `nfsgeo convert` where the command lacks them."""
    u, points = RNG.random((4, 9)), RNG.random((9, 2))
    np.savez("a b.npz", u=u, coords=points)
    refused = nfsgeo("info", "a b.npz").stderr
    assert "say it: --columns field=u:np,points=coords, or field=u:tp" in refused
    assert "nfsgeo convert" not in refused and "or train" not in refused
    trained = nfsgeo("train", "--data", "a b.npz").stderr
    assert "say it: --columns field=u:np" in trained
    columns = ["--columns", "field=u:tp,points=coords"]
    assert "give them: --times START" in nfsgeo("info", "a b.npz", *columns).stderr
    trained = nfsgeo("train", "--data", "a b.npz", *columns).stderr
    command = f"nfsgeo convert 'a b.npz' {' '.join(columns)} --out NAME.nc"
    assert f"{command} --times START" in trained
    options = ("a b.npz", "--time-axis", 2)
    assert "--time-axis of a b.npz: expected" in nfsgeo("info", *options).stderr
    torch.save(
        [Data(pos=torch.rand(5, 2), x=torch.rand(5, 3), y=torch.rand(5, 3))], "g.pt"
    )
    asked = nfsgeo("info", "g.pt").stderr
    assert asked.endswith("--time-axis none, or --time-axis 1 and times in data.t\n")
    converted = "nfsgeo convert g.pt --out NAME.nc --time-axis none, or --time-axis 1"
    assert converted in nfsgeo("train", "--data", "g.pt").stderr
    wrong = nfsgeo("info", "g.pt", "--time-axis", "2").stderr
    assert "no t, --time-axis 2: expected" in wrong
