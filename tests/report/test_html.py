"""The page about a run, and the pictures in it."""

import base64
import hashlib
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from PIL import Image

import nfsgeo
from nfsgeo.report import write_report
from nfsgeo.report.curves import error_pictures
from nfsgeo.report.figures import run_pictures
from nfsgeo.report.run_folder import read_run_folder
from nfsgeo.report.tables import error_tables, verdict

WEBP = re.compile(r'src="data:image/webp;base64,([^"]+)"')
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>&amp;"


def decode(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("RGB"), float)


def bold(page: str) -> list[str]:
    return re.findall(r'class="best">([^<]+)', page)


def change_summary(run: Path, **entries: Any) -> None:
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps(summary | entries))


def change_arrays(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    with np.load(run / "evaluation.npz") as stored:
        arrays = dict(stored)
    change(arrays)
    np.savez(run / "evaluation.npz", **arrays)


def test_page_shows_errors_beside_the_baselines(whole_run):
    page = (whole_run / "report.html").read_text()
    texts = ["0.00271", "0.00410", "0.0983", "0.412", "0.0112", "0.0312"]
    texts += ["1\u202f024", "1\u202f234\u202f567", "19.4 s", "1.2 GiB", "10 → 10"]
    texts += ["model.width", "2.13.0", "ETDRK4", "41a8c70", "navier-stokes"]
    assert not [text for text in texts if text not in page]
    assert bold(page) == ["0.00271", "0.00410", "0.00810"]
    assert "76 % lower than that of the best baseline, linear extrapolation" in page


def test_a_baseline_that_wins_is_the_bold_one(make_run):
    run = make_run(drawn=False)
    change_summary(run, test={"mae": 0.0224, "rmse": 0.0041, "rel_l2": 0.0081})
    page = write_report(run).read_text()
    assert bold(page) == ["0.00410", "0.00810", "0.0112"]
    assert "2 times that of the best baseline" in page


def test_scores_of_error_bands_are_in_a_table(make_run):
    run = make_run(drawn=False)
    score = {"coverage": 0.913, "width": 0.25, "crps": 0.031, "interval_score": 0.41}
    bands = {"level": 0.9, "references": {"constant_width": score | {"width": 0.29}}}
    bands |= {"reliability": {"levels": [0.9], "coverage": [0.913]}}
    change_summary(run, bands=bands | {"by_time_step": [0.9, 0.92]} | score)
    page = write_report(run).read_text()
    assert "Error bands of level 0.9" in page and "91.3 %" in page
    assert ">constant width<" in page and "0.290" in page


def test_tables_of_many_components_are_folded(make_run):
    run = make_run(drawn=False)
    change_summary(run, components={f"u_{k}": {"mae": 1.0 + k} for k in range(20)})
    shown, folded, rest = write_report(run).read_text().partition("<details>")
    assert shown.count("<caption>") == 5 and folded
    assert "16 more tables" in rest and rest.count("<caption>") == 16


@pytest.mark.parametrize("test", [{}, {"test": None}, {"test": {"rel_l2": 0.5}}])
def test_errors_of_a_part_are_no_verdict(test):
    """Those of a component, or at unobserved points, are not those of the test."""
    part = {"mae": 1.0, "baselines": {"mean": {"mae": 2.0}}}
    parts = {"components": {"u": part, "v": part}, "unobserved": part}
    assert verdict(test | parts) is None
    assert verdict(test | {"unobserved": part}) is None
    whole = {"test": {"mae": 3.0}, "baselines": part["baselines"]}
    assert str(verdict(parts | whole)).startswith(
        "The pooled test MAE is 3.00, 1.5 times"
    )


def test_a_table_by_node_type():
    errors = {"mae": 0.5, "rmse": 1.0, "rel_l2": 0.25}
    summary = {"model": "nfs", "test": errors, "baselines": {}}
    types = {"normal": errors, "wall": {"mae": 2.0, "rmse": 3.0, "rel_l2": 4.0}}
    titles = [title for title, *_ in error_tables(summary)]
    *_, (title, _, table) = error_tables(summary | {"by_node_type": types})
    assert title == "By node type" not in titles
    assert [*table.index] == ["normal", "wall"] and table.loc["wall", "MAE"] == 2


def test_numbers_that_are_missing_show_as_dashes(make_run):
    run = make_run(drawn=False)
    change_summary(run, test={"mae": float("nan"), "rmse": None, "rel_l2": 0.5})
    page = write_report(run).read_text()
    body = re.sub("<[^>]+>", " ", page[page.index("<body>") :]).lower().split()
    assert "–" in body and not {"nan", "inf", "none"} & set(body)
    assert bold(page) == ["0.0112", "0.0173", "0.0312"]


@pytest.mark.slow
def test_samples_have_meshes_times_and_ranks_of_their_own(make_run):
    """Files of earlier versions have one mesh, the same times and no rank."""
    run, few = make_run(n=40), 30
    earlier = read_run_folder(run).predictions

    def change(arrays):
        arrays["pos"] = np.stack([arrays["pos"]] * 3)
        arrays["times"] = arrays["times"] + np.array([[0.0], [5.0], [9.0]])
        for name in ("pos", "x", "truth", "prediction"):
            arrays[name][1, few:] = np.nan  # that mesh has fewer points
        triangles = np.array([[0, 1, 2], [-1, -1, -1]])
        arrays["triangles"] = np.stack([triangles, triangles[::-1], triangles])
        arrays["rank"] = np.array(["median", "worst", ""])

    change_arrays(run, change)
    now = read_run_folder(run).predictions
    assert earlier and now and len(earlier.examples) == 3
    assert [example.rank for example in now.examples] == ["median", "worst"]
    assert [len(example.pos) for example in now.examples] == [40, few]
    for example, before in zip(now.examples, earlier.examples, strict=False):
        num = len(example.pos)
        np.testing.assert_array_equal(example.truth, before.truth[:num])
        assert np.array_equal(example.triangles, [[0, 1, 2]])
    assert now.examples[1].times[0] == earlier.examples[1].times[0] + 5
    page = write_report(run).read_text()
    assert "could not be drawn" not in page


@pytest.mark.parametrize("num", [1, 2])
def test_captions_tell_ranks_by_an_error_that_is_not_shown(make_run, num):
    run = make_run(n=40)

    def change(arrays):
        arrays["rank"] = np.array(["best", "median", "worst"])
        arrays["component_names"] = np.array(["u", "v"][:num])
        for name in ("x", "truth", "prediction"):
            arrays[name] = np.repeat(arrays[name], num, axis=-1)

    change_arrays(run, change)
    captions = [picture.about for picture in run_pictures(read_run_folder(run))]
    fields = [text for text in captions if text.startswith("The rows show")]
    told = [text for text in fields if "pooled over all components" in text]
    assert len(told) == (0 if num == 1 else num)


def test_data_from_memory_are_titled_by_their_name(make_run):
    run = make_run(drawn=False)
    change_summary(run, data=f"/home/me/run/weather-{32 * 'a'}.nc", equation="")
    assert "<h1>nfs on weather</h1>" in write_report(run).read_text()


def test_page_is_self_contained(whole_run):
    page = (whole_run / "report.html").read_text()
    # One script, of which the policy of the page knows the hash.
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert len(page) < 3e6
    assert not re.search(r"https?://|@import|url\(|<link|href=|srcset=", page)
    assert page.count("<img ") == len(WEBP.findall(page))
    assert 'name="viewport"' in page


def test_pictures_are_inline_and_the_same_as_the_files(whole_run):
    found = WEBP.findall((whole_run / "report.html").read_text())
    inline = [decode(base64.b64decode(each)) for each in found]
    files = [decode(f.read_bytes()) for f in (whole_run / "figures").glob("*.png")]
    assert len(files) == 5 and len(inline) == 5 + 3 * 10  # three films of ten frames
    for picture in files:
        same = [each for each in inline if each.shape == picture.shape]
        assert min(np.abs(each - picture).mean() for each in same) < 3
        assert min(picture.shape[:2]) > 200 and picture.std() > 10


SHOWS = {
    "metrics.csv": {"training"},
    "evaluation.npz": {"error-in-time"},
    "unseen.csv": {"unseen-meshes"},
}


@pytest.mark.slow
@pytest.mark.parametrize("part", SHOWS)
def test_missing_parts_are_left_out(make_run, part):
    run = make_run(n=100, n_out=2)
    (run / part).unlink()
    page = write_report(run).read_text()
    names = {path.stem for path in (run / "figures").iterdir()}
    for name, pictures in SHOWS.items():
        assert pictures & names == (set() if name == part else pictures)
    assert ("Unseen meshes" in page) == (part != "unseen.csv")


@pytest.mark.slow
def test_hostile_strings_are_escaped(make_run):
    run = make_run(n=200, n_out=2)
    tags = ("<script", "<img")
    before = [write_report(run).read_text().count(tag) for tag in tags]
    names = dict.fromkeys(("model", "data", "units", "equation"), HOSTILE)
    change_summary(run, provenance={HOSTILE: HOSTILE}, **names)
    change_summary(run, baselines={HOSTILE: {"mae": 1.0}})
    (run / "environment.json").write_text(json.dumps({HOSTILE: [HOSTILE]}))
    name = np.array([HOSTILE + "$\\frac{"])
    change_arrays(run, lambda arrays: arrays.update(component_names=name))
    page = write_report(run).read_text()
    assert [page.count(tag) for tag in tags] == before
    assert "&lt;script&gt;alert" in page


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("summary.json", '{"model": '),
        ("summary.json", "[1, 2]"),
        ("config.yaml", "a: [1,"),
        ("config.yaml", "!!python/object/apply:os.getcwd []"),
        ("metrics.csv", "epoch,train_loss\n0,much\n"),
        ("evaluation.npz", "not an archive"),
    ],
)
def test_a_damaged_file_is_named(make_run, name, content, refuses):
    run = make_run(n=64)
    (run / name).write_text(content)
    refuses(name.replace(".", r"\."), write_report, run)
    assert not (run / "report.html").exists()
    refuses(f"{re.escape(str(run.parent))}: .*config.yaml", write_report, run.parent)


