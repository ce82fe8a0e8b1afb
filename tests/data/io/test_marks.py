"""Marks of missing values in files that do not declare them, in every format."""

from __future__ import annotations

import re
from pathlib import Path

import meshio
import numpy as np
import pytest
import torch
import xarray
from torch_geometric.data import Data

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo.training import load_config, prepare

POINTS, STEPS = 8, 20


def values(mark: float, dtype: str = "f8") -> np.ndarray:
    """A temperature at stations, of which one value is the mark: ``[time, point]``."""
    u = np.random.default_rng(1).normal(280, 3, (STEPS, POINTS)).astype(dtype)
    u[10, 3] = mark
    return u


def places() -> np.ndarray:
    return np.random.default_rng(2).random((POINTS, 2))


def netcdf(path: Path, u: np.ndarray) -> Path:
    where = {"x": ("p", places()[:, 0]), "y": ("p", places()[:, 1])}
    times = np.arange(STEPS) * np.timedelta64(1, "D") + np.datetime64("2020-01-01")
    dataset = xarray.Dataset({"u": (("time", "p"), u)}, where | {"time": times})
    dataset.to_netcdf(path.with_suffix(".nc"))
    return path.with_suffix(".nc")


def archive(path: Path, u: np.ndarray) -> Path:
    arrays = {"coords": places(), "t": np.arange(float(STEPS))}
    np.savez(path.with_suffix(".npz"), u=u.T[None, :, :, None], **arrays)
    return path.with_suffix(".npz")


def mesh(path: Path, u: np.ndarray) -> Path:
    points = np.c_[places(), np.zeros(POINTS)]
    cells = [("vertex", np.arange(POINTS)[:, None])]
    meshio.Mesh(points, cells, point_data={"u": u[10]}).write(path.with_suffix(".vtu"))
    return path.with_suffix(".vtu")


def graphs(path: Path, u: np.ndarray) -> Path:
    pos = torch.from_numpy(places()).float()
    steps = torch.from_numpy(u)[..., None].float()
    made = [Data(pos=pos, x=torch.ones(POINTS, 1), y=y) for y in steps]
    torch.save(made, path.with_suffix(".pt"))
    return path.with_suffix(".pt")


FORMATS = {
    netcdf: {},
    archive: {},
    mesh: {},
    graphs: {"time_axis": None, "series": "samples"},
}


def read(path: Path, options: dict, **columns: object) -> np.ndarray:
    with nfsgeo.open(path, **options, columns=columns or None) as fields:
        samples = range(fields.num_samples)
        return np.stack([fields.read_all(s, slice(None)) for s in samples])


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.parametrize("mark", [-9999.0, 1e20, -32768.0, 9.96921e36])
def test_numbers_far_from_all_others_are_asked_about(tmp_path, make, mark):
    path, options = make(tmp_path / "a", values(mark)), FORMATS[make]
    text = np.format_float_scientific(np.float32(mark), trim="-")
    number = text if abs(mark) > 1e15 else f"{mark:g}"
    with pytest.raises(UserError, match=re.escape(f"'missing': '{number}'")):
        read(path, options)
    found = read(path, options, missing=str(mark))
    assert np.isnan(found).sum() == 1
    assert np.nanmax(np.abs(found)) < 300
    kept = read(path, options, missing="")
    assert np.abs(kept).max() == pytest.approx(abs(mark))


@pytest.mark.parametrize("make", FORMATS)
def test_fields_of_wide_range_are_not_asked_about(tmp_path, make):
    u = np.exp(np.random.default_rng(3).normal(0, 4, (STEPS, POINTS)))
    u[10, 3], u[10, 4] = 0.0, 1e5
    assert not np.isnan(read(make(tmp_path / "a", u), FORMATS[make])).any()


@pytest.mark.parametrize("mark", ["-", "none"])
def test_a_mark_of_text_in_a_file_of_numbers_is_refused(tmp_path, mark, refuses):
    path = netcdf(tmp_path / "a", values(281.0))
    refuses(f"missing={mark}", nfsgeo.open, path, columns={"missing": mark})


def test_a_run_reads_other_files_with_the_same_marks(tmp_path):
    path = archive(tmp_path / "a", values(-9999.0))
    settings = {"data.file": path, "data.columns": {"missing": "-9999"}}
    settings |= {"data.n_in": 2, "data.n_out": 1, "data.batch_size": 4}
    config = load_config(
        overrides=settings | {"trainer.epochs": 1, "model.name": "dse"}
    )
    run = nfsgeo.fit(prepare(config), tmp_path / "run", report=False)
    found = nfsgeo.predict(run, path)
    assert np.abs(found.read_all(0, slice(None))).max() < 400


def test_numbers_that_are_values_are_not_asked_about_after_conversion(tmp_path):
    path = netcdf(tmp_path / "a", values(-9999.0))
    with nfsgeo.open(path, columns={"missing": ""}) as fields:
        fields.write(tmp_path / "kept.nc")
    assert read(tmp_path / "kept.nc", {}).min() == -9999


def test_marks_in_integers_are_compared_by_value(tmp_path):
    """No integer is -9999.5 or 1e20, and categories stay whole numbers."""
    u = np.arange(STEPS * POINTS, dtype="i4").reshape(STEPS, POINTS)
    u[10, 3] = -9999
    where = {"x": ("p", places()[:, 0]), "y": ("p", places()[:, 1])}
    types = ("p", np.arange(POINTS, dtype="i4") % 2)
    variables = {"u": (("time", "p"), u), "node_type": types}
    path = tmp_path / "a.nc"
    times = {"time": np.arange(float(STEPS))}
    xarray.Dataset(variables, where | times).to_netcdf(path)
    marks = ["-9999.5", "1e20", "", "-9999"]
    for some, num in ((marks[:3], 0), (marks, 1)):
        with nfsgeo.open(path, columns={"missing": some}) as fields:
            assert np.isnan(fields.read_all(0, slice(None))).sum() == num
            assert "node_type" in fields.categories


def test_samples_spread_over_a_file_are_looked_at(tmp_path):
    u = np.random.default_rng(4).random((600, POINTS, 1, 1))
    u[599 - 599 % 3] = -9999
    np.savez(tmp_path / "a.npz", u=u, coords=places(), t=np.zeros(1))
    with pytest.raises(UserError, match="of 1600 values of u"):
        nfsgeo.open(tmp_path / "a.npz")
