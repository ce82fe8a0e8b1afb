"""The arrays that a task asks for, and predictions from them in their own kind."""

from __future__ import annotations

from collections.abc import Mapping
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

__all__ = ["check_shapes", "example", "predict_samples"]


def check_shapes(
    task: Task,
    num_samples: int,
    arrays: Mapping[str, Tensor],
    num_queries: int | None = None,
) -> None:
    """Makes sure that arrays have the shapes of one another and of training.

    These are ``x``, which is always there, ``pos``, ``query_pos``, ``forcing``,
    ``query_static``, of ``num_queries`` points or those of ``query_pos``, and
    ``times``, also of each of ``num_samples``.

    Raises:
        UserError: One has not; the message has all shapes.
    """
    shapes = {name: tuple(each.shape) for name, each in arrays.items()}
    points, known, dim = (*shapes["x"], 0)[0], len(task.forcings), task.domain.dim
    n_in, asked = max(1, task.n_in), "K" if task.any_time else task.n_out
    steps = n_in + task.n_out
    if task.any_time:  # as many as are asked for
        steps = max(n_in + 1, (0, *shapes.get("times", ()))[-1])
    names = [*task.components] * task.has_time + [*task.static, *task.scalars]
    text = f"x [points, {n_in}, {task.num_inputs}] ({', '.join(names)})"
    wanted: dict[str, tuple[str, list[tuple[int, ...]]]]
    wanted = {"x": (text, [(points, n_in, task.num_inputs)])}
    if "pos" in shapes:
        wanted["pos"] = f"pos [points, {dim}]", [(points or 1, dim)]
    if "query_pos" in shapes:
        num = (*shapes["query_pos"], 0)[0] or 1
        wanted["query_pos"] = f"query_pos [queries, {dim}]", [(num, dim)]
    if "query_static" in shapes:
        num = (*shapes.get("query_pos", ()), num_queries or 0)[0]
        static = len(task.static)
        text = f"query_static [queries, {static}] ({', '.join(task.static)})"
        wanted["query_static"] = text, [(num, static)]
    if task.needs_times:
        text = f"times of the inputs and of what is asked for [{n_in} + {asked}]"
        wanted["times"] = text, [(steps,), (1, steps), (num_samples, steps)]
    if known:
        text = f"forcing [points, {n_in} + {asked}, {known}]"
        text += f" ({', '.join(task.forcings)})"
        wanted["forcing"] = text, [(points, steps, known)]
    same = wanted.keys() == shapes.keys()
    if not same or any(shapes[name] not in fit for name, (_, fit) in wanted.items()):
        raise UserError(
            " and ".join(f"{name} of shape {[*each]}" for name, each in shapes.items()),
            " and ".join(text for text, _ in wanted.values()) + ", as in training",
            "give these, with static inputs repeated over the time steps",
        )


def example(task: Task, num_points: int) -> dict[str, Tensor]:
    """Arrays of the shapes that a task asks for, by the names of a forecaster.

    Of a task of lead times, a single time is asked for.
    """
    n_in = max(1, task.n_in)
    steps = n_in + (1 if task.any_time else task.n_out)
    found = {"x": torch.zeros(num_points, n_in, task.num_inputs)}
    if task.any_time:
        found["times"] = torch.linspace(0, task.longest_lead, steps).double()
    elif task.seasonal:
        found["times"] = torch.tensor(task.times, dtype=torch.float64)
    if task.forcings:
        found["forcing"] = torch.zeros(num_points, steps, len(task.forcings))
    return found


@torch.no_grad()
def predict_samples(
    forecaster: Any, data: Any, pos: Any, known: Mapping[str, Any]
) -> Any:
    """What :meth:`nfsgeo.forecast.Forecaster.predict` returns.

    The mode of the ``forecaster``, of training or of evaluation, is kept.
    """
    if isinstance(data, Batch):
        found = predict_samples(forecaster, data.to_data_list(), pos, known)
        if len({each.y.size(1) for each in found}) > 1:
            raise UserError(
                "a Batch whose graphs ask for different numbers of times",
                "as many in all of them",
                "give the graphs as a list",
            )
        return Batch.from_data_list(found)
    several, training = isinstance(data, list | tuple), forecaster.training
    forecaster.eval()
    try:
        samples = data if several else [data]
        found = [_predicted(forecaster, each, pos, known) for each in samples]
    finally:
        forecaster.train(training)
    return found if several else found[0]


def _predicted(forecaster: Any, sample: Any, pos: Any, known: Mapping[str, Any]) -> Any:
    given, task = {"x": sample, "pos": pos, **known}, forecaster.task
    if isinstance(sample, Data):
        given = {name: sample.get(name, value) for name, value in known.items()}
        given |= {"x": sample.x, "pos": sample.pos}
        if not task.needs_times:  # the samples of a data set have times for every model
            given["times"] = None
    if given["x"] is None or given["pos"] is None:
        raise UserError(
            "fields without positions" if given["pos"] is None else "positions alone",
            "x [n, n_in, F] and pos [n, d]",
            "give both: forecaster.predict(x, pos), or Data(x=x, pos=pos)",
        )
    there = {name: value for name, value in given.items() if value is not None}
    names = {name: name for name in there}
    names["forcing"] = f"forcing ({', '.join(task.forcings)})"
    arrays = {k: _tensor(v, names[k], forecaster.device) for k, v in there.items()}
    check_shapes(task, 1, arrays)
    _check_values(task, arrays)
    edges = sample.get("edge_index") if isinstance(sample, Data) else None
    if edges is not None and forecaster.model.uses_cells:
        ends = {"query_pos": arrays.get("query_pos")}
        ends["edge_index"] = edges.to(forecaster.device)
        arrays["graphs"] = forecaster.connect(arrays["pos"], **ends)
    out = forecaster(**arrays)
    if isinstance(sample, Data):
        copied = sample.clone()
        copied.y = out.to(sample.x.device)
        return copied
    return out.to(sample.device) if isinstance(sample, Tensor) else out.cpu().numpy()


def _tensor(values: Any, what: str, device: torch.device) -> Tensor:
    """Numbers on a device, all of them finite but for missing values."""
    if what == "times":
        return torch.as_tensor(as_times(values, what), device=device)
    gaps = what in ("x", "query_static")
    numbers = as_real(values, what, gaps=gaps)
    (not_infinite if gaps else finite)(numbers, what)
    # A copy, as arrays may be flipped, and those of pandas must not be written to.
    given = values if isinstance(values, Tensor) else np.array(numbers, order="C")
    return torch.as_tensor(given, device=device)


def _check_values(task: Task, arrays: Mapping[str, Tensor]) -> None:
    """Makes sure that values fit as well, which waits for the device."""
    static = arrays["x"][..., len(task.components) if task.has_time else 0 :]
    if not bool(((static == static[:, :1]) & static.isfinite()).all()):
        raise UserError(
            "x with a static input that changes in time or is missing",
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