STEADY = {"training", "unseen-meshes", "fields-vorticity"}
TIMES = STEADY | {"times-vorticity"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ({"dim": 1, "n": 128}, {*TIMES, "space-time-vorticity", "error-in-time"}),
        ({"dim": 3, "n": 600, "n_out": 3}, {*TIMES, "error-in-time"}),
        ({"n": 200, "n_in": 0, "n_out": 1}, STEADY),
        ({"n": 200, "n_in": 1, "n_out": 1}, STEADY),
    ],
    ids=["line", "space", "steady", "one time step"],
)
def test_every_kind_of_problem_has_its_pictures(make_run, kind, names):
    run, before = make_run(**kind), dict(matplotlib.rcParams)
    write_report(run)
    assert dict(matplotlib.rcParams) == before
    pictures = {f.stem: decode(f.read_bytes()) for f in (run / "figures").iterdir()}
    assert set(pictures) == names
    assert all(picture.std() > 5 for picture in pictures.values())


@pytest.mark.slow
def test_steady_problems_have_more_fields_than_inputs(tmp_path):
    random = np.random.default_rng(0)
    u, k = random.normal(size=(2, 10, 40, 1))
    fields = nfsgeo.from_arrays(
        np.stack([u, k + u], axis=-1),
        random.random((40, 2)),
        static=k,
        component_names=["T", "q"],
    )
    settings = {"model.settings.width": 8, "model.settings.depth": 1}
    settings |= {"trainer.epochs": 1, "trainer.logger": "none"}
    run = nfsgeo.fit(nfsgeo.prepare(fields, settings), tmp_path / "run")
    nfsgeo.evaluate(run)
    page = write_report(tmp_path / "run").read_text()
    assert "could not be drawn" not in page
    pictures = {file.stem for file in (tmp_path / "run" / "figures").iterdir()}
    assert {"fields-T", "fields-q"} <= pictures


