"""Grids and point clouds in archives of numpy: read, written, or refused."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfsgeo
import nfsgeo.data
from nfsgeo.geometry import Domain

RNG = np.random.default_rng(0)
T = np.array([0.0, 0.5, 2.0])
BOX = Domain((0.0, -1.0), (1.0, 2.0), (True, False))


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def grid(**more: Any) -> dict[str, Any]:
    u, y = RNG.random((2, 3, 4, 5, 1)), np.linspace(-1, 2, 5)
    return {"u": u, "t": T, "x": np.arange(4) / 4, "y": y, **more}


@pytest.mark.parametrize(
    ("more", "domain"),
    [
        ({}, None),
        ({"periodic": [True, False], "upper": [1, 2]}, BOX),
        ({"lower": [-3, -1]}, Domain((-3.0, -1.0), (0.75, 2.0), (False, False))),
        ({"periodic": [True, False], "lower": [0, -1]}, "a periodic axis, and no"),
    ],
)
def test_boxes_of_grids(more, domain, tmp_path, one_line):
    path = saved(tmp_path / "a.npz", **grid(**more))
    if isinstance(domain, str):
        assert domain in one_line(nfsgeo.open, path)
        return
    with nfsgeo.open(path) as fields:
        assert fields.domain_is_known == (domain is not None) and fields.shape == (4, 5)
        assert fields.domain == (
            domain or Domain((0.0, -1.0), (0.75, 2.0), (False,) * 2)
        )


def test_a_mask_is_true_where_a_value_is_missing(tmp_path, one_line):
    u = RNG.random((2, 5, 3, 1)).astype(np.float32)
    mask, u[0, 1, 2, 0] = u > 0.7, np.nan
    path = saved(tmp_path / "a.npz", coords=RNG.random((5, 2)), u=u, t=T, mask=mask)
    with nfsgeo.open(path) as fields:
        found = np.stack([fields.read(sample, slice(None)) for sample in range(2)])
    np.testing.assert_array_equal(np.isnan(found), mask | np.isnan(u))
    for wrong in (mask[0], mask.astype(int)):
        saved(path, coords=RNG.random((5, 2)), u=u, t=T, mask=wrong)
        assert "mask of " in one_line(nfsgeo.open, path)


@settings(max_examples=30)
@given(data=st.data())
def test_what_is_written_is_read_back(any_fields, contents, tmp_path, data):
    fields, _ = data.draw(any_fields)
    (tmp_path / "a.npz").unlink(missing_ok=True)
    out = fields.write(tmp_path / "a.npz")
    assert contents(out) == contents(fields)
    with nfsgeo.open(out) as found:
        assert found.dataset.identical(fields.dataset.compute())


POS, U = np.eye(7, 2), RNG.random((4, 7, 3, 2))


@pytest.mark.parametrize(
    "arrays",
    [
        {"coords": POS.T, "u": U},
        {"coords": POS, "u": U.swapaxes(0, 1)},
        {"coords": POS, "u": U.swapaxes(1, 2)},
        {"coords": POS, "u": U, "t": np.arange(4.0)},
        {"coords": POS, "u": U, "t": np.array([0.0, 2.0, 1.0])},
        {"coords": POS, "u": U, "a": np.zeros((7, 4))},
        {"coords": POS * np.nan, "u": U},
        {"coords": POS, "u": U.astype(object)},
        {"coords": POS, "u": U.astype(complex)},
        {"coords": np.zeros((7, 4)), "u": U},
        {"coords": POS, "u": U, "names": ["p"]},
        {"coords": POS, "u": U, "names": ["p", "p"]},
        {"coords": POS, "u": U, "a": U[:, :, 0], "static_names": ["k"]},
        {"coords": POS, "u": U, "t": T, "pressure": U},
        {"x": np.arange(7.0), "u": U[:, None, :, 0], "about": json.dumps([1])},
        {"x": np.arange(3.0), "u": U, "about": json.dumps({"component_names": ["p"]})},
        {"x": np.array([0.0, 2.0, 1.0]), "u": U, "t": np.arange(7.0)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, tmp_path, one_line):
    arrays = {"t": T} | arrays if "coords" in arrays else {"t": np.arange(7.0)} | arrays
    assert "a.npz" in one_line(nfsgeo.open, saved(tmp_path / "a.npz", **arrays))


CLOUD, LINE = {"coords": POS}, {"x": np.arange(7.0)}
SQUARE, SEVEN = RNG.random((4, 7, 7, 2)), np.arange(7.0)  # as many points as times


@pytest.mark.parametrize(
    ("arrays", "answers"),
    [
        (CLOUD | {"u": U[:, :, 0, 0]}, ["np", "tp"]),
        (CLOUD | {"u": U[:, :, :1, 0]}, ["npt", "npc", "tpc"]),
        (CLOUD | {"u": U[:, :, 0]}, ["npt", "npc", "tpc"]),
        (CLOUD | {"u": U[:, :, 0], "names": ["p", "q"]}, ["npc", "tpc"]),
        (CLOUD | {"u": U[:3, :, :, 0], "t": T}, ["npt", "tpc"]),
        (CLOUD | {"u": U.swapaxes(1, 2)[..., 0], "t": T}, ["ntp"]),
        (CLOUD | {"u": SQUARE[0, ..., 0], "t": SEVEN}, ["pt", "tp"]),
        (CLOUD | {"u": SQUARE[..., 0], "t": SEVEN}, ["npt", "ntp"]),
        (CLOUD | {"u": SQUARE[..., 0], "t": SEVEN, "a": SQUARE[:, 0]}, ["npt", "ntp"]),
        (LINE | {"u": SQUARE[..., 0], "t": SEVEN}, ["ntx", "nxt"]),
        (LINE | {"u": U[:, :, 0, 0]}, ["nx", "tx"]),
        (LINE | {"u": U[:, :, 0]}, ["nxt", "nxc", "txc"]),
    ],
)
def test_axes_that_are_not_told_are_asked_about(arrays, answers, tmp_path, one_line):
    """Each answer is read, of as many samples and time steps as it says."""
    path = saved(tmp_path / "a.npz", **arrays)
    line, u = one_line(nfsgeo.open, path), arrays["u"]
    assert re.findall(r"field=u:(\w+)", line) == answers
    for letters in answers:
        columns = {"field": f"u:{letters}", "x": "x"}
        if "coords" in arrays:
            columns = {"field": f"u:{letters}", "points": "coords"}
        sizes = dict(zip(letters, u.shape, strict=True))
        times = np.arange(sizes.get("t", 0)) if "t" in letters else None
        columns |= {"time": "t"} if "t" in arrays else {}
        fields = nfsgeo.open(path, columns=columns, times=times)
        assert fields.num_samples == sizes.get("n", 1)
        assert len(fields.times) == sizes.get("t", 1)
        assert len(fields.component_names) == sizes.get("c", 1)


@pytest.mark.parametrize(
    ("arrays", "samples", "times"),
    [
        (CLOUD | {"u": U[:, :, 0, 0], "t": T[:1]}, 4, 1),
        (CLOUD | {"u": U[:, :, 0, 0], "a": U[:, :, 0]}, 4, 1),
        (CLOUD | {"u": U[:, :, 0, 0], "parameter_re": np.arange(4.0)}, 4, 1),
        (CLOUD | {"u": U[:1, :, 0, 0]}, 1, 1),
        (CLOUD | {"u": U[:, :, :, 0], "t": T}, 4, 3),
        (CLOUD | {"u": U[:3], "t": T}, 3, 3),
        (CLOUD | {"u": SQUARE, "t": SEVEN}, 4, 7),
    ],
)
def test_axes_that_other_arrays_tell(arrays, samples, times, tmp_path):
    with nfsgeo.open(saved(tmp_path / "a.npz", **arrays)) as fields:
        assert (fields.num_samples, len(fields.times)) == (samples, times)


FLAT, MASKED = U[0, :, :, 0], U[0, :, :, 0] > 0.9


@pytest.mark.parametrize(
    ("arrays", "times"),
    [
        (CLOUD | {"u": FLAT, "t": T, "mask": MASKED}, None),
        (CLOUD | {"u": FLAT.T, "t": T}, None),
        (CLOUD | {"u": FLAT.T}, T),
        (CLOUD | {"u": FLAT[None]}, T),
        (LINE | {"u": FLAT.T, "t": T}, None),
        (LINE | {"u": FLAT}, T),
    ],
)
def test_the_only_reading_that_fits_the_times_is_not_asked_about(
    arrays, times, tmp_path
):
    """Values at a point are those of the array, whatever the order of its axes."""
    with nfsgeo.open(saved(tmp_path / "a.npz", **arrays), times=times) as fields:
        found = fields.read_all(0, slice(None))[..., 0]
        np.testing.assert_array_equal(fields.times, T)
    hidden = np.broadcast_to(arrays.get("mask", False), FLAT.shape)
    np.testing.assert_allclose(found, np.where(hidden, np.nan, FLAT), rtol=1e-6)


def test_times_of_users_that_fit_no_axis_are_named(tmp_path, one_line):
    path = saved(tmp_path / "a.npz", **CLOUD, u=U[..., 0])
    assert "and 5 times: expected axes" in one_line(nfsgeo.open, path, times=range(5))
    assert len(nfsgeo.open(path, times=range(3)).times) == 3
    line = one_line(nfsgeo.open, saved(path, **CLOUD, u=np.zeros((3, 7, 7))))
    assert "field=u:npt" in line and "field=u:ntp" in line


@pytest.mark.parametrize("letters", ["ntxy", "ntyx"])
def test_both_orders_of_a_square_grid_are_answers(letters, tmp_path, one_line):
    axis, u = np.arange(5.0), np.random.default_rng(0).normal(size=(2, 3, 5, 5))
    np.savez(tmp_path / "a.npz", u=u, x=axis, y=axis)
    message = one_line(nfsgeo.data.open, tmp_path / "a.npz")
    assert f"field=u:{letters},x=x,y=y" in message
