"""Writers refuse what is wrong, and a kill costs no finished batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nfsgeo.data import GridWriter, NativeFile, PointWriter
from nfsgeo.geometry import Domain


def test_writer_refuses_bad_batches(
    grid_case: Any, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path = tmp_path / "new.h5"
    with (
        pytest.raises(KeyboardInterrupt),
        GridWriter(path, **grid_case.options) as writer,
    ):
        u, a, nu = grid_case.u, grid_case.a, {"nu": np.zeros(7)}
        spoiled = u.copy()
        spoiled[3, 0, 0, 0, 0] = np.inf
        assert "sample 3" in one_line(writer.write, 0, spoiled, a, nu)
        one_line(writer.write, 0, 1e300 * u.astype(np.float64), a, nu)
        one_line(writer.write, 0, u.swapaxes(2, 3), a, nu)
        for bad in ((1, u, a, nu), (0, u, None, nu), (0, u, a, {})):
            with pytest.raises(ValueError):
                writer.write(*bad)
        assert not writer.done.any()
        raise KeyboardInterrupt
    assert not path.exists()


def test_point_writer_leaves_nothing_behind_on_failure(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    options = {"equation": "", "domain": Domain.unit(1), "component_names": ["u"]}
    with (
        pytest.raises(ValueError, match="no sample"),
        PointWriter(tmp_path / "a.h5", times=[0.0], **options) as writer,
    ):
        one_line(writer.add_mesh, [[1.0]])
        one_line(writer.add_mesh, [[np.nan]])
        mesh = writer.add_mesh([[0.5], [0.25]])
        one_line(writer.write, np.full((2, 1, 1), np.inf), mesh)
        one_line(writer.write, np.zeros((3, 1, 1)), mesh)
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys
import numpy as np
from nfsgeo.data import GridWriter
from nfsgeo.geometry import Domain
u = np.random.default_rng(0).normal(size=(6, 3, 5)).astype("f4")[..., None]
with GridWriter(sys.argv[1], equation="x", domain=Domain.unit(1),
                axes=[np.arange(5) / 5], times=np.arange(3.0), num_samples=6,
                component_names=["u"]) as writer:
    for sample in (0, 4, 1):
        writer.write(sample, u[sample : sample + 1])
        print(sample, flush=True)
    input()
"""


@pytest.mark.slow
def test_killed_writer_goes_on_where_it_stopped(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path = tmp_path / "a.h5"
    expected = np.random.default_rng(0).normal(size=(6, 3, 5)).astype("f4")
    options: dict[str, Any] = {
        "equation": "x",
        "domain": Domain.unit(1),
        "axes": [np.arange(5) / 5],
        "times": np.arange(3.0),
        "num_samples": 6,
        "component_names": ["u"],
    }
    killed = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert killed.stdout is not None
    assert [killed.stdout.readline() for _ in range(3)] == ["0\n", "4\n", "1\n"]
    # Two writers at once must not share the staged file.
    assert "process" in one_line(GridWriter, path, **options)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.h5.partial"]
    with GridWriter(path, **options) as writer:
        assert writer.done.tolist() == [True, True, False, False, True, False]
        for sample in np.flatnonzero(~writer.done):
            writer.write(sample, expected[sample][None, ..., None])
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.h5"]
    with NativeFile(path) as file:
        found = [file.read(i, slice(None))[..., 0].T for i in range(6)]
    np.testing.assert_array_equal(found, expected)


def test_interrupted_packing_can_be_repeated(
    grid_case: Any,
    tmp_path: Path,
    contents: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "again.h5"
    with monkeypatch.context() as patch:

        def interrupted(*args: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            GridWriter(path, **grid_case.options)
    writer = GridWriter(path, **grid_case.options)
    writer.write(0, grid_case.u, grid_case.a, {"nu": np.arange(7) / 10})
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt), writer:
            pass
    assert not path.exists()
    with GridWriter(path, **grid_case.options) as writer:
        assert writer.done.all()
    assert contents(path) == contents(grid_case.path)
    assert not list(Path(tmp_path).glob("*.partial*"))


def test_other_settings_do_not_resume(
    grid_case: Any, tmp_path: Path, one_line: Callable[..., str]
) -> None:
    path = tmp_path / "b.h5"
    GridWriter(path, **grid_case.options).close()
    other = grid_case.options | {"provenance": {"seed": 4}}
    assert "settings" in one_line(GridWriter, path, **other)
    one_line(GridWriter, grid_case.path, **grid_case.options)
    one_line(GridWriter, tmp_path / "no" / "b.h5", **grid_case.options)
    (tmp_path / "c.h5.partial").write_bytes(b"something else")
    one_line(GridWriter, tmp_path / "c.h5", **grid_case.options)
