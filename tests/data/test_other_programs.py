"""What other programs read in files of nfsgeo."""

from pathlib import Path

import numpy as np
import pytest
import xarray
from small_fields import Array, build

U = np.random.default_rng(0).random((4, 6, 5)).astype(np.float32)
DAYS = np.arange("2026-01-01", "2026-01-05", dtype="datetime64[D]")


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    """One sample of four days on a grid."""
    axes = np.arange(6.0), np.arange(5.0)
    units = {"u": "m/s", "x": "km"}
    made = build(
        Path("u"), [Array(U, "txy", ["u"])], axes=axes, times=DAYS, units=units
    )
    return made.write(tmp_path / "grid.nc")


def test_xarray_reads_fields_dates_and_units(grid):
    with xarray.open_dataset(grid) as found:
        np.testing.assert_array_equal(found.u.transpose("time", "x", "y"), U)
        np.testing.assert_array_equal(found.time.values.astype("M8[D]"), DAYS)
        assert found.u.units == "m/s" and found.x.units == "km"
        assert found.attrs["Conventions"].startswith("CF-")
        assert found.x.axis == "X" and found.u.role == "field"
    clouds = [np.arange(3.0)[:, None], np.arange(5.0)[:, None]]
    u = Array([each[None] for each in clouds], "tpc", ["u"])
    cloud = build(Path("u"), [u], points=clouds, times=[0.0])
    with xarray.open_dataset(cloud.write(grid.with_name("cloud.nc"))) as found:
        assert found.row_size.values.tolist() == [3, 5]
        np.testing.assert_array_equal(found.u[0], np.concatenate(clouds)[:, 0])
        assert found.u.encoding["coordinates"] == "x"


def test_paraview_reads_fields_and_times(grid):
    netcdf = pytest.importorskip("vtkmodules.vtkIONetCDF")
    pipeline = pytest.importorskip("vtkmodules.vtkCommonExecutionModel")
    support = pytest.importorskip("vtkmodules.util.numpy_support")
    reader = netcdf.vtkNetCDFCFReader()
    reader.SetFileName(str(grid))
    reader.SphericalCoordinatesOff()
    reader.UpdateInformation()
    key = pipeline.vtkStreamingDemandDrivenPipeline.TIME_STEPS()
    times = np.array(reader.GetOutputInformation(0).Get(key))
    np.testing.assert_array_equal(times, DAYS.astype("M8[s]").astype(float))
    for step, time in enumerate(times):
        reader.UpdateTimeStep(time)
        output = reader.GetOutputDataObject(0)
        data = [output.GetPointData(), output.GetCellData()]
        array = next(d.GetArray("u") for d in data if d.HasArray("u"))
        np.testing.assert_array_equal(support.vtk_to_numpy(array), U[step].ravel())
