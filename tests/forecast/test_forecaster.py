"""The composition of transforms around a network, and predictions in memory."""

import copy
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from nfsgeo.errors import UserError
from nfsgeo.extensions import load_extensions
from nfsgeo.forecast import Forecaster, Statistics
from nfsgeo.forecast.transforms import (
    TRANSFORMS,
    BaseForecast,
    Categories,
    ModelInputs,
    Transform,
    TransformOptions,
    fitted,
)
from nfsgeo.geometry import Domain, Region
from nfsgeo.models import Task
from nfsgeo.nn.kriging import StationaryCovariance
from nfsgeo.stations import Climatology, SeriesFit

load_extensions()


class Affine(Transform):
    """Inputs times a factor; outputs plus a number."""

    def __init__(self, *, factor: float, number: float) -> None:
        super().__init__(factor=factor, number=number)
        self.factor, self.number = factor, number

    def inputs(self, batch: ModelInputs) -> ModelInputs:
        return replace(batch, x=self.factor * batch.x + self.number)

    def outputs(self, prediction: Tensor, batch: ModelInputs) -> Tensor:
        return self.factor * prediction + batch.x[:, -1:]


def test_the_first_transform_is_next_to_the_data(forecaster_of):
    first, second = Affine(factor=2, number=1), Affine(factor=3, number=5)
    module = forecaster_of(lambda x, graphs: 10 * x, first, second)
    x = torch.tensor([[[4.0]]])
    # Inputs 9, then 32; the network 320; outputs 3 * 320 + 32, then twice that + 9.
    assert module(x, torch.zeros(1, 2)).item() == 2 * (3 * 320 + 32) + 9


@pytest.fixture(params=["change", "damped", "rate", "kriging", "series", "steady"])
def stack(request: pytest.FixtureRequest) -> Forecaster:
    """Forecasters that have every transform between them, with random statistics."""
    kind, generator = request.param, torch.Generator().manual_seed(0)
    square = [[0.3, 0.3], [0.4, 0.3], [0.4, 0.4], [0.3, 0.4]]
    domain = Domain((0, 0), (1, 1), (False, False), Region.polygons([square]))
    n_in, rate = 0 if kind == "steady" else 3, kind == "rate"
    known = 2 if n_in else 0
    steady = {1: "kind"} if kind == "steady" else {}
    statistics = Statistics(n_in, 2 if n_in else 1, rate, steady)
    for _ in range(9):
        x, y, forcing = (
            3 + torch.randn(9, steps, num, generator=generator)
            for steps, num in ((max(1, n_in), 2), (statistics.n_out, 1), (5, known))
        )
        x[..., [*steady]] = x[..., [*steady]].round()
        if steady:
            x[..., 0] = (3 * x[..., 0]).exp()
        window = Data(x=x, y=y, times=torch.arange(5.0))
        window.forcing = forcing if known else None
        statistics.add(window)
    covariance, base = None, None
    if kind in ("kriging", "series"):
        parameters = torch.tensor([0.0, 0.0, 1.0, -5.0, -2.0, -9.0])
        covariance = StationaryCovariance(domain, parameters, torch.tensor([2.0]))
    if kind == "series":
        own, regional = torch.rand(2, 2, 3, 1, generator=generator).double()
        pos, values = torch.rand(20, 2).double(), torch.rand(20, 3, 1).double()
        std, left = torch.tensor([[0.8], [0.5]]).double()
        cycles = [(math.inf, 1), (5.0, 2)]
        series = SeriesFit(
            pos, cycles, values, False, std, own, regional, left, covariance
        )
        transforms: dict[str, Transform] = {
            "climatology": Climatology.of(pos, cycles, values),
            "linear_forecast": series.linear_forecast(),
        }
        base = BaseForecast(transforms, std, seasonal=True)
    form: Any = {"change": "residual", "kriging": "residual", "steady": "direct"}
    form["series"] = "linear"
    # Where the static input is 1, and the field is known ahead.
    imposed = {"column": 1, "types": [1], "components": [[0]], "forcings": [1]}
    options = TransformOptions(
        prediction=form.get(kind, kind),
        gaps=kind in ("change", "damped", "series"),
        boundary=True,
        training_noise=0.1,
        covariance=covariance,
        base_forecast=base,
        imposed=imposed if kind == "rate" else None,
    )
    task = Task(
        domain=domain,
        components=("u",),
        static=("a", "b")[: 2 - bool(n_in)],
        forcings=("f", "g")[:known],
        n_in=n_in,
        n_out=statistics.n_out,
        times=tuple(range(1 - n_in, statistics.n_out + 1)),
        any_time=rate,
        seasonal=base is not None,
        longest_lead=9.0,
        num_points=30,
    )
    sizes = {"width": 8, "modes": 2, "depth": 1, "hidden": 8, "grid": 8}
    torch.manual_seed(0)
    made = Forecaster.build("nfs", sizes, task, fitted(statistics, options)).eval()
    for parameter in made.transforms.parameters():
        torch.nn.init.normal_(parameter, std=0.01)
    return made


