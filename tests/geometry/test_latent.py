"""Latent coordinates: a map of the domain that follows its points."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfsgeo.geometry import Domain, LatentCoordinates, equispaced_grid, occupancy

BOX = Domain((-1.0, 2.0), (1.0, 3.0), (False, False))
DOMAINS = {
    "box": BOX,
    "torus": Domain.unit(2),
    "channel": Domain((0.0, 0.0), (4.0, 1.0), (True, False)),
    "line": Domain.unit(1, periodic=False),
    "circle": Domain.unit(1),
    "cube": Domain.unit(3, periodic=False),
}


def graded(domain: Domain, num: int, seed: int = 0, spread: float = 0.05) -> Tensor:
    """Points that are dense near a place inside of a domain."""
    rng = np.random.default_rng(seed)
    low, lengths = np.array(domain.lower), np.array(domain.lengths)
    away = (
        spread * rng.standard_normal((num, domain.dim)) * rng.exponential(2, (num, 1))
    )
    place = low + (0.4 + away) * lengths
    inside = low + np.clip(place - low, 0.001 * lengths, 0.999 * lengths)
    return torch.from_numpy(inside)


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("num", [32, 100, 1000, 5000])
def test_evenly_drawn_points_give_the_identity_exactly(domain, num):
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        unit = torch.rand(num, domain.dim, generator=generator, dtype=torch.float64)
        low, lengths = torch.tensor([domain.lower, domain.lengths]).double()
        pos = low + unit * lengths
        latent = LatentCoordinates.of(pos, domain)
        assert latent.identity
        assert latent(pos) is pos


@pytest.mark.parametrize("shape", [(32, 32), (128, 8), (5, 200)])
@pytest.mark.parametrize("periodic", [True, False])
def test_grids_give_the_identity(shape, periodic):
    domain = Domain.unit(2, periodic=periodic)
    assert LatentCoordinates.of(equispaced_grid(domain, shape), domain).identity


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_graded_points_fill_more_of_the_latent_box(domain):
    pos = graded(domain, 2000)
    latent = LatentCoordinates.of(pos, domain)
    before, after = occupancy(pos, domain), occupancy(latent(pos), domain)
    assert not latent.identity
    assert after > min(0.55, 1.5 * before)


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@given(seed=st.integers(0, 1000), spread=st.floats(0.005, 0.1))
@settings(max_examples=10, deadline=None)
def test_the_map_increases_and_is_inverted(domain, seed, spread):
    latent = LatentCoordinates.of(graded(domain, 800, seed, spread), domain)
    low, lengths = torch.tensor([domain.lower, domain.lengths], dtype=torch.float64)
    steps = torch.linspace(0, 1, 501, dtype=torch.float64)[:, None]
    along = low + steps * lengths
    image = latent(along)
    assert (image.diff(dim=0) > 0).all()
    torch.testing.assert_close(image[[0, -1]], along[[0, -1]])
    torch.testing.assert_close(latent.inverse(image), along, rtol=0, atol=1e-9)


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_order_origin_and_units_do_not_matter(domain):
    pos = graded(domain, 600)
    image = LatentCoordinates.of(pos, domain)(pos)
    order = torch.randperm(600)
    moved = LatentCoordinates.of(pos[order], domain)(pos)
    torch.testing.assert_close(moved, image)
    ends = [tuple(1e3 * x - 7 for x in end) for end in (domain.lower, domain.upper)]
    other = Domain(*ends, domain.periodic)
    scaled = LatentCoordinates.of(1e3 * pos - 7, other)(1e3 * pos - 7)
    torch.testing.assert_close((scaled + 7) / 1e3, image, rtol=1e-9, atol=1e-9)


def around(centres: list[tuple[float, ...]], num: int, seed: int) -> Tensor:
    """Points whose distances from bodies at the ``centres`` grow geometrically."""
    rng, dim = np.random.default_rng(seed), len(centres[0])
    away = rng.standard_normal((40 * num, dim))
    apart = np.exp(rng.uniform(np.log(0.003), np.log(0.8), (len(away), 1)))
    away *= (0.03 + apart) / np.linalg.norm(away, axis=1, keepdims=True)
    pos = np.array(centres)[rng.integers(0, len(centres), len(away))] + away
    return torch.from_numpy(pos[((pos > 0) & (pos < 1)).all(1)][:num])


SEVERAL = {
    "three bodies": [(0.2, 0.8), (0.5, 0.3), (0.8, 0.6)],
    "on the diagonal": [(0.2, 0.2), (0.8, 0.8)],
    "in space": [(0.2, 0.8, 0.3), (0.5, 0.3, 0.7), (0.8, 0.6, 0.5), (0.3, 0.3, 0.2)],
}


@pytest.mark.parametrize(("lines", "around", "ratio"), [(40, 40, 100), (12, 12, 30)])
@pytest.mark.parametrize(("unit", "origin"), [(1e3, 0.0), (1.0, 100.0), (0.3, 7.0)])
def test_units_do_not_matter_for_mesh_lines(lines, around, ratio, unit, origin):
    """Mirrored points share coordinates, which each unit rounds in its own way."""
    radius = 0.5 + 2 * (np.geomspace(1, ratio, lines) - 1) / (ratio - 1)
    angle = np.arange(around) * 2 * np.pi / around
    pos = torch.from_numpy(
        (radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], 1)).reshape(
            -1, 2
        )
    )

    def mapped(unit: float, origin: float) -> Tensor:
        ends = (origin - 3 * unit,) * 2, (origin + 3 * unit,) * 2
        domain = Domain(*ends, (False, False))
        place = pos * unit + origin
        return (LatentCoordinates.of(place, domain)(place) - origin) / unit

    assert torch.allclose(mapped(unit, origin), mapped(1.0, 0.0), rtol=0, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num", [1600, 6400])
def test_no_map_where_it_would_leave_the_box_empty(num, seed):
    """Maps of the axes suit one body, not several ones."""
    for dim in (2, 3):
        one, domain = [(0.5,) * dim], Domain.unit(dim, periodic=False)
        assert not LatentCoordinates.of(around(one, num, seed), domain).identity
    for centres in SEVERAL.values():
        domain = Domain.unit(len(centres[0]), periodic=False)
        assert LatentCoordinates.of(around(centres, num, seed), domain).identity


@pytest.mark.parametrize("apart", np.linspace(0, 0.3, 13))
def test_a_point_more_moves_the_map_little_between_one_body_and_two(apart):
    """The strength of the map has no jump."""
    domain = Domain.unit(2, periodic=False)
    pos = around([(0.5 - apart, 0.5 - apart), (0.5 + apart, 0.5 + apart)], 600, 0)
    whole, queries = LatentCoordinates.of(pos, domain), torch.rand(500, 2).double()
    for changed in (pos[1:], pos[:-1], torch.cat([pos, pos[:1]])):
        moved = LatentCoordinates.of(changed, domain)(queries) - whole(queries)
        assert moved.abs().max() < 0.015


@pytest.mark.parametrize("size, bound", [(100, 0.02), (1000, 0.1)])
def test_the_map_of_one_density_does_not_depend_on_the_number_of_points(size, bound):
    """Nor where it has part of its strength, around the smaller body."""
    box = Domain((-1.1, -1.1), (1.1, 1.1), (False, False))
    along = torch.linspace(-1, 1, 101, dtype=torch.float64)[:, None].expand(-1, 2)
    means = []
    for num in (2000, 20000):
        images = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            radius, angle = size ** (rng.random(num) - 1), 2 * np.pi * rng.random(num)
            pos = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            images.append(LatentCoordinates.of(torch.from_numpy(pos), box)(along))
        means.append(torch.stack(images).mean(0))
    assert (means[1] - along).abs().max() > 0.1
    assert (means[0] - means[1]).abs().max() < bound


@pytest.mark.parametrize("along", [150, 200, 300, 500])
@pytest.mark.parametrize("across", [[0, 1, 4, 9], [0, 1, 3, 7, 15]])
def test_meshes_of_few_lines_have_a_map_whatever_their_number_of_points(along, across):
    x, y = torch.linspace(0, 1, along).double(), torch.tensor(across).double()
    pos = torch.cartesian_prod(x, y / y[-1])
    domain, queries = Domain.unit(2, periodic=False), torch.rand(300, 2).double()
    whole = LatentCoordinates.of(pos, domain)(queries)
    for left_out in (0, len(pos) // 3, len(pos) - 2):
        rest = torch.cat([pos[:left_out], pos[left_out + 1 :]])
        moved = LatentCoordinates.of(rest, domain)(queries) - whole
        assert moved.abs().max() < 0.01
    assert (whole - queries)[:, 1].abs().max() > 0.1


def test_periodic_axes_have_no_seam():
    domain = Domain.unit(1)
    pos = domain.wrap(graded(domain, 3000) - 0.4)  # dense around the origin
    latent = LatentCoordinates.of(pos, domain)
    near = torch.tensor([[1 - 1e-6], [1e-6]], dtype=torch.float64)
    end, begin = latent(near).flatten()
    slopes = float(1 - end) / 1e-6, float(begin) / 1e-6
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-2)
    assert slopes[0] > 2


def test_converges_as_a_mesh_of_one_density_is_refined():
    domain, t = Domain.unit(2, periodic=False), torch.linspace(0, 1, 101).double()
    probe = torch.stack([t, t], dim=1)
    images = []
    for num in (20, 40, 80, 160):
        steps = (torch.arange(num).double() + 0.5) / num
        stretched = 0.3 + (steps - 0.5) ** 3 * 0.8  # ends at 0.2 and 0.4
        axes = torch.meshgrid(stretched, stretched, indexing="ij")
        pos = torch.stack([each.flatten() for each in axes], dim=1)
        images.append(LatentCoordinates.of(pos, domain)(probe))
    errors = [float((each - images[-1]).abs().max()) for each in images[:-1]]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.01


def test_queries_outside_the_hull_of_the_points_have_a_place():
    domain = Domain.unit(2, periodic=False)
    latent = LatentCoordinates.of(graded(domain, 1000, spread=0.01), domain)
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    torch.testing.assert_close(latent(corners), corners)
    edge = torch.tensor([[0.001, 0.999]])
    assert ((latent(edge) > 0) & (latent(edge) < 1)).all()


def test_gradients_pass_through_the_map():
    domain = DOMAINS["channel"]
    pos = graded(domain, 500)
    latent = LatentCoordinates.of(pos, domain)
    some = pos[:20].clone().requires_grad_()
    assert torch.autograd.gradcheck(latent, some)


@pytest.mark.parametrize(
    "points",
    [torch.full((500, 2), 0.3), torch.rand(3, 2), torch.rand(500, 2) * 1e-7],
    ids=["one place", "three points", "a tiny box"],
)
def test_degenerate_points_give_a_finite_map(points):
    domain = Domain.unit(2, periodic=False)
    image = LatentCoordinates.of(points, domain)(points)
    assert image.isfinite().all()
    assert ((image >= 0) & (image <= 1)).all()


def test_no_map_on_a_sphere_or_between_walls():
    sphere = Domain.sphere().normalised
    pos = sphere.normalise(
        torch.nn.functional.normalize(torch.randn(500, 3) + 5, dim=1)
    )
    assert LatentCoordinates.of(pos, sphere).identity


def mesh_lines(num: int, lines: int) -> Tensor:
    """Points on few lines that are refined towards y = 2 in ``BOX``."""
    x = torch.linspace(-1, 1, num, dtype=torch.float64)
    y = 2 + torch.linspace(0, 1, lines, dtype=torch.float64) ** 3
    return torch.cartesian_prod(x, y)


def on_walls(num: int, seed: int) -> Tensor:
    """Graded points of which a tenth each lie on two walls, and a third on a line."""
    rng = np.random.default_rng(seed)
    pos = np.array([0.0, 2.5]) + [16.0, 8.0] * (rng.random((num, 2)) - 0.5) ** 5
    pos[: num // 10, 1], pos[num // 10 : num // 5, 1] = 2.0, 3.0
    pos[-num // 3 :, 0] = 0.3
    return torch.from_numpy(pos)


QUERIES = torch.rand(500, 2, dtype=torch.float64) * torch.tensor([2, 1]) - torch.tensor(
    [1, -2]
)


@pytest.mark.parametrize("seed", range(5))
def test_a_point_more_moves_the_map_little(seed):
    """Also where many points share a coordinate."""
    pos = on_walls(300, seed)
    whole = LatentCoordinates.of(pos, BOX)
    assert not whole.identity
    for changed in (pos[1:], pos[:-1], torch.cat([pos, pos[:1]])):
        moved = LatentCoordinates.of(changed, BOX)(QUERIES) - whole(QUERIES)
        assert moved.abs().max() < 0.03


@pytest.mark.parametrize(
    "pos", [mesh_lines(60, 6), mesh_lines(40, 9), on_walls(300, 0)]
)
def test_mirrored_points_have_the_mirrored_map(pos):
    ends = torch.tensor(BOX.lower) + torch.tensor(BOX.upper)
    latent = LatentCoordinates.of(pos, BOX)
    mirrored = LatentCoordinates.of(ends - pos, BOX)
    assert not latent.identity
    torch.testing.assert_close(ends - mirrored(ends - QUERIES), latent(QUERIES))


def test_periodic_axes_repeat():
    domain = DOMAINS["channel"]
    latent = LatentCoordinates.of(graded(domain, 500), domain)
    pos = torch.rand(100, 2, dtype=torch.float64) * torch.tensor(domain.lengths)
    turn = torch.tensor([4.0, 0.0])
    for turns in (-2, -1, 1):
        moved = latent(pos + turns * turn) - turns * turn
        torch.testing.assert_close(moved, latent(pos))
        back = latent.inverse(latent(pos) + turns * turn) - turns * turn
        torch.testing.assert_close(back, pos)


@pytest.mark.parametrize("pos", [[[torch.nan, 2.5]], [[0.0, 4.0]], []])
def test_points_of_no_map_are_refused(pos, one_line):
    one_line(LatentCoordinates.of, torch.tensor(pos).reshape(-1, 2), BOX)


def test_given_strengths_make_maps_of_one_density_alike():
    """Rules that follow each mesh would move the grid with the number of points."""
    coarse, fine = graded(BOX, 400, seed=1), graded(BOX, 6400, seed=2)
    strengths = LatentCoordinates.of(coarse, BOX).strengths
    assert all(0 < strength <= 0.9 for strength in strengths)
    maps = [LatentCoordinates.of(pos, BOX, strengths) for pos in (coarse, fine)]
    for each in maps:
        assert each.strengths == pytest.approx(strengths, abs=1e-9)
    assert (maps[0](QUERIES) - maps[1](QUERIES)).abs().max() < 0.1
    assert LatentCoordinates.of(fine, BOX, (0.0, 0.0)).identity
    assert LatentCoordinates.of(coarse[:5], BOX, strengths).identity
