"""Small data sets of NetCDF."""

import numpy as np
import xarray

RANDOM = np.random.default_rng(0)
TIMES = np.datetime64("2026-05-01", "ns") + np.arange(6) * np.timedelta64(6, "h")
DIMS, SHAPE = ("time", "lat", "lon"), (6, 3, 4)


def grid(**variables):
    axes = {"time": TIMES, "lat": [50.0, 51, 52], "lon": [0.0, 1, 2, 3]}
    return xarray.Dataset(variables, axes)


def saved(dataset, path, kind="nc", **encoding):
    """NetCDF-4, classic NetCDF or Zarr, without fill values of xarray's own."""
    encoding = {n: {"_FillValue": None} for n in dataset.variables} | encoding
    path = path / f"{len(list(path.iterdir()))}.{kind}"  # an open one stays
    if kind == "zarr":
        dataset.to_zarr(path, consolidated=False, zarr_format=2, encoding=encoding)
    else:
        engine = "scipy" if kind == "classic" else "h5netcdf"
        dataset.to_netcdf(path, engine=engine, encoding=encoding)
    return path


def values_of(fields, component=0):
    return fields.read(0, slice(None))[..., component]