def inputs_of(forecaster: Forecaster, num: int = 30) -> dict[str, Any]:
    """Random fields with gaps at random points, and what is known ahead of them."""
    task, given = forecaster.task, dict[str, Any]()
    x = 3 + torch.randn(num, max(1, task.n_in), task.num_inputs)
    x[..., 1:] = x[:, :1, 1:]
    if (kinds := forecaster.find(Categories)) is not None:
        known = kinds.settings["values"][0]
        x[..., 1] = torch.tensor(known)[torch.randint(len(known), (num, 1))].float()
    x[::3, 1 : task.n_in, 0] = torch.nan
    pos = torch.rand(3 * num, 2, dtype=torch.float64)
    given = {"x": x, "pos": pos[task.domain.contains(pos)][:num]}
    if task.forcings:
        given["forcing"] = torch.randn(num, 5, len(task.forcings))
    if task.needs_times:
        given["times"] = torch.tensor([0.0, 1.0, 2.5, 4.0, 7.0])
    return given


def test_what_is_described_predicts_the_same_bit_for_bit(stack):
    described = json.loads(json.dumps(stack.description()))
    again = Forecaster.from_description(described).eval()
    again.load_state_dict(stack.state_dict())
    assert again.description() == stack.description()
    assert again.task == stack.task
    given = inputs_of(stack)
    with torch.no_grad():
        assert torch.equal(again(**given), stack(**given))


def test_a_batch_is_a_loop_over_its_samples(stack):
    samples = [inputs_of(stack, num) for num in (30, 27, 40)]
    for number, each in enumerate(samples):
        each["query_pos"] = torch.tensor([[0.2, 0.9], [0.8, 0.1]]).double()
        each["query_pos"] += 0.01 * number
        if "times" in each:
            each["times"] = (number + 1.0) * each["times"]
    joint = {
        name: (torch.stack if name == "times" else torch.cat)(
            [each[name] for each in samples]
        )
        for name in samples[0]
    }
    joint["batch"], at = (
        torch.arange(3).repeat_interleave(torch.tensor([len(s[name]) for s in samples]))
        for name in ("pos", "query_pos")
    )
    with torch.no_grad():
        found = stack(**joint, query_batch=at)
        for number, each in enumerate(samples):
            alone = stack(**each)
            torch.testing.assert_close(found[at == number], alone, rtol=1e-4, atol=1e-5)


def test_a_prediction_is_a_target_without_error(stack):
    """Targets go the way back of outputs; nothing is to be learned where imposed."""
    samples = []
    for num in (30, 27):
        arrays = inputs_of(stack, num)
        arrays["times"] = arrays.get("times", torch.arange(5.0))
        samples.append(Data(**arrays))
    batch = Batch.from_data_list(samples)
    batch.times = torch.cat([sample.times for sample in samples])
    batch.y = stack.predict_batch(batch)
    compared: list[Any] = []

    def criterion(*arguments: Any) -> Tensor:
        compared.append(arguments)
        return arguments[0].sum()

    with torch.no_grad():
        loss, prediction = stack.validate(batch, criterion)
        torch.testing.assert_close(stack.loss(batch, criterion), loss)
    torch.testing.assert_close(prediction, batch.y)
    for normalised, target, sizes in compared:
        assert list(sizes) == [30, 27]
        away = target.isnan()
        imposed = (batch.x[:, 0, 1] == 1) & ("ImposedValues" in str(stack))
        assert not away[~imposed].any()
        torch.testing.assert_close(
            target[~away], normalised[~away], rtol=1e-4, atol=1e-4
        )


def test_every_transform_is_in_one_of_these_stacks():
    names = {"training_noise", "missing_values", "lead_times", "forcings", "ranks"}
    names |= {"normalise", "boundary_inputs", "residual", "climatology"}
    names |= {"categories", "imposed_values", "linear_forecast"}
    assert names == set(TRANSFORMS)


@pytest.mark.parametrize("shape", [(4, 1, 1), (4, 1, 3), (4, 2)])
def test_inputs_unlike_those_of_training(forecaster_of, shape):
    module = forecaster_of(lambda x, graphs: x, static=("a",))
    with pytest.raises(UserError) as caught:
        module(torch.zeros(shape), torch.zeros(4, 2))
    words = f"x of shape {list(shape)}: expected x [points, 1, 2] (u, a)"
    assert words in str(caught.value)


