"""Inputs of steady problems in a report: which are shown, and maps of categories."""

import json
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import nfsgeo
from nfsgeo.geometry import Domain
from nfsgeo.report import write_report
from nfsgeo.report.figures import run_pictures
from nfsgeo.report.maps import Column, FieldFigure
from nfsgeo.report.raster import Raster
from nfsgeo.report.run_folder import read_run_folder
from nfsgeo.report.style import styled

BOX = Domain.unit(2, periodic=False)
POS = np.random.default_rng(0).random((80, 2))
TYPES = np.where(POS[:, 0] < 0.5, 1.0, 7.0)
NAMES = ["node_type", "speed", "height", "slope", "depth"]


def test_no_pixel_of_a_category_lies_between_two():
    image = Raster(BOX, POS).nearest(TYPES)
    assert {*np.unique(image[np.isfinite(image)])} == {1.0, 7.0}
    assert (Raster(BOX, POS).image(TYPES) % 1 > 0.1).any()


@pytest.mark.parametrize("dots", [False, True])
def test_categories_have_a_colour_and_a_tick_each(dots):
    column = Column("kind", [TYPES], "kind", dots=dots).of_categories({1: "wall"})
    with styled():
        figure = FieldFigure(BOX, [POS], [column], [""])
    FigureCanvasAgg(figure.figure).draw()
    panel, bar = figure.figure.axes
    drawn: Any = (panel.collections if dots else panel.images)[0]
    assert len({*map(tuple, drawn.to_rgba(np.unique(column.values[0])))}) == 2
    assert [text.get_text() for text in bar.get_xticklabels()] == ["wall", "7"]
    assert ("nearest point" in figure.note) is not dots


def test_colour_bars_have_units_and_a_long_label_takes_no_width():
    """Rows of low maps have their labels above."""
    parts = ("truth", "prediction", "error")
    columns = [Column(part, [TYPES], part, unit="Pa") for part in parts]
    widths = []
    for label in ("best", "median\nsample 1234567890\nMAE 1.234e-05"):
        with styled():
            flat = Domain((0.0, 0.0), (1.0, 0.5), (False, False))
            figure = FieldFigure(flat, [POS / [1, 2]], columns, [label]).figure
        FigureCanvasAgg(figure).draw()
        assert [ax.get_xlabel() for ax in figure.axes[3:]] == ["Pa"] * 3
        widths.append(figure.axes[0].get_position().width * figure.get_figwidth())
    assert widths[0] == pytest.approx(widths[1]) and widths[0] > 1.4


def steady(run, inputs, names, components=1):
    """Gives a run a number of components, and inputs ``[n, F]`` with their names."""
    with np.load(run / "evaluation.npz") as stored:
        arrays = dict(stored)
    for name in ("truth", "prediction"):
        arrays[name] = np.repeat(arrays[name][..., :1], components, axis=-1)
    arrays["error_by_record"] = np.ones((1, components))
    arrays["x"] = np.stack([inputs[:, None]] * 3)
    kinds = ["" if name != "node_type" else json.dumps({1: "wall"}) for name in names]
    arrays |= {"input_names": np.array(names), "input_kinds": np.array(kinds)}
    arrays["component_names"] = np.array([f"u{c}" for c in range(components)])
    for name in ("persistence_by_record", "linear_by_record"):
        arrays.pop(name, None)
    np.savez(run / "evaluation.npz", **arrays)
    return {p.name: p for p in run_pictures(read_run_folder(run))}


def titles(picture):
    with styled():
        columns = picture.draw().columns
    return [column.title.strip() for column in columns]


def test_inputs_are_shown_once_and_continuous_ones_before_categories(make_run):
    inputs = np.column_stack([TYPES, 0 * TYPES + 3, POS, POS.sum(1)])
    run = make_run(n=80, n_in=0, n_out=1)
    pictures = steady(run, inputs, NAMES)
    assert titles(pictures["inputs"]) == ["height", "slope", "node_type"]
    assert titles(pictures["fields-u0"]) == [
        "truth",
        "prediction",
        "prediction − truth",
    ]
    columns = pictures["inputs"].draw().columns
    assert list(columns[-1].names) == ["wall", "7"]


def test_an_only_input_is_beside_the_only_component(make_run):
    run = make_run(n=80, n_in=0, n_out=1)
    pictures = steady(run, TYPES[:, None], ["node_type"])
    assert "inputs" not in pictures
    assert titles(pictures["fields-u0"])[0] == "node_type"
    pictures = steady(run, TYPES[:, None], ["node_type"], components=2)
    assert titles(pictures["inputs"]) == ["node_type"]
    assert len(titles(pictures["fields-u1"])) == 3


def test_a_report_tells_what_data_a_run_had(tmp_path):
    random = np.random.default_rng(0)
    sizes = range(12, 22)
    fields = nfsgeo.from_arrays(
        [random.random((n, 1, 1)) for n in sizes],
        [random.random((n, 2)) for n in sizes],
        static={"node_type": [np.arange(n) % 2 for n in sizes]},
        scalars={"speed": random.random(10)},
        component_names=["p"],
        units={"p": "Pa", "speed": "m/s"},
        node_types={0: "interior", 1: "wall"},
    )
    settings = {"model.settings.width": 4, "model.settings.depth": 1}
    settings |= {"trainer.epochs": 1, "trainer.logger": "none"}
    experiment = nfsgeo.prepare(fields, settings)
    assert "model='nfs'" in repr(experiment) and len(repr(experiment)) < 300
    run = nfsgeo.fit(experiment, tmp_path / "run", progress=False)
    nfsgeo.evaluate(run)
    summary = json.loads(run.summary.read_text())
    assert {*summary["by_node_type"]} == {"interior", "wall"}
    assert summary["dataset"] == {
        "samples": {"train": 7, "valid": 1, "test": 2},
        "split": "in the order of the file",
        "fields": {"p": "Pa"},
        "inputs": {"node_type": "", "speed": "m/s"},
        "points": [12, 21],
        "time_steps": 1,
    }
    page = write_report(run.root).read_text()
    for text in ("7 train, 1 valid, 2 test", "in the order of the file", "12 to 21"):
        assert f"<td>{text}</td>" in page
    for text in ("p (Pa)", "node_type, speed (m/s)", summary["fingerprint"]):
        assert f"<td>{text}</td>" in page
