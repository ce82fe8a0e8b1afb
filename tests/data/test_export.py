"""Files that go out and come in again."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import nfsgeo.data
from nfsgeo.data.equations import EQUATIONS
from nfsgeo.data.generation import generate


@pytest.mark.parametrize("equation", [n for n, e in EQUATIONS.items() if e.axes(64)])
def test_out_and_in_again_is_the_same_bit_for_bit(
    equation: str, tmp_path: Path, contents: Callable[[Path], list[Any]]
) -> None:
    records = None if equation == "darcy" else 3
    made = generate(
        equation, tmp_path / "a.h5", samples=5, resolution=64, records=records
    )
    told: list[tuple[str, int, int]] = []
    with nfsgeo.data.open(made) as file:
        out = nfsgeo.data.export(
            file, tmp_path / "b.npz", progress=lambda *report: told.append(report)
        )
    back = nfsgeo.data.convert(out, tmp_path / "c.h5")
    first, last = contents(made), contents(back)
    assert last[2].pop("source") == "b.npz"  # the provenance knows where it has been
    assert first == last
    assert told[-1] == ("exporting samples", 5, 5)
    with h5py.File(made) as a, h5py.File(back) as b:
        for name in ("fields/u", "fields/a"):
            assert a[name].dtype == b[name].dtype and a[name].chunks == b[name].chunks


def test_others_can_read_it(grid_case: Any, tmp_path: Path) -> None:
    with nfsgeo.data.open(grid_case.path) as file:
        nfsgeo.data.export(file, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["u"], grid_case.u)
        assert arrays["x"].shape == (6,) and arrays["y"].shape == (4,)


def test_what_cannot_go_out(
    grid_case: Any, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    taken = tmp_path / "taken.npz"
    taken.write_text("mine")
    with nfsgeo.data.open(grid_case.path) as file:
        one_line(nfsgeo.data.export, file, taken)
        message = one_line(nfsgeo.data.export, file, tmp_path / "out.words")
    assert taken.read_text() == "mine"
    assert ".npz" in message and ".nc" in message


def test_nothing_is_left_of_an_export_that_fails(
    grid_case: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nfsgeo.data.open(grid_case.path) as file:
        whole = file.read_all

        def breaking(sample: int, records: slice) -> Any:
            if sample == 3:
                raise KeyboardInterrupt
            return whole(sample, records)

        monkeypatch.setattr(file, "read_all", breaking)
        with pytest.raises(KeyboardInterrupt):
            nfsgeo.data.export(file, tmp_path / "a.npz")
    assert not list(tmp_path.glob("a.npz*"))


def test_a_part_that_is_missing(
    grid_case: Any, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    whole, broken = tmp_path / "a.npz", tmp_path / "b.npz"
    with nfsgeo.data.open(grid_case.path) as file:
        nfsgeo.data.export(file, whole)
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(broken, "w") as target:
        for name in source.namelist():
            if name != "y.npy":
                target.writestr(name, source.read(name))
    one_line(nfsgeo.data.open, broken)
    shutil.copy(whole, broken)
    with broken.open("r+b") as stream:
        stream.truncate(1000)
    one_line(nfsgeo.data.open, broken)


def test_a_native_cloud_keeps_its_domain(point_case: Any, tmp_path: Path) -> None:
    copy = nfsgeo.data.convert(point_case.path, tmp_path / "copy.h5")
    with nfsgeo.data.open(point_case.path) as a, nfsgeo.data.open(copy) as b:
        assert a.domain == b.domain
