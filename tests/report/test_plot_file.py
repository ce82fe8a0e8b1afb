"""Pictures of data files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import nfsgeo.data
from nfsgeo.data import GridWriter, PointWriter
from nfsgeo.geometry import Domain
from nfsgeo.report import plot_file
from nfsgeo.report.file_figures import mesh_figure


def waves(pos: np.ndarray, times: np.ndarray) -> np.ndarray:
    """A travelling wave ``[n, T, 1]``."""
    return np.sin(2 * np.pi * (pos.sum(-1, keepdims=True) - times))[..., None]


def write_grid(path: Path, dim: int, time_steps: int, role: str | None) -> None:
    axes = [np.arange(16) / 16] * dim
    pos = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)
    times = np.arange(time_steps) / 10
    u = np.moveaxis(waves(pos, times), 1, 0).reshape(1, time_steps, *[16] * dim, 1)
    with GridWriter(
        path,
        equation="waves",
        domain=Domain.unit(dim),
        axes=axes,
        times=times,
        num_samples=5,
        component_names=["u"],
        static_names=["a"] if role else [],
        static_role=role,
    ) as writer:
        for sample in range(5):
            writer.write(sample, u, u[:, 0] + 3 if role else None)


@pytest.mark.parametrize(
    "dim, time_steps, role, names",
    [
        (1, 7, None, {"u"}),
        (2, 7, None, {"u"}),
        (2, 1, "coefficient", {"u", "a"}),
        (3, 2, "initial condition", {"u", "a"}),
    ],
)
def test_first_samples_of_a_grid_are_drawn(
    tmp_path: Path, dim: int, time_steps: int, role: str | None, names: set[str]
) -> None:
    write_grid(tmp_path / "data.h5", dim, time_steps, role)
    with nfsgeo.data.open(tmp_path / "data.h5") as file:
        written = plot_file(file, tmp_path / "pictures" / "of data")
    expected = {f"sample-{s}-{name}.png" for s in range(3) for name in names}
    assert {path.name for path in written} == expected
    for path in written:
        with Image.open(path) as image:
            assert np.asarray(image.convert("L")).std() > 5


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_point_clouds_are_drawn_with_their_meshes(tmp_path: Path, dim: int) -> None:
    random, times = np.random.default_rng(0), np.arange(3) / 4
    with PointWriter(
        tmp_path / "cloud.h5",
        equation="waves",
        domain=Domain.unit(dim, periodic=False),
        times=times,
        component_names=["u"],
    ) as writer:
        pos = [random.uniform(size=(n, dim)) for n in (300, 400)]
        meshes = [writer.add_mesh(points) for points in pos]
        for number in (0, 0, 1, 1):
            writer.write(waves(pos[number], times), meshes[number])
    with nfsgeo.data.open(tmp_path / "cloud.h5") as file:
        written = plot_file(file, tmp_path)
    names = ["sample-0-u", "sample-1-u", "sample-2-u", "mesh-0", "mesh-1"]
    assert [path.stem for path in written] == names
    for path in written:
        with Image.open(path) as image:
            assert image.width > image.height / 1.2 > 50
            assert np.asarray(image.convert("L")).std() > 5


def test_cells_are_drawn_as_edges_once() -> None:
    pos = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0]])
    cells = {
        "triangle6": np.array([[0, 1, 2, 4, 4, 4]]),
        "quad": np.array([[0, 1, 2, 3]]),
        "vertex": np.array([[4]]),
    }
    (ax,) = mesh_figure(Domain.unit(2, periodic=False), pos, cells).axes
    (lines,) = ax.collections
    drawn = [path.vertices.tolist() for path in lines.get_paths()]
    sides = [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)]
    assert drawn == [pos[list(side)].tolist() for side in sides]


def test_meshes_published_with_a_grid_are_drawn(tmp_path: Path) -> None:
    with GridWriter(
        tmp_path / "data.h5",
        equation="",
        domain=Domain.unit(2),
        axes=[np.arange(4) / 4] * 2,
        times=[0.0],
        num_samples=1,
        component_names=["u"],
        meshes={"sensors": np.array([3, 1, 7])},
    ) as writer:
        writer.write(0, np.random.default_rng(0).random((1, 1, 4, 4, 1)))
    with nfsgeo.data.open(tmp_path / "data.h5") as file:
        written = plot_file(file, tmp_path)
    assert [path.name for path in written] == ["sample-0-u.png", "mesh-sensors.png"]
