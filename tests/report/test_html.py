"""The page about a run."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain, Region
from nfsgeo.report import write_report
from nfsgeo.report.figures import training_curves
from nfsgeo.report.run_folder import read_run_folder

MakeRun = Callable[..., Path]
DRAWN = ("metrics.csv", "evaluation.npz", "unseen.csv")


class Page(HTMLParser):
    """Text, pictures and every address that a page refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text, self.tags = "", []  # type: tuple[str, list[str]]
        self.sources: list[str] = []
        self.addresses: list[str] = []
        self.bold: list[str] = []
        self._bold = False
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        self.tags.append(tag)
        self._bold = self._bold or ("class", "best") in attrs
        for name, value in attrs:
            if name == "src":
                self.sources.append(value)
            elif name in ("href", "action", "srcset", "data"):
                self.addresses.append(value)

    def handle_endtag(self, tag: str) -> None:
        self._bold = self._bold and tag != "td"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._bold:
            self.bold.append(data)


def decode(content: bytes, kind: str = "PNG") -> np.ndarray:
    with Image.open(io.BytesIO(content)) as image:
        assert image.format == kind
        return np.asarray(image.convert("RGB"))


def test_page_shows_errors_beside_the_baselines(whole_run: Path) -> None:
    page = Page(whole_run / "report.html")
    for text in ("0.00271", "0.00410", "0.0983", "0.412", "0.0112", "0.0312"):
        assert text in page.text
    assert page.bold == ["0.00271", "0.00410", "0.00810"]
    assert "4.1 times below the best baseline, linear extrapolation" in page.text
    for text in ("1\u202f024", "1\u202f234\u202f567", "19.4 s", "1.2 GiB", "10 → 10"):
        assert text in page.text
    for text in ("model.width", "2.13.0", "ETDRK4", "41a8c70", "navier-stokes"):
        assert text in page.text


def test_a_baseline_that_wins_is_the_bold_one(make_run: MakeRun) -> None:
    run = make_run(drawn=False)
    summary = json.loads((run / "summary.json").read_text())
    summary["test"]["mae"] = 0.0224
    (run / "summary.json").write_text(json.dumps(summary))
    page = Page(write_report(run))
    assert page.bold == ["0.00410", "0.00810", "0.0112"]
    assert "2 times above the best baseline" in page.text


def test_pictures_are_inline_and_the_same_as_the_files(whole_run: Path) -> None:
    page = Page(whole_run / "report.html")
    files = {path.read_bytes() for path in (whole_run / "figures").glob("*.png")}
    prefix = "data:image/webp;base64,"
    assert all(source.startswith(prefix) for source in page.sources)
    inline = [base64.b64decode(s.removeprefix(prefix)) for s in page.sources]
    assert len(files) == 6 and len(inline) == 6 + 2 * 10  # two films of ten frames
    for png in files:
        shown = [decode(each, "WEBP").astype(float) for each in inline]
        same = [each for each in shown if each.shape == decode(png).shape]
        assert min(np.abs(each - decode(png)).mean() for each in same) < 3
    for png in files:
        pixels = decode(png)
        assert min(pixels.shape[:2]) > 200
        assert pixels.std() > 10  # not blank


