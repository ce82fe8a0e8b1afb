"""What stands between a solver and a file, and what holds for every equation."""

from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nfsgeo.data.pde import EQUATIONS, Burgers, Darcy, Wake
from nfsgeo.data.pde.periodic import FourierGrid, flush_denormals
from nfsgeo.data.pde.solver import Limits, Solution
from nfsgeo.errors import UserError

# Points on each axis and time steps: small, but resolved.
SIZES = {
    "burgers": {"resolution": 1024, "num_steps": 21},
    "kdv": {"resolution": 1024, "num_steps": 21},
    "darcy": {"resolution": 64, "num_steps": 1},
    "navier-stokes": {"resolution": 64, "num_steps": 20},
    "elasticity": {"resolution": 4, "num_steps": 1},
    "sphere-waves": {"resolution": 16, "num_steps": 5},
    "euler": {"resolution": 16, "num_steps": 3},
    "darcy-3d": {"resolution": 8, "num_steps": 1},
    "heat": {"resolution": 16, "num_steps": 1},
    "ellipsoids": {"resolution": 4, "num_steps": 1},
    "wake": {"resolution": 16, "num_steps": 3},
}
# Equations that take long to begin with their default options.
QUICK = {**EQUATIONS, "wake": Wake(spin_up=1)}


class Guarded(Burgers):
    """A flow without motion, which its guard calls too fast for long steps."""

    starts: ClassVar[list[float]] = [1.0, 7.0, 1.0]

    def longest_step(self, resolution: int) -> float:
        return self.spacing

    def initial(self, rngs: Any, resolution: int) -> Tensor:
        start = torch.tensor(self.starts, dtype=torch.float64)
        return start[:, None].expand(-1, resolution).clone()

    def guard(self, u: Tensor, grid: FourierGrid, dt: float) -> Tensor:
        return u[:, 0, 0] * dt / self.spacing

    def limits(self, u: Tensor, grid: FourierGrid) -> Limits:
        return {}


def test_only_the_sample_that_needs_it_gets_a_smaller_step():
    found = Guarded().solve(0, range(3), resolution=1024, num_steps=2)
    assert (found.dt / 0.005).tolist() == pytest.approx([1.0, 0.25, 1.0])
    assert_close(found.u[:, 1], found.a)


@pytest.mark.parametrize("start", [100.0, torch.nan])
def test_a_guard_that_cannot_be_met(start, monkeypatch):
    monkeypatch.setattr(Guarded, "starts", [1.0, start])
    with pytest.raises(UserError, match="burgers sample 8 with"):
        Guarded().solve(0, [4, 8], resolution=1024, num_steps=2)


class Limited(Darcy):
    """Given solutions and a given quantity."""

    def solution(self, rngs: Any, *_: Any) -> Solution:
        u = torch.zeros(len(rngs), 1, 4, 4, 1)
        u[2] = torch.nan if self.coefficient == "12/4" else 0
        mass = [0.0, torch.nan if self.coefficient == "lognormal" else 1.5, 0.5]
        limit = 1.0 if self.coefficient == "lognormal" else 1.4
        return Solution(u, u, {"mass": (torch.tensor(mass), limit)})


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("12/3", "darcy sample 11 with mass 1.5: expected at most 1.4"),
        ("lognormal", "darcy sample 11 with mass nan: expected at most 1;"),
        ("12/4", "darcy sample 12 with number of infinite values 16: expected at most"),
    ],
)
def test_checks_name_the_sample(case, message):
    with pytest.raises(UserError, match=message):
        Limited(coefficient=case).solve(0, range(10, 13), resolution=4)


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUATIONS)
def test_a_sample_does_not_depend_on_its_batch(name):
    together, alone = (
        QUICK[name].solve(7, samples, **SIZES[name]) for samples in (range(5), [3])
    )
    assert_close(together.u[3:4], alone.u, rtol=0, atol=1e-12)
    assert_close(together.a[3:4], alone.a, rtol=0, atol=1e-12)
    if alone.pos is not None:
        assert torch.equal(together.pos[3:4], alone.pos)
    if alone.scalars is not None:
        assert torch.equal(together.scalars[3:4], alone.scalars)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", EQUATIONS)
def test_cuda_agrees(name):
    equation, size = QUICK[name], SIZES[name]
    here, there = (
        equation.solve(0, range(3), **size, device=d) for d in ("cpu", "cuda")
    )
    assert_close(there.u.cpu(), here.u, rtol=0, atol=1e-9)
    assert_close(there.a.cpu(), here.a, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "steps", "finest", "coarser", "atol"),
    [
        ("burgers", 21, 2048, (1024, 512), 1e-9),
        ("kdv", 41, 2048, (1024, 256), 1e-6),
        ("navier-stokes", 4, 128, (64, 32), 1e-5),
    ],
)
def test_resolution_does_not_matter(name, steps, finest, coarser, atol):
    equation = EQUATIONS[name]
    fine = equation.solve(0, range(2), resolution=finest, num_steps=steps)
    for resolution in coarser:
        coarse = equation.solve(0, range(2), resolution=resolution, num_steps=steps)
        every = [slice(None, None, finest // resolution)] * equation.domain.dim
        assert_close(fine.u[:, :, *every], coarse.u, rtol=0, atol=atol)
        assert_close(fine.a[:, *every], coarse.a, rtol=0, atol=1e-12)


# Mean size, standard deviation and largest value, which of KdV's 1200 samples varies by
# a fifth from seed to seed.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "num", "resolution", "expected", "rel"),
    [
        ("burgers", 1200, 1024, (0.155, 0.194, 1.05), 0.05),
        ("kdv", 1200, 512, (0.23, 0.31, 3.0), 0.2),
        ("navier-stokes", 32, 64, (0.44, 0.54, 1.4), 0.05),
        ("darcy", 256, 64, (0.00575, 0.0038, 0.017), 0.05),
    ],
)
def test_scale_of_the_fields(name, num, resolution, expected, rel):
    equation, found = EQUATIONS[name], []
    size = {"resolution": resolution, "num_steps": equation.num_steps}
    for start in range(0, num, 16):
        with flush_denormals():
            u = equation.solve(0, range(start, start + 16), **size).u
        size_of = u.abs()
        found.append([size_of.mean(), u.mean(), u.square().mean(), size_of.max()])
    sizes = torch.tensor(found)
    mean, signed, square = sizes[:, :3].mean(dim=0)
    spread = (square - signed**2).sqrt()
    assert [float(mean), float(spread)] == pytest.approx(expected[:2], rel=0.05)
    assert float(sizes[:, 3].max()) == pytest.approx(expected[2], rel=rel)
