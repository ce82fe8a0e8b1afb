"""The examples run, within their time, and learn what they say."""

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
@pytest.mark.parametrize(
    ("name", "factor"), [("own_core", 5), ("graph_forecast", 5), ("two_chambers", 2)]
)
def test_forecasts_beat_the_plain_one_by_far(name, factor):
    """The plain one of two_chambers does not know the wall."""
    error, plain = numbers(name)
    assert 0 < error < plain / factor


@pytest.mark.slow
def test_both_classifiers_classify():
    pooling, grid = numbers("point_cloud_classifier")
    assert pooling > 90 and grid > 90


@pytest.mark.slow
def test_no_place_on_a_sphere_is_special():
    error, plain, change, poles = numbers("travelling_waves")
    assert 0 < error < plain / 2
    assert change < 5 and poles < 1.2


def test_every_example_is_tested():
    tested = Path(__file__).read_text()
    names = [path.stem for path in EXAMPLES.glob("*.py")]
    assert names and all(f'"{name}"' in tested for name in names)
