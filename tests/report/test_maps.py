"""Maps of fields: interpolation to pixels, colours, views, and labels."""

import itertools

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from nfsgeo.geometry import Domain, Region
from nfsgeo.report.curves import curves
from nfsgeo.report.maps import Column, FieldFigure, colour_scale
from nfsgeo.report.raster import Raster
from nfsgeo.report.style import DPI, drawn, styled
from nfsgeo.report.views import densest_part, on_surface

RANDOM = np.random.default_rng(0)
TORUS = Domain.unit(2)
BOX = Domain.unit(2, periodic=False)
WALL = [[0.47, -0.1], [0.53, -0.1], [0.53, 1.1], [0.47, 1.1]]
CHAMBERS = Domain(BOX.lower, BOX.upper, BOX.periodic, Region.polygons([WALL]))


def points(n: int, *lengths: float) -> np.ndarray:
    lengths = lengths or (1, 1)
    return np.random.default_rng(0).random((n, len(lengths))) * lengths


def sphere(num: int) -> np.ndarray:
    pos = RANDOM.normal(size=(num, 3))
    return pos / np.linalg.norm(pos, axis=1, keepdims=True)


def pixel_centres(raster: Raster) -> tuple[np.ndarray, np.ndarray]:
    y, x = (np.indices(raster.shape).T + 0.5).T / np.reshape(raster.shape, (2, 1, 1))
    return x, y


def maps(
    domain: Domain, pos: np.ndarray, rows: int, axes: list[str], size: float = 1
) -> Figure:
    """Three columns of maps of a field, as reports have them."""
    field = size * np.stack([np.sin(pos.sum(axis=1) + k) for k in range(rows)])
    labels = [f"t = {k}\nMAE 0.012" for k in range(rows)]
    with styled():
        return FieldFigure(
            domain, [pos] * rows, columns(field), labels, axes=axes
        ).figure


def columns(field: np.ndarray) -> list[Column]:
    return [
        Column("truth", field, "field"),
        Column("prediction", 0.9 * field, "field"),
        Column("prediction − truth", -0.1 * field, "error"),
    ]


def test_raster_reproduces_a_linear_field_on_a_box():
    box = Domain((0.0, -1.0), (1.0, 3.0), (False, False))
    pos = points(300, 1, 4) - [0.0, 1.0]
    raster = Raster(box, pos)
    x, y = pixel_centres(raster)
    image = raster.image(2 * pos[:, 0] - pos[:, 1])
    inside = np.isfinite(image)
    assert inside.mean() > 0.9
    expected = 2 * x - (4 * y - 1)
    np.testing.assert_allclose(image[inside], expected[inside], atol=1e-9)


