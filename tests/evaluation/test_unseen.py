"""Errors on larger meshes."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfsgeo.data
from nfsgeo.errors import UserError
from nfsgeo.evaluation import evaluate_run
from nfsgeo.evaluation.scored_model import ScoredModel
from nfsgeo.evaluation.unseen import COLUMNS, evaluate_unseen
from nfsgeo.geometry import Domain
from nfsgeo.training import Experiment, RunPaths, load_config, prepare, read_config
from nfsgeo.training.run_data import RunData


def rows_of(
    run: RunPaths, waves: Path, factor: float, repeats: int = 1, **options: Any
) -> list[dict[str, Any]]:
    config = read_config(run.config)
    with nfsgeo.data.open(waves) as file:
        scored = ScoredModel(nfsgeo.load(run), RunData(config, file))
        return evaluate_unseen(scored, [factor], repeats, **options)[0]


def test_a_row_for_each_mesh(run):
    summary = evaluate_run(run.root, factors=[1.5, 2], repeats=3)
    with open(run.unseen, newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["num_points"] for row in rows] == ["96"] * 3 + ["128"] * 3
    mae = [float(row["mae"]) for row in rows[3:]]
    assert len(set(mae)) == 3  # meshes are drawn anew
    assert summary["unseen"]["2"]["mae"] == pytest.approx(
        {"mean": np.mean(mae), "std": np.std(mae)}
    )


def test_seen_and_unseen_points_make_up_the_whole(run, waves):
    (row,) = rows_of(run, waves, 3)
    assert row["mae"] == pytest.approx((row["mae_seen"] + 2 * row["mae_unseen"]) / 3)


def test_more_points_than_training_has_left(run, waves):
    with pytest.raises(UserError, match="training has seen 25. of its 256 points"):
        rows_of(run, waves, 2, at="file")
    # Between the points of the file there are always more.
    (row,) = rows_of(run, waves, 5)
    assert row["num_points"] == 320


def places(pos: Any) -> set[tuple[float, ...]]:
    """Points ``[n, d]`` that compare as a whole."""
    return set(map(tuple, np.asarray(pos, np.float32).tolist()))


def trained_on(experiment: Experiment) -> set[tuple[float, ...]]:
    """Every point of every sample that training sees in an endless run."""
    samples, found = experiment.data.parts["train"], set()
    for samples.epoch in range(16):  # as many point sets, or sets of query points
        for number in range(len(samples)):
            item = samples[number]
            found |= places(item.pos)
            if "query_pos" in item:
                found |= places(item.query_pos)
    return found


def untrained(path: Path, tiny: dict[str, Any], **settings: Any) -> Experiment:
    found = {f"data.{name}": value for name, value in settings.items()}
    return prepare(load_config(overrides=tiny | found | {"data.file": str(path)}))


def unseen(
    e: Experiment, factors: list[float], **options: Any
) -> tuple[set[tuple[float, ...]], dict[str, Any]]:
    """The points that are called unseen on larger meshes, and what is told of them."""
    points: set[tuple[float, ...]] = set()

    class Watched(ScoredModel):
        def errors_in_parts(self, windows: Any, num_first: Any = None) -> Any:
            for item in windows:
                points.update(places(item.pos[num_first(int(item.sample)) :]))
            return super().errors_in_parts(windows, num_first)

    scored = Watched(e.forecaster, e.used)
    rows, told = evaluate_unseen(scored, factors, 2, **options)
    assert points and all(np.isfinite(row["mae_unseen"]) for row in rows)
    return points, told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("meshes", "points", "at"),
    [(1, 8, "file"), (16, 8, "file"), (4, 64, "off-grid"), (16, 64, None)],
)
def test_no_unseen_point_is_in_any_training_point_set(waves, tiny, meshes, points, at):
    e = untrained(waves, tiny, points=points, point_sets=meshes)
    (found, told), trained = unseen(e, [2, 4], at=at), trained_on(e)
    assert not found & trained
    assert told["trained"] == len(trained) and told["points"] == 256
    assert told["at"] == (at or "off-grid")
    on_grid = {point for point in found if (16 * np.array(point) % 1 == 0).all()}
    assert on_grid == (found if at == "file" else set())


def test_samples_with_meshes_of_their_own(waves, tiny):
    e = untrained(waves, tiny, points=8, mesh_per_sample=True)
    assert not unseen(e, [2], at="file")[0] & trained_on(e)


def test_clouds_are_told_apart_by_coordinates(tiny, refuses):
    """Each sample on a mesh of the file that shares points with all others."""
    random, path = np.random.default_rng(0), Path("clouds.nc")
    shared = random.random((60, 2))
    clouds = [np.concatenate([shared, random.random((60, 2))]) for _ in range(20)]
    u, domain = random.normal(size=(20, 120, 20)), Domain.unit(2, periodic=False)
    points = [random.permutation(each) for each in clouds]
    nfsgeo.from_arrays(u, points, np.arange(20.0), domain=domain).write(path)
    e = untrained(path, tiny, points=20)
    (found, told), trained = unseen(e, [2]), trained_on(e)
    assert not found & trained
    sample = int(e.file.split["test"][0])
    assert told["at"] == "file"
    assert told["trained"] == len(places(e.file.coordinates(sample)) & trained) > 20
    refuses("--unseen-at file", unseen, e, [2], at="off-grid")


def test_settings_are_advised_only_where_they_can_be_smaller(waves, tiny, one_line):
    e = untrained(waves, tiny, points=200, point_sets=1, query_points=0)
    for sets, queries in ((1, 0), (2, 0), (1, 4)):
        data = e.config.data.changed(point_sets=sets, query_points=queries)
        scored = ScoredModel(e.forecaster, RunData(e.config.changed(data=data), e.file))
        line = one_line(evaluate_unseen, scored, [2], 1, at="file")
        assert ("data.point_sets=1" in line) == (sets > 1), line
        assert ("data.query_points=0" in line) == bool(queries), line


@pytest.mark.parametrize("points", [None, 6])
def test_points_of_own_meshes_are_called_observed_and_not_trained(
    around_bodies, tiny, one_line, points
):
    """Training has seen none of the points of a test sample."""
    path = around_bodies().write("bodies.nc")
    more = {"points": points} if points else {}
    e = untrained(path, tiny, n_in=2, n_out=2, **more)
    line = one_line(unseen, e, [9])
    assert "training has seen" not in line and "observed" in line
    assert ("take the test errors" in line) == (points is None)
    assert points is None or unseen(e, [2])[1]["trained"] == 0


@pytest.mark.parametrize(
    "wrong", [{"factors": [1]}, {"steps": 1000}, {"calibrate": True}]
)
def test_what_cannot_be_evaluated_is_refused_before_anything_is_scored(run, wrong):
    done = list[tuple[str, int, int]]()
    with pytest.raises(UserError):
        evaluate_run(run.root, progress=lambda *step: done.append(step), **wrong)
    assert not done


def test_a_model_of_grids_is_refused(waves, refuses):
    overrides = {"data.file": str(waves), "model.name": "fno"}
    e = prepare(load_config(overrides=overrides | {"model.settings.width": 4}))
    refuses("takes any points", unseen, e, [2])
