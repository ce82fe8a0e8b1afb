"""Models, equations and losses of users, on the command line and in suites."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "extending"
COMMAND = [sys.executable, "-m", "nfsgeo"]
TINY = [
    *("--n-in", "4", "--n-out", "4", "--epochs", "1", "--points", "24"),
    *("--set", "trainer.logger=none"),
]


def code_of(page: str, until: str) -> str:
    """The part of the first code block of a page that defines something."""
    block = re.search(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)
    assert block is not None
    code, found, _ = block[1].partition(until)
    return code + found


@pytest.fixture
def own(tmp_path):
    """A file with a model, a loss and an equation, as the pages on extending say."""
    equation = (DOCS / "data.md").read_text().partition("class Diffusion")[2]
    equation = equation.partition('EQUATIONS["diffusion"] = Diffusion()')[0]
    path = tmp_path / "code" / "my_own.py"
    path.parent.mkdir()
    path.write_text(
        code_of("model.md", 'MODELS["average"] = Average')
        + "\n"
        + code_of("loss.md", 'LOSSES["huber"] = huber')
        + textwrap.dedent(
            """
            from typing import ClassVar
            from nfsgeo.geometry import Domain
            from nfsgeo.data.pde import EQUATIONS
            from nfsgeo.data.pde.periodic import PeriodicSolver
            from nfsgeo.data.pde.random_fields import periodic_field

            """
        )
        + "class Diffusion"
        + equation
        + 'EQUATIONS["diffusion"] = Diffusion()\n'
    )
    return path


@pytest.fixture
def nfsgeo(tmp_path):
    """Runs a command in a process of its own, and returns its status and output."""

    def run(*words: str | Path, code: int = 0) -> str:
        command = [*COMMAND, *map(str, words)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        if code:
            (line,) = done.stderr.strip().splitlines()
            assert line.startswith("Error: ")
            return line
        return done.stdout

    return run


@pytest.mark.slow
def test_a_file_is_imported_where_it_is_named_and_nowhere_else(own, nfsgeo, tmp_path):
    line = nfsgeo("generate", "diffusion", "--out", "d.nc", code=2)
    assert "diffusion" in line
    sizes = ["--samples", "10", "--resolution", "32", "--records", "8"]
    nfsgeo("generate", "diffusion", "--import", own, "--out", "d.nc", *sizes)
    assert "average" in nfsgeo("models", "--import", own)
    train = ["train", "--data", "d.nc", "--model", "average", *TINY]
    train += ["--set", "loss.name=huber", "--out", "run"]
    assert "average" in nfsgeo(*train, code=2)
    nfsgeo(*train, "--import", Path("code") / own.name)
    assert str(own) in (tmp_path / "run" / "config.yaml").read_text()
    # A run of somebody else runs no code by itself, and says what it needs.
    line = nfsgeo("evaluate", "run", code=2)
    assert f"--import {own}" in line
    nfsgeo("evaluate", "run", "--import", own)
    nfsgeo("predict", "run", "--input", "d.nc", "--out", "p.nc", "--import", own)
    moved = own.rename(tmp_path / "moved.py")
    assert f"{own} is gone" in nfsgeo("evaluate", "run", code=2)
    assert "expected an existing file" in nfsgeo(
        "evaluate", "run", "--import", own, code=2
    )
    nfsgeo("evaluate", "run", "--import", moved)


@pytest.mark.slow
def test_a_transform_of_ones_own_is_in_every_run(nfsgeo, tmp_path):
    page = (DOCS / "transform.md").read_text().partition("`bounded.py`:")[2]
    code = textwrap.dedent(page.partition("All commands")[0])
    (tmp_path / "bounded.py").write_text(code.replace("lower=0.0", "lower=9.0"))
    sizes = ["--samples", "10", "--resolution", "32", "--records", "8"]
    nfsgeo("generate", "burgers", "--out", "d.nc", *sizes)
    own = ["--import", "bounded.py"]
    nfsgeo("train", "--data", "d.nc", *TINY, "--out", "run", *own)
    nfsgeo("predict", "run", "--input", "d.nc", "--out", "p.csv", *own)
    header, *rows = (tmp_path / "p.csv").read_text().splitlines()
    column = header.split(",").index("u")
    assert {float(row.split(",")[column]) for row in rows} == {9.0}
    assert "bounded" in nfsgeo(
        "predict", "run", "--input", "d.nc", "--out", "q.csv", code=2
    )


@pytest.mark.slow
def test_suites_compare_models_of_ones_own(own, nfsgeo, tmp_path):
    settings = "data.points: 24, data.n_in: 4, data.n_out: 2, trainer.epochs: 1"
    (tmp_path / "mine.yaml").write_text(
        "title: Mine\nproblems:\n  waves:\n    data: burgers\n"
        f"    at: {{smoke: {{{settings}}}}}\nvariants: {{nfs: {{}}, average: {{}}}}\n"
    )
    run = ["bench", "mine.yaml", "--scale", "smoke", "--out", "out"]
    assert "average" in nfsgeo(*run, code=2)
    shown = json.loads(nfsgeo(*run, "--import", own, "--json"))
    assert {row["status"] for row in shown["results"]} >= {"ok"}
    assert "failed" not in {row["status"] for row in shown["results"]}


@pytest.mark.slow
def test_what_cannot_be_imported_is_one_line(nfsgeo, tmp_path):
    (tmp_path / "wrong.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "random.py").write_text("")
    for name, word in {
        "wrong.py": "nothing_of_that_name",
        "sub/random.py": "rename",
        "absent.py": "existing file",
        "no_module_of_that_name": "a module",
    }.items():
        assert word in nfsgeo("models", "--import", name, code=2)


@pytest.mark.slow
def test_installed_plugins_are_found(own, tmp_path, monkeypatch):
    """A package of its own, with an entry point, and one that is broken."""
    site = tmp_path / "site"
    for name, text in {"mine": own.read_text(), "broken": "1 / 0\n"}.items():
        about = site / f"{name}-1.0.dist-info"
        about.mkdir(parents=True)
        (site / f"{name}.py").write_text(text)
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"
        )
        (about / "entry_points.txt").write_text(f"[nfsgeo.plugins]\n{name} = {name}\n")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    done = subprocess.run([*COMMAND, "models"], capture_output=True, text=True)
    assert done.returncode == 0 and "average" in done.stdout
    assert "broken" in done.stderr and "ZeroDivisionError" in done.stderr