def test_raster_wraps_around_on_periodic_axes():
    def field(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.sin(2 * np.pi * (x + y)) + np.cos(2 * np.pi * x)

    pos = points(4000)
    raster = Raster(TORUS, pos)
    expected = field(*pixel_centres(raster))
    # There is no gap, also beyond the outermost points.
    assert np.abs(raster.image(field(*pos.T)) - expected).max() < 0.1


def test_raster_continues_across_the_poles():
    """A linear function of space, on points of which none is near a pole."""
    pos = sphere(6000)
    pos = pos[np.abs(pos[:, 2]) < np.sin(np.radians(80))]
    angles = np.degrees([np.arctan2(pos[:, 1], pos[:, 0]), np.arcsin(pos[:, 2])]).T
    raster = Raster(Domain.sphere(), angles)
    x, y = pixel_centres(raster)
    longitude, latitude = np.radians(360 * x - 180), np.radians(180 * y - 90)
    expected = np.cos(latitude) * np.cos(longitude)
    assert np.abs(raster.image(pos[:, 0]) - expected).max() < 0.1


def test_raster_of_a_mesh_stops_at_its_triangles():
    """A ring of few points, which Delaunay's triangles would close."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    pos = 0.5 + np.concatenate([0.2 * ring, 0.45 * ring])
    a, b = np.arange(12), np.roll(np.arange(12), -1)
    triangles = np.concatenate([np.c_[a, b, a + 12], np.c_[b, b + 12, a + 12]])
    raster = Raster(BOX, pos, triangles=triangles)
    x, y = pixel_centres(raster)
    image = raster.image(2 * pos[:, 0] - pos[:, 1])
    inside = np.isfinite(image)
    area = 12 / 2 * np.sin(2 * np.pi / 12) * (0.45**2 - 0.2**2)
    assert inside.mean() == pytest.approx(area, rel=0.01)
    np.testing.assert_allclose(image[inside], (2 * x - y)[inside], atol=1e-9)
    # Points in it are interpolated in the ring alone.
    some = 0.5 + np.concatenate([0.35 * ring, 0.25 * ring[::4]])
    thin = Raster(BOX, some, triangles, mesh_pos=pos)
    coloured = np.isfinite(thin.image(np.ones(len(some))))
    assert not (coloured & ~inside).any() and coloured.mean() > 0.5 * area
    # Triangles that overlap are no mesh: Delaunay's take their place.
    wide = Raster(BOX, pos, triangles=np.concatenate([triangles, [[12, 16, 20]]]))
    assert np.isfinite(wide.image(np.ones(24))).mean() > 0.9 * np.pi * 0.45**2


def test_raster_of_a_graded_mesh_has_no_hole():
    """Edges at the rim are a hundred times as long as those in the middle."""
    angles, radii = np.meshgrid(
        np.arange(0, 2 * np.pi, 0.4), np.geomspace(0.004, 0.48, 9)
    )
    pos = 0.5 + np.stack([radii * np.cos(angles), radii * np.sin(angles)], -1)
    image = Raster(BOX, pos.reshape(-1, 2)).image(np.ones(pos.size // 2))
    assert np.isfinite(image).mean() > 0.9 * np.pi * 0.48**2


def shares(pos: np.ndarray, axes: tuple[float, float]) -> tuple[float, float]:
    """Shares of pixels with a colour in an ellipse in the middle, and in a ring that is
    from 1.05 to 1.8 times as large.
    """
    raster = Raster(BOX, pos)
    has_colour = np.isfinite(raster.image(np.ones(len(pos))))
    x, y = pixel_centres(raster)
    size = np.hypot((x - 0.5) / axes[0], (y - 0.5) / axes[1])
    ring = (size > 1.05) & (size < 1.8)
    return has_colour[size < 1].mean(), has_colour[ring].mean()


@pytest.mark.parametrize("part", [1.0, 0.5])
def test_raster_leaves_a_body_in_a_graded_mesh_open(part):
    """An O-grid around an ellipse, cells of which grow by a factor of 100."""
    angles, radii = np.meshgrid(np.arange(80) * np.pi / 40, np.linspace(0, 1, 25))
    # A conformal map of circles to ellipses, that of radius 0.2 to the body.
    z = (0.2 + 0.3 * np.expm1(4.6 * radii) / 99) * np.exp(1j * angles)
    z = (z + 0.016 / z).ravel()
    pos = 0.5 + np.column_stack([z.real, z.imag])[points(z.size)[:, 0] < part]
    body, around = shares(pos, (0.28, 0.12))
    assert body < 0.03 and around > 0.995


@pytest.mark.parametrize("even", [True, False])
def test_raster_leaves_a_hole_in_a_cloud_open(even):
    axis = np.linspace(0, 1, 50)
    pos = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2) if even else points(2500)
    hole, around = shares(pos[np.hypot(*(pos - 0.5).T) > 0.2], (0.2, 0.2))
    assert hole < 0.12 and around > 0.999


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num", [60, 300, 3000])
def test_raster_of_random_points_has_no_gap(num, seed):
    pos = np.random.default_rng(seed).random((num, 2))
    assert shares(pos, (0.2, 0.2)) == (1, 1)


def test_raster_of_stretched_cells_has_no_gap():
    """Columns of points whose distances are 100 times those within them."""
    random = np.random.default_rng(0)
    x, y = np.meshgrid(np.linspace(-0.05, 1.05, 12), np.linspace(0, 1, 1001))
    pos = np.column_stack([(x + random.uniform(-0.03, 0.03, 12)).ravel(), y.ravel()])
    assert shares(pos, (0.25, 0.25)) == (1, 1)
    assert shares(pos[random.random(len(pos)) < 0.5], (0.25, 0.25)) == (1, 1)


def test_raster_of_stations_of_uneven_density_has_no_gap():
    """Half of them are within a tenth of the area."""
    pos = points(600)
    pos[:300] = 0.3 + 0.3 * pos[:300]
    assert shares(pos, (0.25, 0.25)) == (1, 1)


@pytest.mark.parametrize("n", [1, 2, 50])
def test_raster_of_points_in_a_line_takes_the_nearest(n):
    pos = np.column_stack([np.linspace(0, 1, n), np.full(n, 0.5)])
    image = Raster(BOX, pos).image(np.arange(n, dtype=float))
    assert image.min() == 0 and image.max() == n - 1


def test_points_that_are_nearly_on_a_wall_are_interpolated():
    """Triangles between them are as flat as rounding makes them."""
    pos = np.stack(np.meshgrid(*2 * [np.linspace(0, 1, 24)]), -1).reshape(-1, 2)
    on_walls = (pos == np.round(pos)).any(axis=1)
    pos[on_walls] += 1e-13 * (points(on_walls.sum(), 1, 1) - 0.5)
    raster = Raster(BOX, pos)
    assert raster.points.shape[1] == 3
    x, y = pixel_centres(raster)
    expected = 2 * x - y
    assert np.abs(raster.image(2 * pos[:, 0] - pos[:, 1]) - expected).max() < 1e-9


def test_no_pixel_mixes_the_sides_of_a_wall():
    pos = points(200)
    pos = pos[abs(pos[:, 0] - 0.5) > 0.03]
    image = Raster(CHAMBERS, pos).image((pos[:, 0] > 0.5).astype(float))
    seen = np.isfinite(image)
    np.testing.assert_allclose(image[seen], np.round(image[seen]), atol=1e-12)
    middle = image.shape[1] // 2
    assert not seen[:, middle - 5 : middle + 5].any()
    assert seen[:, middle + 12 : -40].mean() > 0.8
    # Without the wall pixels between are mixed.
    mixed = Raster(BOX, pos).image((pos[:, 0] > 0.5).astype(float))
    assert ((mixed > 0.1) & (mixed < 0.9)).any()


def test_values_that_are_missing_in_an_obstacle_do_not_spread():
    axis = (np.arange(16) + 0.5) / 16
    pos = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    block = [[0.3, 0.3], [0.7, 0.3], [0.7, 0.7], [0.3, 0.7]]
    domain = Domain(BOX.lower, BOX.upper, BOX.periodic, Region.polygons([block]))
    values = np.where((abs(pos - 0.5) < 0.2).all(1), np.nan, 1.0)
    raster = Raster(domain, pos)
    image = raster.image(values)
    outside = np.max(np.abs(np.array(pixel_centres(raster)) - 0.5), axis=0)
    ring = (outside > 0.21) & (outside < 0.45)
    np.testing.assert_allclose(image[ring], 1, atol=1e-12)
    assert np.isnan(image[outside < 0.19]).all()


def test_colours_diverge_about_zero_only_for_signed_fields():
    signed = colour_scale(np.linspace(-1, 3, 1000))
    low, high = signed.get_clim()
    assert low == -high and signed.get_cmap().name == "RdBu_r"
    positive = colour_scale(np.linspace(3, 12, 1000))
    assert positive.get_clim() == pytest.approx((3.045, 11.955), rel=1e-3)
    assert positive.get_cmap().name == "viridis"
    assert colour_scale(np.full(9, 2.0)).get_clim() == (1.5, 2.5)
    assert colour_scale(np.array([np.nan, np.inf])).get_clim() == (0.0, 1.0)


def test_predictions_limit_colours_only_without_a_truth():
    pos, field = points(50), np.linspace(-1, 1, 50)[None]
    for truth, top in ((field, 1), (np.nan * field, 100)):
        shown = [
            Column("truth", truth, "field"),
            Column("prediction", 100 * field, "field", predicted=True),
        ]
        with styled():
            figure = FieldFigure(BOX, [pos], shown, [""]).figure
        for ax in figure.axes[:2]:
            assert ax.images[0].get_clim() == pytest.approx((-top, top), rel=0.05)


@pytest.mark.parametrize(
    ("pos", "surface"),
    [
        (sphere(600), True),
        (sphere(4000) * [4, 1, 0.3], True),
        (np.c_[points(1500), np.zeros(1500)] @ np.linalg.qr(sphere(3))[0], True),
        (points(1500, 1, 1, 1), False),
        (points(1500, 1, 1, 0.2), False),  # seven times as thick as points are apart
        (sphere(1500) * RANDOM.random((1500, 1)) ** (1 / 3), False),
        (sphere(20), False),  # too few to tell
    ],
)
def test_points_on_a_surface_are_told_from_those_of_a_volume(pos, surface):
    for unit in (1.0, 1e-3, 1e6):
        assert on_surface(pos * unit) == surface


def test_a_surface_is_seen_from_two_opposite_sides():
    pos = sphere(800)
    figure = maps(Domain.bounding(pos), pos, 1, ["x", "y", "z"])
    FigureCanvasAgg(figure).draw()
    # The third row of a view is the distance along it.
    one, other = (figure.axes[k].get_proj()[2, :3] for k in (0, 3))  # type: ignore[attr-defined]
    np.testing.assert_allclose(one, -other, atol=1e-12)
    for ax in (figure.axes[0], figure.axes[3]):
        shown = ax.collections[0].get_array()
        np.testing.assert_allclose(shown, np.sin(pos.sum(axis=1)))


def test_a_volume_is_shown_in_a_named_slice():
    figure = maps(Domain.unit(3), points(1500, 1, 1, 1), 1, ["x (m)", "y (m)", "z (m)"])
    words = {line for text in texts(figure) for line in text.get_text().splitlines()}
    assert "z = 0.5 m" in words


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_another_row_is_shown_as_if_it_had_been_drawn(dim):
    pos = np.random.default_rng(0).random((600, dim))
    field = np.sin(6 * pos.sum(axis=1) + np.arange(2)[:, None])
    made = []
    for first in (0, 1):
        with styled():
            of = (
                Domain.unit(dim),
                [pos] * 2,
                columns(field),
                ["t = 0", "t = 1"],
                [first],
            )
            figure = FieldFigure(*of)
            figure.show(1)
            made.append(np.asarray(drawn(figure.figure)))
    np.testing.assert_array_equal(*made)


def texts(figure: Figure) -> list[Text]:
    """What is written in a figure, without the ticks that are not shown."""
    FigureCanvasAgg(figure).draw()
    axes = [each for each in figure.findobj(Axis) if isinstance(each, Axis)]
    every = {tick for axis in axes for tick in axis.get_major_ticks()}
    every -= {tick for axis in axes for tick in axis._update_ticks()}
    ticks = {label for tick in every for label in (tick.label1, tick.label2)}
    found = [each for each in figure.findobj(Text) if isinstance(each, Text)]
    shown = [each for each in found if each.get_visible() and each.get_text()]
    return [each for each in shown if each not in ticks]


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [(1, 1), (10, 1), (40, 1), (1, 10), (3, 1)])
def test_labels_stay_apart(lengths):
    domain = Domain((0.0, 0.0), lengths, (False, False))
    figure = maps(domain, points(300, *lengths), 4, ["longitude (°)", "latitude (°)"])
    found = texts(figure)
    assert {"longitude (°)"} <= {each.get_text() for each in found}
    ends = [ax.get_xlim() for ax in figure.axes if ax.images and ax.xaxis.get_visible()]
    assert ends and set(ends) == {(0, lengths[0])}
    boxes = [each.get_window_extent() for each in found]
    for one, other in itertools.combinations(range(len(boxes)), 2):
        assert not boxes[one].overlaps(boxes[other]), (found[one], found[other])
    page = figure.bbox
    assert all(page.contains(*box.min) and page.contains(*box.max) for box in boxes)
    assert max(figure.get_size_inches()) < 16


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
def test_nothing_is_cut_off(size):
    """There is room for numbers of any size, negative ones too."""
    line, times = Domain.unit(1), size * np.arange(1, 5)
    along = np.linspace(0, 1, 40)
    fields = size * np.sin(2 * np.pi * (along + 0.1 * np.arange(4)[:, None]))
    labels = [f"t = {t:.4g}\nMAE {size * 1.23e-5:#.2g}" for t in times]
    shown = columns(fields)
    losses = {"training loss": (times, np.abs(fields[:, 3]), {})}
    with styled():
        figures = [
            FieldFigure(line, [along[:, None]] * 4, shown, labels).figure,
            maps(TORUS, points(40), 4, ["x", "y"], size),
            curves({"loss": losses, "rate": losses}, "epoch"),
        ]
        out = {k: beyond(figure) for k, figure in enumerate(figures)}
    assert {k: pixels for k, pixels in out.items() if pixels > 1} == {}


def test_the_densest_part_of_a_graded_mesh_is_shown_alone():
    """A tenth of the area or less that holds most of the points, and nothing else."""
    random = np.random.default_rng(0)
    even, tight = random.random((400, 2)), 0.7 + 0.02 * random.normal(size=(1200, 2))
    assert densest_part(BOX, even) is None
    assert densest_part(Domain.unit(3), random.random((50, 3))) is None
    found = densest_part(BOX, np.concatenate([even, tight]))
    assert found is not None
    assert np.abs(np.array([found.lower, found.upper]) - [[0.66], [0.74]]).max() < 0.03
    seam = np.concatenate([[0.99, 0.5] + 0.01 * random.random((90, 2)), even[:10]])
    beside = densest_part(TORUS, seam)
    assert beside is not None
    assert beside.upper[0] <= 1
    # Bars that cross, a line, and points that an offset leaves no digits between.
    bars = np.concatenate([even * [1, 0.01], even * [0.01, 1]])
    assert densest_part(BOX, bars) is None
    assert densest_part(BOX, even * [1, 0] + [0, 0.5]) is None
    far = Domain((5e6, 5e6), (5e6 + 1, 5e6 + 1), (False, False))
    constant = np.where(np.arange(400)[:, None] < 300, 1.0, even) + 5e6
    assert densest_part(far, constant) is None
