"""The gas dynamics solver against exact solutions, and its symmetries."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from torch.testing import assert_close

from nfsgeo.data.pde import euler
from nfsgeo.data.pde.euler import (
    GAMMA,
    Euler,
    advance,
    hllc,
    to_conserved,
    to_primitive,
)
from nfsgeo.errors import UserError


def exact_riemann(left, right, speed):
    """Density, velocity and pressure at ``x / t = speed`` (Toro, 2009, chapter 4)."""

    def branch(p, side):
        """Change of the velocity from a side to the pressure p, and the density."""
        density, _, pressure = side
        sound = math.sqrt(GAMMA * pressure / density)
        ratio = p / pressure
        if ratio > 1:
            a, b = 2 / (GAMMA + 1) / density, (GAMMA - 1) / (GAMMA + 1)
            change = (p - pressure) * math.sqrt(a / (p + b * pressure))
            return change, density * (ratio + b) / (b * ratio + 1)
        change = 2 * sound / (GAMMA - 1) * (ratio ** ((GAMMA - 1) / 2 / GAMMA) - 1)
        return change, density * ratio ** (1 / GAMMA)

    def mismatch(p):
        return branch(p, left)[0] + branch(p, right)[0] + right[1] - left[1]

    p = brentq(mismatch, 1e-8, 1e3, xtol=1e-14)
    middle = left[1] - branch(p, left)[0]
    side, sign = (left, 1) if speed < middle else (right, -1)
    density, velocity, pressure = side
    sound, inner = math.sqrt(GAMMA * pressure / density), branch(p, side)[1]
    s = sign * (speed - velocity)  # towards the contact discontinuity
    if p > pressure:  # a shock
        power = (GAMMA + 1) / 2 / GAMMA
        front = -sound * math.sqrt(power * (p / pressure - 1) + 1)
        return side if s < front else (inner, middle, p)
    head = -sound
    tail = sign * (middle - velocity) - math.sqrt(GAMMA * p / inner)
    if s < head:
        return side
    if s > tail:
        return inner, middle, p
    local = 2 / (GAMMA + 1) * (sound - (GAMMA - 1) / 2 * s)
    ratio = local / sound
    density *= ratio ** (2 / (GAMMA - 1))
    pressure *= ratio ** (2 * GAMMA / (GAMMA - 1))
    return density, velocity + sign * 2 / (GAMMA + 1) * (sound + s), pressure


TUBES = {
    "sod": ((1.0, 0.0, 1.0), (0.125, 0.0, 0.1)),
    "two shocks": ((1.0, 1.0, 1.0), (0.7, -1.0, 0.5)),
    "two rarefactions": ((1.0, -0.8, 1.0), (1.0, 0.8, 1.0)),
    "supersonic": ((1.0, 3.0, 1.0), (0.5, 2.5, 0.4)),
}


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("tube", TUBES)
def test_shock_tubes(tube, axis):
    """In the middle of a strip, where its periodic ends are not felt yet."""
    left, right = TUBES[tube]
    errors = []
    time = 0.06
    for n in (128, 256):
        x = (np.arange(n) + 0.5) / n
        states = np.where(x[:, None] < 0.5, left, right)
        density, velocity, pressure = states.T
        start = np.stack([density, velocity, 0 * x + 0.3, pressure])
        field = torch.from_numpy(start)[:, :, None].repeat(1, 1, 4)
        if axis:
            field = field[[0, 2, 1, 3]].mT
        found = to_primitive(advance(to_conserved(field), time, 1 / n))
        if axis:
            found = found.mT[[0, 2, 1, 3]]
        assert_close(found, found[..., :1].expand_as(found), rtol=0, atol=1e-11)
        near = np.abs(x - 0.5) < 0.25
        exact = [exact_riemann(left, right, (at - 0.5) / time) for at in x[near]]
        error = found[[0, 1, 3], :, 0].T.numpy()[near] - np.array(exact)
        errors.append(np.abs(error).mean(axis=0).max())
    assert errors[1] < 0.02
    assert errors[1] < 0.75 * errors[0]


@pytest.mark.slow
def test_second_order_where_the_flow_is_smooth():
    """A wave of the density that moves along the diagonal, for one period."""
    errors = []
    for n in (32, 64):
        x = (torch.arange(n, dtype=torch.float64) + 0.5) / n
        density = 1 + 0.3 * torch.sin(2 * torch.pi * (x[:, None] + x))
        start = torch.stack([density, *[torch.ones_like(density)] * 3])
        found = to_primitive(advance(to_conserved(start), 0.5, 1 / n))
        errors.append(float((found - start).abs().mean()))
    assert errors[1] < 5e-3
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.25)


def random_state(n=32):
    return Euler().solve(3, [0], resolution=n).u[0, 0]


def later(field, duration=0.1):
    """Primitive variables ``[N, N, 4]`` after a time."""
    start = to_conserved(field.permute(2, 0, 1))
    return to_primitive(advance(start, duration, 1 / len(field))).permute(1, 2, 0)


def test_symmetries_of_the_square():
    field = random_state()
    expected = later(field)
    turned = field.transpose(0, 1)[..., [0, 2, 1, 3]]
    assert_close(later(turned).transpose(0, 1)[..., [0, 2, 1, 3]], expected)
    mirror = torch.tensor([1.0, -1.0, 1.0, 1.0])
    assert_close(later(field.flip(0) * mirror).flip(0) * mirror, expected)
    assert_close(later(field.roll((5, 9), (0, 1))), expected.roll((5, 9), (0, 1)))


def test_units():
    """Twice the velocities and four times the pressure in half the time."""
    field, units = random_state(), torch.tensor([3.0, 2.0, 2.0, 12.0])
    assert_close(later(field * units, 0.05), later(field) * units)


@pytest.mark.slow
def test_conserves_and_stays_positive():
    found = Euler().solve(1, range(2), resolution=40, num_steps=21)
    total = to_conserved(found.u.movedim(4, 0)).mean(dim=(3, 4))
    assert_close(total, total[..., :1].expand_as(total), rtol=0, atol=1e-12)
    assert found.u[..., [0, 3]].min() > 0
    assert_close(found.u[:, 0], found.a)
    # Entropy grows: density times the logarithm of p / rho^gamma.
    r, p = found.u[..., 0], found.u[..., 3]
    entropy = (r * (p / r**GAMMA).log()).mean(dim=(2, 3))
    assert (entropy.diff(dim=1) > -1e-12).all()


class Empty(Euler):
    """A flow with a negative pressure in one cell of the second sample."""

    def initial(self, rngs, resolution):
        start = super().initial(rngs, resolution)
        start[1, 3, 0, 0] = -0.1
        return start


def test_a_negative_pressure_is_refused():
    with pytest.raises(UserError, match="euler sample 5 with .*: expected at most 0;"):
        Empty().solve(0, [4, 5, 6], resolution=8, num_steps=3)


def test_neighbours_that_fly_apart_leave_positive_pressures(monkeypatch):
    """Where the exact solution has a vacuum between two rarefactions."""
    monkeypatch.setattr(euler, "LOWEST", (0.1, -50.0, -50.0, 0.1))
    monkeypatch.setattr(euler, "HIGHEST", (1.0, 50.0, 50.0, 1.0))
    found = Euler().solve(0, [0, 1], resolution=16, num_steps=3)
    assert found.u[..., [0, 3]].min() > 0


def test_initial_states_are_four_constants():
    start = Euler().initial([np.random.default_rng(0)], 64)[0].flatten(1).T
    values, counts = start.unique(dim=0, return_counts=True)
    assert len(values) == 4
    assert counts.tolist() == [1024] * 4
    assert values[:, [0, 3]].min() >= 0.1
    assert values.abs().max() <= 1


def test_fluxes_of_equal_states_and_of_a_contact_discontinuity():
    state = torch.tensor([0.7, 0.3, -0.2, 0.4], dtype=torch.float64)
    r, u, w, p = state
    energy = p / (GAMMA - 1) + r * (u**2 + w**2) / 2
    expected = torch.stack([r * u, r * u**2 + p, r * u * w, (energy + p) * u])
    assert_close(hllc(state, state), expected)
    dense = torch.tensor([2.0, 0.0, 0.5, 0.4], dtype=torch.float64)
    thin = torch.tensor([0.1, 0.0, -0.5, 0.4], dtype=torch.float64)
    still = torch.tensor([0.0, 0.4, 0.0, 0.0], dtype=torch.float64)
    assert_close(hllc(dense, thin), still, rtol=0, atol=1e-14)
    assert_close(hllc(thin, dense), still, rtol=0, atol=1e-14)
