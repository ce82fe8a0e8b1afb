"""Boxes, wrapping and the minimal image."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain, nearest_neighbour_graph, radius_edges

TORUS = Domain.unit(2)
MIXED = Domain((-1.0, 0.0), (1.0, 3.0), (True, False))
CIRCLE = Domain((0.0,), (2 * math.pi,), (True,))


def test_displacement_takes_the_near_way_round_only_where_periodic():
    a, b = torch.tensor([[[0.9, 2.5]], [[-0.9, 0.5]]], dtype=torch.float64)
    expected = torch.tensor([[0.2, -2.0]], dtype=torch.float64)
    torch.testing.assert_close(MIXED.displacement(a, b), expected)
    torch.testing.assert_close(MIXED.distance(a, b), expected.norm(dim=1))


@given(st.floats(0, 1, width=32), st.floats(0, 1, width=32))
def test_displacement_is_the_shortest_of_all_images(a, b):
    start, end = torch.tensor([[a], [b]], dtype=torch.float64)
    delta = Domain.unit(1).displacement(start, end)
    images = [b - a + k for k in (-1, 0, 1)]
    assert abs(float(delta)) == pytest.approx(min(map(abs, images)), abs=1e-15)
    assert min(abs(float(delta) - v) for v in images) < 1e-15
    assert torch.equal(delta, -Domain.unit(1).displacement(end, start))


@given(
    st.floats(-1e4, 1e4),
    st.sampled_from([torch.float32, torch.float64]),
    st.sampled_from([TORUS, MIXED]),
)
def test_wrapped_points_are_contained(value, dtype, domain):
    pos = torch.tensor([[value, 0.5]], dtype=dtype)
    wrapped = domain.wrap(pos)
    assert wrapped.dtype == dtype
    assert domain.contains(wrapped).all()
    turns = (pos - wrapped)[0, 0].item() / domain.lengths[0]
    assert turns == pytest.approx(round(turns), abs=1e-3)


def test_points_are_wrapped_by_one_period_at_most():
    pos = torch.tensor([[-0.75, 0.0], [0.0, 1.0], [1.5, 2.0], [2.5, -3.0]])
    expected = [[0.25, 0.0], [0.0, 0.0], [0.5, 0.0], [2.5, -3.0]]
    assert TORUS.wrap_near(pos).tolist() == expected
    there = torch.tensor([[0.5, 7.0]])
    assert torch.equal(MIXED.wrap_near(there), there)


def test_contains_is_half_open_on_periodic_axes_and_closed_on_others():
    places = [[-1.0, 0.0], [1.0, 0.0], [0.0, 3.0], [0.0, 3.1], [math.nan, 0.0]]
    found = MIXED.contains(torch.tensor(places)).tolist()
    assert found == [True, False, True, False, False]


def test_contains_rounds_the_ends_to_the_precision_of_the_points():
    closed = Domain(CIRCLE.lower, CIRCLE.upper, (False,))
    end = torch.tensor([[2 * math.pi]], dtype=torch.float32)
    assert float(end) > closed.upper[0]
    assert closed.contains(end).all()
    assert not CIRCLE.contains(end).any()


def test_plain_types_survive_json():
    assert Domain.from_dict(json.loads(json.dumps(MIXED.to_dict()))) == MIXED


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_bounding_pads_every_axis(kind):
    domain = Domain.bounding(kind([[0.0, 5.0], [2.0, 5.0], [1.0, 5.0]]), pad=0.1)
    assert domain.lower == pytest.approx((-0.2, 4.8))
    assert domain.upper == pytest.approx((2.2, 5.2))
    assert domain.periodic == (False, False)


@pytest.mark.parametrize(
    "box",
    [((0.0,), (1.0, 1.0), (True,)), ((), (), ()), ((1.0,), (1.0,), (True,))]
    + [((0.0,), (math.inf,), (True,)), ((math.nan,), (1.0,), (True,))]
    + [((0.0,), (1.0,), True), (0.0, 1.0, (True,))],
)
def test_impossible_boxes_are_refused(box):
    with pytest.raises(ValueError, match="expected") as caught:
        Domain(*box)
    assert "\n" not in str(caught.value)


@given(
    shift=st.floats(-1e6, 1e6),
    scale=st.sampled_from([1e-3, 1.0, 0.3, 2 * math.pi, 1e3]),
    periodic=st.booleans(),
)
def test_normalised_positions_know_neither_origin_nor_units(shift, scale, periodic):
    """Nodes of a grid exactly; the subtraction of the origin costs others a bit."""
    box = Domain((shift,) * 2, (shift + scale, shift + scale / 2), (periodic,) * 2)
    assert box.normalised == Domain((0, 0), (1, 0.5), (periodic,) * 2)
    unit = torch.cartesian_prod(torch.arange(8) / 8, torch.arange(8) / 16).double()
    found = box.normalise(unit * scale + shift)
    assert found.dtype == torch.float32 and box.normalised.contains(found).all()
    rounding = 4e-16 * (abs(shift) / scale + 1)
    away = box.normalised.distance(found.double(), unit)
    assert away.max() <= 1e-7 + 2 * rounding


def test_a_point_on_the_far_end_stays_in_the_box():
    for periodic, end in ((True, 0.0), (False, 1.0)):
        box = Domain((0.1,), (0.1 + 2 * math.pi,), (periodic,))
        pos = torch.tensor([[0.1 + 2 * math.pi]])
        for points in (pos, pos.double().clamp(max=box.upper[0])):
            assert box.normalise(points).tolist() == [[end]]


def test_points_outside_are_named_in_their_own_units(refuses):
    box = Domain((100.0, 0.0), (200.0, 50.0), (False, False))
    with pytest.raises(UserError, match=r"point 1 at \[250.0, 1.0\]: .*\[200.0, 50.0"):
        box.normalise(torch.tensor([[150.0, 1.0], [250.0, 1.0]]))
    refuses("nan", box.normalise, torch.tensor([[torch.nan, 1.0]]))


@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("periodic", [False, True])
def test_points_may_be_outside_by_rounding(shift, periodic, refuses):
    """As a file may have them: to a millionth of the length of each axis."""
    box = Domain((shift, 0.0), (shift + 2.0, 1.0), (periodic,) * 2)
    ends = torch.tensor([[0.0, 0.0], [2.0, 1.0]], dtype=torch.float64)
    off = torch.tensor([[-1.9e-6, -2.2e-16], [1.9e-6, 9e-7]], dtype=torch.float64)
    pos = ends + off + torch.tensor([shift, 0.0])
    box.check_inside(pos)
    place = box.normalise(pos, torch.float64)
    assert box.normalised.contains(place).all()
    assert box.normalised.distance(place, ends / 2).max() < 2e-6
    assert box.contains(pos).all() or periodic
    for axis in (0, 1):
        far = pos.clone()
        far[1, axis] += 1e-6 * box.lengths[axis]
        refuses("point 1 at", box.check_inside, far)
        assert not box.contains(far)[1]


def test_graphs_of_points_outside_by_rounding():
    """Their edges are those of points in the box; on the torus they are wrapped."""
    random = torch.Generator().manual_seed(0)
    pos = torch.rand(40, 2, generator=random, dtype=torch.float64)
    pos[:4, 0], pos[4:8, 1] = 0.0, 1.0
    moved = pos.clone()
    moved[:4, 0] -= 2.2e-16
    moved[4:8, 1] += 2.2e-16
    for periodic in (False, True):
        box = Domain.unit(2, periodic=periodic)
        found, expected = (
            nearest_neighbour_graph(p, p, 3, box).edge_index for p in (moved, pos)
        )
        assert found.equal(expected)
        edges = radius_edges(moved, moved, 0.3, box)
        assert edges.equal(radius_edges(pos, pos, 0.3, box))
