"""Fixtures for the tests of files: small asymmetric data, and damage to files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfsgeo.data
from nfsgeo.data import GridWriter, PointWriter
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain


@dataclass
class GridCase:
    """A native file of 7 samples, 5 time steps, a 6 x 4 grid and 2 components."""

    path: Path
    u: np.ndarray
    a: np.ndarray
    options: dict[str, Any]


def grid_options(u: np.ndarray, a: np.ndarray) -> dict[str, Any]:
    return {
        "equation": "test",
        "domain": Domain((0.0, -1.0), (3.0, 1.0), (True, False)),
        "axes": [np.arange(6) / 2, np.linspace(-1, 1, 4)],
        "times": 0.25 * np.arange(1, 1 + u.shape[1]),
        "num_samples": len(u),
        "component_names": ["u", "v"],
        "static_names": ["k"],
        "static_role": "coefficient",
        "provenance": {"seed": 3, "commit": "abc", "solver": {"dt": 0.025}},
        "parameter_names": ["nu"],
    }


@pytest.fixture
def grid_case(tmp_path: Path) -> GridCase:
    rng = np.random.default_rng(0)
    u = rng.normal(size=(7, 5, 6, 4, 2)).astype(np.float32)
    a = rng.normal(size=(7, 6, 4, 1)).astype(np.float32)
    case = GridCase(tmp_path / "grid.h5", u, a, grid_options(u, a))
    with GridWriter(case.path, **case.options) as writer:
        writer.write(0, u, a, {"nu": np.arange(7) / 10})
    return case


@dataclass
class PointCase:
    """A native file of three samples on two meshes of 5 and 8 points in 2-D."""

    path: Path
    meshes: list[np.ndarray]
    cells: dict[str, np.ndarray]
    sample_mesh: list[int]
    u: list[np.ndarray]


@pytest.fixture
def point_case(tmp_path: Path) -> PointCase:
    rng = np.random.default_rng(1)
    meshes = [rng.random((5, 2)), rng.random((8, 2))]
    cells = {"triangle": np.array([[0, 1, 2], [2, 3, 7]])}
    sample_mesh = [1, 0, 1]
    sizes = [len(meshes[i]) for i in sample_mesh]
    u = [rng.normal(size=(n, 3, 2)).astype(np.float32) for n in sizes]
    path = tmp_path / "points.h5"
    with PointWriter(
        path,
        equation="test",
        domain=Domain.unit(2, periodic=False),
        times=np.arange(3.0),
        component_names=["u", "v"],
    ) as writer:
        writer.add_mesh(meshes[0])
        writer.add_mesh(meshes[1], cells)
        for number, values in zip(sample_mesh, u, strict=True):
            writer.write(values, number, parameters={"re": len(values)})
    return PointCase(path, meshes, cells, sample_mesh, u)


@pytest.fixture
def one_line() -> Callable[..., str]:
    """Calls a function that must raise a UserError of one line, and returns it."""

    def call(function: Callable[..., Any], *args: Any, **options: Any) -> str:
        with pytest.raises(UserError) as caught:
            function(*args, **options)
        message = str(caught.value)
        assert message and "\n" not in message
        return message

    return call


@pytest.fixture
def contents() -> Callable[[Path], list[Any]]:
    """Lists everything that a file holds, to compare bit for bit."""

    def listed(path: Path) -> list[Any]:
        with nfsgeo.data.open(path) as file:
            found = [file.equation, file.domain, file.provenance, file.times.tobytes()]
            found += [file.component_names, file.static_names, file.static_role]
            for table in (file.split, file.parameters):
                found.append({name: values.tobytes() for name, values in table.items()})
            for sample in range(file.num_samples):
                found.append(file.mesh_id(sample))
                found.append(file.coordinates(sample).tobytes())
                found.append(file.read(sample, slice(None)).tobytes())
                found.append(file.read_static(sample).tobytes())
                cells = file.cells(sample).items()
                found.append({name: nodes.tobytes() for name, nodes in cells})
            return found

    return listed
