"""Reports that move, and animations."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.animation import FFMpegWriter
from PIL import Image

from nfsgeo.errors import UserError
from nfsgeo.report import write_animation, write_report
from nfsgeo.report.films import frames_of
from nfsgeo.report.run_folder import read_run_folder
from nfsgeo_cli import main


@pytest.mark.slow
def test_without_script_one_frame_is_seen(whole_run):
    text = (whole_run / "report.html").read_text()
    frames = re.findall(r"<img [^>]*data-film[^>]*>", text)
    assert len(frames) == 3 * 10
    seen = [frame for frame in frames if not frame.endswith(" hidden>")]
    assert len(seen) == 1
    assert 'data-film="0" data-step="9"' in seen[0]
    assert '<div class="controls" hidden>' in text


@pytest.mark.slow
def test_problems_without_time_have_no_film(make_run):
    run = make_run(n=100, n_in=0, n_out=1)
    assert frames_of(read_run_folder(run).predictions) == []
    page = write_report(run).read_text()
    assert "<script" not in page and "script-src" not in page
    with pytest.raises(UserError):
        write_animation(run, run / "a.gif")


@pytest.mark.slow
def test_long_films_have_fewer_frames(make_run):
    frames = frames_of(read_run_folder(make_run(dim=1, n=50, n_out=80)).predictions)
    assert len(frames) == 39
    assert (frames[0]["time"], frames[-1]["time"]) == ("t = 2.75", "t = 22.5")


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2])
def test_an_animation_has_a_frame_a_time_step(make_run, dim):
    run = make_run(dim=dim, n=150, n_out=4)
    command = ["plot", str(run), "--animate", str(run / "a.gif"), "--json"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {"written": [str(run / "a.gif")]}
    with Image.open(run / "a.gif") as image:
        assert (image.format, image.n_frames) == ("GIF", 4)
        pictures = []
        for k in range(4):
            image.seek(k)
            pictures.append(np.asarray(image.convert("RGB"), np.int64))
    assert all((a != b).any() for a, b in zip(pictures, pictures[1:], strict=False))


def test_a_video_needs_ffmpeg(make_run, monkeypatch):
    run = make_run(n=150, n_out=3)
    if FFMpegWriter.isAvailable():
        assert write_animation(run, run / "a.mp4").read_bytes()[4:8] == b"ftyp"
    monkeypatch.setattr(FFMpegWriter, "isAvailable", lambda: False)
    for name in ("b.mp4", "b.avi"):
        with pytest.raises(UserError):
            write_animation(run, run / name)
        assert not (run / name).exists()