def sample(num: int = 40) -> tuple[Tensor, Tensor, Tensor]:
    """Fields with a static input, positions and a forcing for :func:`everything`."""
    x = torch.randn(num, 3, 2)
    x[..., 1] = x[:, :1, 1]
    return x, torch.rand(num, 2), torch.randn(num, 5, 1)


def test_predicts_in_memory_what_it_was_given(everything, refuses):
    """Arrays for arrays, tensors for tensors, graphs for graphs, lists for lists."""
    module, queries = copy.deepcopy(everything), torch.rand(5, 2)
    x, pos, forcing = sample()
    known = {"query_pos": queries, "forcing": forcing}
    with torch.no_grad():
        expected = module(x, pos, **known)
    module.train()
    found = module.predict(x, pos, **known)
    assert isinstance(found, Tensor) and module.training
    assert torch.equal(found, expected) and not found.requires_grad
    of_arrays = {name: value.numpy() for name, value in known.items()}
    flipped = x.numpy()[::-1].copy()[::-1]  # a view of what is stored upside down
    for array in module.predict([x.numpy(), flipped], pos.numpy(), **of_arrays):
        assert isinstance(array, np.ndarray)
        np.testing.assert_array_equal(array, expected)
    graph = Data(x=x, pos=pos, name="here", **known)
    (copied,) = module.predict([graph])
    assert torch.equal(copied.y, expected) and copied.name == "here"
    assert "y" not in graph
    shared = Data(x=x, forcing=forcing)
    assert torch.equal(module.predict(shared, pos, query_pos=queries).y, expected)
    for wrong in (lambda: module.predict(x), lambda: module.predict(Data(pos=pos))):
        refuses(r"forecaster.predict\(x, pos\)", wrong)
    half = module.predict(x.bfloat16(), pos, **known)
    assert torch.allclose(half, expected, atol=0.2)
    batch = module.predict(Batch.from_data_list([graph, graph]))
    assert isinstance(batch, Batch) and torch.equal(batch[1].y, expected)


def test_what_a_mask_hides_is_no_input(everything):
    x, pos, forcing = (each.numpy() for each in sample())
    with_nan = x.copy()
    with_nan[3, 1, 0] = np.nan
    masked = np.ma.masked_array(x, np.isnan(with_nan))
    found, expected, whole = (
        everything.predict(each, pos, forcing=forcing) for each in (masked, with_nan, x)
    )
    np.testing.assert_array_equal(found, expected)
    assert not np.allclose(found, whole)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "fields.nc"}, "x of type <U9: expected real numbers"),
        ({"data": np.full((40, 3, 2), np.inf)}, "x with 240 of 240 values infinite"),
        ({"data": np.ones((40, 3, 2)) * 1j}, "x of type complex128"),
        ({"data": torch.ones(40, 3, 2) * 1j}, "x of type complex64"),
        ({"data": np.ones((39, 3, 2))}, r"x of .*39, 3, 2\] and pos of .*40, 2\]"),
        ({"pos": np.ones((40, 3))}, r"pos .*40, 3\].*: expected .* \[points, 2\]"),
        ({"pos": np.full((40, 2), np.nan)}, "pos with 80 of 80 values missing"),
        ({"query_pos": np.ones(2)}, r"query_pos .*\[2\].*: expected .*\[queries, 2\]"),
        ({"query_pos": np.ones((0, 2))}, r"query_pos of shape \[0, 2\]"),
        ({"data": np.full((40, 3, 2), np.nan)}, "static input a, .* at 40 of 40"),
        (
            {"data": np.arange(240.0).reshape(40, 3, 2)},
            "static input a, .* at 40 of 40",
        ),
        ({"times": ["now", "then"]}, "times as text"),
        ({"times": np.arange(5.0)}, r"times of shape \[5\].*: expected"),
        ({"forcing": None}, r"x of .*: expected .*forcing .* \(f\)"),
        (
            {"forcing": np.full((40, 5, 1), np.nan)},
            r"forcing \(f\) with 200 of 200 values missing",
        ),
    ],
)
def test_arrays_that_cannot_be_predicted_from(everything, changes, message):
    x, pos, forcing = (each.numpy() for each in sample())
    with pytest.raises(UserError, match=message):
        everything.predict(**{"data": x, "pos": pos, "forcing": forcing} | changes)


def test_gradients_of_positions_are_not_lost_in_graphs(forecaster_of, refuses):
    module = forecaster_of(lambda x, graphs: x)
    x, pos = torch.zeros(4, 1, 1), torch.rand(4, 2)
    graphs = module.connect(pos)
    module(x, pos, graphs=graphs)
    with pytest.raises(UserError, match="require gradients"):
        module(x, pos.clone().requires_grad_(), graphs=graphs)
    refuses("without positions", module, x)
