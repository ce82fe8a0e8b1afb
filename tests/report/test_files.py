"""Pictures of data files."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_fields import Array, build

import nfsgeo.data
from nfsgeo.geometry import Domain
from nfsgeo.report import plot_file


def waves(pos: np.ndarray, times: np.ndarray) -> np.ndarray:
    """A travelling wave ``[n, T, 1]``."""
    return np.sin(2 * np.pi * (pos.sum(-1, keepdims=True) - times))[..., None]


def drawn(written: list[Path]) -> set[str]:
    """The names of pictures, on each of which something is seen."""
    for path in written:
        with Image.open(path) as image:
            assert np.asarray(image.convert("L")).std() > 5
    return {path.name for path in written}


@pytest.mark.slow
@pytest.mark.parametrize(
    "dim, time_steps, role, names",
    [
        (1, 7, None, {"u"}),
        (2, 7, None, {"u"}),
        (2, 1, "static", {"u", "a"}),
        (3, 2, "initial condition", {"u"}),
    ],
)
def test_first_samples_of_a_grid_are_drawn(tmp_path, dim, time_steps, role, names):
    axes, times = [np.arange(16) / 16] * dim, np.arange(time_steps) / 10
    pos = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)
    u = np.moveaxis(waves(pos, times), 1, 0).reshape(1, time_steps, *[16] * dim)
    u, letters = np.repeat(u, 5, axis=0), "xyz"[:dim]
    arrays = [Array(u, "nt" + letters, ["u"])]
    if role:
        arrays.append(Array(u[:, 0] + 3, "n" + letters, ["a"], role))
    made = build(
        Path("data.nc"), arrays, axes=axes, times=times, domain=Domain.unit(dim)
    )
    written = plot_file(made, tmp_path / "pictures" / "of data")
    assert drawn(written) == {
        f"sample-{s}-{name}.png" for s in range(3) for name in names
    }


@pytest.mark.parametrize("dim", [pytest.param(1, marks=pytest.mark.slow), 2, 3])
def test_point_clouds_are_drawn(tmp_path, dim):
    random, times = np.random.default_rng(0), np.arange(3) / 4
    clouds = [random.uniform(size=(n, dim)) for n in (300, 400)]
    pos = [clouds[number] for number in (0, 0, 1, 1)]
    u, domain = [waves(each, times) for each in pos], Domain.unit(dim, periodic=False)
    written = plot_file(nfsgeo.from_arrays(u, pos, times, domain=domain), tmp_path)
    assert drawn(written) == {f"sample-{k}-u.png" for k in range(3)}


def test_a_sample_is_drawn_in_memory(refuses):
    pos, times = np.random.default_rng(0).uniform(size=(50, 2)), np.arange(3.0)
    domain = Domain.unit(2, periodic=False)
    fields = nfsgeo.from_arrays(waves(pos, times)[None], pos, times, domain=domain)
    figure = nfsgeo.plot(fields)
    shown = [ax for ax in figure.axes if ax.collections or ax.images]
    assert len(shown) >= 3  # a map for each time step
    refuses("sample 1 .* a number from 0 to 0", nfsgeo.plot, fields, sample=1)
    refuses("name 'v' .* one of u", nfsgeo.plot, fields, name="v")
