"""What an installed nfsgeo consists of."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"nfsgeo": "nfsgeo", "nfsgeo_cli": "cli", "nfsgeo_benchmarks": "benchmarks"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A copy, because setuptools leaves build folders beside the sources.
    work = tmp_path_factory.mktemp("wheel")
    for folder in SOURCES.values():
        shutil.copytree(
            ROOT / folder,
            work / folder,
            ignore=shutil.ignore_patterns("__pycache__", "*.partial"),
        )
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, work)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet"]
    command += ["--no-build-isolation", "--wheel-dir", str(work / "out"), str(work)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    (built,) = (work / "out").glob("*.whl")
    return built


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    wanted = {"LICENSE"}
    for package, folder in SOURCES.items():
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                wanted.add(f"{package}/{path.relative_to(ROOT / folder).as_posix()}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    inside = {name for name in names if ".dist-info/" not in name}
    inside |= {Path(name).name for name in names if name.endswith("/LICENSE")}
    assert inside == wanted


@pytest.mark.slow
def test_wheel_runs_from_any_folder(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    script = "import nfsgeo, nfsgeo.report, nfsgeo_cli; print(nfsgeo.__file__)"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith(str(site))
