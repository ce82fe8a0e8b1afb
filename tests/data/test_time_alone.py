"""Fields that vary in time alone: inputs, once somebody has said so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo.training import load_config, prepare

xarray = pytest.importorskip("xarray")


def stations() -> Any:
    """A level at five stations, and one series for all of them."""
    level = np.random.default_rng(0).normal(size=(3, 5))
    places = {"lon": ("station", np.arange(5.0)), "lat": ("station", np.arange(5.0))}
    fields = {"level": (("time", "station"), level), "co2": ("time", np.arange(3.0))}
    return xarray.Dataset(fields, {"time": np.arange(3.0), **places})


def test_files_are_asked_about(tmp_path: Path) -> None:
    path, out = tmp_path / "a.nc", tmp_path / "out.h5"
    stations().to_netcdf(path, engine="h5netcdf")
    with pytest.raises(UserError, match="co2 along time alone.*--known co2"):
        nfsgeo.data.convert(path, out)
    assert not out.exists()
    with pytest.raises(UserError, match="co2 along time alone"):
        prepare(load_config(overrides={"data.file": str(path), "data.n_in": 1}))
    nfsgeo.data.convert(path, out, known=["co2"])
    with nfsgeo.data.open(out) as file:
        assert file.component_names == ["level"] and file.forcing_names == ["co2"]


def test_data_sets_are_asked_about() -> None:
    with pytest.raises(UserError, match="co2 along time alone"):
        nfsgeo.from_xarray(stations())
    file = nfsgeo.from_xarray(stations(), known=["co2"])
    assert file.component_names == ["level"] and file.forcing_names == ["co2"]
