"""What the pictures show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from PIL import Image

from nfsgeo.geometry import Domain
from nfsgeo.report import write_report
from nfsgeo.report.curves import (
    error_in_time,
    mean_and_spread,
    training_curves,
    unseen_curve,
)
from nfsgeo.report.lines import profiles, space_time
from nfsgeo.report.maps import FieldMaps, points_and_field
from nfsgeo.report.panels import Column, colour_scale
from nfsgeo.report.raster import Raster
from nfsgeo.report.style import DPI, styled

MakeRun = Callable[..., Path]
TORUS = Domain.unit(2)


def points(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(size=(n, 2))


def pixel_centres(raster: Raster) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = raster.shape
    y, x = np.meshgrid(
        (np.arange(rows) + 0.5) / rows,
        (np.arange(columns) + 0.5) / columns,
        indexing="ij",
    )
    return x, y


def test_raster_reproduces_a_linear_field_on_a_box() -> None:
    box = Domain((0.0, -1.0), (1.0, 3.0), (False, False))
    pos = points(300) * [1.0, 4.0] - [0.0, 1.0]
    raster = Raster(box, pos)
    x, y = pixel_centres(raster)
    image = raster.image(2 * pos[:, 0] - pos[:, 1])
    inside = np.isfinite(image)
    assert inside.mean() > 0.9
    expected = 2 * x - (4 * y - 1)
    np.testing.assert_allclose(image[inside], expected[inside], atol=1e-9)


def test_raster_wraps_around_on_periodic_axes() -> None:
    pos = points(4000)
    raster = Raster(TORUS, pos)
    x, y = pixel_centres(raster)

    def field(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.sin(2 * np.pi * (x + y)) + np.cos(2 * np.pi * x)

    image = raster.image(field(*pos.T))
    assert np.isfinite(image).all()  # also beyond the outermost points
    assert np.abs(image - field(x, y)).max() < 0.1


def test_raster_leaves_a_hole_empty() -> None:
    pos = points(4000)
    hole = np.linalg.norm(pos - 0.5, axis=1) < 0.3
    image = Raster(Domain.unit(2, periodic=False), pos[~hole]).image(np.ones(4000))
    middle = image[image.shape[0] // 2, image.shape[1] // 2]
    assert np.isnan(middle)


def test_raster_of_a_mesh_stops_at_its_triangles() -> None:
    """A ring of few points, which Delaunay's triangles would close."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    pos = 0.5 + np.concatenate([0.2 * ring, 0.45 * ring])
    a, b = np.arange(12), np.roll(np.arange(12), -1)
    triangles = np.concatenate(
        [np.stack([a, b, a + 12], 1), np.stack([b, b + 12, a + 12], 1)]
    )
    raster = Raster(Domain.unit(2, periodic=False), pos, triangles=triangles)
    x, y = pixel_centres(raster)
    image = raster.image(2 * pos[:, 0] - pos[:, 1])
    inside = np.isfinite(image)
    area = 12 / 2 * np.sin(2 * np.pi / 12) * (0.45**2 - 0.2**2)
    assert inside.mean() == pytest.approx(area, rel=0.01)
    np.testing.assert_allclose(image[inside], (2 * x - y)[inside], atol=1e-9)
    # Triangles that overlap are no mesh: Delaunay's take their place.
    overlapping = np.concatenate([triangles, [[12, 16, 20]]])
    wide = Raster(Domain.unit(2, periodic=False), pos, triangles=overlapping)
    assert np.isfinite(wide.image(np.ones(24))).mean() > 0.9 * np.pi * 0.45**2


@pytest.mark.parametrize("n", [1, 2, 50])
def test_raster_of_points_in_a_line_takes_the_nearest(n: int) -> None:
    box = Domain.unit(2, periodic=False)
    pos = np.column_stack([np.linspace(0, 1, n), np.full(n, 0.5)])
    image = Raster(box, pos).image(np.arange(n, dtype=float))
    assert image.min() == 0 and image.max() == n - 1


def test_colours_diverge_about_zero_only_for_signed_fields() -> None:
    signed = colour_scale(np.linspace(-1, 3, 1000))
    low, high = signed.get_clim()
    assert low == -high and signed.get_cmap().name == "RdBu_r"
    positive = colour_scale(np.linspace(3, 12, 1000))
    assert positive.get_clim() == pytest.approx((3.045, 11.955), rel=1e-3)
    assert positive.get_cmap().name == "viridis"
    assert colour_scale(np.full(9, 2.0)).get_clim() == (1.5, 2.5)
    assert colour_scale(np.array([np.nan, np.inf])).get_clim() == (0.0, 1.0)


def test_maps_share_a_scale_by_name() -> None:
    pos = points(100)
    truth = np.stack([np.sin(6 * pos[:, 0]), 3 * np.sin(6 * pos[:, 1])])
    columns = [
        Column("truth", truth, "field"),
        Column("prediction", 0.9 * truth, "field"),
        Column("error", -0.1 * truth, "error"),
    ]
    figure = FieldMaps(TORUS, pos, columns, ["t = 1", "t = 2"]).figure
    limits: dict[str, set[tuple[float, float]]] = {}
    for i, ax in enumerate(figure.axes[:6]):
        (image,) = (child for child in ax.get_children() if type(child) is AxesImage)
        limits.setdefault(columns[i % 3].title, set()).add(image.get_clim())
    assert limits["truth"] == limits["prediction"] != limits["error"]
    assert all(len(values) == 1 for values in limits.values())


