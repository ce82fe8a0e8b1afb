"""The models that take any points."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import MODELS, Problem, build_model
from nfsgeo.testing import without_zeros

NAMES = [name for name, info in MODELS.items() if info.points]
AT_OWN_POINTS = [n for n in NAMES if not MODELS[n].predicts_anywhere]
ANY_MESH = [name for name in NAMES if MODELS[name].unseen_meshes]
SMALL = {"width": 8, "radius": 0.3, "window": 3, "modes": 2, "time_modes": 2}
SMALL |= {"hidden": 8, "grid": 4, "dropout": 0.0}
# One channel for each of the decoder's kernels.
OTHERWISE = {"mppde": {"width": 24, "depth": 2}}
DARCY = {"n_in": 1, "n_out": 1, "has_time": False}


def problem(dim: int = 2, **changes) -> Problem:
    return replace(Problem(Domain.unit(dim), 1, 1, 3, 7, 20, None, True), **changes)


def sample(p: Problem, num_points: int | None = None) -> tuple[Tensor, Tensor]:
    num = num_points or p.num_points
    return torch.randn(num, p.n_in, p.in_components), torch.rand(num, p.domain.dim)


def make(name: str, p: Problem, **settings) -> torch.nn.Module:
    fields = MODELS[name].Settings.model_fields
    small = {key: value for key, value in SMALL.items() if key in fields}
    return build_model(name, p, {**small, **OTHERWISE.get(name, {}), **settings})


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("model", ANY_MESH)
def test_a_mesh_of_its_own_for_each_sample(model, dim):
    """And query points of its own, where the model predicts anywhere."""
    p = problem(dim, in_components=3, out_components=2)
    made = make(model, p)
    parts = [sample(p, n) for n in (10, 20, 15)]
    x, pos = (torch.cat(column) for column in zip(*parts, strict=True))
    batch = torch.arange(3).repeat_interleave(torch.tensor([10, 20, 15]))
    together = made(x, pos, batch)
    alone = torch.cat([made(*part) for part in parts])
    assert together.shape == (45, 7, 2)
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    if made.predicts_anywhere:
        queries = torch.cat([pos[8:10], torch.rand(4, dim)])
        of = torch.tensor([0, 0, 0, 1, 1, 2])
        found = made(x, pos, batch, query_pos=queries, query_batch=of)
        pairs = zip(parts, queries.split([3, 2, 1]), strict=True)
        alone = torch.cat([made(*part, query_pos=some) for part, some in pairs])
        torch.testing.assert_close(found, alone, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found[:2], together[8:10], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", ANY_MESH)
def test_order_of_points_does_not_matter(model):
    p = problem()
    made, (x, pos) = make(model, p), sample(p)
    # Some places have two points, with values of their own.
    pos[:5, 0], pos[5:10] = 0, pos[:5]
    pos[5:7, 0] = 1
    order = torch.randperm(len(x))
    torch.testing.assert_close(
        made(x[order], pos[order]), made(x, pos)[order], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("model", ["gcgru", "dcrnn", "mppde", "meshgraphnets", "rigno"])
@settings(max_examples=10, deadline=None)
@given(shift=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_the_torus_has_no_seam(model, shift):
    """Up to the embeddings of those that see positions."""
    p = problem()
    made, (x, pos) = make(model, p), sample(p)
    if model == "mppde":
        torch.nn.init.zeros_(made.step.embedding[0].weight[:, 3:5])
    if model == "meshgraphnets":
        torch.nn.init.zeros_(made.node_encoder[0].weight[:, 3:])
    if model == "rigno":
        torch.nn.init.zeros_(made.point_embedding[0].weight[:, 3:])
        torch.nn.init.zeros_(made.node_embedding[0].weight[:, :-1])
    pos = pos.double()
    moved = p.domain.wrap(pos + torch.tensor(shift, dtype=torch.float64))
    torch.testing.assert_close(made(x, moved), made(x, pos), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [{}, {"n_in": 1}, {"n_in": 5, "n_out": 2}, DARCY]
    + [{"in_components": 3, "out_components": 2}]
    + [{**DARCY, "in_components": 2, "out_components": 3}],
    ids=str,
)
@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_learns(name, changes):
    p = problem(**changes)
    made, (x, pos) = without_zeros(make(name, p)), sample(p)
    batch = torch.arange(2).repeat_interleave(20)
    out = made(torch.cat([x, x.flip(0)]), torch.cat([pos, pos]), batch)
    assert out.shape == (40, p.n_out, p.out_components)
    (out - 1).square().sum().backward()
    silent = [n for n, q in made.named_parameters() if not q.grad.abs().sum() > 0]
    assert not silent


@pytest.mark.parametrize("name", AT_OWN_POINTS)
def test_predicts_at_the_observed_points_alone(name, refuses):
    p = problem()
    made, (x, pos) = make(name, p), sample(p)
    torch.testing.assert_close(made(x, pos, query_pos=pos.clone()), made(x, pos))
    refuses("own points alone.*train nfs", made, x, pos, query_pos=torch.rand(4, 2))
    with pytest.raises(ValueError, match=r"expected \[N, 3, 1\]"):
        made(x[:, :2], pos)


def test_coefficients_reach_the_decoder():
    """Their last record tells them to every step that is fed a prediction."""
    p = problem(in_components=2)
    for model in ("gcgru", "dcrnn", "agcrn", "mppde"):
        made, (x, pos) = make(model, p), sample(p)
        gradient = torch.autograd.grad(made(x.requires_grad_(), pos)[:, -1].sum(), x)[0]
        assert gradient[:, -1, 1].abs().sum() > 0


def test_recurrent_models_feed_back_what_they_predict():
    """A longer prediction begins with the shorter one."""
    for model in ("gcgru", "dcrnn", "agcrn"):
        made, (x, pos) = make(model, problem()), sample(problem())
        seven = made(x, pos)
        made.problem = problem(n_out=4)
        torch.testing.assert_close(made(x, pos), seven[:, :4])


@pytest.mark.parametrize("residual", [True, False])
def test_residual_adds_the_last_record(residual):
    p = problem()
    made, (x, pos) = make("dcrnn", p, residual=residual), sample(p)
    torch.nn.init.zeros_(made.output.weight)
    torch.nn.init.ones_(made.output.bias)
    expected = (x[:, -1:] if residual else 0) + torch.ones(20, 7, 1)
    torch.testing.assert_close(made(x, pos), expected)


def test_dse_on_a_grid_is_fno():
    p = problem(num_points=64, grid_shape=(8, 8))
    settings = {"width": 8, "modes": 3, "time_modes": 3, "depth": 2}
    ours, fno = build_model("dse", p, settings), build_model("fno", p, settings)
    ours.lift.load_state_dict(fno.lift.state_dict())
    ours.projector.load_state_dict(fno.projector.state_dict())
    for spectral, pointwise, block in zip(
        ours.spectral, ours.pointwise, fno.blocks, strict=True
    ):
        pointwise.load_state_dict(block.residual.state_dict())
        weight = block.mix.weight.detach().view_as(spectral.weight)
        spectral.weight = torch.nn.Parameter(weight)
    pos = equispaced_grid(p.domain, (8, 8)).repeat(2, 1)
    x, batch = torch.randn(128, 3, 1), torch.arange(2).repeat_interleave(64)
    torch.testing.assert_close(
        ours(x, pos, batch), fno(x, pos, batch), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("has_time", [True, False])
@pytest.mark.parametrize("name", ["gcgru", "dcrnn", "agcrn"])
def test_recurrent_models_see_coordinates_where_they_are_asked_to(name, has_time):
    p = problem() if has_time else problem(**DARCY)
    pos = torch.rand(20, 2)
    for coordinates in (False, True):
        found = []
        for where in (pos, (pos + 0.25) % 1.0):  # the same graph on the torus
            torch.manual_seed(0)
            model = make(name, p, coordinates=coordinates)
            found.append(model(torch.ones(20, p.n_in, 1), where))
        assert torch.allclose(*found, atol=1e-5) is not coordinates
