"""The page that compares runs."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from nfsgeo.errors import UserError
from nfsgeo.report import write_comparison
from nfsgeo.report.figures import compared_fields
from nfsgeo.report.run_folder import read_run_folder
from nfsgeo_cli import main

MakeRun = Callable[..., Path]


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


@pytest.mark.slow
def test_a_comparison_tells_what_differs(make_two):
    out = make_two[0].with_name("comparison.html")
    command = ["compare", *map(str, make_two), "--out", str(out), "--json"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {"output": str(out)}
    shown = CliRunner().invoke(main, command[:-1]).output.splitlines()
    assert "MAE" in shown[0] and shown[2].split()[:2] == ["other", "1.900e-03"]
    text = out.read_text()
    assert not re.search(r"https?://|<script|<link", text)
    rows = re.findall(r'<tr><th scope="row">([\w.]+)</th>(.*?)</tr>', text)
    cells = {name: re.findall(r">([^<>]+)</", row) for name, row in rows}
    assert cells["model.width"] == ["32", "64"] and cells["seed"] == ["0", "7"]
    assert "model.name" not in cells
    assert cells["run"][0] == "0.00271" and cells["other"][0] == "0.00190"
    best = re.findall(r'class="best">([\d.]+)', text.partition("Baselines")[0])
    assert "0.00190" in best and "0.00271" not in best
    # The field of each run, and two charts.
    assert text.count("data:image/webp") == 4
    assert cells["Persistence"][0] == "0.0983"
    assert out.stat().st_size < 1e6


def test_a_comparison_of_one_run_is_refused(make_run):
    run = make_run(drawn=False)
    for runs in ([run], [run, run]):
        with pytest.raises(UserError):
            write_comparison(runs, run / "a.html")
    with pytest.raises(UserError):
        write_comparison([run, run.parent], run / "a.pdf")


@pytest.mark.slow
def test_runs_in_folders_of_the_same_name_are_told_apart(make_two, monkeypatch):
    other = shutil.copytree(make_two[1], make_two[1].parent / "x" / make_two[0].name)
    monkeypatch.chdir(make_two[0])
    errors = write_comparison([Path(), other], page := Path("a.html"))
    assert [*errors.index] == [".", str(other)]
    assert str(other) in page.read_text()


@pytest.mark.slow
def test_a_comparison_takes_runs_of_which_parts_are_missing(make_two):
    (make_two[0] / "evaluation.npz").unlink()
    (make_two[1] / "metrics.csv").unlink()
    errors = write_comparison(make_two, page := make_two[0] / "a.html")
    assert [*errors["MAE"]] == [pytest.approx(0.00271, rel=1e-2), 0.0019]
    text = page.read_text()
    assert text.count("data:image/webp") == 3


@pytest.mark.slow
def test_errors_on_different_data_are_told_and_none_is_best(make_two, caplog):
    summary = json.loads((make_two[1] / "summary.json").read_text())
    (make_two[1] / "summary.json").write_text(json.dumps(summary | {"data": "b.nc"}))
    write_comparison(make_two, page := make_two[0] / "a.html")
    assert "2 different sources of data" in caplog.text
    assert 'class="best"' not in page.read_text().partition("Baselines")[0]


@pytest.mark.slow
@pytest.mark.parametrize("alike", [True, False])
def test_data_are_told_apart_by_their_values(make_two, caplog, alike):
    """A file may have several paths, and a path may have had several files."""
    for number, run in enumerate(make_two):
        summary = json.loads((run / "summary.json").read_text())
        data = f"/{number}/a.nc" if alike else "a.nc"
        about = {"data": data, "fingerprint": "0" if alike else str(number)}
        (run / "summary.json").write_text(json.dumps(summary | about))
    write_comparison(make_two, make_two[0] / "a.html")
    assert ("2 different sources of data" in caplog.text) == (not alike)


def test_errors_of_unlike_units_are_in_tables_of_their_own(make_run):
    """Pooled errors are in standard deviations, others in units of the data."""
    first, errors = make_run(drawn=False), {"mae": 0.5}
    pair = {"u": errors | {"unit": "m/s"}, "T": errors | {"unit": "K"}}
    runs = {"kelvin": {"units": "K"}, "metre": {"units": "m"}, "two": {}}
    runs["two"] = {"components": pair, "pooled": "Pooled errors are means."}
    for name, about in runs.items():
        shutil.copytree(first, folder := first.with_name(name))
        summary = json.loads((folder / "summary.json").read_text())
        (folder / "summary.json").write_text(json.dumps(summary | about))
    folders = [first.with_name(name) for name in runs]
    page = first / "a.html"
    found = write_comparison(folders, page)
    assert [*found.index] == ["kelvin (K)", "metre (m)", "two (pooled)"]
    text = page.read_text().partition("Baselines")[0]
    tables = re.findall(r"<caption>(.*?)</caption>.*?</table>", text, re.S)
    assert tables == ["In K", "In m", "All components, pooled", "u", "T"]
    assert "Pooled errors are means." in text
    shown = CliRunner().invoke(main, ["compare", *map(str, folders), "--out", "b.html"])
    assert "Pooled errors are means over the components" in shown.output


@pytest.mark.parametrize("alike", [True, False])
def test_baselines_are_shown_once_if_runs_have_the_same(make_run, alike):
    first = make_run(drawn=False)
    shutil.copytree(first, second := first.with_name("other"))
    if not alike:
        summary = json.loads((second / "summary.json").read_text())
        summary["baselines"]["persistence"]["mae"] = 0.0777
        (second / "summary.json").write_text(json.dumps(summary))
    write_comparison([first, second], page := first / "a.html")
    text = page.read_text()
    assert text.count(">Persistence<") == (1 if alike else 2)
    assert ("0.0777" in text) != alike


def test_steady_runs_may_have_more_fields_than_inputs(make_run):
    first = make_run(n=50, n_in=0, n_out=1)
    with np.load(first / "evaluation.npz") as stored:
        arrays = dict(stored)
    for name in ("truth", "prediction"):
        arrays[name] = np.concatenate([arrays[name]] * 2, axis=-1)
    names = {"component_names": np.array(["p", "T"])}
    np.savez(first / "evaluation.npz", **arrays | names)
    pictures = compared_fields({"run": read_run_folder(first)})["run"]
    assert [picture.name for picture in pictures] == ["fields-0-0", "fields-0-1"]
    assert len(pictures[1].draw().columns) == 3
