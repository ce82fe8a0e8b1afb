"""The training step around a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from nfsgeo.data.connected_batches import ConnectedBatches
from nfsgeo.data.normalisers import FieldNormaliser
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain, Graphs, equispaced_grid
from nfsgeo.models import NFS, Model, Problem
from nfsgeo.nn.kriging import StationaryCovariance
from nfsgeo.training import Forecaster, load_config, prepare
from nfsgeo.training.config import OptimiserSection

BOX = Domain.unit(2, periodic=False)


class Last(Model):
    """Repeats the last time step of the first component, and remembers its inputs."""

    def __init__(self) -> None:
        super().__init__(Problem(BOX, 2, 1, 1, 2, 1, None, True))
        self.unused = nn.Parameter(torch.zeros(()))

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        self.seen = x
        return x[:, -1:, :1].expand(-1, 2, -1)


def forecaster(output_mean: float = 0.0, output_std: float = 1.0) -> Forecaster:
    inputs = FieldNormaliser(torch.tensor([1.0, 5.0]), torch.tensor([2.0, 10.0]))
    outputs = FieldNormaliser(torch.tensor([output_mean]), torch.tensor([output_std]))
    return Forecaster(Last(), inputs, outputs, OptimiserSection(), {})


def batch(x: Tensor, y: Tensor, samples: list[int]) -> Batch:
    """Graphs of one point each."""
    rows = zip(x, y, samples, strict=True)
    pos = torch.zeros(1, 2)
    return Batch.from_data_list(
        [Data(x=u[None], y=v[None], pos=pos, sample=s) for u, v, s in rows]
    )


def test_the_model_sees_normalised_fields_and_gives_them() -> None:
    module = forecaster(output_mean=7.0, output_std=3.0)
    x = torch.tensor([[[5.0, 25.0]]])
    result = module(x, torch.zeros(1, 2))
    assert isinstance(module.model, Last)
    assert module.model.seen.tolist() == [[[2.0, 2.0]]]
    assert result.flatten().tolist() == [13.0, 13.0]  # 2 * 3 + 7


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((4, 1, 1), "[points, 1, 2], whose components are 1 of the field and 1 of the"),
        ((4, 1, 1), "append the static input"),
        ((4, 1, 3), "give the inputs that the model was trained with"),
        ((4, 2), "x of shape [4, 2]"),
    ],
)
def test_inputs_unlike_those_of_training(shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(UserError) as caught:
        forecaster()(torch.zeros(shape), torch.zeros(4, 2))
    assert words in str(caught.value)


def test_the_loss_is_that_of_normalised_fields() -> None:
    module = forecaster(output_std=4.0)
    module.log = lambda *_, **__: None  # type: ignore[method-assign]
    x = torch.tensor([[[1.0, 5.0]], [[3.0, 5.0]]])  # predicted as 0 and 4
    y = torch.tensor([[[2.0], [2.0]], [[4.0], [8.0]]])
    loss = module.training_step(batch(x, y, [0, 1]), 0)
    # Errors 2, 2, 0, 4 in the units of the data, over a standard deviation of 4.
    assert loss.item() == pytest.approx((4 + 4 + 0 + 16) / 16 / 4)


def test_quadrature_weights_of_a_batch_weigh_the_loss() -> None:
    module = forecaster()
    module.log = lambda *_, **__: None  # type: ignore[method-assign]
    x = torch.tensor([[[1.0, 5.0]], [[3.0, 5.0]]])  # predicted as 0 and 1
    graphs = batch(x, torch.tensor([[[2.0], [0.0]], [[4.0], [1.0]]]), [0, 1])
    graphs.volume = torch.tensor([0.5, 1.5])
    loss = module.training_step(graphs, 0)
    assert loss.item() == pytest.approx((0.5 * (4 + 0) + 1.5 * (9 + 0)) / 4)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_names_the_samples(bad: float) -> None:
    module = forecaster()
    module.log = lambda *_, **__: None  # type: ignore[method-assign]
    module.training_step(batch(torch.zeros(2, 1, 2), torch.zeros(2, 2, 1), [1, 2]), 0)
    x = torch.full((2, 1, 2), bad)
    module.training_step(batch(x, torch.zeros(2, 2, 1), [4, 11]), 1)
    with pytest.raises(UserError, match=r"samples \[4, 11\].*a finite number"):
        module._check_losses()


class Nothing(Model):
    """Predicts zeros at the queries."""

    def __init__(self) -> None:
        super().__init__(Problem(BOX, 1, 1, 4, 2, 64, None, True))
        self.unused = nn.Parameter(torch.zeros(()))

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        return x.new_zeros(len(graphs.queries), 2, 1)


def test_changes_are_added_to_the_last_time_step() -> None:
    """Also where it was not observed: there it is interpolated, here exactly."""
    scale = FieldNormaliser(torch.zeros(1), torch.ones(1))
    change = FieldNormaliser(torch.tensor([0.5]), torch.tensor([3.0]))
    module = Forecaster(Nothing(), scale, change, OptimiserSection(), {}, residual=True)
    pos = equispaced_grid(BOX, (8, 8))

    def plane(points: Tensor) -> Tensor:
        return (1 + 2 * points[:, 0] - points[:, 1])[:, None, None]

    x = torch.cat([torch.randn(64, 3, 1), plane(pos)], dim=1)
    torch.testing.assert_close(module(x, pos), (plane(pos) + 0.5).expand(-1, 2, -1))
    queries = 0.2 + 0.6 * torch.rand(9, 2)
    torch.testing.assert_close(
        module(x, pos, query_pos=queries),
        (plane(queries) + 0.5).expand(-1, 2, -1),
        rtol=1e-5,
        atol=1e-5,
    )


class Everywhere(Model):
    """Predicts the first coordinate of every query."""

    def __init__(self) -> None:
        super().__init__(Problem(BOX, 1, 1, 1, 2, 2, None, True))
        self.unused = nn.Parameter(torch.zeros(()))

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        return graphs.queries[:, None, :1].expand(-1, 2, -1)


def test_the_training_loss_is_over_observed_and_query_points() -> None:
    scale = FieldNormaliser(torch.zeros(1), torch.ones(1))
    module = Forecaster(Everywhere(), scale, scale, OptimiserSection(), {})
    module.log = lambda *_, **__: None  # type: ignore[method-assign]
    observed = torch.tensor([[0.1, 0.0], [0.2, 0.0]])
    items = [
        Data(
            x=torch.zeros(2, 1, 1),
            pos=observed,
            y=torch.zeros(2, 2, 1),
            query_pos=torch.cat([observed, torch.tensor([[number, 0.0]])]),
            query_y=torch.zeros(3, 2, 1),
            mesh=sample,
            sample=sample,
        )
        for sample, number in enumerate((0.3, 0.5))
    ]
    loss = module.training_step(ConnectedBatches(module.connect)(items), 0)
    assert loss.item() == pytest.approx((1 + 4 + 9 + 1 + 4 + 25) / 600)


def test_a_forecaster_with_a_covariance_keeps_what_was_observed() -> None:
    """And at queries the spatial mean of the inputs is no part of what is kriged."""
    scale = FieldNormaliser(torch.tensor([7.0]), torch.ones(1))
    change = FieldNormaliser(torch.zeros(1), torch.ones(1))
    parameters = torch.tensor([0.0, 0.0, 1.0, -9.0, -25.0, -20.0])
    fitted = StationaryCovariance(BOX, parameters, torch.tensor([7.0]))
    module = Forecaster(
        Nothing(),
        scale,
        change,
        OptimiserSection(),
        {},
        residual=True,
        covariance=fitted,
    )
    pos, x = torch.rand(20, 2), torch.randn(20, 4, 1)
    torch.testing.assert_close(
        module(x, pos, query_pos=pos[:5]), x[:5, -1:].expand(-1, 2, -1)
    )
    constant = torch.full_like(x, 7.0)
    result = module(constant, pos, query_pos=torch.rand(9, 2))
    torch.testing.assert_close(result, torch.full((9, 2, 1), 7.0))


@pytest.mark.parametrize("kriging", [False, True])
def test_residual_predictions_are_differentiable_in_query_positions(
    kriging: bool,
) -> None:
    """Through the last snapshot at the queries, too, not through the model alone."""
    torch.manual_seed(0)
    domain = Domain((0.0, 0.0), (7.0, 7.0), (True, True))
    sizes = {"width": 8, "modes": 2, "time_modes": 2, "depth": 1, "hidden": 8}
    scale = FieldNormaliser(torch.tensor([0.5]), torch.tensor([2.0]))
    parameters = torch.tensor([0.0, 0.0, 1.0, -5.0, -2.0, -9.0])
    fitted = StationaryCovariance(domain.normalised, parameters, torch.tensor([0.5]))
    module = Forecaster(
        NFS(Problem(domain, 1, 1, 3, 2, 40, None, True), grid=8, **sizes),
        scale,
        scale,
        OptimiserSection(),
        {},
        residual=True,
        covariance=fitted if kriging else None,
    ).double()
    pos, x = 7 * torch.rand(40, 2).double(), torch.randn(40, 3, 1).double()
    query_pos = (1 + 5 * torch.rand(2, 2).double()).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda at: module(x, pos, query_pos=at), (query_pos,), fast_mode=True
    )


def small_nfs(*, missing: bool = False) -> Forecaster:
    """From three time steps of 40 points to two."""
    torch.manual_seed(0)
    sizes = {"width": 8, "modes": 2, "time_modes": 2, "depth": 1, "hidden": 8}
    scale = FieldNormaliser(torch.tensor([0.5]), torch.tensor([2.0]))
    problem = Problem(Domain.unit(2), 1 + missing, 1, 3, 2, 40, None, True)
    network = NFS(problem, grid=8, **sizes)
    more: dict[str, Any] = {"missing": missing, "residual": True}
    return Forecaster(network, scale, scale, OptimiserSection(), {}, **more)


def with_gaps() -> tuple[Forecaster, NDArray[Any], NDArray[Any]]:
    """A network that was trained with missing values, points and inputs."""
    rng = np.random.default_rng(0)
    return small_nfs(missing=True), rng.random((40, 2)), rng.normal(size=(40, 3, 1))


def test_predicts_in_memory_what_it_was_given() -> None:
    """Arrays for arrays, tensors for tensors, graphs for graphs, lists for lists."""
    module = small_nfs()
    pos, x, queries = torch.rand(40, 2), torch.randn(2, 40, 3, 1), torch.rand(5, 2)
    with torch.no_grad():
        expected = [module(each, pos, query_pos=queries) for each in x]
    module.train()
    found = module.predict(x[0], pos, query_pos=queries)
    assert isinstance(found, torch.Tensor) and module.training
    assert torch.equal(found, expected[0]) and not found.requires_grad
    arrays = module.predict(
        [each.numpy() for each in x], pos.numpy(), query_pos=queries.numpy()
    )
    for array, wanted in zip(arrays, expected, strict=True):
        assert isinstance(array, np.ndarray)
        np.testing.assert_array_equal(array, wanted)
    graph = Data(x=x[1], pos=pos, query_pos=queries, name="here")
    (copied,) = module.predict([graph])
    assert torch.equal(copied.y, expected[1]) and copied.name == "here"
    assert "y" not in graph
    for wrong in (lambda: module.predict(x[0]), lambda: module.predict(Data(pos=pos))):
        with pytest.raises(UserError, match=r"forecaster.predict\(x, pos\)"):
            wrong()
    half = module.predict(x[1].bfloat16(), pos, query_pos=queries)
    assert torch.allclose(half, expected[1], atol=0.1)
    batch = module.predict(Batch.from_data_list([graph, graph]))
    assert isinstance(batch, Batch) and torch.equal(batch[1].y, expected[1])


def test_what_a_mask_hides_is_no_input() -> None:
    module, pos, x = with_gaps()
    with_nan = x.copy()
    with_nan[3, 1] = np.nan
    masked = np.ma.masked_array(x, np.isnan(with_nan))
    found = module.predict(masked, pos)
    np.testing.assert_array_equal(found, module.predict(with_nan, pos))
    assert not np.allclose(found, module.predict(x, pos))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "fields.nc"}, "x of type <U9: expected real numbers"),
        ({"data": np.full((40, 3, 1), np.inf)}, "x with 120 of 120 values infinite"),
        ({"data": np.ones((40, 3, 1)) * 1j}, "x of type complex128"),
        ({"data": torch.ones(40, 3, 1) * 1j}, "x of type complex64"),
        ({"data": np.ones((39, 3, 1))}, r"\[39, 3, 1\] and pos of shape \[40, 2\]"),
        ({"pos": np.ones((40, 3))}, r"pos of shape \[40, 3\]: expected .* \[n, 2\]"),
        ({"pos": np.full((40, 2), np.nan)}, "pos with 80 of 80 values missing"),
        ({"query_pos": np.ones(2)}, r"query_pos of shape \[2\]: expected \[m, 2\]"),
        ({"query_pos": np.ones((0, 2))}, r"query_pos of shape \[0, 2\]"),
        ({"data": np.full((40, 3, 2), np.nan)}, "a static input that changes in time"),
        ({"data": np.arange(240.0).reshape(40, 3, 2)}, "a static input that changes"),
        ({"times": ["now", "then"]}, "times as text"),
        ({"times": np.arange(5.0)}, "expected none, for a model that was trained"),
    ],
)
def test_arrays_that_cannot_be_predicted_from(
    changes: dict[str, Any], message: str
) -> None:
    module, pos, x = with_gaps()
    with pytest.raises(UserError, match=message):
        module.predict(**{"data": x, "pos": pos} | changes)


def test_sizes_that_do_not_fit_are_a_user_error(waves: Path) -> None:
    settings = {"model.name": "mppde", "model.settings.width": 8}
    with pytest.raises(UserError, match=r"model mppde \(8 hidden channels"):
        prepare(load_config(overrides=settings | {"data.file": str(waves)}))
