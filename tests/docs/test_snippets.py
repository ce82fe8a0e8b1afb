"""What the pages tell people to type, from top to bottom in one folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nfsgeo.forecast.transforms import TRANSFORMS
from nfsgeo.models import MODELS
from nfsgeo.training.losses import LOSSES
from nfsgeo_cli import main

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def catalogues() -> Iterator[None]:
    """A page may add a model, a loss or a transform; it goes with the page."""
    catalogues: tuple[dict[str, Any], ...] = (MODELS, LOSSES, TRANSFORMS)
    before = [dict(catalogue) for catalogue in catalogues]
    yield
    for catalogue, content in zip(catalogues, before, strict=True):
        catalogue.clear()
        catalogue.update(content)


@pytest.mark.slow
def test_snippets_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``python`` and ``console`` are run, ``sh`` takes too long and is parsed."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for language, content in BLOCK.findall(page.read_text()):
        if language == "python":
            exec(compile(content, str(page), "exec", dont_inherit=True), names)
            continue
        assert language in ("console", "sh"), f"nobody runs {language}"
        for line in content.splitlines():
            if language == "console":
                run(line.removeprefix("$ "))
            elif line.startswith("nfsgeo "):
                parse(line)


def run(line: str) -> None:
    program, *arguments = shlex.split(line)
    assert program == "nfsgeo"
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, f"{line}\n{done.output}"


def parse(line: str) -> None:
    verb, *arguments = shlex.split(line, comments=True)[1:]
    with main.commands[verb].make_context(verb, arguments) as context:
        assert context.params
