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


def waves(pos: np.ndarray, times: np.ndarray) -> np.ndarray:
    """A travelling wave ``[n, T, 1]``."""
    return np.sin(2 * np.pi * (pos.sum(-1, keepdims=True) - times))[..., None]


def write_grid(path: Path, dim: int, records: int, role: str | None) -> None:
    axes = [np.arange(16) / 16] * dim
    pos = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)
    times = np.arange(records) / 10
    u = np.moveaxis(waves(pos, times), 1, 0).reshape(1, records, *[16] * dim, 1)
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
    "dim, records, role, names",
    [
        (1, 7, None, {"u"}),
        (2, 7, None, {"u"}),
        (2, 1, "coefficient", {"u", "a"}),
        (3, 2, "initial condition", {"u", "a"}),
    ],
)
def test_first_samples_of_a_grid_are_drawn(
    tmp_path: Path, dim: int, records: int, role: str | None, names: set[str]
) -> None:
    write_grid(tmp_path / "data.h5", dim, records, role)
    with nfsgeo.data.open(tmp_path / "data.h5") as file:
        written = plot_file(file, tmp_path / "pictures" / "of data")
    expected = {f"sample-{s}-{name}.png" for s in range(3) for name in names}
    assert {path.name for path in written} == expected
    for path in written:
        with Image.open(path) as image:
            assert np.asarray(image.convert("L")).std() > 5


def test_a_point_cloud_is_drawn(tmp_path: Path) -> None:
    pos = np.random.default_rng(0).uniform(size=(300, 2))
    times = np.arange(3) / 4
    with PointWriter(
        tmp_path / "cloud.h5",
        equation="waves",
        domain=Domain.unit(2, periodic=False),
        times=times,
        component_names=["u"],
    ) as writer:
        writer.write(waves(pos, times), writer.add_mesh(pos))
    with nfsgeo.data.open(tmp_path / "cloud.h5") as file:
        (written,) = plot_file(file, tmp_path)
    with Image.open(written) as image:
        assert image.width > image.height > 100
