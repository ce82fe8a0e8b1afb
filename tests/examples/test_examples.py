"""The examples run, within their time, and learn what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 120


def numbers(name: str) -> list[float]:
    """What an example prints at the end of its lines, or before a per cent sign."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    printed = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=SECONDS
    ).stdout
    return [float(number) for number in re.findall(r"\d+\.\d+", printed)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["own_core", "graph_forecast"])
def test_forecasts_beat_the_plain_one_by_far(name: str) -> None:
    error, plain = numbers(name)
    assert 0 < error < plain / 5


@pytest.mark.slow
def test_both_classifiers_classify() -> None:
    pooling, grid = numbers("point_cloud_classifier")
    assert pooling > 90 and grid > 90


@pytest.mark.slow
def test_errors_beside_a_wall_are_half_once_it_is_known() -> None:
    known, unknown = numbers("two_chambers")
    assert 0 < known < unknown / 2


@pytest.mark.slow
def test_no_place_on_a_sphere_is_special() -> None:
    error, plain, change, poles = numbers("travelling_waves")
    assert 0 < error < plain / 2
    assert change < 5 and poles < 1.2


def test_every_example_is_tested() -> None:
    tested = Path(__file__).read_text()
    names = [path.stem for path in EXAMPLES.glob("*.py")]
    assert names and all(f'"{name}"' in tested for name in names)
