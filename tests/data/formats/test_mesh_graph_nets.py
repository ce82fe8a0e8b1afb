"""Trajectories of MeshGraphNets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo.data


def trajectories(
    path: Path, sizes: list[int], steps: int, tiled: bool, cells: bool = True
) -> list[Any]:
    """As the converted files of cylinder_flow: a group for each trajectory."""
    random = np.random.default_rng(0)
    made = []
    for n in sizes:
        arrays = {
            "mesh_pos": random.random((n, 2)).astype("f4"),
            "cells": random.integers(0, n, (n + 1, 3)).astype("i4"),
            "node_type": random.choice([0, 4, 6], (n, 1)).astype("i4"),
        }
        if not cells:
            del arrays["cells"]
        if tiled:
            arrays = {k: np.tile(v, (steps, 1, 1)) for k, v in arrays.items()}
        arrays["velocity"] = random.normal(size=(steps, n, 2)).astype("f4")
        arrays["pressure"] = random.normal(size=(steps, n, 1)).astype("f4")
        made.append(arrays)
    if path.suffix == ".npz":
        np.savez(path, **made[0])
        return made[:1]
    with h5py.File(path, "w") as file:
        for number, arrays in enumerate(made):
            for name, values in arrays.items():
                file[f"{number}/{name}"] = values
    return made


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(3, 9), min_size=1, max_size=12),
    steps=st.integers(1, 4),
    tiled=st.booleans(),
    cells=st.booleans(),
    name=st.sampled_from(["a.h5", "a.npz"]),
)
def test_mesh_graph_nets(tmp_path, sizes, steps, tiled, cells, name):
    path = tmp_path / name
    made = trajectories(path, sizes, steps, tiled, cells)
    times = np.arange(steps) / 100
    kinds = np.unique(np.concatenate([np.ravel(each["node_type"]) for each in made]))
    with nfsgeo.data.open(path, times=times) as file:
        assert file.component_names == ["pressure", "velocity_0", "velocity_1"]
        assert file.static_names == [f"node_type_{kind}" for kind in kinds]
        for sample, arrays in enumerate(made):
            first = {k: v[0] if tiled else v for k, v in arrays.items()}
            u = np.concatenate([arrays["pressure"], arrays["velocity"]], axis=-1)
            found = file.read(sample, slice(None))
            np.testing.assert_array_equal(found, u.swapaxes(0, 1))
            np.testing.assert_array_equal(
                found[:, -1:], file.read(sample, slice(steps - 1, steps))
            )
            np.testing.assert_array_equal(file.coordinates(sample), first["mesh_pos"])
            assert file.cells(sample).keys() == ({"triangle"} if cells else set())
            for nodes in file.cells(sample).values():
                np.testing.assert_array_equal(nodes, first["cells"])
            marks = file.read_static(sample)
            np.testing.assert_array_equal(
                kinds[marks.argmax(1)], first["node_type"][:, 0]
            )
            assert (marks.sum(axis=1) == 1).all()


def test_moving_meshes_are_refused(tmp_path, one_line):
    trajectories(tmp_path / "a.h5", [5], 3, True)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["0/mesh_pos"][1] += 1
    assert "change in time" in one_line(nfsgeo.data.open, tmp_path / "a.h5")


@pytest.mark.parametrize("name", ["mesh_pos", "node_type"])
def test_fill_values_of_places_are_refused(name, tmp_path, one_line):
    trajectories(tmp_path / "a.h5", [5], 1, False)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file[f"0/{name}"][2, 0] = -999
        file[f"0/{name}"].attrs["missing_value"] = -999.0
    message = one_line(nfsgeo.data.open, tmp_path / "a.h5")
    assert "1 of" in message and "missing" in message
