"""Meshes for ParaView, read back; names that a mesh cannot hold."""

import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.data.build import Array, build
from nfsgeo.data.fields import KNOWN, STATIC

meshio = pytest.importorskip("meshio")

FAST = settings(max_examples=12)
PLACES = st.lists(st.integers(2, 4), min_size=1, max_size=3)


def made(
    sizes: list[int], steps: int, samples: int = 0, names: Any = ("p",), **options: Any
) -> Fields:
    """Fields on a grid of ``samples``, or else one cloud of each size."""
    random = np.random.default_rng(0)
    shape, letters = ((samples, steps, *sizes), "nt" + "xyz"[: len(sizes)])
    arrays = [random.normal(size=shape) for _ in range(3)]
    static = arrays[2][:, 0]
    if not samples:
        letters = "tp"
        arrays = [[random.normal(size=(steps, n)) for n in sizes] for _ in range(3)]
        static = [each[0] for each in arrays[2]]
        options["points"] = [np.random.default_rng(n).random((n, 2)) for n in sizes]
    else:
        options["axes"] = [np.cumsum(random.random(n) + 0.1) for n in sizes]
    given = [Array(arrays[0], letters, [name]) for name in names]
    given.append(Array(arrays[1], letters, [options.pop("known", "sun")], KNOWN))
    still = [options.pop("static", "k")]
    given.append(Array(static, letters.replace("t", ""), still, STATIC))
    times = np.cumsum(random.random(steps) + 0.1)
    return build(Path("made"), given, times=times, **options)


def rows(fields: Fields, sample: int) -> list[np.ndarray]:
    """Points in the order of their coordinates, and all that is at each of them."""
    points = fields.coordinates(sample)
    order = np.lexsort(points.T[::-1])
    u, a = fields.read_all(sample, slice(None)), fields.read_static(sample)
    return [points[order], u[order], a[order]]


@FAST
@given(places=PLACES, steps=st.integers(1, 3), samples=st.integers(0, 3))
def test_out_and_in_again(places, steps, samples):
    fields = made(places, steps, samples)
    with tempfile.TemporaryDirectory() as folder:
        back = nfsgeo.data.open(fields.write(Path(folder) / "out.pvd"))
        assert back.num_samples == fields.num_samples
        assert back.component_names == ["p"] and back.static_names == ["k"]
        assert back.forcing_names == ["sun"] and back.times.tolist() == [*fields.times]
        for sample in range(fields.num_samples):
            np.testing.assert_equal(rows(fields, sample), rows(back, sample))
        assert not list(Path(folder).glob("*partial*"))


def test_one_time_step_of_one_sample(tmp_path, one_line):
    fields = made([3, 4], 1, 1)
    back = nfsgeo.data.open(fields.write(tmp_path / "out.vtu"))
    np.testing.assert_equal(rows(fields, 0), rows(back, 0))
    message = one_line(made([3, 4], 3, 1).write, tmp_path / "more.vtu")
    assert "3 time steps" in message and "more.pvd" in message
    (tmp_path / "taken").mkdir()
    assert "a new folder" in one_line(fields.write, tmp_path / "taken.pvd")


@pytest.mark.parametrize("shape", [[5], [3, 4], [2, 3, 4]])
def test_cells_of_a_grid_fill_it(shape, tmp_path):
    fields = made(shape, 2, 2)
    out = fields.write(tmp_path / "out.pvd")
    listed = list(ElementTree.parse(out).getroot().iter("DataSet"))
    times = [float(each.attrib["timestep"]) for each in listed]
    assert times == [*fields.times, *fields.times]
    mesh = meshio.read(tmp_path / listed[3].attrib["file"])
    u = fields.read(1, slice(None))
    np.testing.assert_array_equal(mesh.point_data["p"], u[:, 1, 0])
    (cells,) = mesh.cells
    corners = mesh.points[cells.data][..., : len(shape)]
    # Each cell runs round, and none crosses itself.
    volume = np.linalg.det(corners[:, [1, 3, 4][: len(shape)]] - corners[:, :1])
    whole = np.prod(np.ptp(mesh.points[:, : len(shape)], axis=0))
    assert (volume > 0).all() and np.isclose(volume.sum(), whole)


@pytest.mark.parametrize("name", ["out.nc", "out.pvd", "out.csv"])
def test_nothing_is_left_of_a_writer_that_is_stopped(name, tmp_path):
    def stop(what: str, done: int, total: int) -> None:
        assert total == 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made([4, 5], 3).write(tmp_path / name, progress=stop)
    assert not list(tmp_path.iterdir())
