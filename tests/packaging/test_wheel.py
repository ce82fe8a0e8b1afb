"""What an installed nfsgeo consists of, and that it works."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"nfsgeo": "nfsgeo", "nfsgeo_cli": "cli", "nfsgeo_benchmarks": "benchmarks"}
PIP = [sys.executable, "-m", "pip"]

# One process, which imports once.
SCRIPT = """
import sys

# The extras that install these are missing.
EXTRAS = "meshio neuralop onnxscript sklearn skfem submitit vtk zarr"
sys.modules.update(dict.fromkeys(EXTRAS.split()))

import nfsgeo
from nfsgeo_cli import main

if __name__ == "__main__":
    print(nfsgeo.__file__)
    sizes = "--resolution 32 --records 10"
    train = "train --model nfs --data b.nc --n-in 4 --n-out 4 --epochs 1 --out run"
    for line in (
        "models",
        "datasets",
        "bench --list",
        f"generate burgers --out b.nc --samples 10 {sizes}",
        f"{train} --set model.settings.width=4",
        "predict run --input b.nc --output p.nc",
        f"generate navier-stokes --out ns.nc --samples 2 {sizes}",
        "predict --model ns-small --input ns.nc --output q.nc",
        "bench irregular --scale smoke --only nfs --out suite",
    ):
        try:
            main(line.split())
        except SystemExit as end:
            assert not end.code, line
"""


def wheel_of(source: Path, out: Path) -> Path:
    """The wheel that pip makes of a folder or an archive."""
    command = [*PIP, "wheel", "--no-deps", "--quiet", "--no-build-isolation"]
    command += ["--wheel-dir", str(out), str(source)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    (built,) = out.glob("*.whl")
    return built


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A copy, because setuptools leaves build folders beside the sources.
    work = tmp_path_factory.mktemp("sources")
    ignored = shutil.ignore_patterns("__pycache__", "*.partial")
    for folder in SOURCES.values():
        shutil.copytree(ROOT / folder, work / folder, ignore=ignored)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, work)
    return work


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_of(sources, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, and what it needs from this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.check_output(where, text=True).strip())
    # Listed so, folders are searched last, and their own links are not followed: the
    # checkout that this environment runs on is out of reach.
    needed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "needed.pth").write_text("\n".join(needed))
    install = ["--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*PIP, *install, str(wheel)], check=True, stdin=subprocess.DEVNULL)
    return folder


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_packages(wheel):
    wanted = {"LICENSE"}
    for package, folder in SOURCES.items():
        for path in (ROOT / folder).rglob("*"):
            # Reports of results are for those who read the repository.
            report = "results" in path.parts and path.suffix in (".html", ".md")
            if path.is_file() and "__pycache__" not in path.parts and not report:
                wanted.add(f"{package}/{path.relative_to(ROOT / folder).as_posix()}")
    names = contents(wheel)
    inside = {name for name in names if ".dist-info/" not in name}
    inside |= {Path(name).name for name in names if name.endswith("/LICENSE")}
    assert inside == wanted


@pytest.mark.slow
def test_source_archive_makes_the_same_wheel(sources, wheel, tmp_path):
    build = "from setuptools import build_meta as b; b.build_sdist({!r})"
    command = [sys.executable, "-c", build.format(str(tmp_path))]
    subprocess.run(command, cwd=sources, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    assert contents(wheel_of(archive, tmp_path / "wheel")) == contents(wheel)


@pytest.mark.slow
def test_everything_runs_from_where_it_is_installed(installed, tmp_path):
    def run(line: str) -> str:
        program, *arguments = line.split()
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [installed / "bin" / program, *arguments]
        return subprocess.check_output(
            command, cwd=tmp_path, env=environment, text=True
        )

    assert "train" in run("nfsgeo --help")
    assert "irregular" in run("nfsgeo bench --list")
    (tmp_path / "script.py").write_text(SCRIPT)
    assert run("python script.py").startswith(str(installed))
    trained = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert trained["test"]["mae"] > 0 and (tmp_path / "run" / "report.html").exists()
    assert (tmp_path / "q.nc").exists()
    assert (tmp_path / "suite" / "report.html").exists()
