"""What the README tells people to type."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from nfsgeo_cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^ {4}(nfsgeo .*)$", README, re.MULTILINE)
INDEX = (ROOT / "docs/index.md").read_text()
TABLE = re.findall(r"^\| `nfsgeo ([a-z]+)` \|", INDEX, re.MULTILINE)


SMALLER = {"--samples": "10", "--resolution": "40", "--epochs": "1"}
QUICK = {
    "generate": {"--resolution": "32"},
    "train": {"--set": "model.settings.width=4"},
    "evaluate": {"--repeats": "1"},
}


@pytest.mark.slow
def test_commands_run_one_after_the_other():
    """At sizes of a second: every option that the README gives stays."""
    assert len(COMMANDS) >= 4
    for line in COMMANDS:
        verb, *arguments = shlex.split(line, comments=True)[1:]
        for option, value in SMALLER.items():
            if option in arguments:
                arguments[arguments.index(option) + 1] = value
        if "--resume" not in arguments:
            for option, value in QUICK.get(verb, {}).items():
                arguments += [] if option in arguments else [option, value]
        done = CliRunner().invoke(main, [verb, *arguments])
        assert done.exit_code == 0, f"{line}\n{done.output}"


def test_table_lists_every_verb():
    assert sorted(TABLE) == sorted(main.commands)


def test_linked_files_exist():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    links += re.findall(r'src="([^"]+)"', README)
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link


@pytest.mark.slow
def test_python_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    assert names["ahead"].shape == (50, 10, 1)
    assert np.isfinite(names["ahead"]).all() and names["errors"]["mae"] > 0