def beyond(figure: Figure) -> float:
    """By how many pixels the axes of a figure, with their text, reach out of it."""
    figure.set_dpi(DPI)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (left, low), (right, high) = figure.bbox.get_points()
    boxes = [ax.get_tightbbox(canvas.get_renderer()) for ax in figure.axes]
    edges = [(left - b.x0, low - b.y0, b.x1 - right, b.y1 - high) for b in boxes]
    return float(np.max(edges))


@pytest.mark.slow
@pytest.mark.parametrize("size", [3e-7, 2.5e-5, 2.5e-3, 0.02, 1.0, 150.0, 4e4, 7e8])
def test_nothing_is_cut_off(size: float) -> None:
    """There is room for numbers of any size, negative ones too."""
    line, times = Domain.unit(1), size * np.arange(1, 5)
    along = np.linspace(0, 1, 40)
    fields = size * np.sin(2 * np.pi * (along + 0.1 * np.arange(4)[:, None]))
    labels = [f"t = {t:.4g}\nMAE {size * 1.23e-5:#.2g}" for t in times]
    shown = [
        Column("truth", fields, "field"),
        Column("prediction", fields, "field"),
        Column("prediction − truth", 0.01 * fields, "error"),
    ]
    curves = {"model": np.abs(fields[:, 3]), "persistence": np.abs(fields[:, 9])}
    losses = {"epoch": np.arange(4.0), "train_loss": size * np.array([9.7, 9.1, 9, 8])}
    unseen = {"factor": np.arange(2.0, 6), "mae": np.full(4, size)}
    plane = points(40)
    with styled():
        figures = [
            profiles(line, along[:, None], {"truth": fields, "p": fields}, labels),
            space_time(line, along[:, None], times, shown),
            FieldMaps(TORUS, plane, shown, labels).figure,
            points_and_field(TORUS, plane, fields[0], f"observed, t = {times[0]:.4g}"),
            error_in_time(times, curves),
            training_curves({**losses, "learning_rate": np.full(4, 2e-3)}),
            unseen_curve(unseen, size),
        ]
        out = {k: beyond(figure) for k, figure in enumerate(figures)}
    assert {k: pixels for k, pixels in out.items() if pixels > 1} == {}


def test_mean_and_spread_over_repeats() -> None:
    unseen = {
        "factor": np.array([2.0, 4.0, 2.0, 2.0]),
        "mae": np.array([1.0, 7.0, 2.0, 3.0]),
    }
    factors, mean, spread = mean_and_spread(unseen, "mae")
    assert factors.tolist() == [2.0, 4.0]
    assert mean.tolist() == [2.0, 7.0]
    assert spread.tolist() == [pytest.approx(np.sqrt(2 / 3)), 0.0]


def test_training_curves_mark_the_best_epoch() -> None:
    metrics = {
        "epoch": np.arange(4.0),
        "train_loss": np.array([4.0, 3, 2, 1]),
        "valid_loss": np.array([4.0, 2.0, 1.0, 1.5]),
        "valid_rmse": np.array([np.nan, 0.3, 0.2, 0.1]),
    }
    labels = [line.get_label() for line in training_curves(metrics).axes[0].lines]
    assert "best, epoch 4" in labels


@pytest.mark.parametrize(
    "kind, names",
    [
        (
            {"dim": 1, "n": 128},
            {
                "error-in-time",
                "fields-960-vorticity",
                "fields-961-vorticity",
                "mesh",
                "space-time-960-vorticity",
                "space-time-961-vorticity",
                "training",
                "unseen-meshes",
            },
        ),
        (
            {"dim": 3, "n": 600, "n_out": 3},
            {
                "error-in-time",
                "fields-960-vorticity",
                "fields-961-vorticity",
                "mesh",
                "training",
                "unseen-meshes",
            },
        ),
        (
            {"n": 200, "n_in": 0, "n_out": 1},
            {"fields-vorticity", "mesh", "training", "unseen-meshes"},
        ),
        (
            {"n": 200, "n_in": 1, "n_out": 1},
            {
                "fields-960-vorticity",
                "fields-961-vorticity",
                "mesh",
                "training",
                "unseen-meshes",
            },
        ),
    ],
    ids=["line", "space", "steady", "one time step"],
)
def test_every_kind_of_problem_has_its_pictures(
    make_run: MakeRun, kind: dict[str, int], names: set[str]
) -> None:
    run = make_run(**kind)
    write_report(run)
    assert {path.stem for path in (run / "figures").iterdir()} == names
    for path in (run / "figures").iterdir():
        with Image.open(path) as image:
            assert np.asarray(image.convert("L")).std() > 5


def test_predictions_that_are_not_finite_still_make_a_report(make_run: MakeRun) -> None:
    run = make_run(n=100, n_out=2)
    with np.load(run / "evaluation.npz") as arrays:
        changed = dict(arrays)
    changed["prediction"][0, :50] = np.nan
    changed["prediction"][1] = np.inf
    changed["error_by_record"][:] = np.nan
    np.savez(run / "evaluation.npz", **changed)
    assert write_report(run).stat().st_size > 1e5


def test_the_callers_matplotlib_settings_stay(make_run: MakeRun) -> None:
    before = dict(matplotlib.rcParams)
    run = make_run(n=64)
    (run / "evaluation.npz").unlink()
    write_report(run)
    assert dict(matplotlib.rcParams) == before
