"""Files with the layout of other programs, by the commands that docs/formats.md has."""

from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
import xarray
from torch_geometric.data import Data, InMemoryDataset

import nfsgeo

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def test_mllam_data_prep():
    """As neural-lam reads it: features along a dimension, statistics beside them."""
    pytest.importorskip("zarr")
    x, y = (axis.ravel() for axis in np.meshgrid(np.arange(4.0), np.arange(3.0)))
    dims = {"state": ("time", "grid_index"), "forcing": ("time", "grid_index")}
    dims |= {"static": ("grid_index",)}
    names = {"state": ["u100m", "v100m"], "forcing": ["swavr0m"], "static": ["lsm"]}
    sizes, made = {"time": 5, "grid_index": 12}, dict[str, object]()
    for kind, along in dims.items():
        feature = f"{kind}_feature"
        shape = [sizes[dim] for dim in along]
        made[kind] = (*along, feature), normal(*shape, len(names[kind]))
        made[f"{kind}__train__mean"] = feature, normal(len(names[kind]))
    made["splits"] = ("split_name", "split_part"), np.zeros((3, 2), "M8[ns]")
    times = pandas.date_range("2022-01-01", periods=5, freq="3h")
    axes = {"x": ("grid_index", x), "y": ("grid_index", y), "time": times}
    axes |= {"longitude": ("grid_index", x / 9), "latitude": ("grid_index", y / 9)}
    axes |= {f"{kind}_feature": of for kind, of in names.items()}
    whole = xarray.Dataset(made, axes)
    whole.to_zarr("danra.zarr", zarr_format=2)
    d = xarray.open_zarr("danra.zarr")
    parts = [d[k].to_dataset(f"{k}_feature") for k in ("state", "forcing", "static")]
    fields = nfsgeo.from_xarray(
        xarray.merge(parts, compat="override"),
        columns={"x": "x", "y": "y"},
        known=[*d.forcing_feature.values],
    )
    assert fields.component_names == names["state"]
    assert [*fields.forcing_names, *fields.static_names] == ["swavr0m", "lsm"]
    expected = whole.state.transpose("grid_index", "time", "state_feature")
    order = np.lexsort(fields.coordinates().T[::-1])
    same = np.lexsort(np.stack([x, y])[::-1])
    found = fields.read(0, slice(None))
    np.testing.assert_array_equal(found[order], expected.values[same])


def test_airfrans_of_pytorch_geometric():
    sizes = (30, 40)
    graphs = [
        Data(
            pos=torch.rand(n, 2),
            x=torch.randn(n, 5),
            y=torch.randn(n, 4),
            surf=torch.rand(n) > 0.8,
            name=f"airFoil2D_{n}",
        )
        for n in sizes
    ]
    InMemoryDataset.save(graphs, "full_train.pt")
    fields = nfsgeo.open("full_train.pt", time_axis=None)
    assert fields.component_names == [f"u_{k}" for k in range(4)]
    assert fields.static_names == [*(f"a_{k}" for k in range(5)), "surf"]
    for sample, graph in enumerate(graphs):
        np.testing.assert_array_equal(fields.read(sample, slice(None))[:, 0], graph.y)
        np.testing.assert_array_equal(fields.read_static(sample)[:, :5], graph.x)


def test_airfrans_of_openfoam():
    """Meshes of their own in folders of simulations, with fields at points."""
    meshio = pytest.importorskip("meshio")
    sources = list[Path]()
    for n in (3, 4):
        x, y = (axis.ravel() for axis in np.meshgrid(np.arange(n), np.arange(n)))
        corner = np.array([k for k in range(n * n - n) if k % n < n - 1])
        quads = np.stack([corner, corner + 1, corner + n + 1, corner + n], 1)
        points = np.stack([x, y, 0.5 + 0 * x], 1).astype(float)
        data = {"U": normal(n * n, 3), "p": normal(n * n), "nut": normal(n * n)}
        folder = Path(f"airFoil2D_SST_{n}")
        folder.mkdir()
        sources.append(folder / f"{folder.name}_internal.vtu")
        mesh = meshio.Mesh(points, [("quad", quads)], point_data=data)
        mesh.write(sources[-1])
    fields = nfsgeo.open(sources, series="samples")
    assert fields.num_samples == 2 and fields.domain.dim == 2
    assert fields.component_names == ["U_0", "U_1", "U_2", "p", "nut"]


def test_torch_geometric_temporal():
    """The whole series of a loader, ``X [nodes, features, time steps]``."""
    series, pos = torch.randn(7, 2, 12), torch.rand(7, 2)
    graph = Data(pos=pos, x=series, t=torch.arange(12.0))
    fields = nfsgeo.from_pyg(graph, time_axis=2)
    np.testing.assert_array_equal(fields.read(0, slice(None)), series.mT)
