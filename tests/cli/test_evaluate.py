"""What the commands say about errors: over how many samples, in which units."""

import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import Result

import nfsgeo as library
from nfsgeo.geometry import Domain
from nfsgeo_cli.evaluate import rollout_table
from nfsgeo_cli.terminal import error_table, report


def lines(result: Result) -> list[str]:
    """What a command printed, at most 80 columns wide but for paths, never broken.

    A wide line has no more than a word before the path.
    """
    assert result.exit_code == 0, result.output
    found = result.stdout.splitlines()
    wide = [line.removesuffix(" \\").split() for line in found if len(line) > 80]
    assert all(len(words) < 3 and words[-1].startswith("/") for words in wide), wide
    return found


def test_a_named_file_is_scored_whole(nfsgeo, run, waves):
    Path("other.nc").write_bytes(waves.read_bytes())
    with h5py.File("other.nc", "r+") as file:
        file["u"][0] *= 2
    other = ("evaluate", run, "--data", "other.nc")
    for part, told in (("all", "all 20 samples"), ("test", "4 of 20 samples")):
        shown = lines(nfsgeo(*other, "--part", part))
        assert f"Scored {told} at all 256 points each." in shown
    found = json.loads(nfsgeo(*other, "--json").stdout)
    assert found["scored"]["samples"] == 20


@pytest.mark.slow
def test_the_data_of_the_run_at_another_place(nfsgeo, run, waves):
    """Training samples are scored only where that is said."""
    own = lines(nfsgeo("evaluate", run))
    Path("moved.nc").write_bytes(waves.read_bytes())
    shown = lines(nfsgeo("evaluate", run, "--data", "moved.nc"))
    assert shown[: len(own) - 1] == own[:-1]
    assert "The file holds the data of the run" in " ".join(shown)
    shown = lines(nfsgeo("evaluate", run, "--data", "moved.nc", "--part", "all"))
    assert "trained or validated on 12 of them." in " ".join(" ".join(shown).split())


@pytest.mark.slow
def test_the_own_file_is_scored_on_its_test_part(nfsgeo, run):
    shown = "\n".join(lines(nfsgeo("evaluate", run, "--unseen", 2, "--repeats", 2)))
    assert "Scored 4 of 20 samples at 64 of 256 points each." in shown
    for words in ("training mean", "persistence", "relative L1", "2 x points"):
        assert words in shown
    assert len((run / "unseen.csv").read_text().splitlines()) == 3


@pytest.fixture
def weather() -> Path:
    """Ten samples of two quantities, one of them with markup in its name."""
    random, units = np.random.default_rng(0), {"temperature [bold]": "°C"}
    u = random.normal([15, 1013], [4, 0.6], (10, 64, 8, 2)).astype("f4")
    more = {"units": units | {"pressure": "hPa"}, "domain": Domain.unit(2)}
    more["component_names"] = ["temperature [bold]", "pressure"]
    fields = library.from_arrays(u, random.random((64, 2)), np.arange(8.0), **more)
    return fields.write(Path("weather.nc"))


@pytest.mark.slow
def test_each_component_is_shown_in_its_unit(nfsgeo, weather, tiny):
    options = [f"--set={k}={v}" for k, v in tiny.items() if "settings" in k]
    options += ["--n-in", 4, "--n-out", 4, "--epochs", 1, "--out", "w"]
    trained = nfsgeo("train", "--data", weather, *options)
    assert "pooled valid RMSE" in trained.stderr
    for shown in (trained, nfsgeo("evaluate", "w"), nfsgeo("info", "w")):
        text = "\n".join(lines(shown))
        for words in (
            "pooled*",
            "temperature [bold] (°C)",
            "pressure (hPa), standard deviation 0.",
        ):
            assert words in text
        assert "divided by the component's standard deviation" in " ".join(text.split())
    summary = json.loads(nfsgeo("evaluate", "w", "--json").stdout)
    assert summary["components"]["pressure"]["unit"] == "hPa"
    described = "\n".join(lines(nfsgeo("info", weather)))
    assert "temperature [bold]: {unit: °C" in described
    facts = json.loads(nfsgeo("info", weather, "--json").stdout)
    assert facts["components"]["pressure"]["unit"] == "hPa"


def test_fractions_are_percentages():
    """Errors have an exponent, since they may be of any size, and fractions none."""
    errors, scores = {"mae": 0.1}, {"width": 0.5, "crps": 0.1, "interval_score": 2.0}
    bands = {"level": 0.9, "coverage": 0.9016, **scores}
    constant = {"constant": {"coverage": np.nan, **scores}}
    summary = {
        "model": "nfs",
        "test": errors,
        "bands": bands | {"references": constant},
    }
    shown = error_table(summary)
    assert re.search(r"^nfs +90\.2 % +5\.000e-01", shown, re.M)
    assert re.search(r"^constant width +- +5\.000e-01", shown, re.M)


