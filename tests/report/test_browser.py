"""Pages in headless Chromium: the sliders, and what fits into the window."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from nfsgeo.report import write_comparison

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium"),
]
STATE = """
const wide = [...document.querySelectorAll(".wide")];
const state = {
  width: document.documentElement.scrollWidth,
  fits: wide.every(e => e.scrollWidth <= e.clientWidth),
  images: document.images.length,
  seen: [],
};
const shown = () => [...document.querySelectorAll(".film img")].filter(i => !i.hidden);
for (const [slider, value] of %s) {
  const input = document.querySelectorAll(".film input")[slider];
  input.value = value;
  input.dispatchEvent(new Event("input"));
  const told = [...document.querySelectorAll(".film output")].map(o => o.textContent);
  state.seen.push([shown().map(i => i.alt), told]);
}
document.body.innerHTML = "<pre>" + JSON.stringify(state) + "</pre>";
"""


def document(page: Path, width: int) -> str:
    """The document that a browser makes of a page."""
    options = f"--headless --no-sandbox --disable-gpu --window-size={width},900"
    command = [str(CHROMIUM), *options.split(), "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def state(page: Path, width: int, moves: list[tuple[int, int]]) -> dict[str, Any]:
    """What is seen after moving sliders, in a copy that admits a script of the test."""
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page.read_text())
    copy = page.with_name("copy.html")
    copy.write_text(text.replace("</body>", f"<script>{STATE % moves}</script></body>"))
    found = re.search(r"<pre>(.*)</pre>", document(copy, width))
    assert found
    result: dict[str, Any] = json.loads(unescape(found[1]))
    return result


@pytest.mark.parametrize("width", [1300, 500])
def test_sliders_move_the_film(whole_run, tmp_path, width):
    page = Path(shutil.copy(whole_run / "report.html", tmp_path))
    moves = [[1, 9], [1, 0], [0, 1], [1, 4]]
    found = state(page, width, moves)
    assert found["width"] <= width and found["fits"]
    names = ["Test sample 960, vorticity"] * 2 + ["Test sample 961, vorticity"] * 2
    times = ["t = 5", "t = 2.75", "t = 2.75", "t = 3.75"]
    expected = [
        [[f"{name}, {time}"], [name, time]]
        for name, time in zip(names, times, strict=True)
    ]
    assert found["seen"] == expected
    # The policy of the page itself admits its script, which shows the sliders.
    assert '<div class="controls">' in document(page, width)


@pytest.mark.parametrize("width", [1300, 500])
def test_the_comparison_fits(whole_run, tmp_path, width):
    other = shutil.copytree(whole_run, tmp_path / "other")
    page = tmp_path / "comparison.html"
    write_comparison([whole_run, other], page)
    found = state(page, width, [])
    assert found["width"] <= width and found["images"] == 4
