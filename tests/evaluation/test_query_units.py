"""Units of the coordinates of query points."""

from pathlib import Path

import numpy as np
import pytest

from nfsgeo.errors import UserError
from nfsgeo.evaluation.query_points import query_points_of
from nfsgeo.geometry import Domain

UNITS = {"x": "km", "y": "km"}


def points(head: str) -> Path:
    path = Path("points.csv")
    path.write_text(f"{head}\n0.25,0.5\n0.75,0.125\n")
    return path


@pytest.mark.parametrize("head", ["x,y", "x [km],y [km]", "x (kilometers),y (km)"])
def test_coordinates_in_the_unit_of_the_domain_are_taken(head, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = query_points_of(points(head), Domain.unit(2), units=UNITS).pos
    np.testing.assert_array_equal(found, [[0.25, 0.5], [0.75, 0.125]])


@pytest.mark.parametrize("head", ["x [m],y [m]", "x,y (mm)", "y [ft],x [km]"])
def test_coordinates_in_another_unit_are_refused(head, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="in km"):
        query_points_of(points(head), Domain.unit(2), units=UNITS)
    assert len(query_points_of(points(head), Domain.unit(2)).pos) == 2
