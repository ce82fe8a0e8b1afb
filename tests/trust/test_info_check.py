"""`nfsgeo info --check`: all values, and files that belong together."""

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import pytest

import nfsgeo
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_tensors
from nfsgeo.training.checkpoints import read_checkpoint, weights_digest


@pytest.fixture
def run(trained: RunPaths) -> RunPaths:
    """A copy of the trained run."""
    return RunPaths(Path(shutil.copytree(trained.root, "run")).resolve())


def test_a_changed_value_is_found_wherever_it_is(command, waves, tmp_path):
    """Also in a sample that nothing else looks at."""
    path = tmp_path / "waves.nc"
    path.write_bytes(waves.read_bytes())
    result = command("info", "--check", path, "--json")
    facts = json.loads(result.stdout)
    assert facts["checksums"] == "of all values"
    assert facts["values_read"] >= 20 * 24 * 256
    with h5py.File(path) as file:
        chunk = file["u"].id.get_chunk_info(file["u"].id.get_num_chunks() - 1)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset + 100] ^= 1
    path.write_bytes(content)
    assert command("info", path).exit_code == 0
    result = command("info", "--check", path)
    (line,) = result.stderr.splitlines()
    assert result.exit_code == 2 and "sample 19" in line


def test_formats_without_checksums_are_told_apart(command, waves, tmp_path):
    assert command("convert", waves, "--out", tmp_path / "w.npz").exit_code == 0
    result = command("info", "--check", tmp_path / "w.npz")
    assert result.exit_code == 0 and "none known" in result.stdout


@pytest.mark.parametrize("spoilt", ["best", "bands", "evaluation", "weights"])
def test_damaged_files_of_a_run(command, run, spoilt):
    digest = weights_digest(read_checkpoint(run.best))
    run.summary.write_text(json.dumps({"weights": digest}))
    write_tensors(run.bands, {"weights": "2" if spoilt == "weights" else digest})
    path = Path(getattr(run, {"weights": "bands"}.get(spoilt, spoilt)))
    if spoilt != "weights":
        content = bytearray(path.read_bytes())
        # A byte between the parts of an archive has no checksum, and no meaning.
        at = content.find(b"weights") if spoilt == "bands" else len(content) // 3
        content[at] ^= 1
        path.write_bytes(content)
    result = command("info", "--check", run.root)
    (line,) = result.stderr.splitlines()
    assert result.exit_code == 2 and path.name in line


def test_a_whole_run(command, run, trained):
    for folder in (run.root, trained.root):
        assert command("info", "--check", folder).exit_code == 0
    found = read_checkpoint(run.last)
    found["nfsgeo"]["task"]["fingerprint"] = "other"
    write_tensors(run.last, found)
    assert command("info", "--check", run.root).exit_code == 2


@pytest.fixture(scope="module")
def pair(waves: Path, tiny: Any, tmp_path_factory: Any) -> list[RunPaths]:
    """Two runs on the same data, with different seeds."""
    folder = tmp_path_factory.mktemp("pair")
    made = (nfsgeo.prepare(waves, tiny | {"seed": seed}) for seed in (1, 2))
    return [nfsgeo.fit(e, folder / f"{n}", report=True) for n, e in enumerate(made)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["best", "last", "belongings", "evaluation", "metrics", "summary", "config"],
)
def test_files_of_another_run(command, pair, name):
    run, other = RunPaths(Path(shutil.copytree(pair[0].root, "run"))), pair[1]
    assert command("info", "--check", run.root).exit_code == 0
    shutil.copy(getattr(other, name), getattr(run, name))
    assert command("info", "--check", run.root).exit_code == 2
    if name not in ("summary", "config"):
        getattr(run, name).unlink()
        assert command("info", "--check", run.root).exit_code == 2
