"""The site builds without a warning."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from nfsgeo.data.io import FORMATS
from nfsgeo.models import MODELS

ROOT = Path(__file__).parents[2]
GENERATED = ["README"] + [
    f"docs/{name}" for name in ("formats", "models", "pretrained", "results")
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "TZ": "UTC"})
    return folder


@pytest.mark.parametrize("name", GENERATED)
def test_generated_parts_of_pages_are_current(name):
    """``make pages`` mends them."""
    pages = runpy.run_path(str(ROOT / "docs" / "making" / "pages.py"))
    text = (ROOT / f"{name}.md").read_text("utf-8")
    assert "<!-- begin " in text
    assert pages["with_generated_parts"](text) == text


def test_tables_of_pages_list_every_format_and_model():
    formats, models = (
        (ROOT / "docs" / f"{name}.md").read_text("utf-8")
        for name in ("formats", "models")
    )
    assert all(each.name in formats for each in FORMATS)
    assert all(f"| `{name}` |" in models for name in MODELS)
    assert all(f"<summary>{name}</summary>" in models for name in MODELS)


@pytest.mark.slow
def test_pages_come_from_the_code_and_nothing_from_elsewhere(site):
    left = re.compile(r":\w+:`|\.\. \w+::|={4,}|<!--|\\\(|\$\$")
    tag = re.compile(r"<(?:script|link|img)[^>]+(?:src|href)=.(https?:[^\"' ]+)")
    for page in site.rglob("*.html"):
        assert not tag.findall(page.read_text()), page
        assert 'class="arithmatex"' not in page.read_text(), page
        if page.name == "index.html":  # markup of docstrings in what a reader sees
            article = re.search(r"<article.*</article>", page.read_text(), re.DOTALL)
            assert article and not left.search(re.sub(r"<[^>]+>", "", article[0])), page
    assert "37,891,937" in (site / "models" / "index.html").read_text()
    layers = (site / "reference" / "nn" / "index.html").read_text()
    assert 'id="nfsgeo.nn.KernelInterpolation"' in layers
    assert "<math" in layers
    assert "<math" in (site / "how-nfs-works" / "index.html").read_text()


@pytest.mark.slow
def test_pictures_are_drawn_by_our_own_code(tmp_path):
    script = ROOT / "docs" / "making" / "pictures.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    drawn = {path.name for path in tmp_path.iterdir()}
    shown = {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
    assert shown == drawn
