"""Training windows that start from the model's own prediction, or from noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data

import nfsgeo
from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.geometry import Domain, Graphs
from nfsgeo.models import Model, Problem
from nfsgeo.training import Forecaster, load_config, prepare
from nfsgeo.training.config import OptimiserSection
from nfsgeo.training.pushforward import pushed


class Scaled(Model):
    """The last input times one number, the same at all time steps, plus the forcing."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.factor = torch.nn.Parameter(torch.tensor([3.0]))

    def predict(self, x: torch.Tensor, graphs: Graphs) -> torch.Tensor:
        fields, forcing, _ = self.problem.split(x)
        here = (self.factor * fields[:, -1:]).expand(-1, self.problem.n_out, -1)
        here = here + forcing[:, self.problem.n_in :].sum(-1, keepdim=True)
        if graphs.query_pos is None:
            return here
        rows, at = [], 0
        assert graphs.query_sizes is not None
        for size, queries in zip(graphs.sizes, graphs.query_sizes, strict=True):
            rows += [
                here[at : at + size],
                here.new_zeros(queries - size, *here[0].shape),
            ]
            at += size
        return torch.cat(rows)


def batch_of(n_in: int, n_out: int, queries: bool, forcings: int) -> tuple[Any, Batch]:
    problem = Problem(Domain.unit(2), 2, 1, n_in, n_out, 4, None, True, forcings)
    problem = replace(problem, in_components=2 + problem.folds * forcings)
    scales = [FieldNormaliser(torch.zeros(c), torch.ones(c)) for c in (2, 1, 1)]
    module = Forecaster(
        Scaled(problem),
        *scales[:2],
        OptimiserSection(),
        {},
        forcings=scales[2] if forcings else None,
    )
    items, graphs = [], []
    for size in (4, 3):
        pos = torch.rand(size, 2)
        item = Data(x=torch.randn(size, n_in, 2), pos=pos, sample=size)
        item.x[..., 1] = 7  # static
        item.y = torch.randn(size, 2 * n_out, 1)
        if forcings:
            item.forcing = torch.randn(size, n_in + 2 * n_out, 1)
        where = torch.cat([pos, torch.rand(2, 2)]) if queries else None
        if where is not None:
            item.query_pos = where
            item.query_y = torch.cat([item.y, torch.randn(2, 2 * n_out, 1)])
        items.append(item)
        graphs.append(module.connect(pos, query_pos=where))
    batch = Batch.from_data_list(items)
    batch.graphs = Graphs.join(graphs)
    return module, batch


@pytest.mark.parametrize(("n_in", "n_out"), [(3, 2), (2, 3), (1, 1)])
@pytest.mark.parametrize("queries", [False, True])
@pytest.mark.parametrize("forcings", [0, 1])
def test_the_second_window_starts_from_the_first_prediction(
    n_in: int, n_out: int, queries: bool, forcings: int
) -> None:
    module, batch = batch_of(n_in, n_out, queries, forcings)
    second = pushed(module, batch, 1.0)
    first = 3 * batch.x[:, -1:, :1].expand(-1, n_out, -1)
    if forcings:
        first = first + batch.forcing[:, n_in : n_in + n_out]
        assert torch.equal(second.forcing, batch.forcing[:, n_out:])
    known = torch.cat([batch.x[..., :1], first], dim=1)[:, -n_in:]
    torch.testing.assert_close(second.x[..., :1], known)
    assert (second.x[..., 1] == 7).all() and not second.x.requires_grad
    assert torch.equal(second.y, batch.y[:, n_out:])
    if queries:
        assert torch.equal(second.query_y, batch.query_y[:, n_out:])


def test_without_luck_it_is_the_first_window() -> None:
    module, batch = batch_of(2, 3, True, 1)
    first = pushed(module, batch, 0.0)
    assert first.x is batch.x and first.y.size(1) == first.query_y.size(1) == 3
    assert torch.equal(first.forcing, batch.forcing[:, :5])


def test_the_gradient_is_that_of_the_last_prediction_alone() -> None:
    """With u -> f u, from u = 1 to 0: of (f 3)^2 for the 3 that was predicted."""
    module, batch = batch_of(1, 1, False, 0)
    batch.x = torch.ones_like(batch.x)
    batch.y = torch.zeros_like(batch.y)
    module.pushforward, module.log = 1.0, lambda *args, **more: None
    module.training_step(batch, 0).backward()
    assert module.model.factor.grad.item() == pytest.approx(2 * 3 * 3 * 3)


@pytest.mark.slow
def test_training_with_it_resumes_and_evaluates(
    train: Callable[..., Any], resume: Callable[..., Any]
) -> None:
    chosen = {"data.n_in": 4, "data.n_out": 5, "loss.pushforward": 0.5}
    chosen |= {"data.training_noise": 0.1, "trainer.epochs": 2}
    once, again = train("once", chosen), train("again", chosen)
    assert once.is_the_same_as(again)
    assert nfsgeo.evaluate(once.paths, steps=20)["test"]["mae"] < 10


def test_noise_of_training_is_in_training_alone(waves: Path, tiny: Any) -> None:
    chosen = tiny | {"data.file": str(waves), "data.n_in": 4, "data.n_out": 4}
    plain = prepare(load_config(overrides=chosen))
    noisy = prepare(load_config(overrides=chosen | {"data.training_noise": 0.5}))
    assert noisy.data.parts["valid"].noise is None
    for part in ("train", "valid"):
        clean, other = plain.data.parts[part][0], noisy.data.parts[part][0]
        assert torch.equal(clean.y, other.y)
        assert torch.equal(clean.x, other.x) == (part == "valid")
    torch.testing.assert_close(
        noisy.forecaster.outputs.std, plain.forecaster.outputs.std
    )
    scale = noisy.data.parts["train"].noise / noisy.forecaster.inputs.std.cpu()
    torch.testing.assert_close(scale, torch.tensor([0.5]).double())
    both = chosen | {"data.training_noise": 0.3, "data.input_noise": 0.4}
    found = prepare(load_config(overrides=both))
    for part, size in (("train", 0.5), ("valid", 0.4)):
        scale = found.data.parts[part].noise / found.forecaster.inputs.std.cpu()
        torch.testing.assert_close(scale, torch.tensor([size]).double())
