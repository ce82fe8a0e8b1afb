"""What holds for the solver of every equation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from nfsgeo.data.equations import EQUATIONS
from nfsgeo.errors import UserError

# Points on each axis and time steps: small, but resolved.
SIZES = {
    "burgers": (1024, 21),
    "kdv": (1024, 21),
    "darcy": (64, 1),
    "navier-stokes": (64, 20),
    "elasticity": (4, 1),
    "sphere-waves": (16, 5),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_a_sample_does_not_depend_on_its_batch(name: str) -> None:
    resolution, steps = SIZES[name]
    size = {"resolution": resolution, "num_steps": steps}
    together = EQUATIONS[name].solve(7, range(5), **size)
    alone = EQUATIONS[name].solve(7, [3], **size)
    assert_close(together.u[3:4], alone.u, rtol=0, atol=1e-12)
    assert_close(together.a[3:4], alone.a, rtol=0, atol=1e-12)
    if alone.pos is not None and together.pos is not None:
        assert torch.equal(together.pos[3:4], alone.pos)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", EQUATIONS)
def test_cuda_agrees(name: str) -> None:
    resolution, steps = SIZES[name]
    here, there = (
        EQUATIONS[name].solve(
            0, range(3), resolution=resolution, num_steps=steps, device=device
        )
        for device in ("cpu", "cuda")
    )
    assert_close(there.u.cpu(), here.u, rtol=0, atol=1e-9)
    assert_close(there.a.cpu(), here.a, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("darcy", {"coefficient": "3/12"}),
        ("kdv", {"ic": "wave"}),
        ("elasticity", {"nu": 0.5}),
        ("burgers", {"nu": "inf"}),
        ("burgers", {"time_stride": 0}),
        ("sphere-waves", {"speed": -1}),
        ("navier-stokes", {"viscosity": 1}),
    ],
)
def test_options_without_meaning_are_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(given))):
        EQUATIONS[name].with_options(given)


@pytest.mark.parametrize("name", ["darcy", "elasticity"])
def test_a_steady_problem_has_one_time(name: str) -> None:
    with pytest.raises(UserError, match="--records 2"):
        EQUATIONS[name].solve(0, [0], resolution=4, num_steps=2)
