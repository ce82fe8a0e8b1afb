"""Meshes: on the grid or exactly off it, seeded, and as dense as they claim."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fields import Array, build

from nfsgeo.data import Fields
from nfsgeo.data.lazy import deferred
from nfsgeo.data.meshes import (
    MESH_KINDS,
    Mesh,
    SubsetsInTurn,
    clustered,
    disjoint,
    jittered,
    nested,
    off_grid,
    random_subset,
    sub_grid,
    with_queries,
)
from nfsgeo.data.meshes.mesh import spread_subset
from nfsgeo.data.streams import Stream, philox
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain


class Silent:
    """Values of a field that no sampler asks for."""

    def __call__(self, key: Any) -> np.ndarray:
        raise AssertionError("samplers read no values")


def made(
    shape: tuple[int, ...], periodic: tuple[bool, ...], cells: bool = False
) -> Fields:
    """A grid of five samples: periodic axes leave out their end point."""
    low = tuple(0.5 * i for i in range(len(shape)))
    axes = [
        v + (np.arange(n) + 0.5 * cells) / (n if wraps or cells else n - 1) * 2
        for v, n, wraps in zip(low, shape, periodic, strict=True)
    ]
    letters = "nxyz"[: 1 + len(shape)]
    u = deferred([*letters], (5, *shape), float, Silent())
    domain = Domain(low, tuple(v + 2.0 for v in low), periodic)
    return build(Path("grid"), [Array(u, letters, ["u"])], axes=axes, domain=domain)


GRIDS = [
    made((30,), (True,)),
    made((12, 10), (True, False)),
    made((4, 6, 5), (False, True, True)),
]


def check_inside(file: Fields, mesh: Mesh) -> None:
    low, high = np.array(file.domain.lower), np.array(file.domain.upper)
    assert (mesh.pos >= low).all() and (mesh.pos <= high).all()
    wraps = np.array(file.domain.periodic)
    assert (mesh.pos < high)[:, wraps].all()
    if mesh.index is not None:
        np.testing.assert_array_equal(mesh.pos, file.coordinates()[mesh.index])


@pytest.mark.parametrize("coarse", [6, (6, 4), (2, 3, 5)])
@pytest.mark.parametrize("name", MESH_KINDS)
def test_every_kind_of_mesh_is_seeded_and_stays_inside(name, coarse):
    file = GRIDS[np.size(coarse) - 1]
    kind, num = MESH_KINDS[name], {"points": 9, "grid": np.prod(coarse)}
    size = {"points": 9, "grid": coarse}.get(kind.size)
    first, again = kind.sampler(file, size, 4), kind.sampler(file, size, 4)
    np.testing.assert_array_equal(first.pos, again.pos)
    assert len(first) == num.get(kind.size, file.num_points())
    assert len(np.unique(first.pos, axis=0)) == len(first)
    for other in (kind.sampler(file, size, 5), kind.sampler(file, size, 4, 1)):
        assert np.array_equal(first.pos, other.pos) != kind.drawn
    check_inside(file, first)


def test_draws_never_change():
    # Runs must be repeatable with any later version of numpy and of this package.
    assert random_subset(GRIDS[0], 5, seed=0).index.tolist() == [0, 8, 9, 19, 26]


def test_random_subset_is_uniform():
    counts = np.zeros(30)
    for seed in range(2000):
        counts[random_subset(GRIDS[0], 6, seed).index] += 1
    # 2000 draws with chance 1/5: five standard deviations are 90.
    assert abs(counts - 400).max() < 90


@given(st.integers(1, 60), st.integers(60, 120), st.integers(0, 99))
def test_nested_mesh_begins_with_the_seen_one(few, many, seed):
    file = GRIDS[1]
    seen = random_subset(file, few, seed)
    mesh = nested(seen, file, many, seed)
    assert len(mesh) == many
    np.testing.assert_array_equal(mesh.index[:few], seen.index)
    assert len(np.unique(mesh.index)) == many
    check_inside(file, mesh)


def test_meshes_off_the_grid_grow_off_the_grid():
    seen = off_grid(GRIDS[2], 10, 0)
    mesh = nested(seen, GRIDS[2], 25, 0)
    np.testing.assert_array_equal(mesh.pos[:10], seen.pos)
    whole = with_queries(mesh, GRIDS[2], 15, 0).with_queries_joined()
    assert whole.index is None and len(np.unique(whole.pos, axis=0)) == 40
    check_inside(GRIDS[2], whole)


@given(st.sampled_from([1, 4, 16]), st.integers(1, 5), st.integers(0, 99))
def test_no_unseen_point_is_in_any_point_set(sets, few, seed):
    file = GRIDS[2]
    drawn = [random_subset(file, few, 100 * seed + number) for number in range(sets)]
    trained = np.unique(np.concatenate([mesh.index for mesh in drawn]))
    left = 120 - len(trained)
    larger = nested(drawn[0], file, few + left, seed, trained=trained)
    np.testing.assert_array_equal(larger.index[:few], drawn[0].index)
    apart = disjoint(drawn[0], file, left, seed, trained=trained)
    for unseen in (larger.index[few:], apart.index):
        assert len(np.unique(unseen)) == left
        assert not np.isin(unseen, trained).any()
    around = nested(off_grid(file, few, seed), file, few + left, seed, trained=trained)
    assert around.index is None
    known = set(map(tuple, file.coordinates()[trained].tolist()))
    assert not known & set(map(tuple, around.pos.tolist()))
    for draw, num in ((nested, few + left + 1), (disjoint, left + 1)):
        with pytest.raises(UserError, match=f"has seen {len(trained)} of its 120"):
            draw(drawn[0], file, num, seed, trained=trained)


def test_sub_grid_keeps_order_and_ends():
    mesh = sub_grid(GRIDS[1], (6, 4))
    assert mesh.grid_shape == (6, 4)
    x, y = mesh.pos.reshape(6, 4, 2)[..., 0], mesh.pos.reshape(6, 4, 2)[..., 1]
    np.testing.assert_allclose(x[:, 2], np.arange(6) / 3)
    np.testing.assert_allclose(y[3], [0.5, 0.5 + 2 / 3, 0.5 + 4 / 3, 2.5])
    check_inside(GRIDS[1], mesh)


def test_sub_grid_of_cells_stays_centred():
    mesh = sub_grid(made((9, 15), (False, False), cells=True), (3, 5))
    np.testing.assert_allclose(mesh.pos.reshape(3, 5, 2)[:, 0, 0], [1 / 3, 1, 5 / 3])


def test_density_varies_tenfold():
    file = made((32, 32), (True, True))
    field = np.zeros((32, 32))
    for seed in range(600):
        # The peak is where the stream begins.
        peak = philox(seed, Stream.CLUSTERED, 0).random(2)
        drawn = np.zeros(32 * 32)
        drawn[clustered(file, 100, seed).index] = 1
        shift = 3 - np.round(32 * peak).astype(int)
        field += np.roll(drawn.reshape(32, 32), tuple(shift), axis=(0, 1))
    # The cosine is flat at its ends: the blocks average 9.2.
    assert 8 < field[1:6, 1:6].mean() / field[17:22, 17:22].mean() < 11


def test_requests_that_cannot_be_met(one_line, point_case):
    one_line(random_subset, GRIDS[0], 31, 0)
    one_line(random_subset, GRIDS[0], 0, 0)
    one_line(sub_grid, GRIDS[0], 7)
    one_line(sub_grid, GRIDS[1], (6, 5))
    one_line(off_grid, made((5, 5), (False, False)), 4, 0)
    seen = random_subset(GRIDS[0], 10, 0)
    one_line(nested, seen, GRIDS[0], 9, 0)
    one_line(nested, seen, GRIDS[0], 31, 0)
    assert "clustered points of" in one_line(clustered, GRIDS[1], 110, 0)
    cloud = point_case.make()
    one_line(sub_grid, cloud, 2)
    one_line(off_grid, cloud, 2, 0)
    assert len(random_subset(cloud, 5, 0, sample=1)) == 5


@given(st.integers(1, 6), st.integers(2, 5), st.integers(0, 2), st.integers(0, 99))
def test_jitter_stays_within_its_cell(stride, num, kind, seed):
    """On periodic axes, on those that reach the ends, and on those of cells."""
    points, wraps = num * stride - (stride - 1) * (kind == 1), kind == 0
    file = made((points,) * 2, (wraps, wraps), cells=kind == 2)
    mesh, seen = jittered(file, num, seed), sub_grid(file, num).pos
    away = np.abs(mesh.pos - seen) / np.ptp(file.axes[0]) * (points - 1)
    away = np.minimum(away, points - away) if wraps else away
    assert away.max() <= (0.4 * stride if wraps else stride // 2) + 1e-9
    check_inside(file, mesh)
    assert len(np.unique(mesh.pos, axis=0)) == num**2


def test_jitter_moves_points_as_far_as_it_may():
    for periodic, most in ((True, 0.4), (False, 0.5)):
        file = made((24, 16), (periodic, periodic), cells=True)
        away = jittered(file, (6, 8), 3).pos - sub_grid(file, (6, 8)).pos
        share = np.abs(away - 2 * np.round(away / 2)) / [2 / 6, 2 / 8]
        assert 0.9 * most < share.max() <= most + 1e-9


@given(st.integers(1, 60), st.integers(0, 40), st.floats(0.05, 1), st.integers(0, 9))
def test_in_every_other_turn_a_subset_of_the_points_is_drawn(num, turn, fraction, seed):
    whole = Mesh(np.random.default_rng(0).random((num, 2)), np.arange(num))
    subsets = SubsetsInTurn(whole, np.array([0, 3, 3]), fraction, seed)
    for sample in range(3):
        mesh = subsets(sample, turn)
        if (sample + turn) % 2 == 0:
            assert mesh is whole
            continue
        assert max(1, round(fraction * num)) <= len(mesh) <= num
        assert (np.diff(mesh.index) > 0).all()
        np.testing.assert_array_equal(mesh.pos, whole.pos[mesh.index])
        again = subsets(sample, turn + 2 * (subsets.period - 1))
        np.testing.assert_array_equal(again.index, mesh.index)
    # Samples on one mesh have the same subsets.
    first, second = subsets(1, 1), subsets(2, 0)
    np.testing.assert_array_equal(first.index, second.index)


def test_fractions_of_the_points_are_uniform():
    whole = Mesh(np.random.rand(1000, 2), np.arange(1000))
    subsets = SubsetsInTurn(whole, np.arange(400), 0.4, seed=0)
    sizes = [len(subsets(s, 1 + s)) / 1000 for s in range(400)]
    assert np.mean(sizes) == pytest.approx(0.7, abs=0.03)
    assert np.std(sizes) == pytest.approx(0.6 / 12**0.5, abs=0.02)


@pytest.mark.parametrize("fraction", [0.1, 0.4, 0.5, 0.7, 0.9, 1.0])
def test_subsets_are_graded_as_all_points_are(fraction):
    """Every part of a mesh loses its share of points, where it is dense and coarse."""
    rng = np.random.default_rng(0)
    pos = rng.random((4000, 2)) ** 4
    num = round(fraction * len(pos))
    subset = spread_subset(pos, num, rng)
    assert len(subset) == num
    assert (np.diff(subset) > 0).all()
    part = np.floor(pos**0.25 * 5).astype(int) @ [5, 1]  # of 160 points each
    counts = [np.bincount(part[index], minlength=25) for index in (subset, ...)]
    off = counts[0] - fraction * counts[1]
    # Points drawn independently of each other deviate by this much.
    independent = np.sqrt(fraction * (1 - fraction) * counts[1])
    assert (off**2).sum() <= 0.5 * (independent**2).sum()


def test_points_of_a_subset_are_drawn_alike_but_for_the_sizes_of_groups():
    rng, pos = np.random.default_rng(0), np.random.default_rng(1).random((30, 2))
    for num in (1, 7, 12, 15, 20, 29):
        drawn = [spread_subset(pos, num, rng) for _ in range(3000)]
        share = np.bincount(np.concatenate(drawn), minlength=30) / 3000
        few = min(num, 30 - num)
        ends = [1 / -(-30 // few), 1 / (30 // few)]
        low, high = ends if few == num else (1 - ends[1], 1 - ends[0])
        assert low - 0.04 < share.min() <= share.max() < high + 0.04
