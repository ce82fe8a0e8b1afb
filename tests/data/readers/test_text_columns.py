"""Columns of text in tables: names of stations, of runs, and numbers gone wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nfsgeo.data.opening import open_sources

ROWS = [
    (run, t, x, f"S{x}", x + 10 * t + number)
    for number, run in enumerate(["wet", "dry", "dusk"])
    for t in range(3)
    for x in range(2)
]


@pytest.fixture(params=["csv", "parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"a.{request.param}"
    names = ["run", "t", "x", "station", "p"]
    if request.param == "csv":
        lines = [names, *ROWS]
        path.write_text("\n".join(",".join(map(str, line)) for line in lines))
        return path
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = zip(*ROWS, strict=True)
    parquet.write_table(pyarrow.table(dict(zip(names, columns, strict=True))), path)
    return path


def test_samples_are_told_apart_by_text_in_the_order_of_the_rows(table: Path) -> None:
    columns = {"sample": "run", "ignore": "station"}
    with open_sources(table, columns=columns) as file:
        assert file.num_samples == 3 and file.component_names == ["p"]
        for sample in range(3):
            values = file.read(sample, slice(None))[..., 0]
            assert values.tolist() == [
                [x + 10 * t + sample for t in (0, 1, 2)] for x in (0, 1)
            ]


def test_other_text_is_no_field(table: Path, one_line: Callable[..., str]) -> None:
    message = one_line(open_sources, table)
    assert "'wet' in column run" in message
    assert "--columns ignore=run, or sample=run" in message
    message = one_line(open_sources, table, columns={"sample": "run"})
    assert "'S0' in column station" in message and "ignore=station" in message


def test_a_sample_without_a_name(tmp_path: Path, one_line: Callable[..., str]) -> None:
    (tmp_path / "a.csv").write_text("run,x,p\nwet,0,1\n,1,2\n")
    columns = {"sample": "run"}
    message = one_line(open_sources, tmp_path / "a.csv", columns=columns)
    assert "column run with 1 of 2 values missing" in message


@pytest.mark.parametrize(
    "text",
    [
        "x y  t p\n0 0 0 1\n  1 0 0 2\n0 0 1\t3 \n\n1 0 1 4\n",
        "# x y t p\n0. 0. 0. 1.\n1e0 0 0 2\n# more\n0 0 1 3\n1 0 1 4",
    ],
)
def test_columns_apart_by_white_space(tmp_path: Path, text: str) -> None:
    """As ``numpy.savetxt`` and many solvers write them."""
    (tmp_path / "a.txt").write_text(text)
    with open_sources(tmp_path / "a.txt") as file:
        assert file.read(0, slice(None))[..., 0].tolist() == [[1, 3], [2, 4]]


def test_lines_of_words_are_no_table(
    tmp_path: Path, one_line: Callable[..., str]
) -> None:
    (tmp_path / "a.txt").write_text("the t and x\nof 1 2\n")
    assert "a format that it reads" in one_line(open_sources, tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text("x t p\n0 0 1\n1 0\n")
    assert "2 cells in row 2" in one_line(open_sources, tmp_path / "a.txt")


@pytest.mark.parametrize("separator", [",", ";", " ", "\t"])
def test_numbers_without_names(
    tmp_path: Path, one_line: Callable[..., str], separator: str
) -> None:
    lines = [separator.join(f"{x}.5" for x in range(k, k + 3)) for k in range(2)]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    message = one_line(open_sources, tmp_path / "a.csv")
    assert "the numbers 0.5, 1.5, 2.5 in its first line" in message
    assert "add a line with a name" in message
