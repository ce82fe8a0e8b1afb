"""Grids and point clouds in archives of numpy: read, written, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfsgeo
import nfsgeo.data
from nfsgeo.data.build import Array, build
from nfsgeo.data.fields import INITIAL, STATIC
from nfsgeo.errors import UserError
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
def test_boxes_of_grids(more: Any, domain: Any, tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", **grid(**more))
    if isinstance(domain, str):
        with pytest.raises(UserError, match=domain):
            nfsgeo.open(path)
        return
    with nfsgeo.open(path) as fields:
        assert fields.domain_is_known == (domain is not None) and fields.shape == (4, 5)
        assert fields.domain == (
            domain or Domain((0.0, -1.0), (0.75, 2.0), (False,) * 2)
        )


def test_a_mask_is_true_where_a_value_is_missing(tmp_path: Path) -> None:
    u = RNG.random((2, 5, 3, 1)).astype(np.float32)
    mask, u[0, 1, 2, 0] = u > 0.7, np.nan
    path = saved(tmp_path / "a.npz", coords=RNG.random((5, 2)), u=u, t=T, mask=mask)
    with nfsgeo.open(path) as fields:
        found = np.stack([fields.read(sample, slice(None)) for sample in range(2)])
    np.testing.assert_array_equal(np.isnan(found), mask | np.isnan(u))
    for wrong in (mask[0], mask.astype(int)):
        saved(path, coords=RNG.random((5, 2)), u=u, t=T, mask=wrong)
        with pytest.raises(UserError, match="mask of "):
            nfsgeo.open(path)


def example(kind: str) -> nfsgeo.data.Fields:
    """Fields with all that an archive has a place for."""
    dates = np.array(["2020-01-01", "2020-01-02T12:00", "2020-01-05"], "M8[us]")
    sizes = [4, 6] if kind == "ragged" else [6, 6]
    meshes = [RNG.random((n, 2)) for n in sizes]
    place, shapes = (
        ("xy", [(2, 3)] * 2) if kind == "grid" else ("p", [(n,) for n in sizes])
    )
    parts = [
        Array([RNG.random((*s, *end)) for s in shapes], f"{place}{axes}", names, role)
        for end, axes, names, role in (
            ((3, 2), "tc", ["p", "forcing_sun"], "field"),
            ((1,), "c", ["k"], STATIC),
            ((1,), "c", ["w0"], INITIAL),
        )
    ]
    if kind == "grid":
        parts = [
            Array(np.stack(a.values), f"n{a.axes}", a.names, a.role) for a in parts
        ]
    return build(
        Path("example"),
        parts,
        axes=[[0.0, 0.5], [-1.0, 0.0, 1.0]] if kind == "grid" else None,
        points=meshes[:1] * 2 if kind == "shared" else meshes,
        times=dates,
        domain=BOX,
        parameters={"nu": [1.0, 2.0], "mass": [3, 4]},
        equation="heat",
        provenance={"seed": 3},
        units={"p": "hPa", "x": "km"},
        split={
            "train": np.array([1]),
            "valid": np.array([0]),
            "test": np.array([], int),
        },
        known=["nu"],
    )


@pytest.mark.parametrize("kind", ["grid", "shared", "ragged"])
def test_what_is_written_is_read_back(kind: str, tmp_path: Path) -> None:
    made = example(kind)
    with nfsgeo.open(made.write(tmp_path / "a.npz")) as found:
        for name in (
            *("component_names", "forcing_names", "static_names", "scalar_names"),
            *("equation", "provenance", "units", "domain", "domain_is_known", "shape"),
        ):
            assert getattr(found, name) == getattr(made, name), name
        assert found.dataset["w0"].attrs["role"] == INITIAL
        for name in ("parameters", "split"):
            one, other = getattr(found, name), getattr(made, name)
            np.testing.assert_equal(one, other)
        np.testing.assert_array_equal(found.times, made.times)
        for n in range(2):
            for read in (
                lambda f, n=n: f.coordinates(n),
                lambda f, n=n: f.read_all(n, slice(None)),
                lambda f, n=n: f.read_inputs(n),
            ):
                np.testing.assert_array_equal(read(found), read(made))


POS, U, ENDS = np.eye(7, 2), RNG.random((4, 7, 3, 2)), np.array([0, 3, 7])


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
        {"coords": POS, "u": U[0], "offsets": ENDS + 1},
        {"coords": POS, "u": U[0], "offsets": ENDS[[0, 2, 1]]},
        {"coords": POS, "u": U[0].swapaxes(0, 1), "offsets": ENDS},
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
def test_arrays_that_do_not_fit_are_refused(
    arrays: dict[str, Any], tmp_path: Path, one_line: Callable[..., str]
) -> None:
    arrays = {"t": T} | arrays if "coords" in arrays else {"t": np.arange(7.0)} | arrays
    assert "a.npz" in one_line(nfsgeo.open, saved(tmp_path / "a.npz", **arrays))
