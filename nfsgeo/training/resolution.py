"""Fills in what a configuration leaves to the data."""

from __future__ import annotations

import math
from typing import Any

from nfsgeo.data import Fields
from nfsgeo.data.meshes import MESH_KINDS
from nfsgeo.data.meshes.on_grids import has_ends, sub_grid_sizes
from nfsgeo.data.splits import SPLITS
from nfsgeo.errors import UserError
from nfsgeo.models import MODELS, ModelInfo
from nfsgeo.training.config import DataSection, LossSection, OptimiserSection, RunConfig
from nfsgeo.training.presets import paper_learning_rate
from nfsgeo.training.window_starts import part_samples, steps_of_parts

__all__ = ["resolved"]

TIME_STEPS = 10
FEW = 5
# Further training windows of a long series mostly repeat the time steps of others.
WINDOWS = 1000


def resolved(config: RunConfig, file: Fields) -> RunConfig:
    """The configuration with nothing left open, as it is saved beside the results.

    Args:
        config: What was asked for.
        file: The data.

    Raises:
        UserError: The file cannot serve: too few samples or time steps.
    """
    data = _with_time_steps(config.data, file)
    data = _with_windows(data, file)
    for part in SPLITS:
        if not len(part_samples(data, file, part)):
            raise UserError(
                f"{file.path} with {file.num_samples} samples",
                "at least one each to train, validate and test on",
                "use a file with more samples"
                + (", or split by time: --set data.split_by=time" if data.n_in else ""),
            )
    data = _with_points(data, file, MODELS[config.model.name])
    data = _with_queries(data, MODELS[config.model.name])
    if data.boundary_inputs and file.domain.region is None:
        raise UserError(
            f"data.boundary_inputs=true with {file.path}, whose domain has no region",
            "a domain with obstacles",
            "leave it out"
            if file.domain.curved
            else "leave it out, or give them: nfsgeo convert FILE --out NEW.nc "
            "--obstacles walls.geojson",
        )
    model = config.model
    _check_ahead(config, data)
    optimiser = _with_rate(config.optimiser, model.name, file.equation)
    loss = _with_weighting(config.loss, data, file, MODELS[model.name])
    if MODELS[model.name].autoregressive:
        model = _changed(model, prediction="direct")
    elif model.prediction is None:
        noisy = data.input_noise > 0
        model = _changed(model, prediction="direct" if noisy else "residual")
    return _changed(config, data=data, model=model, loss=loss, optimiser=optimiser)


def _check_ahead(config: RunConfig, data: DataSection) -> None:
    """Makes sure that lead times, rates and pushforward go together."""
    name, push = config.model.name, f"loss.pushforward={config.loss.pushforward:g}"
    if not data.n_in and (data.lead_times or config.loss.pushforward):
        raise UserError(
            "data.lead_times=true" if data.lead_times else push,
            "fields in time",
            "leave it out for a problem without time",
        )
    if config.model.prediction == "rate" and not data.lead_times:
        raise UserError(
            "model.prediction=rate without lead times",
            "residual, damped or direct",
            "give --set data.lead_times=true, or another prediction",
        )
    if config.model.prediction == "damped" and data.lead_times:
        raise UserError(
            "model.prediction=damped with lead times, for which one factor would damp "
            "all of them alike",
            "rate, residual or direct",
            "choose one of these",
        )
    if not config.loss.pushforward:
        return
    if data.lead_times:
        raise UserError(
            f"{push} with data.lead_times=true",
            "one of the two, as a model of lead times needs no rollout",
            "leave one out",
        )
    if "pushforward" in MODELS[name].config.model_fields:
        raise UserError(
            f"{push} with --model {name}",
            "0, as this model has a pushforward over windows of its own",
            "set model.settings.pushforward, or use another model",
        )


def _with_time_steps(data: DataSection, file: Fields) -> DataSection:
    file.check_known()
    steady = bool(file.input_names) and len(file.times) == 1
    n_in = data.n_in if data.n_in is not None else 0 if steady else TIME_STEPS
    n_out = data.n_out or (1 if steady else TIME_STEPS)
    num = file.num_observed()
    if data.time_steps(n_in + n_out).stop > num:
        apart = f", {data.time_stride} apart," if data.time_stride > 1 else ""
        raise UserError(
            f"--n-in {n_in} and --n-out {n_out}{apart} from time step "
            f"{data.first_step}",
            f"at most the {num} {'observed ' * (num < len(file.times))}time steps of "
            f"{file.path}",
            "ask for fewer or use a longer file",
        )
    return _changed(data, file=file.path.resolve(), n_in=n_in, n_out=n_out)


def _with_windows(data: DataSection, file: Fields) -> DataSection:
    slides = data.window_stride is not None
    if not data.n_in and (slides or data.split_by == "time"):
        raise UserError(
            f"--window-stride {data.window_stride} without input time steps"
            if slides
            else "data.split_by=time without input time steps",
            "fields in time",
            "leave it out",
        )
    few = not all(len(file.split[part]) for part in SPLITS)
    # No part of a file that has parts of its own is training data of another.
    undivided = len(file.split["train"]) == file.num_samples < len(SPLITS)
    in_time = few if slides else undivided and bool(data.n_in)
    by = data.split_by or ("time" if in_time else "series")
    data = _changed(data, split_by=by)
    if by == "time":
        stride = data.window_stride or _stride(data, file)
        evaluation_stride = data.evaluation_stride or stride
        data = _changed(data, window_stride=stride, evaluation_stride=evaluation_stride)
    steps_of_parts(data, file)  # says so where there are too few
    return data


