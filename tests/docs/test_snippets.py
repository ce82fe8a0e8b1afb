"""What the pages tell people to type, from top to bottom in one folder."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nfsgeo.data.pde import EQUATIONS
from nfsgeo.extensions import load_extensions
from nfsgeo.forecast.transforms import TRANSFORMS
from nfsgeo.models import MODELS
from nfsgeo.training.losses import LOSSES
from nfsgeo_cli import main

DOCS = Path(__file__).parents[2] / "docs"
# Those that show something to type.
PAGES = [
    str(page.relative_to(DOCS))
    for page in sorted(DOCS.rglob("*.md"))
    if "```" in page.read_text()
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def catalogues() -> Iterator[None]:
    """A page may add a model, an equation and so on; these go with the page."""
    load_extensions()  # whose transforms stay
    catalogues: tuple[dict[str, Any], ...] = (MODELS, LOSSES, TRANSFORMS, EQUATIONS)
    before = [dict(catalogue) for catalogue in catalogues]
    yield
    for catalogue, content in zip(catalogues, before, strict=True):
        catalogue.clear()
        catalogue.update(content)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(page):
    """``python`` and ``console`` are run, ``sh`` takes too long and is parsed."""
    names: dict[str, Any] = {}
    for language, content in BLOCK.findall((DOCS / page).read_text()):
        if language == "python":
            exec(compile(content, page, "exec", dont_inherit=True), names)
            continue
        assert language in ("console", "sh"), f"nobody runs {language}"
        for line in content.splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            program, *arguments = words or [""]
            if language == "console":
                assert program == "nfsgeo"
                done = CliRunner().invoke(main, arguments)
                assert done.exit_code == 0, f"{line}\n{done.output}"
            elif program == "nfsgeo":
                verb, *arguments = arguments
                with main.commands[verb].make_context(verb, arguments) as context:
                    assert context.params
