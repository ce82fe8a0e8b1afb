"""Spherical harmonics on a grid, and convolution with them."""

import pytest
import torch
from scipy.spatial.transform import Rotation

from nfsgeo.geometry import Domain, equispaced_grid, spherical_harmonics
from nfsgeo.nn import SpectralConv, SphericalConv, SphericalTransform

DEGREES, NODES = 8, 160
BALL = Domain.sphere().normalised
GRID = equispaced_grid(BALL, (NODES,), torch.float64)


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_analysis_inverts_synthesis():
    transform = SphericalTransform(GRID, DEGREES)
    coefficients = torch.randn(2, 3, DEGREES**2, 5)
    torch.testing.assert_close(transform.analyse(transform(coefficients)), coefficients)
    values = spherical_harmonics(GRID, DEGREES)
    torch.testing.assert_close(
        transform(coefficients[0, 0]), values @ coefficients[0, 0]
    )
    assert transform.degree.tolist()[:5] == [0, 1, 1, 1, 2]


def test_least_squares_are_close_to_quadrature():
    """Nodes stand for equal areas, and harmonics are orthonormal."""
    transform = SphericalTransform(GRID, DEGREES)
    quadrature = 4 * torch.pi / NODES * spherical_harmonics(GRID, DEGREES)
    assert (transform.analysis - quadrature).norm() < 0.1 * quadrature.norm()


@pytest.mark.parametrize("time_modes", [None, 3])
def test_commutes_with_rotations(time_modes):
    transform = SphericalTransform(GRID, DEGREES)
    layer = SphericalConv(2, 3, transform, time_modes)
    # Coefficients of a rotated field from those of the field.
    pos = equispaced_grid(BALL, (400,), torch.float64)
    turned = pos @ torch.from_numpy(Rotation.random(random_state=0).as_matrix()).T
    harmonics = spherical_harmonics(turned, DEGREES)
    turn = SphericalTransform(pos, DEGREES).analyse(harmonics)
    torch.testing.assert_close(turn @ turn.T, torch.eye(DEGREES**2), atol=1e-9, rtol=0)
    coefficients = torch.randn(2, 2, DEGREES**2, 6)
    field, turned = transform(coefficients), transform(turn @ coefficients)
    out, of_turned = (
        layer(each) if time_modes else layer(each[..., 0])[..., None]
        for each in (field, turned)
    )
    torch.testing.assert_close(of_turned, transform(turn @ transform.analyse(out)))


def test_weights_of_the_degrees():
    """With -l (l + 1) the layer is the Laplace operator."""
    transform = SphericalTransform(GRID, DEGREES)
    layer = SphericalConv(1, 1, transform)
    degree = torch.arange(DEGREES)
    layer.weight.data[:, 0, 0, 0] = -degree * (degree + 1.0)
    x, y, z = GRID.unbind(1)
    out = layer((x * y + z)[None, None])
    torch.testing.assert_close(out[0, 0], -6 * x * y - 2 * z)


@pytest.mark.parametrize("steps", [1, 4, 7, 12])
def test_is_the_fourier_layer_in_time(steps):
    """Of degree zero; in half precision it is transformed in single."""
    layer = SphericalConv(2, 3, SphericalTransform(GRID, 1), time_modes=4)
    other = SpectralConv(2, 3, (4,))
    real, imaginary = layer.weight.detach()[0].unflatten(0, (-1, 2)).unbind(1)
    other.weight = torch.nn.Parameter(torch.stack([real, imaginary], -1))
    x = torch.randn(2, 2, 1, steps)
    out = layer(x.expand(-1, -1, NODES, -1))
    expected = other(x[:, :, 0])[:, :, None].expand(-1, -1, NODES, -1)
    torch.testing.assert_close(out, expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = layer(x.expand(-1, -1, NODES, -1).bfloat16())
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), out, atol=0.1, rtol=0.1)
