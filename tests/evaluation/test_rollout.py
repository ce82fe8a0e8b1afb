"""Predictions further ahead than training went, window by window."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import nfsgeo.data
from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.errors import UserError
from nfsgeo.evaluation import evaluate_run, predict
from nfsgeo.geometry import Domain, Graphs
from nfsgeo.models import Model, Problem
from nfsgeo.training import Forecaster, RunPaths
from nfsgeo.training.config import OptimiserSection
from nfsgeo.training.rollout import rollout
from nfsgeo_cli import main


class Sums(Model):
    """Each predicted time step is the sum of all inputs, coefficients included."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.kind = torch.nn.Parameter(torch.zeros(1))  # tells the device

    def predict(self, x: torch.Tensor, graphs: Graphs) -> torch.Tensor:
        here = x.sum(dim=(1, 2))[:, None, None]
        if graphs.query_pos is not None:
            here = here.mean().expand(len(graphs.queries), 1, 1)
        return here.expand(-1, self.problem.n_out, 1)


def sums(n_in: int, n_out: int, has_time: bool = True) -> Forecaster:
    problem = Problem(Domain.unit(1), 2, 1, n_in, n_out, 3, None, has_time)
    plain = [FieldNormaliser(torch.zeros(c), torch.ones(c)) for c in (2, 1)]
    return Forecaster(Sums(problem), *plain, OptimiserSection(), {})


@pytest.mark.parametrize(("n_in", "n_out"), [(3, 2), (2, 3), (1, 1), (2, 2)])
@pytest.mark.parametrize("steps", [1, 2, 5, 6])
def test_each_window_sees_the_last_steps(n_in: int, n_out: int, steps: int) -> None:
    """Against a loop over time steps on the same fields."""
    module, pos = sums(n_in, n_out), torch.rand(3, 1)
    x = torch.randint(1, 5, (3, n_in, 2)).double().float()
    known, wanted = x[..., 0], []
    while len(wanted) < steps:
        total = known[:, -n_in:].sum(1) + x[..., 1].sum(1)
        wanted += [total] * n_out
        known = torch.cat([known, total[:, None].expand(-1, n_out)], dim=1)
    found = rollout(module, x, pos, steps)
    assert torch.equal(found[..., 0], torch.stack(wanted[:steps], dim=1))


def test_observed_points_go_on_where_others_are_asked_for() -> None:
    module, pos = sums(2, 1), torch.rand(3, 1)
    x = torch.ones(3, 2, 2)
    graphs = module.connect(pos, query_pos=torch.rand(5, 1))
    found = rollout(module, x, pos, 3, graphs=graphs)
    assert found.shape == (5, 3, 1)
    assert found[0, :, 0].tolist() == [4, 7, 13]  # 1+1+2, 1+4+2, 4+7+2


def test_a_problem_without_time_has_no_rollout() -> None:
    with pytest.raises(UserError, match="3 time steps of a problem without time"):
        rollout(sums(1, 1, has_time=False), torch.ones(3, 1, 2), torch.rand(3, 1), 3)


def test_as_far_as_training_it_is_the_prediction(run: RunPaths, waves: Path) -> None:
    summary = evaluate_run(run.root, steps=10)
    assert summary["rollout"]["errors"]["model"] == summary["test"]
    np.testing.assert_allclose(summary["rollout"]["times"], 0.25 * np.arange(1, 11))
    longer = evaluate_run(run.root, steps=14)["rollout"]
    same, more = (r["mae_by_step"]["model"] for r in (summary["rollout"], longer))
    assert len(more) == 14 and np.allclose(more[:10], same, rtol=1e-5)
    assert json.loads(run.summary.read_text())["rollout"] == longer
    persistence = longer["mae_by_step"]["persistence"]
    assert len(persistence) == 14 and persistence[13] > persistence[0]
    with pytest.raises(UserError, match="15 output time steps.*24 time steps"):
        evaluate_run(run.root, steps=15)


def test_predictions_of_any_length(run: RunPaths, waves: Path, tmp_path: Path) -> None:
    predict(run.root, waves, tmp_path / "usual.nc")
    predict(run.root, waves, tmp_path / "long.nc", steps=25)
    predict(run.root, waves, tmp_path / "short.nc", steps=4)
    np.save(tmp_path / "q.npy", np.random.default_rng(0).random((6, 2)))
    queries = tmp_path / "q.npy"
    predict(run.root, waves, tmp_path / "q.nc", query_points=queries, steps=25)
    with (
        nfsgeo.data.open(waves) as file,
        nfsgeo.data.open(tmp_path / "usual.nc") as usual,
        nfsgeo.data.open(tmp_path / "long.nc") as long,
        nfsgeo.data.open(tmp_path / "short.nc") as short,
        nfsgeo.data.open(tmp_path / "q.nc") as elsewhere,
    ):
        last = file.times[-1]
        np.testing.assert_allclose(long.times, last + 0.25 * np.arange(1, 26))
        whole, expected = long.read(3, slice(None)), usual.read(3, slice(None))
        np.testing.assert_allclose(whole[:, :10], expected, atol=1e-6)
        np.testing.assert_array_equal(short.read(3, slice(None)), whole[:, :4])
        assert elsewhere.read(3, slice(None)).shape == (6, 25, 1)


@pytest.mark.slow
def test_the_commands(run: RunPaths, waves: Path, tmp_path: Path) -> None:
    evaluated = CliRunner().invoke(main, ["evaluate", str(run.root), "--steps", "14"])
    assert evaluated.exit_code == 0, evaluated.output
    lines = evaluated.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    (head,) = (line for line in lines if "MAE at time step" in line)
    assert head.split()[4:] == ["1", "2", "5", "10", "14"]
    target = str(tmp_path / "o.nc")
    options = ["--input", str(waves), "--output", target, "--steps", "200"]
    predicted = CliRunner().invoke(main, ["predict", str(run.root), *options])
    assert predicted.exit_code == 0, predicted.output
    assert "t = 6.25 to 56" in " ".join(predicted.stdout.split())
