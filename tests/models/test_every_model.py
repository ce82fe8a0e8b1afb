"""What holds for every mixer and DeepONet, in one and two dimensions of space."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import (
    MODELS,
    PAPER_PARAMETERS,
    PAPER_PROBLEM,
    Problem,
    build_model,
    parameters_at_paper_setting,
)
from nfsgeo.models.point_mixer import PointMixer
from nfsgeo.testing import without_zeros

# Of the paper's table, four without a layer that was counted and never used.
COUNTS = {"nfs": 37_891_937, "fno": 6_299_425, "pfno": 9_708_353, "vit": 739_425}
COUNTS |= {"mlpmixer": 79_716_161, "gfn": 1_327_937, "mppde": 622_161}
COUNTS |= {"gcgru": 74_945, "dcrnn": 148_673}
# Not in the table; dse has as many as fno, whose modes it has.
OTHERS = {"agcrn": 165_441, "dse": 6_299_425}
UNUSED = 33_792
GRIDS = [name for name, info in MODELS.items() if not info.points]
POINTS = [name for name, i in MODELS.items() if issubclass(i, PointMixer)]
TIED = [name for name in GRIDS if not MODELS[name].unseen_meshes]
SIZE = 8


def problem(dim: int, has_time: bool) -> Problem:
    steps, shape = (3, 4) if has_time else (1, 1), (SIZE,) * dim
    return Problem(Domain.unit(dim), 2, 3, *steps, SIZE**dim, shape, has_time)


def small(name: str, **changes) -> dict:
    """Settings for a grid of eight nodes."""
    fields = MODELS[name].Settings.model_fields
    values = {"width": 8, "modes": 3, "time_modes": 2, "heads": 2, "hidden": 8}
    values |= {"levels": 2, "basis": 6, "grid": SIZE, "dropout": 0.0}
    values |= ({} if name in POINTS else {"patch": 2}) | changes
    return {key: value for key, value in values.items() if key in fields}


def batch_of(p: Problem, samples: int) -> tuple[Tensor, Tensor, Tensor]:
    pos = equispaced_grid(p.domain, p.grid_shape).repeat(samples, 1)
    x = torch.randn(len(pos), p.n_in, p.in_components)
    return x, pos, torch.arange(samples).repeat_interleave(p.num_points)


@pytest.fixture(params=[1, 2], ids="{}d".format)
def dim(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.mark.parametrize("name", COUNTS | OTHERS)
def test_parameters_at_the_setting_of_the_paper(name):
    assert parameters_at_paper_setting(name) == (COUNTS | OTHERS)[name]
    unused = UNUSED if name in ("pfno", "vit", "mlpmixer", "gfn") else 0
    told = None if name in OTHERS else COUNTS[name] + unused
    assert PAPER_PARAMETERS.get(name) == told


@pytest.mark.parametrize("time", ["tokens", "channels", None])
@pytest.mark.parametrize("name", GRIDS + POINTS)
def test_batch_equals_loop_and_every_parameter_learns(name, dim, time):
    p = problem(dim, has_time=time is not None)
    model = build_model(name, p, small(name, **({"time": time} if time else {})))
    without_zeros(model)
    x, pos, batch = batch_of(p, 3)
    together = model(x, pos, batch)
    assert together.shape == (len(pos), p.n_out, 3)
    samples = zip(x.split(p.num_points), pos.split(p.num_points), strict=True)
    alone = torch.cat([model(*sample) for sample in samples])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)
    together.square().sum().backward()
    gradients = {k: q.grad for k, q in model.named_parameters()}
    assert not [k for k, g in gradients.items() if g is None or not g.abs().sum() > 0]


@pytest.mark.parametrize("name", GRIDS + POINTS)
def test_sees_position_and_time(name, dim):
    p = problem(dim, True)
    model = build_model(name, p, small(name))
    _, pos, batch = batch_of(p, 1)
    out = model(torch.ones(len(pos), p.n_in, 2), pos, batch)
    assert out.std(0).min() > 1e-5 and out.std(1).min() > 1e-7


@pytest.mark.parametrize("name", ["nfs-fnet", "fnet", "gino", "neuralop-fno"])
def test_complex_weights_become_double_with_the_others(name, dim):
    p = problem(dim, has_time=True)
    model = build_model(name, p, small(name))
    x, *places = batch_of(p, 2)
    single = model(x, *places)
    for double in (copy.deepcopy(model).double(), model.to(torch.float64)):
        found = double(x.double(), *places)
        assert found.dtype == torch.float64
        torch.testing.assert_close(found.float(), single, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", GRIDS)
def test_a_model_on_grids_names_one_that_takes_points(name):
    assert not MODELS[name].points
    with pytest.raises(UserError, match="irregular points.*such as nfs"):
        build_model(name, replace(PAPER_PROBLEM, grid_shape=None))


@pytest.mark.parametrize("name", GRIDS)
def test_a_model_tied_to_its_grid_says_so_and_others_take_any(name, dim):
    p = problem(dim, True)
    model = build_model(name, p, small(name))
    larger = replace(p, grid_shape=(2 * SIZE,) * dim, num_points=(2 * SIZE) ** dim)
    if MODELS[name].unseen_meshes:
        assert len(model(*batch_of(larger, 1))) == (2 * SIZE) ** dim
        return
    with pytest.raises(UserError, match="use the(se| grid and time steps of training)"):
        model(*batch_of(larger, 1))


@pytest.mark.parametrize("name", [*TIED, "deeponet-v"])
def test_patches_fill_the_grid(name):
    with pytest.raises(UserError, match="model.settings.patch"):
        build_model(name, problem(2, True), small(name, patch=3))
