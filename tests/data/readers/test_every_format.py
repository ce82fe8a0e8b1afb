"""The registry of readers: every format is recognised, read and converted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import nfsgeo.data
from nfsgeo.data.readers import READERS
from nfsgeo.data.writers import WRITERS

RANDOM = np.random.default_rng(0)
N, T, POINTS = 3, 4, 7


def source(folder: Path, steps: int = T) -> nfsgeo.data.FieldFile:
    """One sample of a point cloud in time, which every format of points can hold."""
    target = folder / f"source-{steps}.h5"
    if target.exists():
        return nfsgeo.data.open(target)
    pos, u = RANDOM.random((POINTS, 2)), RANDOM.normal(size=(1, POINTS, steps))
    file = nfsgeo.from_arrays(u, pos, np.arange(float(steps)))
    return nfsgeo.data.open(nfsgeo.data.export(file, target))


def written(name: str) -> Callable[[Path], None]:
    """Makes an example by the writer for its ending."""

    def make(path: Path) -> None:
        with source(path.parent, 1 if name.endswith(".vtu") else T) as file:
            nfsgeo.data.export(file, path.with_name(name))

    return make


def camlab(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["u"] = RANDOM.normal(size=(N, 21, POINTS, 1)).astype("f4")
        file["x"] = RANDOM.random((1, 1, POINTS, 2))
        file["c"] = np.repeat(RANDOM.random((N, 1, POINTS, 1)), 21, axis=1)


def geo_fno(path: Path) -> None:
    stem = path.name.rpartition("_Q")[0]
    if not stem:
        np.save(path, RANDOM.random((POINTS, N)))
        xy = path.with_name("Random_UnitCell_XY_10.npy")
        np.save(xy, RANDOM.random((POINTS, 2, N)))
        return
    np.save(path, RANDOM.random((N, 5, 3, 4)))
    for axis in "XY":
        np.save(path.with_name(f"{stem}_{axis}.npy"), RANDOM.random((N, 3, 4)))


def trajectory(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["0/mesh_pos"] = RANDOM.random((POINTS, 2))
        file["0/cells"] = np.array([[0, 1, 2], [2, 3, 4]])
        file["0/node_type"] = np.zeros((POINTS, 1), int)
        file["0/velocity"] = RANDOM.normal(size=(1, POINTS, 2)).astype("f4")


def graphs(path: Path) -> None:
    made = [
        Data(
            x=torch.randn(POINTS, T, 1), pos=torch.rand(POINTS, 2), t=torch.arange(4.0)
        )
        for _ in range(N)
    ]
    torch.save(made, path)


OTHERS: dict[str, Callable[[Path], None]] = {
    "source-4.h5": lambda path: source(path.parent).close(),
    "Wave-Layer.nc": camlab,
    "Random_UnitCell_sigma_10.npy": geo_fno,
    "Pipe_Q.npy": geo_fno,
    "NACA_Cylinder_Q.npy": geo_fno,
    "trajectory.h5": trajectory,
    "graphs.pt": graphs,
    "points.npz": written("points.npz"),
    "points.csv": written("points.csv"),
    "points.nc": written("points.nc"),
    "points.pvd": written("points.pvd"),
    "points.vtu": written("points.vtu"),
}


def zarr(path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    with source(path.parent) as file:
        nfsgeo.data.export(file, path.with_name("whole.nc"))
    with xarray.open_dataset(path.with_name("whole.nc"), decode_times=False) as whole:
        whole.load().to_zarr(path, consolidated=False, zarr_format=2)


def test_every_reader_has_an_example_that_it_reads_and_converts(
    tmp_path: Path, grid_writers: dict[str, Callable[[Path], Any]]
) -> None:
    for package in ("xarray", "zarr", "meshio"):
        pytest.importorskip(package)
    found = set()
    for name, make in {**grid_writers, **OTHERS, "points.zarr": zarr}.items():
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        make(folder / name)
        readers = [each for each in READERS if each.recognise(folder / name)]
        assert len(readers) == 1, (name, [each.name for each in readers])
        found.add(readers[0].name)
        with (
            nfsgeo.data.open(folder / name) as read,
            nfsgeo.data.open(
                nfsgeo.data.convert(folder / name, folder / "native.h5")
            ) as native,
        ):
            np.testing.assert_array_equal(native.times, read.times)
            for sample in range(read.num_samples):
                values = read.read(sample, slice(None))
                np.testing.assert_array_equal(
                    native.read(sample, slice(None)), values.astype("f4")
                )
                pos = read.coordinates(sample)
                np.testing.assert_allclose(native.coordinates(sample), pos, rtol=1e-12)
    missing = {reader.name for reader in READERS} - found
    assert not missing, "add an example of each reader here"


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
def test_every_writer_is_read_back(writer: Any, tmp_path: Path) -> None:
    """See also ``test_writers_of_formats.py``, which has all contents for each."""
    for package in writer.needs:
        pytest.importorskip(package)
    for ending in writer.endings:
        with source(tmp_path, 1 if ending == ".vtu" else T) as file:
            target = nfsgeo.data.export(file, tmp_path / f"out{ending}")
            with nfsgeo.data.open(target) as again:
                np.testing.assert_array_equal(again.times, file.times)
                # Tables are in the order of their coordinates.
                order, here = (np.lexsort(f.coordinates(0).T) for f in (again, file))
                np.testing.assert_allclose(
                    again.coordinates(0)[order], file.coordinates(0)[here], rtol=1e-6
                )
                np.testing.assert_allclose(
                    again.read(0, slice(None))[order], file.read(0, slice(None))[here]
                )
