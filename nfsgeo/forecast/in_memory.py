"""Arrays in memory: their shapes, and predictions from them of the same type."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from nfsgeo.data.checks import as_real, finite, not_infinite
from nfsgeo.data.times import as_times
from nfsgeo.errors import UserError
from nfsgeo.forecast.matching import check_lead
from nfsgeo.models import Task

__all__ = ["check_shapes", "example", "is_empty", "predict_samples", "warn_of_empty"]

logger = logging.getLogger(__name__)


def check_shapes(
    task: Task,
    num_samples: int,
    arrays: Mapping[str, Tensor],
    num_queries: int | None = None,
) -> None:
    """Check that arrays have shapes that fit to each other and to training.

    Args:
        task: Task of the model.
        num_samples: Number of samples, each of which may have its own times.
        arrays: ``x``, and those of ``pos``, ``query_pos``, ``forcing``,
            ``query_static`` and ``times`` that the user has given.
        num_queries: Number of query points where there is no ``query_pos``.

    Raises:
        UserError: A shape does not fit, or an array is missing or not needed; the
            message has all shapes.
    """
    shapes = {name: tuple(array.shape) for name, array in arrays.items()}
    points, forcings, dim = (*shapes["x"], 0)[0], len(task.forcings), task.domain.dim
    n_in, asked = max(1, task.n_in), "K" if task.any_time else task.n_out
    steps = n_in + task.n_out
    if task.any_time:  # as many as are asked for
        steps = max(n_in + 1, (0, *shapes.get("times", ()))[-1])
    names = [*task.components] * task.has_time + [*task.static, *task.scalars]
    text = f"x [points, {n_in}, {task.num_inputs}] ({', '.join(names)})"
    expected: dict[str, tuple[str, list[tuple[int, ...]]]]
    expected = {"x": (text, [(points, n_in, task.num_inputs)])}
    if "pos" in shapes:
        expected["pos"] = f"pos [points, {dim}]", [(points or 1, dim)]
    if "query_pos" in shapes:
        num = (*shapes["query_pos"], 0)[0] or 1
        expected["query_pos"] = f"query_pos [queries, {dim}]", [(num, dim)]
    if "query_static" in shapes:
        num = (*shapes.get("query_pos", ()), num_queries or 0)[0]
        static = len(task.static)
        text = f"query_static [queries, {static}] ({', '.join(task.static)})"
        expected["query_static"] = text, [(num, static)]
    if task.needs_times:
        text = f"times of the inputs and of what is asked for [{n_in} + {asked}]"
        expected["times"] = text, [(steps,), (1, steps), (num_samples, steps)]
    if forcings:
        text = f"forcing [points, {n_in} + {asked}, {forcings}]"
        text += f" ({', '.join(task.forcings)})"
        expected["forcing"] = text, [(points, steps, forcings)]
    same = expected.keys() == shapes.keys()
    if not same or any(shapes[name] not in fit for name, (_, fit) in expected.items()):
        raise UserError(
            " and ".join(f"{name} of shape {[*size]}" for name, size in shapes.items()),
            " and ".join(text for text, _ in expected.values()) + ", as in training",
            "give these, with static inputs repeated over the time steps",
        )


def example(task: Task, num_points: int) -> dict[str, Tensor]:
    """Make arrays of the shapes that a forecaster of a task takes, by its arguments.

    With lead times, a single time is predicted.

    Args:
        task: Task of the model.
        num_points: Number of observed points.
    """
    n_in = max(1, task.n_in)
    steps = n_in + (1 if task.any_time else task.n_out)
    arrays = {"x": torch.zeros(num_points, n_in, task.num_inputs)}
    if task.any_time:
        arrays["times"] = torch.linspace(0, task.longest_lead, steps).double()
    elif task.seasonal:
        arrays["times"] = torch.tensor(task.times, dtype=torch.float64)
    if task.forcings:
        arrays["forcing"] = torch.zeros(num_points, steps, len(task.forcings))
    return arrays


def is_empty(task: Task, x: Tensor) -> bool:
    """Return whether the inputs ``[n, n_in, F]`` of a sample have no value of fields.

    Args:
        task: Task of the model.
        x: The inputs.
    """
    return task.has_time and bool(x[..., : len(task.components)].isnan().all())


def warn_of_empty(empty: Sequence[bool]) -> None:
    """Warn of samples that were predicted from inputs without any value.

    Args:
        empty: Whether the inputs of each sample have none.
    """
    if any(empty):
        text = "%d of %d samples have no value of their input fields, all of which are "
        text += "NaN. Leave them out, or predict from time steps with values"
        logger.warning(text, sum(empty), len(empty))


@torch.no_grad()
def predict_samples(
    forecaster: Any, data: Any, pos: Any, shared: Mapping[str, Any]
) -> Any:
    """Predict each sample, see :meth:`nfsgeo.forecast.Forecaster.predict`.

    Args:
        forecaster: The model; whether it is in training mode stays as it is.
        data: A sample, a list of samples or a batch.
        pos: Positions that all samples share, or ``None``.
        shared: Further arrays that all samples share, by argument.
    """
    if isinstance(data, Batch):
        graphs = predict_samples(forecaster, data.to_data_list(), pos, shared)
        if len({graph.y.size(1) for graph in graphs}) > 1:
            raise UserError(
                "a Batch whose graphs ask for different numbers of times",
                "as many in all of them",
                "give the graphs as a list",
            )
        return Batch.from_data_list(graphs)
    several, training = isinstance(data, list | tuple), forecaster.training
    forecaster.eval()
    try:
        samples = data if several else [data]
        pairs = [_predicted(forecaster, sample, pos, shared) for sample in samples]
    finally:
        forecaster.train(training)
    warn_of_empty([empty for _, empty in pairs])
    return [made for made, _ in pairs] if several else pairs[0][0]


def _predicted(
    forecaster: Any, sample: Any, pos: Any, shared: Mapping[str, Any]
) -> tuple[Any, bool]:
    """Return the prediction of a sample, and whether its inputs have no value."""
    came, task = {"x": sample, "pos": pos, **shared}, forecaster.task
    edges = None
    if isinstance(sample, Data):
        came = {name: sample.get(name, value) for name, value in shared.items()}
        came |= {"x": sample.x, "pos": pos if sample.pos is None else sample.pos}
        edges = sample.get("edge_index")
    # The samples of a data set have times for every model.
    if forecaster.ignores_times or (isinstance(sample, Data) and not task.needs_times):
        came["times"] = None
    if came["x"] is None or came["pos"] is None:
        raise UserError(
            "fields without positions" if came["pos"] is None else "positions alone",
            "x [n, n_in, F] and pos [n, d]",
            "give both: forecaster.predict(x, pos), or Data(x=x, pos=pos)",
        )
    titles = {"forcing": f"forcing ({', '.join(task.forcings)})"}
    arrays = {
        name: _tensor(values, titles.get(name, name), forecaster.device)
        for name, values in came.items()
        if values is not None
    }
    check_shapes(task, 1, arrays)
    _check_values(task, arrays)
    model = forecaster.model
    if edges is not None and (model.uses_cells or model.uses_graph):
        weight = sample.get("edge_weight")
        arrays["graphs"] = forecaster.connect(
            arrays["pos"],
            query_pos=arrays.get("query_pos"),
            edge_index=edges.to(forecaster.device),
            edge_weight=None if weight is None else weight.to(forecaster.device),
        )
    out, empty = forecaster(**arrays), is_empty(task, arrays["x"])
    if isinstance(sample, Data):
        copied = sample.clone()
        copied.y = out.to(sample.x.device)
        return copied, empty
    if isinstance(sample, Tensor):
        return out.to(sample.device), empty
    return out.cpu().numpy(), empty


def _tensor(values: Any, what: str, device: torch.device) -> Tensor:
    """Return numbers on a device, all of them finite except for missing values."""
    if what == "times":
        return torch.as_tensor(as_times(values, what), device=device)
    gaps = what in ("x", "query_static")
    numbers = as_real(values, what, gaps=gaps)
    (not_infinite if gaps else finite)(numbers, what)
    # A copy, as arrays may be flipped, and those of pandas must not be written to.
    copied = values if isinstance(values, Tensor) else np.array(numbers, order="C")
    return torch.as_tensor(copied, device=device)


def _check_values(task: Task, arrays: Mapping[str, Tensor]) -> None:
    """Check values, which waits for the device."""
    static = arrays["x"][..., len(task.components) if task.has_time else 0 :]
    good = ((static == static[:, :1]) & static.isfinite()).all(1)
    if not bool(good.all()):
        bad = (~good).sum(0).tolist()
        names = zip([*task.static, *task.scalars], bad, strict=True)
        name, num = next((name, num) for name, num in names if num)
        raise UserError(
            f"x with the static input {name}, which changes in time or is missing at "
            f"{num} of {len(good)} points",
            "the same finite value at all time steps",
            "repeat the static input, whose components follow those of the field",
        )
    if (times := arrays.get("times")) is None:
        return
    if not bool((times.diff() > 0).all()):
        raise UserError(
            f"times {', '.join(f'{time:g}' for time in times.flatten().tolist())}",
            f"the {task.n_in} times of the inputs and later ones, each after the one "
            "before",
            "sort them, and leave none out",
        )
    if task.any_time:
        ahead = (times[..., -1] - times[..., task.n_in - 1]).max()
        check_lead(task, float(ahead), "times of which")