def test_page_is_self_contained(whole_run: Path) -> None:
    path = whole_run / "report.html"
    page = Page(path)
    # One script, of which the policy of the page knows the hash.
    assert page.tags.count("script") == 1 and "link" not in page.tags
    script = re.findall(r"<script>(.*?)</script>", path.read_text(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in path.read_text()
    assert path.stat().st_size < 3e6
    assert not page.addresses
    assert not re.search(r"https?://|@import|url\(", path.read_text())
    assert 'name="viewport"' in path.read_text()


def test_unseen_meshes_are_tabled(whole_run: Path) -> None:
    page = Page(whole_run / "report.html")
    for text in ("1.3\u2009×, 1\u202f331 points", "4\u2009×, 4\u202f096 points"):
        assert text in page.text


@pytest.mark.parametrize("part", DRAWN)
def test_missing_parts_are_left_out(make_run: MakeRun, part: str) -> None:
    run = make_run(n=100, n_out=2)
    (run / part).unlink()
    page = Page(write_report(run))
    names = {path.stem for path in (run / "figures").iterdir()}
    assert ("training" in names) == (part != "metrics.csv")
    assert ("mesh" in names and "error-in-time" in names) == (part != "evaluation.npz")
    assert ("unseen-meshes" in names) == (part != "unseen.csv")
    assert ("Unseen meshes" in page.text) == (part != "unseen.csv")


@pytest.mark.parametrize("part", ["config.yaml", "summary.json", "environment.json"])
def test_missing_texts_are_left_out(make_run: MakeRun, part: str) -> None:
    run = make_run(drawn=False)
    (run / part).unlink()
    page = Page(write_report(run))
    assert not page.sources
    assert ("0.00271" in page.text) == (part != "summary.json")
    assert ("Environment" in page.text) == (part != "environment.json")
    assert ("Configuration" in page.text) == (part != "config.yaml")


def test_a_sparse_summary_is_enough(make_run: MakeRun) -> None:
    run = make_run(drawn=False)
    (run / "summary.json").write_text('{"model": "fno", "test": {"mae": null}}')
    assert "fno" in Page(write_report(run)).text


def test_nan_shows_as_a_dash(make_run: MakeRun) -> None:
    run = make_run(drawn=False)
    summary = json.loads((run / "summary.json").read_text())
    summary["test"] = {"mae": float("nan"), "rmse": float("inf"), "rel_l2": 0.5}
    (run / "summary.json").write_text(json.dumps(summary))
    page = Page(write_report(run))
    assert not {"nan", "inf"} & set(page.text.lower().split())
    assert page.bold == ["0.0112", "0.0173", "0.0312"]


HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>&amp;"


def test_hostile_strings_are_escaped(make_run: MakeRun) -> None:
    run = make_run(n=200, n_out=2)
    before = Page(write_report(run)).tags
    summary = json.loads((run / "summary.json").read_text())
    summary |= {"model": HOSTILE, "data": HOSTILE, "units": HOSTILE}
    summary["equation"] = HOSTILE
    summary["provenance"] = {HOSTILE: HOSTILE}
    summary["baselines"][HOSTILE] = {"mae": 1.0}
    (run / "summary.json").write_text(json.dumps(summary))
    (run / "environment.json").write_text(json.dumps({HOSTILE: [HOSTILE]}))
    with np.load(run / "evaluation.npz") as arrays:
        changed = {**arrays, "component_names": np.array([HOSTILE + "$\\frac{"])}
    np.savez(run / "evaluation.npz", **changed)
    page = Page(write_report(run))
    for tag in ("script", "img"):  # the page's own alone
        assert page.tags.count(tag) == before.count(tag) > 0
    assert HOSTILE in page.text


def test_writing_again_replaces_the_report(make_run: MakeRun) -> None:
    run = make_run()
    (run / "evaluation.npz").unlink()
    first = write_report(run).read_bytes()
    assert write_report(run).read_bytes() == first
    assert not list(run.rglob("*.partial"))


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        write_report(tmp_path)


@pytest.mark.parametrize(
    "name, content",
    [
        ("summary.json", '{"model": '),
        ("summary.json", "[1, 2]"),
        ("config.yaml", "a: [1,"),
        ("config.yaml", "!!python/object/apply:os.getcwd []"),
        ("metrics.csv", "epoch,train_loss\n0,much\n"),
        ("evaluation.npz", "not an archive"),
    ],
)
def test_a_damaged_file_is_named(make_run: MakeRun, name: str, content: str) -> None:
    run = make_run(n=64)
    (run / name).write_text(content)
    with pytest.raises(UserError, match=name.replace(".", r"\.")) as caught:
        write_report(run)
    assert "\n" not in str(caught.value)
    assert not (run / "report.html").exists()


COMMON = {"error-in-time", "mesh", "training", "unseen-meshes"}
FIELDS = {"fields-960-vorticity", "fields-961-vorticity"}
SPACE_TIME = {"space-time-960-vorticity", "space-time-961-vorticity"}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ({"dim": 1, "n": 128}, COMMON | FIELDS | SPACE_TIME),
        ({"dim": 3, "n": 600, "n_out": 3}, COMMON | FIELDS),
        (
            {"n": 200, "n_in": 0, "n_out": 1},
            COMMON - {"error-in-time"} | {"fields-vorticity"},
        ),
        ({"n": 200, "n_in": 1, "n_out": 1}, COMMON - {"error-in-time"} | FIELDS),
    ],
    ids=["line", "space", "steady", "one time step"],
)
def test_every_kind_of_problem_has_its_pictures(
    make_run: MakeRun, kind: dict[str, int], names: set[str]
) -> None:
    run = make_run(**kind)
    before = dict(matplotlib.rcParams)
    write_report(run)
    assert dict(matplotlib.rcParams) == before
    assert {path.stem for path in (run / "figures").iterdir()} == names
    for path in (run / "figures").iterdir():
        assert decode(path.read_bytes()).std() > 5


def test_predictions_that_are_not_finite_still_make_a_report(make_run: MakeRun) -> None:
    run = make_run(n=100, n_out=2)
    with np.load(run / "evaluation.npz") as arrays:
        changed = dict(arrays)
    changed["prediction"][0, :50] = np.nan
    changed["prediction"][1] = np.inf
    changed["error_by_record"][:] = np.nan
    np.savez(run / "evaluation.npz", **changed)
    assert write_report(run).stat().st_size > 1e5


def test_a_run_folder_keeps_the_region(make_run: MakeRun) -> None:
    run = make_run(n=100)
    wall = [[0.47, -0.1], [0.53, -0.1], [0.53, 1.1], [0.47, 1.1]]
    box = (0.0, 0.0), (1.0, 1.0), (False, False)
    domain = Domain(*box, Region.polygons([wall]))
    with np.load(run / "evaluation.npz") as arrays:
        content = dict(arrays)
    content |= {k: np.array(v) for k, v in domain.to_dict().items()}
    np.savez(run / "evaluation.npz", **content)
    predictions = read_run_folder(run).predictions
    assert predictions is not None and predictions.domain == domain


def test_training_curves_mark_the_epoch_with_the_smallest_rmse() -> None:
    metrics = {
        "epoch": [0, 1, 2, 3],
        "train_loss": [4, 3, 2, 1],
        "valid_loss": [4.0, 2.0, 1.0, 1.5],
        "valid_rmse": [np.nan, 0.3, 0.2, 0.1],
    }
    labels = [
        k.get_label() for k in training_curves(pd.DataFrame(metrics)).axes[0].lines
    ]
    assert "best, epoch 4" in labels