def _stride(data: DataSection, file: Fields) -> int:
    """Time steps between training windows, where nobody says so.

    One, or of a long series as many as leave about :data:`WINDOWS` windows, but no more
    than ``n_out``, so that every time step after the first window is a target.
    """
    steps = len(steps_of_parts(data, file)["train"])
    num = (data.n_in or 0) + (data.n_out or 1)
    length = data.time_steps(num).stop - data.first_step
    windows = (steps - length + 1) * file.num_samples
    return min(max(1, windows // WINDOWS), data.n_out or 1)


def _with_points(data: DataSection, file: Fields, model: ModelInfo) -> DataSection:
    kind = data.mesh
    if kind == "grid" and data.grid is None and data.points is None and file.shape:
        kind = "all"
    if kind is None:
        if data.grid is not None or not model.points:
            kind = "grid"
        elif file.shape is None and data.points is None:
            kind = "all"
        else:
            kind = "random-subset"
    data = _with_meshes(data, kind, model)
    size = MESH_KINDS[kind].size
    if size == "grid":
        grid = _points_per_axis(data, file, model)
        return _changed(data, mesh=kind, grid=grid, points=None)
    if size is None:
        return _changed(data, mesh=kind, grid=None, points=None)
    points = data.points or max(1, file.num_points() // 4)
    return _changed(data, mesh=kind, grid=None, points=points)


def _with_meshes(data: DataSection, kind: str, model: ModelInfo) -> DataSection:
    drawn = MESH_KINDS[kind].drawn
    if (data.mesh_per_sample or (data.point_sets or 1) > 1) and not drawn:
        name = "data.mesh_per_sample" if data.mesh_per_sample else "data.point_sets"
        raise UserError(
            f"{name} with --mesh {kind}",
            "points that are drawn",
            "choose another --mesh or leave it out",
        )
    if data.point_sets is None:
        several = drawn and not data.mesh_per_sample
        return _changed(data, point_sets=model.point_sets if several else 1)
    return data


def _with_queries(data: DataSection, model: ModelInfo) -> DataSection:
    if data.query_points is None:
        return _changed(data, query_points=model.query_points)
    if data.query_points and not model.query_points:
        able = [each.name for each in MODELS.values() if each.query_points]
        raise UserError(
            f"data.query_points={data.query_points} with --model {model.name}, which "
            "predicts at the observed points alone",
            "0",
            f"leave it out, or use one of {', '.join(able)}",
        )
    return data


def _points_per_axis(data: DataSection, file: Fields, model: ModelInfo) -> int:
    """Of the sub-grid that was asked for, or of one with about a quarter of the points.

    Raises:
        UserError: The file has no grid, or it cannot be thinned out to that one.
    """
    if file.axes is None:
        raise UserError(
            f"the point cloud {file.path}",
            "fields on a grid",
            "choose another --mesh, or a --model that takes any points, such as nfs",
        )
    dim, fitting = len(file.axes), sub_grid_sizes(file)
    grid = " x ".join(str(len(axis)) for axis in file.axes)
    if not fitting:
        raise UserError(
            f"the {grid} grid of {file.path}",
            "a grid with sub-grids of as many points along each axis",
            "choose --mesh all or random-subset",
        )
    if data.grid is None and data.points is None:
        closed = all(has_ends(file, i) for i in range(dim))
        shortest = min(map(len, file.axes))
        quarter = (shortest - closed) // math.ceil(4 ** (1 / dim)) + closed
        # The next smaller one that fits, the smallest where none is.
        return max((each for each in fitting if each <= quarter), default=fitting[0])
    side = data.grid or round((data.points or 0) ** (1 / dim))
    if side in fitting and (data.grid or side**dim == data.points):
        return side
    wanted = data.points or side**dim
    near = sorted(fitting, key=lambda each: abs(each**dim - wanted))[:FEW]
    if data.grid:
        given = f"--grid {data.grid}"
    elif data.mesh is None:
        given = f"--points {data.points} with --model {model.name}, which needs a grid"
    else:
        given = f"--points {data.points} with --mesh {data.mesh}"
    sizes = ", ".join(map(str, sorted(near)))
    other = "" if model.points else ", or a --model that takes any points, such as nfs"
    raise UserError(
        given,
        f"points along each axis by --grid, such as {sizes}, to which the {grid} grid "
        f"of {file.path} thins out",
        f"give --grid {near[0]} ({near[0] ** dim} points){other}",
    )


def _with_rate(
    optimiser: OptimiserSection, model: str, equation: str
) -> OptimiserSection:
    if optimiser.lr is not None:
        return optimiser
    return _changed(optimiser, lr=paper_learning_rate(model, equation))


def _with_weighting(
    loss: LossSection, data: DataSection, file: Fields, model: ModelInfo
) -> LossSection:
    if loss.weighting is not None:
        return loss
    # Elsewhere Voronoi cells may reach far beyond the points, or the points may be
    # dense where errors matter most.
    kind = MESH_KINDS[data.mesh or "all"]
    suits = kind.drawn and kind.even and file.shape is not None
    return _changed(loss, weighting=model.loss_weighting if suits else "uniform")


def _changed(section: Any, **values: Any) -> Any:
    # Only checked values come here, so that validating again would add nothing.
    return section.model_copy(update=values)