def test_baselines_worse_than_the_training_mean_are_counted_in_a_line():
    errors = {"mae": 1.0}
    names = ("mean", "persistence", "quadratic_extrapolation", "cubic_extrapolation")
    maes = (2.0, 2.0, 9.0, 1e9)
    baselines = {name: {"mae": mae} for name, mae in zip(names, maes, strict=True)}
    summary = {"model": "nfs", "test": errors, "baselines": baselines}
    shown = error_table(summary)
    assert "training mean" in shown and "persistence" in shown
    assert "quadratic" not in shown and "1.000e+09" not in shown
    assert "2 baselines have larger MAEs than the training mean; --json" in shown
    both = summary | {"components": {"p": {**errors, "baselines": baselines}}}
    both |= {"pooled": "Means.", "fingerprint": "0"}
    assert "cubic" not in error_table(both) and "summary.json has them" in error_table(
        both
    )


def test_errors_of_a_long_rollout_fit_into_80_columns(capsys):
    names = ("nfs", "persistence", "quadratic_extrapolation", "cubic_extrapolation")
    errors = [1.23456e-3 * step for step in range(1, 701)]
    rollout = {"times": errors, "mae_by_step": dict.fromkeys(names, errors)}
    report(False, rollout, rollout_table(rollout))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    (row,) = (line for line in lines if "quadratic extrapolation" in line)
    shown = [f"{1.23456e-3 * n:.3e}" for n in (50, 100, 200, 500, 700)]
    assert row.split()[2:] == shown


def test_a_rollout_has_the_rows_and_the_pooling_of_the_test_errors():
    """Components of unlike units are divided by their standard deviations."""
    errors = {"mae": 0.75, "rmse": 0.8, "rel_l2": 0.25, "rel_l1": 0.3}
    names = ("model", "mean", "linear_extrapolation")
    rollout = {
        "times": [1, 2, 3],
        "errors": dict.fromkeys(names, errors),
        "mae_by_step": dict.fromkeys(names, [[2.0, 0.3, 9.0]] * 3),
    }
    components = {n: errors | {"std": s} for n, s in (("t", 4.0), ("p", 0.3), ("c", 0))}
    baselines = dict.fromkeys(names[1:], errors)
    summary = {"model": "nfs", "test": errors, "baselines": baselines}
    summary |= {"components": components, "pooled": "Pooled errors are means."}
    shown = rollout_table(rollout, summary)
    by_step, overall = shown.split("\n\n")
    assert by_step.startswith("MAE at time step, pooled*")
    assert re.search(r"^nfs +7\.500e-01 +7\.500e-01 +7\.500e-01$", by_step, re.M)
    assert overall.startswith("errors over 3 time steps, pooled*")
    assert re.search(r"relative L2[^\n]*\nnfs.* 2\.500e-01 +3\.000e-01$", overall, re.M)
    for name in ("nfs", "training mean", "linear extrapolation"):
        for text in (by_step, overall, error_table(summary)):
            assert re.search(f"^{name}  *[0-9]", text, re.M)
    alone = rollout_table(
        rollout | {"mae_by_step": {"model": [2.0, 4.0, 6.0]}}, {"units": "hPa"}
    )
    assert alone.startswith("MAE at time step (hPa)")
    assert re.search(r"^model +2\.000e\+00 +4\.000e\+00", alone, re.M)


@pytest.mark.parametrize(
    ("scored", "words"),
    [
        ({"part": "all"}, ("of 24 samples", "these samples, whose coverage is not")),
        (
            {"part": "test", "data_of_run": True, "windows": 24},
            (
                "of 24 windows",
                "the run's test part, whose coverage is no longer a test",
            ),
        ),
    ],
)
def test_calibration_says_what_its_coverage_is_of(scored, words, nfsgeo, monkeypatch):
    scores = {"coverage": 0.9, "width": 0.5, "crps": 0.1, "interval_score": 2.0}
    bands = {"level": 0.9, "samples": 24, "references": {}, **scores}
    counts = {"samples": 4, "of_samples": 4, "points": 9, "of_points": 9}
    counts |= {"trained_on": 0, "tied": False}
    summary = {"model": "nfs", "test": {"mae": 0.1}, "baselines": {}, "bands": bands}
    summary["scored"] = counts | scored
    monkeypatch.setattr("nfsgeo.evaluation.evaluate_run", lambda *_, **__: summary)
    shown = " ".join(" ".join(lines(nfsgeo("calibrate", "r", "--data", "f"))).split())
    assert all(word in shown for word in (*words, "replace the earlier ones"))
