"""Missing values and what is no real number are refused, with their count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import nfsgeo.data
from nfsgeo.data import GridWriter, PointWriter
from nfsgeo.data.numbers import as_real, as_times
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain


@given(arrays(np.bool_, st.tuples(st.integers(1, 4), st.integers(1, 5))), st.booleans())
def test_masked_values_are_counted(mask: np.ndarray, as_list: bool) -> None:
    values = np.ma.masked_array(np.arange(mask.size).reshape(mask.shape), mask)
    given = list(values) if as_list else values
    if not mask.any():
        assert np.array_equal(as_real(given, "u"), values.data)
        return
    with pytest.raises(UserError, match=f"u with {mask.sum()} of {mask.size} values"):
        as_real(given, "u")


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (np.array([1.0, None]), "1 of 2 values missing"),
        (np.array([1 + 2j]), "two components"),
        (np.array(["a", "1"]), "real numbers"),
        (np.array([{}]), "real numbers"),
        (np.array(["2020-01-01"], "datetime64[D]"), "real numbers"),
    ],
)
def test_what_is_no_real_number(values: np.ndarray, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        as_real(values, "u")


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "ns"])
def test_dates_become_seconds_whatever_their_unit(unit: str) -> None:
    dates = np.array(["2020-01-01", "2020-01-03"], f"datetime64[{unit}]")
    assert as_times(dates, "t").tolist() == [1577836800.0, 1577836800.0 + 2 * 86400]
    spans = dates - dates[0]
    assert as_times(spans, "t").tolist() == [0.0, 2 * 86400.0]
    missing = np.append(dates, np.datetime64("NaT"))
    with pytest.raises(UserError, match="1 of 3 values missing"):
        as_times(missing, "t")


def masked(values: Any) -> np.ma.MaskedArray:
    values = np.ma.masked_array(values, np.zeros(np.shape(values), bool))
    values[(0,) * values.ndim] = np.ma.masked
    return values


@pytest.mark.parametrize("kind", [np.asarray, list])
def test_masked_values_of_fields_are_gaps(
    grid_case: Any, tmp_path: Path, kind: Callable[..., Any]
) -> None:
    u = masked(grid_case.u)
    with GridWriter(tmp_path / "a.h5", **grid_case.options) as writer:
        given = u if kind is np.asarray else list(u)
        writer.write(0, given, grid_case.a, {"nu": np.zeros(7)})
    with nfsgeo.data.open(tmp_path / "a.h5") as file:
        found = np.isnan(file.read(0, slice(None)))
        assert found[0, 0, 0] and found.sum() == 1
        assert not np.isnan(file.read(1, slice(None))).any()


def test_writers_refuse_masked_arrays(
    grid_case: Any, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path, u, a, nu = tmp_path / "a.h5", grid_case.u, grid_case.a, np.zeros(7)
    options = grid_case.options
    one_line(GridWriter, path, **options | {"times": masked(options["times"])})
    axes = [masked(axis) for axis in options["axes"]]
    one_line(GridWriter, path, **options | {"axes": axes})
    with pytest.raises(ValueError), GridWriter(path, **options) as writer:
        message = one_line(writer.write, 0, u, masked(a), {"nu": nu})
        assert "a of sample 0 with 1 of 24 values" in message
        one_line(writer.write, 0, u, masked(a), {"nu": nu})
        one_line(writer.write, 0, u, a, {"nu": masked(nu)})
    points, path = np.random.default_rng(0).random((3, 2)), tmp_path / "b.h5"
    about = {"equation": "", "domain": Domain.unit(2), "component_names": ["u"]}
    one_line(PointWriter, path, times=masked([0.0]), **about)
    with pytest.raises(ValueError), PointWriter(path, times=[0.0], **about) as writer:
        one_line(writer.add_mesh, masked(points))
        mesh = writer.add_mesh(points)
        one_line(writer.write, np.zeros((3, 1, 1), complex), mesh)
        one_line(writer.write, np.zeros((3, 1, 1)), mesh, None, {"nu": np.ma.masked})
    assert not path.exists()


def test_files_of_another_ending_are_not_written(
    grid_case: Any, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    for name in ("a.vtu", "a.npz", "a.csv"):
        message = one_line(GridWriter, tmp_path / name, **grid_case.options)
        assert f"{name} to write" in message and "choose a.h5" in message
    assert not list(tmp_path.glob("a.*"))


def test_rows_of_unequal_length_are_refused() -> None:
    with pytest.raises(UserError, match="points .*inhomogeneous.*: expected an array"):
        as_real([[0.0, 1.0], [2.0]], "points")
