"""What the README, CONTRIBUTING.md and SECURITY.md say of the repository."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
# Calls that would run what a file holds, unless told not to.
UNSAFE = {
    r"torch\.load\(": "weights_only=True",
    r"np\.load\(": "allow_pickle=False",
    r"yaml\.(?:unsafe_|full_)?load\(": None,
    r"pickle\.loads?\(": None,
}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_named_make_targets_exist(page):
    text = (ROOT / page).read_text()
    lines = re.findall(r"^ {4}make ([a-z ]+?) *(?:#|$)", text, re.MULTILINE)
    targets = re.findall(r"^(\S+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert lines and set(" ".join(lines).split()) <= set(targets)


def test_named_folders_exist():
    folders = re.findall(r"^\| (`.*`) \|.*\|.*\|$", GUIDE, re.MULTILINE)
    names = re.findall(r"`([^`]+)`", " ".join(folders))
    assert len(names) > 7 and all((ROOT / name).is_dir() for name in names)


@pytest.mark.parametrize("call", UNSAFE)
def test_nothing_runs_what_a_file_holds(call):
    for folder in ("nfsgeo", "cli", "benchmarks"):
        for module in (ROOT / folder).rglob("*.py"):
            text = module.read_text()
            for found in re.finditer(call, text):
                around, safe = text[found.start() :][:200], UNSAFE[call]
                assert safe and safe in around, f"{module}: {around}"
