"""Files of fields on a sphere: read, written, told by a user, and drawn from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import nfsgeo.data
from nfsgeo.data import GridWriter, PointWriter
from nfsgeo.data.generation import generate
from nfsgeo.data.meshes import (
    MESH_KINDS,
    disjoint,
    every_point,
    nested,
    random_subset,
    with_queries,
)
from nfsgeo.geometry import Domain

SPHERE = Domain.sphere()
POLES = np.linspace(-90, 90, 19)


@pytest.fixture
def waves(tmp_path: Path) -> Path:
    return generate(
        "sphere-waves", tmp_path / "w.h5", samples=5, resolution=16, records=3
    )


def globe(path: Path, west: float = -180.0, units: str = "degrees") -> Path:
    """A CF file of longitudes and latitudes with both poles."""
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    longitude = west + np.arange(0, 360, 20.0)
    shape = (3, len(POLES), len(longitude))
    values = np.random.default_rng(0).normal(size=shape)
    east, north = f"{units}_east", f"{units}_north"
    if units == "radian":
        east = north = units
    dataset = xarray.Dataset(
        {"t2m": (("time", "lat", "lon"), values)},
        {
            "time": np.arange(3.0),
            "lat": ("lat", POLES[::-1], {"units": north, "standard_name": "latitude"}),
            "lon": ("lon", longitude, {"units": east, "standard_name": "longitude"}),
        },
    )
    dataset.to_netcdf(path, engine="h5netcdf")
    return path


def test_native_files_say_that_they_are_spheres(waves: Path, tmp_path: Path) -> None:
    with h5py.File(waves) as file:
        assert file.attrs["version"] == 3
    with nfsgeo.data.open(waves) as file:
        assert file.domain == SPHERE
    for name in ("a.nc", "a.npz"):
        if name == "a.nc":
            pytest.importorskip("h5netcdf")
        with nfsgeo.data.open(waves) as file:
            nfsgeo.data.export(file, tmp_path / name)
        with nfsgeo.data.open(tmp_path / name) as file:
            assert file.domain == SPHERE
    points = np.array([[10.0, 90.0], [-180.0, 0.0]])
    with PointWriter(
        tmp_path / "p.h5",
        equation="",
        domain=SPHERE,
        times=[0.0],
        component_names=["u"],
    ) as writer:
        writer.write(np.zeros((2, 1, 1)), writer.add_mesh(points))
    with nfsgeo.data.open(tmp_path / "p.h5") as file:
        assert file.domain == SPHERE


def test_files_without_a_sphere_keep_their_version(tmp_path: Path) -> None:
    with GridWriter(
        tmp_path / "g.h5",
        equation="",
        domain=Domain.unit(1),
        axes=[np.arange(4) / 4],
        times=[0.0],
        num_samples=1,
        component_names=["u"],
    ) as writer:
        writer.write(0, np.zeros((1, 1, 4, 1)))
    with h5py.File(tmp_path / "g.h5") as file:
        assert file.attrs["version"] == 1 and b"sphere" not in file.attrs["domain"]


@pytest.mark.parametrize("west", [-180.0, 0.0])
def test_globes_of_cf_become_spheres(
    west: float, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path, out = globe(tmp_path / "a.nc", west), tmp_path / "a.h5"
    assert "--sphere" in one_line(nfsgeo.data.open, path)
    with nfsgeo.data.open(nfsgeo.data.convert(path, out, domain=SPHERE)) as file:
        assert file.domain == Domain.sphere(west)
        assert file.axes is not None and file.axes[0][0] == west


def test_radians_are_refused(tmp_path: Path, one_line: Callable[..., str]) -> None:
    path = globe(tmp_path / "a.nc", units="radian")
    message = one_line(nfsgeo.data.convert, path, tmp_path / "a.h5", domain=SPHERE)
    assert "coordinates in radian" in message and "degrees" in message


def test_latitudes_beyond_the_poles(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    points = np.array([[10.0, 95.0], [0.0, 0.0]])
    writer: Any = PointWriter(
        tmp_path / "p.h5",
        equation="",
        domain=SPHERE,
        times=[0.0],
        component_names=["u"],
    )
    with writer:
        assert "95" in one_line(writer.add_mesh, points)
        writer.write(np.zeros((1, 1, 1)), writer.add_mesh(points[1:]))


def test_subsets_are_even_on_the_sphere(tmp_path: Path) -> None:
    axes = [np.arange(-180.0, 180.0, 4.0), np.linspace(-90, 90, 91)]
    with GridWriter(
        tmp_path / "g.h5",
        equation="",
        domain=SPHERE,
        axes=axes,
        times=[0.0],
        num_samples=1,
        component_names=["u"],
    ) as writer:
        writer.write(0, np.zeros((1, 1, 90, 91, 1)))
    with nfsgeo.data.open(tmp_path / "g.h5") as file:
        mesh = random_subset(file, 400, seed=0)
        several = [
            mesh,
            disjoint(mesh, file, 400, seed=0),
            with_queries(mesh, file, 400, seed=0).queries,
            nested(mesh, file, 800, seed=0),
        ]
        for drawn in several:
            assert drawn is not None
            height = np.sin(np.deg2rad(drawn.pos[:, 1]))
            assert abs((height**2).mean() - 1 / 3) < 0.05
            assert np.abs(drawn.pos[:, 1]).max() < 90
        assert len(every_point(file)) == 90 * 91


@pytest.mark.parametrize("kind", ["off-grid", "clustered", "jittered"])
def test_meshes_of_boxes_are_refused(
    kind: str, waves: Path, one_line: Callable[..., str]
) -> None:
    with nfsgeo.data.open(waves) as file:
        message = one_line(MESH_KINDS[kind].sampler, file, 8, 0)
    assert f"{kind} points" in message and "sphere" in message