@pytest.mark.slow
def test_predictions_that_are_not_finite_still_make_a_report(make_run):
    run = make_run(n=100, n_out=2)

    def change(arrays: dict[str, Any]) -> None:
        arrays["prediction"][0, :50] = np.nan
        arrays["prediction"][1] = np.inf
        arrays["error_by_record"][:] = np.nan

    change_arrays(run, change)
    assert write_report(run).stat().st_size > 1e5


MATHS = ["$\\frac{a", "p_{^", "100 % of $m^2$ and $", "\\sum_", "$$", "#1 & ~ \\"]


@pytest.mark.parametrize("dim", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_signs_of_mathematics_in_names_are_letters(make_run, caplog, dim):
    run = make_run(dim=dim, n=50, n_out=2)

    def renamed(arrays: dict[str, Any]) -> None:
        arrays["component_names"] = np.array(["vorticity"])
        arrays["component_units"] = np.array(MATHS[:1])
        arrays["axis_units"] = np.array(MATHS[1:3])
        arrays["time_unit"] = np.array(MATHS[3])
        series = 3, 20, 1
        arrays["station"] = np.array(MATHS[3:])
        arrays["station_times"] = np.arange(20.0)
        arrays["station_truth"] = arrays["station_prediction"] = np.ones(series)

    change_arrays(run, renamed)
    change_summary(run, equation=MATHS[0], units=MATHS[2], model=MATHS[1])
    page = write_report(run)
    assert (run / "figures" / "stations-vorticity.png").exists()
    assert not caplog.records and "could not be drawn" not in page.read_text()


@pytest.mark.parametrize("best", ["linear", "cubic"])
def test_the_best_extrapolation_is_drawn(make_run, best):
    run = make_run(dim=1, n=50, n_out=2)

    def changed(arrays: dict[str, Any]) -> None:
        for name, error in {"linear": 0.2, "quadratic": 0.3, "cubic": 0.4}.items():
            arrays[f"{name}_by_record"] = np.full(2, 0.1 if name == best else error)

    change_arrays(run, changed)
    pictures = {p.name: p for p in error_pictures(read_run_folder(run))}
    (legend,) = pictures["error-in-time"].draw().legends
    drawn = {text.get_text() for text in legend.get_texts()}
    assert drawn == {"model", "persistence", f"{best} extrapolation"}


@pytest.mark.parametrize(
    ("more", "noun"), [({}, "samples"), ({"windows": 9}, "windows")]
)
def test_a_curve_over_windows_does_not_call_them_samples(make_run, more, noun):
    run = make_run(dim=1, n=50, n_out=2)
    change_summary(run, scored=more)
    change_arrays(run, lambda arrays: arrays.update(mae_by_sample=np.arange(3.0)))
    pictures = {p.name: p for p in error_pictures(read_run_folder(run))}
    picture = pictures["errors-by-sample"]
    assert f"share of test {noun}" in picture.caption


@pytest.mark.slow
@pytest.mark.parametrize("value", [1e300, np.inf, np.nan])
def test_predictions_of_any_size_do_not_cost_the_report(make_run, value):
    run = make_run(dim=1, n=50, n_out=2)

    def spoilt(arrays: dict[str, Any]) -> None:
        arrays["prediction"] = np.full(arrays["prediction"].shape, value)
        arrays["error_by_record"] = np.full(2, value)

    change_arrays(run, spoilt)
    assert "linear extrapolation" in write_report(run).read_text()


@pytest.mark.slow
def test_a_picture_that_fails_is_named(make_run, monkeypatch, caplog):
    run = make_run(dim=1, n=50, n_out=2)
    monkeypatch.setattr("nfsgeo.report.curves._unseen_curves", lambda run: 1 / 0)
    page = write_report(run).read_text()
    (line,) = caplog.messages
    assert "unseen-meshes" in line and "division by zero" in line
    assert page.count("could not be drawn") == 1 and "linear extrapolation" in page
    assert (run / "figures" / "training.png").exists()
    assert not (run / "figures" / "unseen-meshes.png").exists()
