"""Meshes in several files, one for each time step, and points that ParaView marks."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import nfsgeo.data
from nfsgeo.data.opening import open_sources


def series(folder: Path, times: list[float | None]) -> list[Path]:
    """A ``.vtu`` file for each time, which it holds unless that is None."""
    meshio = pytest.importorskip("meshio")
    paths = []
    for number, time in enumerate(times):
        mesh = meshio.Mesh(np.eye(3), [("triangle", [[0, 1, 2]])])
        mesh.point_data["p"] = np.arange(3.0) + number
        paths.append(folder / f"s_{number}.vtu")
        meshio.write(paths[-1], mesh, binary=False)
        if time is not None:
            data = (
                '<FieldData><DataArray type="Float64" Name="TimeValue" '
                f'NumberOfTuples="1" format="ascii">{time}</DataArray></FieldData>'
            )
            text = paths[-1].read_text()
            place = text.index("<Piece")
            paths[-1].write_text(text[:place] + data + text[place:])
    return paths


def check_series(file: nfsgeo.data.FieldFile, times: list[float]) -> None:
    assert file.times.tolist() == times
    values = file.read(0, slice(None))[:, :, 0]
    np.testing.assert_array_equal(values[0], np.arange(len(times)))


def test_a_series_of_meshes_needs_its_times(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    paths = series(tmp_path, [None] * 3)
    assert "--series samples or --series time-steps" in one_line(open_sources, paths)
    message = one_line(open_sources, paths, series="time-steps")
    assert "3 time steps and no times" in message and "--times" in message
    with open_sources(paths, series="time-steps", times=[0.0, 0.5, 2.0]) as file:
        check_series(file, [0.0, 0.5, 2.0])


def test_a_series_of_meshes_that_hold_their_times(tmp_path: Path) -> None:
    paths = series(tmp_path, [0.0, 0.25, 0.75])
    with open_sources(paths, series="time-steps") as file:
        check_series(file, [0.0, 0.25, 0.75])


@pytest.mark.parametrize("name", ["run.pvd", "run.vtu.series"])
def test_a_series_of_meshes_listed_with_times(
    name: str, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    paths = series(tmp_path, [None] * 3)
    listed = list(zip([0.0, 0.5, 0.75], [path.name for path in paths], strict=True))
    path = tmp_path / name
    if path.suffix == ".pvd":
        sets = [f'<DataSet timestep="{t}" part="0" file="{n}"/>' for t, n in listed]
        path.write_text(
            '<?xml version="1.0"?><VTKFile type="Collection" version="0.1">'
            f"<Collection>{''.join(sets[::-1])}</Collection></VTKFile>"
        )
    else:
        files = [{"name": n, "time": t} for t, n in listed]
        path.write_text(json.dumps({"file-series-version": "1.0", "files": files}))
    with nfsgeo.data.open(path) as file:
        check_series(file, [0.0, 0.5, 0.75])
        assert file.path == path
        with copy.deepcopy(file) as again:
            check_series(again, [0.0, 0.5, 0.75])
    with nfsgeo.data.open(nfsgeo.data.convert(path, tmp_path / "out.h5")) as file:
        check_series(file, [0.0, 0.5, 0.75])
    paths[1].unlink()
    assert "s_1.vtu" in one_line(nfsgeo.data.open, path)


@pytest.mark.parametrize(
    ("name", "mark"), [("vtkValidPointMask", 0), ("vtkGhostType", 1)]
)
def test_points_that_paraview_marks(
    name: str, mark: int, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    meshio = pytest.importorskip("meshio")
    mesh = meshio.Mesh(np.eye(3), [("triangle", [[0, 1, 2]])])
    mesh.point_data["p"] = np.arange(3.0)
    marks = np.full(3, 1 - mark, np.uint8)
    for number, bad in enumerate((False, True)):
        marks[1] = mark if bad else 1 - mark
        mesh.point_data[name] = marks
        meshio.write(tmp_path / f"{number}.vtu", mesh)
    with nfsgeo.data.open(tmp_path / "0.vtu") as file:
        assert file.component_names == ["p"]
    if name == "vtkGhostType":
        message = one_line(nfsgeo.data.open, tmp_path / "1.vtu")
        assert "1 of 3 values missing" in message
        return
    with nfsgeo.data.open(tmp_path / "1.vtu") as file:
        found = file.read(0, slice(None))[:, 0, 0]
    np.testing.assert_array_equal(found, [0, np.nan, 2])
