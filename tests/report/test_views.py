"""Views of points: surfaces, slices, names of axes, labels that stay apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from nfsgeo.geometry import Domain
from nfsgeo.report.maps import FieldMaps, points_and_field
from nfsgeo.report.numbers import axis_labels
from nfsgeo.report.panels import Column
from nfsgeo.report.style import styled
from nfsgeo.report.views import SIDES, on_surface, views_of

RANDOM = np.random.default_rng(0)
AXES = ["x (m)", "y (m)", "z (m)"]


def sphere(num: int) -> np.ndarray:
    points = RANDOM.normal(size=(num, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def maps(domain: Domain, pos: np.ndarray, rows: int, axes: list[str]) -> Figure:
    """Three columns of maps of a field, as reports have them."""
    field = np.stack([np.sin(pos.sum(axis=1) + k) for k in range(rows)])
    titles = ("truth", "prediction", "prediction − truth")
    columns = [Column(t, field, "error" if "−" in t else "field") for t in titles]
    labels = [f"t = {k}\nMAE 0.012" for k in range(rows)]
    with styled():
        return FieldMaps(domain, pos, columns, labels, axes).figure


def texts(figure: Figure) -> list[Text]:
    FigureCanvasAgg(figure).draw()
    axes = [each for each in figure.findobj(Axis) if isinstance(each, Axis)]
    ticks = {tick.label1 for axis in axes for tick in axis.get_major_ticks()}
    ticks -= {tick.label1 for axis in axes for tick in axis._update_ticks()}
    ticks |= {tick.label2 for axis in axes for tick in axis.get_major_ticks()}
    shown = [each for each in figure.findobj(Text) if isinstance(each, Text)]
    return [each for each in shown if each.get_text() and each not in ticks]


def scattered(*lengths: float, num: int = 1500) -> np.ndarray:
    return RANDOM.random((num, len(lengths))) * lengths


@pytest.mark.parametrize(
    ("pos", "surface"),
    [
        (sphere(600), True),
        (sphere(4000) * [4, 1, 0.3], True),
        (np.c_[scattered(1, 1), np.zeros(1500)] @ np.linalg.qr(sphere(3))[0], True),
        (scattered(1, 1, 1), False),
        (scattered(1, 1, 0.2), False),  # seven times as thick as points are apart
        (sphere(1500) * RANDOM.random((1500, 1)) ** (1 / 3), False),
        (sphere(20), False),  # too few to tell
    ],
)
def test_points_on_a_surface_are_told_from_those_of_a_volume(
    pos: np.ndarray, surface: bool
) -> None:
    for unit in (1.0, 1e-3, 1e6):
        assert on_surface(pos * unit) == surface


def test_a_surface_is_seen_from_two_opposite_sides() -> None:
    pos = sphere(2000)
    views = views_of(Domain.bounding(pos), pos, AXES)
    assert [view.label for view in views] == ["from +x −y +z", "from −x +y −z"]
    np.testing.assert_allclose(np.add(*SIDES), 0)
    for view, side in zip(views, SIDES, strict=True):
        eye = np.array(side) / np.linalg.norm(side)
        # Far points are drawn first, so that near ones hide them.
        assert (np.diff(pos[view.points] @ eye) >= 0).all()
        towards = pos[view.points][view._visible] @ eye  # type: ignore[attr-defined]
        assert len(towards) > 0.4 * len(pos) and np.quantile(towards, 0.01) > -0.35


def test_a_field_keeps_its_points_in_every_view() -> None:
    pos = sphere(800)
    figure = maps(Domain.bounding(pos), pos, 1, AXES)
    field = np.sin(pos.sum(axis=1))
    for ax, view in zip(
        figure.axes[::3], views_of(Domain.bounding(pos), pos, AXES), strict=False
    ):
        shown = ax.collections[0].get_array()
        np.testing.assert_allclose(shown, field[view.points])


def test_a_volume_is_shown_in_named_slices() -> None:
    figure = maps(Domain.unit(3), scattered(1, 1, 1), 1, AXES)
    labels = [ax.get_ylabel().splitlines()[-1] for ax in figure.axes[:9:3]]
    assert labels == ["z = 0.25 m", "z = 0.5 m", "z = 0.75 m"]


@pytest.mark.parametrize("lengths", [(1, 1), (10, 1), (40, 1), (1, 10), (3, 1)])
def test_labels_stay_apart(lengths: tuple[float, float]) -> None:
    domain = Domain((0.0, 0.0), lengths, (False, False))
    figure = maps(domain, scattered(*lengths, num=300), 4, ["x (km)", "y (km)"])
    found = texts(figure)
    boxes = [each.get_window_extent() for each in found]
    for one, other in itertools.combinations(range(len(boxes)), 2):
        if boxes[one].overlaps(boxes[other]):
            raise AssertionError(f"{found[one]} overlaps {found[other]}")
    page = figure.bbox
    assert all(page.contains(*box.min) and page.contains(*box.max) for box in boxes)
    assert max(figure.get_size_inches()) < 16


def test_axes_have_names_and_units() -> None:
    assert axis_labels(Domain.sphere(), ["°", "°"]) == ["longitude (°)", "latitude (°)"]
    assert axis_labels(Domain.unit(2)) == ["x", "y"]
    plane = {
        t.get_text() for t in texts(maps(Domain.unit(2), scattered(1, 1), 1, AXES))
    }
    assert {"x (m), 0 to 1", "y (m)\n0 to 1"} <= plane
    pos = sphere(500)
    figure = points_and_field(Domain.bounding(pos), pos, pos[:, 0], "input a", AXES)
    words = {text.get_text().strip() for text in texts(figure)}
    assert {*AXES, "500 points", "input a"} <= words
