"""Settings of a configuration that depend on the data."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import torch

from nfsgeo.config import DataSection, ModelSection, RunConfig
from nfsgeo.data import Fields
from nfsgeo.data.io.edges import graph_source, table_of
from nfsgeo.data.io.roles import check_roles
from nfsgeo.data.meshes import MESH_KINDS
from nfsgeo.data.meshes.on_grids import grid_axes, has_ends, sub_grid_sizes
from nfsgeo.data.splits import SPLITS
from nfsgeo.errors import UserError, option
from nfsgeo.forecast.transforms import BaseForecast
from nfsgeo.geometry import LatentCoordinates, shared_strengths
from nfsgeo.models import MODELS, Model
from nfsgeo.training.loading import paper_learning_rate
from nfsgeo.training.run_data import samples_of, steps_of

__all__ = ["complete_config", "for_base_forecast"]

logger = logging.getLogger(__name__)

TIME_STEPS = 10
FEW = 5
# Number of training windows of a long series; more would mostly repeat time steps.
WINDOWS = 1000
SUBSET = "random-subset"
# Number of meshes at most from which strengths of latent coordinates are taken.
MESHES = 64


def complete_config(config: RunConfig, file: Fields) -> RunConfig:
    """Complete a configuration, as it is saved in the run folder.

    Args:
        config: The configuration of the user.
        file: The training data.

    Raises:
        UserError: The file has too few samples or time steps, or settings do not fit
            together or to the data.
    """
    info, data = MODELS[config.model.name], _with_time_steps(config.data, file)
    data = _with_windows(data, file)
    if data.query_points is None:
        data = data.changed(query_points=info.query_points)
    config = config.changed(data=_with_points(data, file, info))
    _check_together(config, file, info)
    data, model, loss = config.data, config.model, config.loss
    if info.autoregressive or not data.n_in:
        model = model.changed(prediction="direct")
    elif model.prediction is None:
        form = "direct" if data.input_noise > 0 else "residual"
        if form == "residual" and data.split_by == "time" and not data.lead_times:
            form = "linear"
        model = model.changed(prediction=form)
    if loss.weighting is None:
        # Elsewhere Voronoi cells may reach far beyond the points, or the points may be
        # dense where errors matter most.
        kind = MESH_KINDS[data.mesh or "all"]
        suits = kind.drawn and kind.even and file.shape is not None
        loss = loss.changed(weighting=info.loss_weighting if suits else "uniform")
    model = _with_strengths(data, _with_graph(data, model, file, info), file, info)
    optimiser = config.optimiser
    if optimiser.lr is None:
        rate = info.learning_rate
        if config.preset == "paper":
            rate = paper_learning_rate(config.model.name, file.equation)
        optimiser = optimiser.changed(lr=rate)
    return config.changed(model=model, loss=loss, optimiser=optimiser)


def for_base_forecast(
    asked: RunConfig, config: RunConfig, base: BaseForecast | None
) -> RunConfig:
    """Add the settings that suit a fitted forecast to a complete configuration.

    Args:
        asked: The configuration of the user, whose settings stay as they are.
        config: The same, completed.
        base: The forecast that the network corrects; ``None`` if none could be fitted.
    """
    if base is None:
        if config.model.prediction != "linear":
            return config
        return config.changed(model=config.model.changed(prediction="residual"))
    sections = {}
    for name, values in base.settings.items():
        chosen = getattr(asked, name).model_fields_set
        new = {key: value for key, value in values.items() if key not in chosen}
        sections[name] = getattr(config, name).changed(**new)
    return config.changed(**sections)


def _with_graph(
    data: DataSection, model: ModelSection, file: Fields, info: type[Model]
) -> ModelSection:
    """Return the model with the graph that it uses, that of the data if they have one.

    Raises:
        UserError: The model is to use a graph that the data do not have.
    """
    asked, roads = model.settings.get("graph"), info.uses_graph and file.has_graph
    if data.graph is not None and not roads:
        logger.warning("%s does not use the graph %s", model.name, data.graph)
    if not info.uses_graph or "graph" not in model.settings:
        return model
    if asked == "given" and not roads:
        given = f"model.settings.graph=given with {file.path}, which has no graph"
        todo = "give one: --graph EDGES.csv, or leave the setting out"
        raise UserError(given, "edges between its points", todo)
    if asked is None and roads:
        source = table_of(data.graph) if data.graph else file.path
        logger.warning(
            "%s uses the %d edges of the graph of %s, in place of the pairs within a "
            "radius, model.settings.graph=radius",
            *(model.name, file.graph()[0].shape[1], source),
        )
    chosen = asked or ("given" if roads else "radius")
    return model.changed(settings={**model.settings, "graph": chosen})


def _with_strengths(
    data: DataSection, model: ModelSection, file: Fields, info: type[Model]
) -> ModelSection:
    """Return the model with strengths of latent coordinates that its meshes share.

    Strengths that follow each mesh move the grid with its number of points and their
    noise, where they are neither 0 nor the largest.
    """
    key, settings = "latent_strengths", model.settings
    if key not in settings or settings[key] is not None or not file.own_meshes:
        return model
    latent = settings["latent"]
    if not (file.domain.dim < 3 if latent is None else latent) or file.domain.curved:
        return model
    samples, domain = samples_of(data, file, "train"), file.domain
    some = samples[:: math.ceil(len(samples) / MESHES)]
    points = (torch.as_tensor(file.coordinates(int(sample))) for sample in some)
    maps = (
        LatentCoordinates.of(domain.normalise(pos, torch.float64), domain.normalised)
        for pos in points
    )
    return model.changed(settings={**settings, key: shared_strengths(maps)})


def _check_together(config: RunConfig, file: Fields, info: type[Model]) -> None:
    """Refuse settings that do not fit together or to the data."""
    data, form = config.data, config.model.prediction
    if lacking := [p for p in SPLITS if not len(samples_of(data, file, p))]:
        by_time = f", or split by time: {option('data.split_by', 'time')}"
        todo = by_time * bool(data.n_in)
        todo = f"use a file with more samples{todo}"
        if file.num_samples >= len(SPLITS):  # by data.split, or parts in the file
            todo = f"give each some, as by {option('data.split', '[0.7,0.1,0.2]')}"
        raise UserError(
            f"{file.path} with {file.num_samples} samples"
            + f", of which none are for {' and '.join(lacking)}",
            "at least one each to train, validate and test on",
            todo,
        )
    if data.query_points and not info.query_points:
        able = [name for name, kind in MODELS.items() if kind.query_points]
        raise UserError(
            f"data.query_points={data.query_points} with --model {config.model.name}, "
            "which predicts at the observed points alone",
            "0",
            f"leave it out, or use one of {', '.join(able)}",
        )
    if form == ("damped" if data.lead_times else "rate"):
        raise UserError(
            f"model.prediction={form} with data.lead_times={data.lead_times}",
            "damped without lead times, or rate with them",
            "choose residual, or the other form",
        )


def _with_time_steps(data: DataSection, file: Fields) -> DataSection:
    file.check_known()
    if data.n_in is None:  # else somebody has decided that there are no inputs in time
        check_roles(file)
    steady = len(file.times) == 1
    if steady and not (file.input_names or data.n_in or data.boundary_inputs):
        shape = "predict from the shape of the mesh, "
        shape += f"{option('data.boundary_inputs', 'true')}, "
        raise UserError(
            f"{file.path} with one time step and no static inputs",
            "inputs to predict from",
            "name them where the files of their origin are opened: "
            f"{option('columns', 'static=NAME')}, "
            f"{shape if file.cells(0) else ''}or give several time steps",
        )
    n_in = data.n_in if data.n_in is not None else 0 if steady else TIME_STEPS
    n_out = data.n_out or (1 if steady else TIME_STEPS)
    num = file.num_observed()
    if data.first_step + data.length(n_in + n_out) > num:
        apart = f", {data.time_stride} apart," if data.time_stride > 1 else ""
        raise UserError(
            f"--n-in {n_in} and --n-out {n_out}{apart} from time step "
            f"{data.first_step}",
            f"at most the {num} {'observed ' * (num < len(file.times))}time steps of "
            f"{file.path}",
            "ask for fewer or use a longer file",
        )
    in_time = {
        f"--window-stride {data.window_stride}": data.window_stride is not None,
        "data.split_by=time": data.split_by == "time",
        "data.lead_times=true": data.lead_times,
    }
    for setting, chosen in in_time.items():
        if chosen and not n_in:
            came = f"{setting} without input time steps"
            raise UserError(came, "fields in time", "leave it out")
    # The run may be continued from another folder.
    test_file = data.test_file and data.test_file.resolve()
    path, columns = file.path.resolve(), data.columns or {}
    places = Path(str(columns.get("points", "")))
    if places.is_file():
        data = data.changed(columns={**columns, "points": str(places.resolve())})
    if data.graph is not None:
        data = data.changed(graph=graph_source(data.graph, file))
    return data.changed(file=path, test_file=test_file, n_in=n_in, n_out=n_out)


def _with_windows(data: DataSection, file: Fields) -> DataSection:
    n_in, n_out = data.n_in or 0, data.n_out or 1
    by_time = not all(len(file.split[part]) for part in SPLITS)
    if data.window_stride is None:
        # No part of a file that has parts of its own is training data of another.
        undivided = len(file.split["train"]) == file.num_samples < len(SPLITS)
        by_time = undivided and n_in > 0
    data = data.changed(split_by=data.split_by or ("time" if by_time else "series"))
    steps = steps_of(data, file)["train"]  # which refuses too few of them
    if data.split_by == "series":
        return data
    # The stride leaves about WINDOWS windows of a long series, but every time step
    # after the first window is a target.
    windows = (len(steps) - data.length(n_in + n_out) + 1) * file.num_samples
    stride = data.window_stride or min(max(1, windows // WINDOWS), n_out)
    apart = data.evaluation_stride or stride
    return data.changed(window_stride=stride, evaluation_stride=apart)


def _with_points(data: DataSection, file: Fields, model: type[Model]) -> DataSection:
    data = _with_held_out(data, file) if data.hold_out else data
    name = data.mesh
    if name is None:
        if data.grid is not None or not model.points:
            name = "grid"
        else:
            cloud = file.shape is None and data.points is None
            name = "all" if cloud else SUBSET
    elif name == "grid" and data.grid is None and data.points is None and file.shape:
        name = "all"
    kind = MESH_KINDS[name]
    if (data.mesh_per_sample or (data.point_sets or 1) > 1) and not kind.drawn:
        key = "data.mesh_per_sample" if data.mesh_per_sample else "data.point_sets"
        advice = "choose another --mesh or leave it out"
        raise UserError(f"{key} with --mesh {name}", "points that are drawn", advice)
    for key in ("points", "grid"):
        if getattr(data, key) is not None and kind.size not in (key, "grid"):
            came = f"--{key} {getattr(data, key)} with --mesh {name}"
            raise UserError(came, "one of the two", "leave the other out")
    sets, points, grid = data.point_sets, None, None
    if sets is None:
        sets = model.point_sets if kind.drawn and not data.mesh_per_sample else 1
    if kind.size == "grid":
        grid = _points_per_axis(data, file)
    elif kind.size is not None:
        points = data.points or max(1, file.num_points() // 4)
    data = data.changed(mesh=name, point_sets=sets, points=points, grid=grid)
    fraction, meshes_differ = data.least_fraction, file.sample_mesh.any()
    if fraction is None:
        fraction = model.least_fraction if name == "all" and meshes_differ else 1.0
    elif fraction < 1 and not (name == "all" and model.any_mesh):
        raise UserError(
            f"data.least_fraction={fraction:g} with --mesh {name} and a model that "
            f"works on {'any mesh' if model.any_mesh else 'the mesh of training'}",
            "--mesh all and a model that works on any mesh",
            "leave it out, or choose these",
        )
    return data.changed(least_fraction=fraction)


def _with_held_out(data: DataSection, file: Fields) -> DataSection:
    """Return settings that observe a point cloud without its held-out points."""
    num = file.num_points()
    left = num - max(1, round(data.hold_out * num))
    shared = file.shape is None and not file.sample_mesh.any()
    chosen = data.mesh or data.grid or data.points or data.mesh_per_sample
    conflict = chosen and (data.mesh, data.points) != (SUBSET, left)
    if not shared or not left or conflict:
        raise UserError(
            f"data.hold_out={data.hold_out:g} of {file.path}",
            "a point cloud that all samples share, without other settings of its mesh, "
            "grid or points",
            "leave either out, or choose a smaller share" if shared else "leave it out",
        )
    return data.changed(mesh=SUBSET, points=left, point_sets=1, query_points=0)


def _points_per_axis(data: DataSection, file: Fields) -> int:
    """Return the points per axis of a sub-grid, by default a quarter of the points."""
    axes, fitting = grid_axes(file), sub_grid_sizes(file)
    dim, shape = len(axes), " x ".join(str(len(axis)) for axis in axes)
    grid = f"the {shape} grid of {file.path}"
    advice = "choose --mesh all or a --model that takes any points, such as nfs"
    if not fitting:
        expected = "a grid with sub-grids of as many points along each axis"
        raise UserError(grid, expected, advice)
    if data.grid is None and data.points is None:
        closed = all(has_ends(file, i) for i in range(dim))
        quarter = (min(map(len, axes)) - closed) // math.ceil(4 ** (1 / dim)) + closed
        # The largest size up to a quarter that fits, or else the smallest.
        return max((size for size in fitting if size <= quarter), default=fitting[0])
    side = data.grid or round((data.points or 0) ** (1 / dim))
    if side in fitting and data.points in (None, side**dim):
        return side
    requested = data.points or side**dim
    near = sorted(fitting, key=lambda size: abs(size**dim - requested))[:FEW]
    asked = {"--grid {}": data.grid, "--points {} on a grid": data.points}
    raise UserError(
        " with ".join(name.format(size) for name, size in asked.items() if size),
        f"points along each axis to which {grid} thins out, such as "
        f"{', '.join(map(str, sorted(near)))}",
        f"give --grid {near[0]} ({near[0] ** dim} points), or {advice}",
    )
