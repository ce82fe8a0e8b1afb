"""Each model memorises four samples."""

import math

import pytest
import torch
from torch import Tensor

from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import MODELS, Problem, build_model

pytestmark = pytest.mark.slow

SIZE, NUM_STEPS, STEPS = 8, 4, 1000
PROBLEM = Problem(Domain.unit(2), 1, 1, 1, NUM_STEPS, SIZE**2, (SIZE, SIZE), True)
# Of each sample: mean along y, and the two parts of its first wave.
SHAPES = ((1, 0.5, 0), (1, 0, -0.8), (-0.6, 0.3, 0.6), (0.4, -1, 0))

POINTS = {"grid": SIZE, "radius": 0.15, "hidden": 8}
PATCHES = {"patch": 2, "time_patch": 2}
ATTENTION = {"heads": 4, "dropout": 0.0}
SETTINGS = {
    "nfs": {"modes": 4, "time_modes": 2, **POINTS},
    "nfs-vit": {**ATTENTION, **POINTS},
    "nfs-mlpmixer": POINTS,
    "nfs-fnet": POINTS,
    "nfs-gfn": POINTS,
    "nfs-pfno": {"modes": 4, **POINTS},
    "fno": {"modes": 4, "time_modes": 3},
    "pfno": {"modes": 4, **PATCHES},
    "vit": {**ATTENTION, **PATCHES},
    "mlpmixer": PATCHES,
    "fnet": PATCHES,
    "gfn": PATCHES,
    "deeponet-u": {"levels": 2},
    "deeponet-v": {"patch": 2, **ATTENTION},
}
# The highest learning rate; deep networks of coordinates want a smaller one.
RATES = {"deeponet-u": 0.005, "deeponet-v": 0.005}


def field(pos: Tensor, t: float, shape: tuple[float, float, float]) -> Tensor:
    """A band of width 0.4 that moves by half the domain while t goes from 0 to 1."""
    x, y = ((pos[:, 0] - 0.5 * t) % 1 - 0.05) / 0.4, 2 * math.pi * pos[:, 1]
    band = torch.sin(math.pi * x.clamp(0, 1)) ** 2
    mean, cosine, sine = shape
    return band * (mean + cosine * y.cos() + sine * y.sin())


def samples(*, irregular: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """On the same points: with points of its own, a sample could be told by them."""
    pos = equispaced_grid(PROBLEM.domain, (SIZE, SIZE))
    if irregular:
        pos = torch.rand_like(pos)
    times = torch.linspace(0, 1, NUM_STEPS)
    x = [field(pos, 0, shape)[:, None, None] for shape in SHAPES]
    y = [torch.stack([field(pos, t, s) for t in times], 1)[..., None] for s in SHAPES]
    batch = torch.arange(len(SHAPES)).repeat_interleave(len(pos))
    return torch.cat(x), pos.repeat(len(SHAPES), 1), batch, torch.cat(y)


def relative(error: Tensor, truth: Tensor) -> float:
    return float((error.norm() / truth.norm()).detach())


@pytest.mark.parametrize("name", SETTINGS)
def test_four_samples_to_two_per_cent(name):
    x, pos, batch, y = samples(irregular=MODELS[name].points)
    model = build_model(name, PROBLEM, {"width": 16, **SETTINGS[name]})
    graphs = model.connect(pos, batch)
    optimiser = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, RATES.get(name, 0.02), total_steps=STEPS
    )
    for _ in range(STEPS):
        optimiser.zero_grad()
        out = model(x, pos, batch, graphs=graphs)
        if relative(out - y, y) < 0.02:
            break
        (out - y).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        assert relative(model(x, pos, batch, graphs=graphs) - y, y) < 0.02
