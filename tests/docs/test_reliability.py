"""The counts of docs/reliability.md are those of the tests that it names."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text()
# cases, tries where there are any, and the test
ROWS = re.findall(r"\| (\d+) (?:\| (\d+) )?\| `(tests/[\w/]+\.py)::(\w+)` \|", PAGE)


def tries(file: str, name: str) -> int | None:
    """``max_examples`` of a test, in its decorator or in settings of its module."""
    body = ast.parse((ROOT / file).read_text()).body
    found = {
        ast.unparse(n.targets[0]): n.value for n in body if isinstance(n, ast.Assign)
    }
    (test,) = (n for n in body if isinstance(n, ast.FunctionDef) and n.name == name)
    for decorator in test.decorator_list:
        call = found.get(ast.unparse(decorator), decorator)
        for keyword in getattr(call, "keywords", ()):
            if keyword.arg == "max_examples":
                return ast.literal_eval(keyword.value)
    return None


def test_every_row_is_understood():
    assert len(ROWS) == PAGE.count("::test_") > 20


@pytest.mark.parametrize(("cases", "tried", "file", "name"), ROWS)
def test_tries_are_those_of_the_test(cases, tried, file, name):
    assert tries(file, name) == (int(tried) if tried else None)


@pytest.mark.slow
def test_cases_are_those_of_the_test():
    files = sorted({file for _, _, file, _ in ROWS})
    options = ["-o", "addopts=--import-mode=importlib", "--collect-only", "-q"]
    command = [sys.executable, "-m", "pytest", *options, *files]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    tests = re.findall(r"^(tests/[\w/]+\.py::\w+)", listed, re.MULTILINE)
    found = Counter(tests)
    for cases, _, file, name in ROWS:
        assert found[f"{file}::{name}"] == int(cases), name
