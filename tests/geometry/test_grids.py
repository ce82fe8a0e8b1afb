"""Equispaced grids."""

import math

import pytest
import torch

from nfsgeo.geometry import Domain, equispaced_grid


def test_periodic_axes_leave_the_end_point_out_and_others_hold_both() -> None:
    domain = Domain((0.0, -1.0), (1.0, 1.0), (True, False))
    grid = equispaced_grid(domain, (4, 3)).reshape(4, 3, 2)
    assert grid[:, 0, 0].tolist() == [0.0, 0.25, 0.5, 0.75]
    assert grid[0, :, 1].tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("upper", [2 * math.pi, 0.1, 1e3])
def test_nodes_lie_in_their_domain(upper: float, periodic: bool, dtype) -> None:
    domain = Domain((-upper / 3,), (upper,), (periodic,))
    for size in (3, 10, 49, 64):
        assert domain.contains(equispaced_grid(domain, (size,), dtype=dtype)).all()


@pytest.mark.parametrize("shape", [(4,), (4, 0), (4, 1)])
def test_impossible_shapes_are_refused(shape: tuple[int, ...]) -> None:
    domain = Domain((0.0, 0.0), (1.0, 1.0), (True, False))
    with pytest.raises(ValueError, match="grid shape"):
        equispaced_grid(domain, shape)
