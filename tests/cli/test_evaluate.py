"""What the commands say about errors: over how many samples, in which units."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from nfsgeo.data.build import Array, build
from nfsgeo.geometry import Domain
from nfsgeo_cli.evaluate import rollout_table
from nfsgeo_cli.terminal import show

Command = Callable[..., Result]
SMALL = [
    f"--set=model.settings.{setting}"
    for setting in ("width=4", "modes=2", "time_modes=2", "depth=1", "grid=8")
]


def lines(result: Result) -> list[str]:
    """What a command printed, at most 80 columns wide."""
    assert result.exit_code == 0, result.output
    found = result.stdout.splitlines()
    assert max(map(len, found)) <= 80
    return found


def test_a_named_file_is_scored_whole(
    nfsgeo: Command, run: Path, waves: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.nc"
    other.write_bytes(waves.read_bytes())
    shown = lines(nfsgeo("evaluate", run, "--data", other))
    assert "Scored all 20 samples at all 256 points each." in shown
    assert any(line.strip().startswith("mean of these samples") for line in shown)
    shown = lines(nfsgeo("evaluate", run, "--data", other, "--part", "test"))
    assert "Scored 4 of 20 samples at all 256 points each." in shown
    found = nfsgeo("evaluate", run, "--data", other, "--json")
    assert json.loads(found.stdout)["scored"]["samples"] == 20


def test_the_own_file_is_scored_on_its_test_part(nfsgeo: Command, run: Path) -> None:
    shown = lines(nfsgeo("evaluate", run))
    assert "Scored 4 of 20 samples at 64 of 256 points each." in shown
    assert any(line.strip().startswith("training mean") for line in shown)


def test_samples_of_training_are_told(nfsgeo: Command, run: Path, waves: Path) -> None:
    shown = " ".join(lines(nfsgeo("evaluate", run, "--data", waves)))
    assert "trained or validated on 12 of them." in " ".join(shown.split())


@pytest.fixture
def weather(tmp_path: Path) -> Path:
    """Ten samples of two quantities, one of them with markup in its name."""
    path, axis = tmp_path / "weather.nc", np.arange(8) / 8
    u = np.random.default_rng(0).normal([15, 1013], [4, 0.6], (10, 8, 8, 8, 2))
    return build(
        path,
        [Array(u.astype("f4"), "ntxyc", ["temperature [bold]", "pressure"])],
        axes=[axis, axis],
        times=np.arange(8.0),
        domain=Domain.unit(2),
        units={"temperature [bold]": "°C", "pressure": "hPa"},
    ).write(path)


@pytest.mark.slow
def test_each_component_is_shown_in_its_unit(
    nfsgeo: Command, weather: Path, tmp_path: Path
) -> None:
    options = ("--n-in", 4, "--n-out", 4, "--epochs", 1, "--out", "w", *SMALL)
    trained = nfsgeo("train", "--data", weather, *options)
    assert "pooled valid RMSE" in trained.stderr
    for shown in (trained, nfsgeo("evaluate", "w"), nfsgeo("info", "w")):
        text = "\n".join(lines(shown))
        for words in ("pooled*", "temperature [bold] (°C)", "pressure (hPa), std 0."):
            assert words in text
        assert "divided by the component's standard deviation" in " ".join(text.split())
    summary = json.loads(nfsgeo("evaluate", "w", "--json").stdout)
    assert summary["components"]["pressure"]["unit"] == "hPa"
    described = "\n".join(lines(nfsgeo("info", weather)))
    assert "temperature [bold]: {unit: °C" in described
    facts = json.loads(nfsgeo("info", weather, "--json").stdout)
    assert facts["components"]["pressure"]["unit"] == "hPa"


def test_errors_of_a_long_rollout_fit_into_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ("nfs", "persistence", "quadratic_extrapolation", "cubic_extrapolation")
    errors = [1.23456e-3 * step for step in range(1, 701)]
    rollout = {"times": errors, "mae_by_step": dict.fromkeys(names, errors)}
    show(rollout_table(rollout))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    (row,) = (line for line in lines if "quadratic extrapolation" in line)
    assert row.split()[2:] == [
        f"{1.23456e-3 * n:.3e}" for n in (50, 100, 200, 500, 700)
    ]
