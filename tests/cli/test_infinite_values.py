"""Infinite values are refused by all that reads or writes them, in any format."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray
from commands import refused

import nfsgeo as library

POINTS, TIMES = np.random.default_rng(0).random((6, 2)), np.arange(4.0)
U, K = np.random.default_rng(1).random((4, 6)), np.arange(6.0)


def npz(path: Path, u, k) -> list[str]:
    np.savez(path, u=u.T[None, :, :, None], a=k[None, :, None], coords=POINTS, t=TIMES)
    return []


def hdf5(path: Path, u, k) -> list[str]:
    with h5py.File(path, "w") as file:
        file.update({"u": u, "k": k, "xy": POINTS, "t": TIMES})
    return ["--columns", "field=u:tp,static=k:p,points=xy,time=t"]


def netcdf(path: Path, u, k) -> list[str]:
    axes = {"x": ("p", POINTS[:, 0]), "y": ("p", POINTS[:, 1]), "time": TIMES}
    arrays = {"u": (("time", "p"), u), "k": ("p", k)}
    xarray.Dataset(arrays, axes).to_netcdf(path)
    return []


@pytest.mark.parametrize("ending", ["nc", "csv", "npz", "pvd"])
@pytest.mark.parametrize("bad", ["field", "static"])
@pytest.mark.parametrize(("name", "write"), [("a.npz", npz), ("a.h5", hdf5)])
def test_infinite_values_are_not_converted(nfsgeo, name, write, bad, ending, tmp_path):
    u, k = U.copy(), K.copy()
    (u if bad == "field" else k).flat[2] = -np.inf
    options = write(tmp_path / name, u, k)
    out = tmp_path / f"b.{ending}"
    result = nfsgeo("convert", tmp_path / name, "--out", out, *options)
    refused(result, name, "1 of", "values infinite", "finite values")
    assert [*tmp_path.iterdir()] == [tmp_path / name]


def test_infinite_values_are_told_by_info(nfsgeo, tmp_path):
    u = U.copy()
    u[2, 3] = np.inf
    netcdf(tmp_path / "a.nc", u, K)
    refused(nfsgeo("info", tmp_path / "a.nc"), "a.nc with 1 of 24 values infinite")
    columns = {"missing": "inf"}  # says that it marks missing values
    fields = library.open(tmp_path / "a.nc", columns=columns)
    np.testing.assert_array_equal(
        np.isnan(fields.read(0, slice(None))), np.isinf(u.T)[..., None]
    )
