"""Samples in training and testing, and points at one place, are told of."""

import shutil

import numpy as np
import pytest

import nfsgeo
from nfsgeo.data.copies import warn_of_copies, warn_of_shared_places
from nfsgeo.geometry import Domain

RNG = np.random.default_rng(0)
U = RNG.normal(size=(10, 30, 6, 1))
POINTS = RNG.random((30, 2))
PARTS = {"train": np.arange(7), "valid": np.array([7]), "test": np.array([8, 9])}


def warned(caplog, u, parts=PARTS, **more):
    caplog.clear()
    times = np.arange(float(u.shape[2]))
    warn_of_copies(nfsgeo.from_arrays(u, POINTS, times, **more), parts)
    return [record.getMessage() for record in caplog.records]


def test_copies_are_counted_between_parts(caplog):
    assert not warned(caplog, U)
    u = U.copy()
    u[9] = u[8] = u[2]
    u[7] = u[0]
    texts = warned(caplog, u)
    assert len(texts) == 2
    assert "1 of the 1 samples of valid are samples of train" in texts[0]
    assert "2 of the 2 samples of test are samples of train" in texts[1]
    u[4] = u[5] = U[6]  # twice in training alone
    u[7:] = U[7:]
    assert not warned(caplog, u)


@pytest.mark.parametrize("step", [0, 3, 5])
def test_equal_time_steps_are_no_copies(caplog, step):
    """Flows may begin at rest, or end in one steady state."""
    u = U.copy()
    u[:, :, step] = 0
    assert not warned(caplog, u)


def test_inputs_tell_samples_apart(caplog):
    u = np.repeat(U[:1, :, :1], 10, axis=0)
    assert warned(caplog, u)
    assert not warned(caplog, u, static=RNG.normal(size=(10, 30, 1)))


@pytest.mark.parametrize("ends", [False, True], ids=["duplicates", "both ends"])
def test_points_at_one_place_with_other_values_are_told_of(ends, caplog):
    points, domain = POINTS.copy(), Domain.unit(2)
    points[:8] = points[10:18]
    if ends:
        points[10:18, 0], points[:8, 0] = 0, 1
    u = U.copy()
    u[:, :8] = u[:, 10:18]
    times = np.arange(6.0)
    warn_of_shared_places(nfsgeo.from_arrays(u, points, times, domain=domain), 0)
    assert not caplog.records
    u[0, :3, -1] += 1
    warn_of_shared_places(nfsgeo.from_arrays(u, points, times, domain=domain), 0)
    (record,) = caplog.records
    text = record.getMessage()
    assert "3 places" in text and ("both ends" in text) == ends
    caplog.clear()
    warn_of_shared_places(nfsgeo.from_arrays(u, POINTS, times), 0)
    assert not caplog.records


def test_a_copy_in_a_folder_is_told_of_before_training(tmp_path, caplog):
    times = np.arange(6.0)
    path = nfsgeo.from_arrays(U, POINTS, times).write(tmp_path / "waves.nc")
    small = {"data.n_in": 3, "data.n_out": 3, "model.settings.width": 4}
    small["model.settings.modes"] = 2
    nfsgeo.prepare(path, small)
    assert "samples of train" not in caplog.text
    shutil.copy(path, tmp_path / "copy.nc")
    nfsgeo.prepare(nfsgeo.open(tmp_path), small)
    assert "samples of train as well" in caplog.text
