"""Models on a sphere: which work there, and that no place on it is special."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from torch import Tensor

from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS, Problem, build_model

SPHERE = Domain.sphere()
NUM = 120
PROBLEM = Problem(SPHERE, 2, 2, 3, 4, NUM, None, True)
ABLE = {name for name, info in MODELS.items() if info.spheres}
SMALL = {"width": 16, "hidden": 8, "heads": 2, "modes": 5, "time_modes": 2}
SMALL |= {"window": 2, "dropout": 0.0, "slices": 4}


def scattered(num: int, seed: int = 0) -> Tensor:
    drawn = np.random.default_rng(seed).random((num, 2))
    latitude = np.rad2deg(np.arcsin(2 * drawn[:, 1] - 1))
    points = np.stack([360 * drawn[:, 0] - 180, latitude], axis=1)
    points[:3] = [[0, 90], [77, -90], [-180, 0]]
    return torch.from_numpy(points)


def turned(pos: Tensor, seed: int = 0) -> Tensor:
    rotation = Rotation.random(random_state=seed)
    x, y, z = rotation.apply(SPHERE.normalise(pos, torch.float64).numpy()).T
    degrees = np.rad2deg([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))])
    return SPHERE.wrap(torch.from_numpy(degrees.T))


def made(name: str, problem: Problem = PROBLEM, **changes):
    torch.manual_seed(0)
    fields = MODELS[name].Settings.model_fields
    settings = {k: v for k, v in (SMALL | changes).items() if k in fields}
    return build_model(name, problem, settings).eval()


def test_which_models_work(refuses):
    assert {"nfs", "nfs-vit", "mppde", "gcgru", "dcrnn", "agcrn"} <= ABLE
    for name in MODELS.keys() - ABLE:
        problem = replace(PROBLEM, grid_shape=(12, 10))
        refuses("on a sphere: expected a model", build_model, name, problem, {})


@pytest.mark.parametrize("has_time", [True, False], ids=["time", "steady"])
@pytest.mark.parametrize("name", sorted(ABLE))
def test_a_pole_is_one_place_and_the_order_does_not_matter(name, has_time):
    problem = PROBLEM if has_time else replace(PROBLEM, n_in=1, n_out=1, has_time=False)
    model, pos = made(name, problem), scattered(NUM)
    x = torch.randn(NUM, problem.n_in, 2)
    with torch.no_grad():
        out, moved = model(x, pos), pos.clone()
        # Longitudes of the poles, and the other side of the date line.
        moved[:3, 0] = torch.tensor([133.0, -8.0, 180 - 1e-10], dtype=pos.dtype)
        again = model(x, moved)
        assert out.shape == (NUM, problem.n_out, 2) and out.isfinite().all()
        torch.testing.assert_close(again, out, rtol=1e-3, atol=1e-4)
        if MODELS[name].unseen_meshes:
            mixed = torch.randperm(NUM)
            again = model(x[mixed], pos[mixed])
            torch.testing.assert_close(again, out[mixed], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"time": "channels"}, {"kernel": "none"}])
def test_nfs_without_positions_commutes_with_rotations(settings):
    """To the accuracy of the interpolation; with positions it does not."""
    problem = replace(PROBLEM, num_points=1000)
    pos, query = scattered(1000), scattered(50, seed=1)
    wave = SPHERE.normalise(pos)
    x = torch.stack([wave[:, 0] * wave[:, 1], wave[:, 2] ** 3], 1)[:, None]
    x = x.expand(-1, 3, -1)
    changes = []
    for seen in (False, True):
        model = made("nfs", problem, absolute_position=seen, **settings)
        with torch.no_grad():
            out = model(x, pos, query_pos=query)
            again = model(x, turned(pos), query_pos=turned(query))
        changes.append(((again - out).norm() / out.norm()).item())
    assert changes[0] < 1e-2 and changes[1] > 2 * changes[0]


def test_nfs_is_smooth_across_the_pole_and_the_date_line():
    problem = replace(PROBLEM, num_points=600)
    model, pos = made("nfs", problem), scattered(600)
    x = SPHERE.normalise(pos)[:, None, :2].expand(-1, 3, -1)
    pairs = torch.tensor([[0.0, 89.99], [180 - 1e-3, 89.99], [-180, 5], [179.99, 5]])
    with torch.no_grad():
        out = model(x, pos, query_pos=pairs.double())
    torch.testing.assert_close(out[0::2], out[1::2], atol=1e-3, rtol=0)


def test_the_grid_of_a_sphere(refuses):
    model = made("nfs", grid=20, modes=12, time="tokens")
    assert model.blocks[0][0].mix.transform.degrees == 12
    assert len(model.resampling.grid) == 400
    refuses("patches of 2 nodes on a sphere", made, "nfs-vit", patch=2)


def test_a_radius_is_in_degrees():
    model, pos = made("mppde", radius=30.0), scattered(NUM)
    near = model.connect(pos).edges["near"]
    expected = (SPHERE.distance(pos[None], pos[:, None]) <= 30).sum()
    assert near.num_edges == expected
