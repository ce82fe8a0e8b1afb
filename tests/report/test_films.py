"""Reports that move, animations, and the page that compares runs."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from matplotlib.animation import FFMpegWriter
from PIL import Image

from nfsgeo.errors import UserError
from nfsgeo.report import films, write_animation, write_comparison, write_report
from nfsgeo.report.films import frames_of
from nfsgeo.report.run_folder import read_run_folder
from nfsgeo_cli import main

MakeRun = Callable[..., Path]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDTHS = [1300, 420]


class Browser:
    """A headless Chromium, spoken to through a pipe (the DevTools protocol)."""

    def __init__(self, profile: Path) -> None:
        (theirs, ours), (our_end, their_end) = os.pipe(), os.pipe()
        command = (
            f"exec {CHROMIUM} --headless --no-sandbox --disable-gpu --no-first-run "
            f"--user-data-dir={profile} --remote-debugging-pipe about:blank "
            f"3<&{theirs} 4>&{their_end}"
        )
        self._process = subprocess.Popen(
            ["bash", "-c", command],
            pass_fds=(theirs, their_end),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(their_end)
        self._out, self._in = os.fdopen(ours, "wb"), os.fdopen(our_end, "rb")
        self._number, self._session, self.problems = 0, {}, []  # type: int, dict, list
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = {"sessionId": found["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        self._number += 1
        sent = {"id": self._number, "method": method, "params": arguments}
        self._out.write(json.dumps(sent | self._session).encode() + b"\0")
        self._out.flush()
        while (message := self._message()).get("id") != self._number:
            continue
        assert "error" not in message, message
        return message["result"]

    def _message(self) -> dict[str, Any]:
        content = bytearray()
        while (byte := self._in.read(1)) != b"\0":
            assert byte, "the browser ended"
            content += byte
        message: dict[str, Any] = json.loads(content)
        noted = message.get("method")
        if noted in ("Runtime.exceptionThrown", "Log.entryAdded") or (
            noted == "Runtime.consoleAPICalled"
            and message["params"]["type"] in ("error", "warning", "assert")
        ):
            self.problems.append(message["params"])
        return message

    def open(self, path: Path, width: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        self.call("Page.navigate", url=path.as_uri())
        while self.value("document.readyState") != "complete":
            continue

    def value(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def screenshot(self, path: Path) -> None:
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        self._out.close()
        self._in.close()
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium")
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def moved(browser: Browser, number: int, value: int) -> tuple[str, list[str]]:
    """The picture that is seen after moving a slider, and what stands beside them."""
    return browser.value(
        "(() => { const input = document.querySelectorAll('.film input')["
        f"{number}]; input.value = '{value}'; "
        "input.dispatchEvent(new Event('input')); "
        "const seen = [...document.querySelectorAll('.film img')]"
        ".filter(image => image.offsetHeight > 0); "
        "if (seen.length !== 1) throw new Error(`${seen.length} pictures`); "
        "const told = [...document.querySelectorAll('.film output')]; "
        "return [seen[0].alt, told.map(output => output.textContent)]; })()"
    )


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_sliders_move_the_film(whole_run: Path, browser: Browser, width: int) -> None:
    browser.problems.clear()
    browser.open(whole_run / "report.html", width)
    alt, told = moved(browser, 1, 9)
    assert alt == "Test sample 960, vorticity, t = 5"
    assert told == ["Test sample 960, vorticity", "t = 5"]
    assert moved(browser, 1, 0)[0] == "Test sample 960, vorticity, t = 2.75"
    assert moved(browser, 0, 1)[0] == "Test sample 961, vorticity, t = 2.75"
    assert moved(browser, 1, 4)[1] == ["Test sample 961, vorticity", "t = 3.75"]
    # Nothing is wider than the window or its place, and nothing went wrong.
    assert browser.value("document.documentElement.scrollWidth") <= width
    tables = "[...document.querySelectorAll('.wide')]"
    assert browser.value(f"{tables}.every(e => e.scrollWidth <= e.clientWidth)")
    assert browser.problems == []


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_the_comparison_fits(
    make_two: list[Path], browser: Browser, width: int, tmp_path: Path
) -> None:
    browser.problems.clear()
    page = write_comparison(make_two, tmp_path / "comparison.html")
    browser.open(page, width)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("document.images.length") == 2
    assert browser.problems == []


def test_without_script_one_frame_is_seen(whole_run: Path) -> None:
    text = (whole_run / "report.html").read_text()
    frames = re.findall(r"<img [^>]*data-film[^>]*>", text)
    assert len(frames) == 2 * 10
    seen = [frame for frame in frames if not frame.endswith(" hidden>")]
    assert len(seen) == 1
    assert 'data-film="0" data-step="9"' in seen[0]
    assert '<div class="controls" hidden>' in text


def test_frames_are_pictures_that_differ(whole_run: Path) -> None:
    frames = frames_of(read_run_folder(whole_run).predictions)
    assert len({frame.source for frame in frames}) == len(frames)
    content = base64.b64decode(frames[0].source.partition(",")[2])
    with Image.open(io.BytesIO(content)) as image:
        assert image.format == "WEBP"
        assert np.asarray(image.convert("RGB")).std() > 10


@pytest.mark.parametrize("dim", [1, 3])
def test_films_in_other_dimensions(make_run: MakeRun, dim: int) -> None:
    run = make_run(dim=dim, n=200, n_out=3)
    frames = frames_of(read_run_folder(run).predictions)
    assert len({frame.source for frame in frames}) == 2 * 3


def test_problems_without_time_have_no_film(make_run: MakeRun) -> None:
    run = make_run(n=100, n_in=0, n_out=1)
    assert frames_of(read_run_folder(run).predictions) == []
    page = write_report(run).read_text()
    assert "<script" not in page and "script-src" not in page


@pytest.mark.slow
def test_films_that_are_too_large_have_fewer_frames(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = read_run_folder(make_run(n=100, n_out=8)).predictions
    whole = frames_of(e)
    size = sum(len(frame.source) for frame in whole)
    monkeypatch.setattr(films, "MOST_BYTES", size // 2)
    fewer = frames_of(e)
    assert sum(len(frame.source) for frame in fewer) <= size // 2
    assert (fewer[0].time, fewer[-1].time) == (whole[0].time, whole[-1].time)
    assert fewer[-1].step == len(fewer) // 2 - 1


@pytest.mark.parametrize("dim", [1, 2])
def test_an_animation_has_a_frame_for_each_time_step(
    make_run: MakeRun, dim: int
) -> None:
    run = make_run(dim=dim, n=150, n_out=4)
    done = CliRunner().invoke(
        main, ["plot", str(run), "--animate", str(run / "a.gif"), "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {"written": [str(run / "a.gif")]}
    with Image.open(run / "a.gif") as image:
        assert (image.format, image.n_frames) == ("GIF", 4)
        pictures = []
        for k in range(4):
            image.seek(k)
            pictures.append(np.asarray(image.convert("RGB"), np.int64))
    assert all((a != b).any() for a, b in zip(pictures, pictures[1:], strict=False))


def test_a_video_needs_ffmpeg(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(n=150, n_out=3)
    if FFMpegWriter.isAvailable():
        assert write_animation(run, run / "a.mp4").read_bytes()[4:8] == b"ftyp"
    monkeypatch.setattr(FFMpegWriter, "isAvailable", lambda: False)
    with pytest.raises(UserError, match="ffmpeg"):
        write_animation(run, run / "b.mp4")
    assert not (run / "b.mp4").exists()


def test_what_cannot_be_animated_is_refused(make_run: MakeRun) -> None:
    run = make_run(n=100, n_in=0, n_out=1)
    with pytest.raises(UserError, match="without predictions at several times"):
        write_animation(run, run / "a.gif")
    with pytest.raises(UserError, match="gif or .mp4"):
        write_animation(run, run / "a.avi")


@pytest.fixture
def make_two(make_run: MakeRun) -> list[Path]:
    """Two runs that differ in their seed, one setting and their errors."""
    first = make_run(n=100)
    second = first.with_name("other")
    shutil.copytree(first, second)
    summary = json.loads((second / "summary.json").read_text())
    summary["test"]["mae"] = 0.0019
    (second / "summary.json").write_text(json.dumps(summary))
    config = yaml.safe_load((second / "config.yaml").read_text())
    config["model"]["width"], config["seed"] = 64, 7
    (second / "config.yaml").write_text(yaml.safe_dump(config))
    return [first, second]


def test_a_comparison_tells_what_differs(make_two: list[Path]) -> None:
    out = make_two[0].with_name("comparison.html")
    command = ["compare", *map(str, make_two), "--out", str(out), "--json"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {"output": str(out)}
    text = out.read_text()
    assert not re.search(r"https?://|<script|<link", text)
    rows = re.findall(r'<tr><th scope="row">([\w.]+)</th>(.*?)</tr>', text)
    cells = {name: re.findall(r">([^<>]+)</", row) for name, row in rows}
    assert cells["model.width"] == ["32", "64"] and cells["seed"] == ["0", "7"]
    assert "model.name" not in cells
    assert cells["run"][0] == "0.00271" and cells["other"][0] == "0.00190"
    best = re.findall(r'class="best"><data value="([\d.]+)"', text)
    assert "0.0019" in best and "0.0027134" not in best
    assert text.count("data:image/webp") == 2
    assert out.stat().st_size < 1e6


def test_a_comparison_of_one_run_is_refused(make_run: MakeRun) -> None:
    run = make_run(drawn=False)
    for runs in ([run], [run, run]):
        with pytest.raises(UserError, match="two or more run folders"):
            write_comparison(runs, run / "a.html")
    with pytest.raises(UserError, match="ends in .html"):
        write_comparison([run, run.parent], run / "a.pdf")


def test_a_comparison_takes_runs_of_which_parts_are_missing(
    make_two: list[Path],
) -> None:
    (make_two[0] / "evaluation.npz").unlink()
    (make_two[1] / "metrics.csv").unlink()
    text = write_comparison(make_two, make_two[0] / "a.html").read_text()
    assert text.count("data:image/webp") == 2
