"""Files that end too early, are empty, or list what is not there: one clear line."""

import numpy as np
import pytest
import scipy.io
import torch
import xarray
from torch_geometric.data import Data

import nfsgeo

RNG = np.random.default_rng(0)
POINTS, U, NOISE = RNG.random((6, 2)), np.ones((4, 6)), RNG.random((20, 20))


def classic(path):
    axes = {"x": ("p", POINTS[:, 0]), "y": ("p", POINTS[:, 1]), "time": np.arange(4.0)}
    xarray.Dataset({"u": (("time", "p"), U)}, axes).to_netcdf(path, engine="scipy")


WRITE = {
    "a.nc": classic,
    "a.mat": lambda path: scipy.io.savemat(path, {"u": U, "xy": POINTS}),
    "b.mat": lambda path: scipy.io.savemat(path, {"u": NOISE}, do_compression=True),
    "a.npz": lambda path: np.savez(path, u=U[:, :, None, None], coords=POINTS),
    "a.pt": lambda path: torch.save({"u": torch.tensor(U)}, path),
}


@pytest.mark.parametrize("name", WRITE)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.98])
def test_files_that_end_too_early(name, share, tmp_path, one_line):
    path = tmp_path / name
    WRITE[name](path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    columns = {"field": "u:tp", "points": "xy"} if name == "a.mat" else None
    line = one_line(nfsgeo.open, path, columns=columns)
    words = ("ends too early", "cut off", "an empty file")
    assert any(word in line for word in words) and "table of text" not in line


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.pvd", "<VTKFile type='Collection'><Collection/></VTKFile>", "no file"),
        ("a.vtu.series", '{"file-series-version": "1.0", "files": []}', "no file"),
        (
            "b.vtu.series",
            '{"file-series-version": "1.0", "files": [{"name": "no.vtu", "time": 0}]}',
            "no.vtu: expected an existing file",
        ),
    ],
)
def test_series_that_list_what_is_not_there(name, text, words, tmp_path, one_line):
    (tmp_path / name).write_text(text)
    assert words in one_line(nfsgeo.open, tmp_path / name)


@pytest.mark.parametrize("weights", [np.ones(2), np.ones((3, 1)), -np.ones(3)])
def test_weights_are_one_for_each_edge(weights, one_line):
    edges = np.array([[0, 1, 2], [1, 2, 3]])
    words = f"edge weights of shape {list(weights.shape)}"
    arrays = {"edges": edges, "edge_weight": weights}
    line = one_line(nfsgeo.from_arrays, U.T[None], POINTS, np.arange(4), **arrays)
    assert words in line
    graph = Data(pos=torch.tensor(POINTS), x=torch.tensor(U.T), t=torch.arange(4.0))
    graph.edge_index, graph.edge_weight = torch.tensor(edges), torch.tensor(weights)
    assert words in one_line(nfsgeo.from_pyg, [graph], time_axis=1)
