"""The notebooks run, and those in the repository are as they were executed."""

import re
import runpy
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PATH = re.compile(r"(?:^|[\s\"'(=])(?:/[\w.-]+){2,}|[A-Za-z]:\\", re.MULTILINE)
DURATION = re.compile(r"\d ?(?:s|min|seconds?|minutes?)\b|it/s|\d:\d\d:\d\d\b")

names = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_they_are_small():
    sizes = [path.stat().st_size for path in NOTEBOOKS]
    assert max(sizes) < 300_000 and sum(sizes) < 1_200_000


@names
def test_outputs_are_those_of_one_execution_anywhere(path):
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    cells = code(notebook)
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    assert not any("execution" in cell.metadata for cell in cells)
    for output in (output for cell in cells for output in cell.outputs):
        assert output.output_type != "error"
        text = output.get("text") or output.data.get("text/plain", "")
        text = re.sub(r"\d{4}-\d\d-\d\d \S+", "", text)  # dates of data
        assert not PATH.search(text) and not DURATION.search(text)


@names
def test_a_notebook_opens_with_the_picture_of_its_result(path):
    notebook, picture = nbformat.read(path, 4), f"{path.stem}.png"
    assert re.match(rf"# .+\n\n!\[.+\]\({picture}\)", notebook.cells[0].source)
    (saving,) = [cell for cell in code(notebook) if f'"{picture}"' in cell.source]
    assert "image/png" in saving.outputs[-1].data
    index = (FOLDER / "index.md").read_text("utf-8")
    assert f"({picture})]({path.name})" in index and (FOLDER / picture).exists()


@pytest.mark.slow
@names
def test_a_notebook_runs_in_an_empty_folder(path, tmp_path):
    """It trains for one epoch only."""
    pytest.importorskip("nbclient")
    making = runpy.run_path(str(ROOT / "docs" / "making" / "notebooks.py"))
    notebook = nbformat.read(path, 4)
    first = code(notebook)[0]
    first.source, times = re.subn(r"EPOCHS = \d+", "EPOCHS = 1", first.source)
    assert times == 1
    making["executed"](notebook, tmp_path)
    assert (tmp_path / f"{path.stem}.png").exists()
