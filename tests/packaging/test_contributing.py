"""What CONTRIBUTING.md, SECURITY.md and the pre-commit hooks say."""

from __future__ import annotations

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


def test_named_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    lines = re.findall(r"^ {4}make ([a-z ]+?) +#", GUIDE, re.MULTILINE)
    targets = " ".join(lines).split()
    assert len(targets) > 3
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_named_folders_exist() -> None:
    folders = re.findall(r"^\| (`.*`) \|.*\|.*\|$", GUIDE, re.MULTILINE)
    names = re.findall(r"`([^`]+)`", " ".join(folders))
    assert len(names) > 7 and all((ROOT / name).is_dir() for name in names)


@pytest.mark.parametrize("call", UNSAFE)
def test_nothing_runs_what_a_file_holds(call: str) -> None:
    wrong = []
    for folder in ("nfsgeo", "cli", "benchmarks"):
        for module in (ROOT / folder).rglob("*.py"):
            text = module.read_text()
            for found in re.finditer(call, text):
                around = text[found.start() : found.start() + 200]
                if UNSAFE[call] is None or UNSAFE[call] not in around:
                    wrong.append(f"{module}: {around.splitlines()[0]}")
    assert not wrong
