"""Pictures end at walls, and show nothing where there is no field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from nfsgeo.geometry import Domain, Region
from nfsgeo.report.maps import FieldMaps
from nfsgeo.report.panels import Column
from nfsgeo.report.raster import Raster
from nfsgeo.report.run_folder import read_run_folder

BOX = (0.0, 0.0), (1.0, 1.0), (False, False)
WALL = [[0.47, -0.1], [0.53, -0.1], [0.53, 1.1], [0.47, 1.1]]
CHAMBERS = Domain(*BOX, Region.polygons([WALL]))


def test_no_pixel_mixes_the_sides_of_a_wall() -> None:
    pos = np.random.default_rng(0).random((200, 2))
    pos = pos[abs(pos[:, 0] - 0.5) > 0.03]
    image = Raster(CHAMBERS, pos).image((pos[:, 0] > 0.5).astype(float))
    seen = np.isfinite(image)
    np.testing.assert_allclose(image[seen], np.round(image[seen]), atol=1e-12)
    middle = image.shape[1] // 2
    assert not seen[:, middle - 5 : middle + 5].any()
    assert seen[:, middle + 12 : -40].mean() > 0.8
    # Without the wall pixels between are mixed.
    mixed = Raster(Domain(*BOX), pos).image((pos[:, 0] > 0.5).astype(float))
    assert ((mixed > 0.1) & (mixed < 0.9)).any()


def test_values_that_are_missing_in_an_obstacle_do_not_spread() -> None:
    axis = (np.arange(16) + 0.5) / 16
    pos = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    block = [[0.3, 0.3], [0.7, 0.3], [0.7, 0.7], [0.3, 0.7]]
    domain = Domain(*BOX, Region.polygons([block]))
    values = np.where((abs(pos - 0.5) < 0.2).all(1), np.nan, 1.0)
    image = Raster(domain, pos).image(values)
    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]] / image.shape[0]
    outside = np.maximum(abs(rows - 0.5), abs(columns - 0.5))
    ring = (outside > 0.21) & (outside < 0.45)
    np.testing.assert_allclose(image[ring], 1, atol=1e-12)
    assert np.isnan(image[outside < 0.19]).all()


def test_boundaries_are_drawn() -> None:
    pos = np.random.default_rng(0).random((50, 2)) * [0.4, 1.0]
    column = Column("u", pos[None, :, 0], "field")
    figure = FieldMaps(CHAMBERS, pos, [column], ["u"]).figure
    assert len(figure.axes[0].collections) == 1
    plain = FieldMaps(Domain(*BOX), pos, [column], ["u"]).figure
    assert not plain.axes[0].collections


def test_a_run_folder_keeps_the_region(make_run: Callable[..., Path]) -> None:
    run = make_run(n=100, drawn=True)
    with np.load(run / "evaluation.npz") as arrays:
        content = dict(arrays)
    content |= {k: np.array(v) for k, v in CHAMBERS.to_dict().items()}
    np.savez(run / "evaluation.npz", **content)
    predictions = read_run_folder(run).predictions
    assert predictions is not None and predictions.domain == CHAMBERS
