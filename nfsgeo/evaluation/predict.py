"""Predictions for new data, at the observed points or anywhere else."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch
from xarray import Variable

import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.data.boundary import boundary_at
from nfsgeo.data.cache import Cache
from nfsgeo.data.conventions import Doubles
from nfsgeo.data.io.from_memory import saved_path
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.meshes import MeshOfFile
from nfsgeo.data.windows import WindowDataset
from nfsgeo.data.writers import writer_of
from nfsgeo.errors import UserError
from nfsgeo.evaluation.horizon import known_steps, observed_steps, times_ahead
from nfsgeo.evaluation.not_finite import NotFinite
from nfsgeo.evaluation.query_points import query_points_of
from nfsgeo.evaluation.scored_model import open_run, predictions
from nfsgeo.files import check_room
from nfsgeo.forecast import matched
from nfsgeo.geometry import Graphs
from nfsgeo.models import MODELS, Task
from nfsgeo.progress import Progress, silent
from nfsgeo.training.run_data import RunData
from nfsgeo.training.run_paths import Run
from nfsgeo.training.source import open_as

__all__ = ["predict"]

logger = logging.getLogger(__name__)

# Points that a batch predicts at, approximately; a batch has at least one sample.
POINTS = 1 << 16
# Values of each of these, above which fewer points are predicted at once.
VALUES = 32


def predict(
    run: Run,
    source: Fields | Path | str,
    target: Path | str | None = None,
    *,
    query_pos: Path | str | Doubles | Tensor | None = None,
    first: int | None = None,
    steps: int | None = None,
    lead_times: Sequence[float] | None = None,
    level: float | None = None,
    device: str | None = None,
    progress: Progress = silent,
) -> Fields:
    """Predict every sample of a file, at the observed points or anywhere else.

    A run with error bands also gives ``u_lower`` and ``u_upper`` for a component ``u``,
    as far ahead as in training.

    The last snapshots of the file are observed, as far apart as in training, and the
    time steps after its end are predicted. What is known ahead has to be in the file at
    these, too: its end is then the last time step with a value of the fields.

    A point cloud is observed at all of its points, a grid at the points of the run,
    or at all of them for a model that comes with nfsgeo.

    Query points are predicted in blocks, so that memory does not grow with their
    number, but for their coordinates. Where a prediction is not finite, a warning says
    in which sample and from which time step on, and the value is missing in the file.

    Args:
        run: From :func:`nfsgeo.fit`, its folder, or a name such as ``"ns-small"``.
        source: Fields with at least the run's input snapshots, or their path.
        target: The file of point clouds to make; its ending chooses the format, see
            :meth:`~nfsgeo.data.Fields.write`. Without it none is made, and values are
            read from a temporary file that ends with the process.
        query_pos: Where to predict, an array or tensor ``[M, d]`` or a file for
            :func:`~nfsgeo.evaluation.read_points`; None for the
            observed points. A table, or an ``.npz``
            file, may hold static inputs of the run there, by their names.
        first: Number of the first observed snapshot, from 0, to predict from elsewhere
            in the file.
        steps: Number of time steps to predict, by an autoregressive rollout where they
            are more than in training.
        lead_times: Times to predict, after the last observed one, for a model that was
            trained with ``data.lead_times``.
        level: Fraction of values that are to lie in an error band, 0.9 by default,
            the attribute ``level`` of its ends; 0 leaves bands out.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``, in place of the run's own.
        progress: Called with what is being done, how much is done and in all.

    Returns:
        The predicted snapshots, with a parameter ``out_of_distribution``.
        Their ``provenance`` has the samples that are ``"not_finite"``, if any.

    Raises:
        UserError: The run, the fields or the points cannot be used, or ``target``
            exists.
    """
    loaded = open_run(run, device)
    config, forecaster = loaded.config, loaded.forecaster
    source, folder = saved_path(source), Path(tempfile.gettempdir())
    if target is not None:
        target = Path(target)
        writer_of(target)
        folder = target.parent
    task, data, info = forecaster.task, config.data, MODELS[config.model.name]
    with (
        tempfile.TemporaryFile(dir=folder) as scratch,  # also gone after a kill
        open_as(data, source) as file,
    ):
        file, domain, num = matched(file, task), task.domain, file.num_samples
        # A point cloud is observed everywhere; a model that needs a grid refuses it.
        at_all = file.shape is None and info.any_mesh
        mesh = MeshOfFile(file) if at_all else RunData(config, file).mesh
        points, queries, most = None, None, max(map(file.num_points, range(num)))
        names: list[str] = []
        static: Mapping[str, Any] = {}
        if query_pos is not None:
            points, names, static = query_points_of(query_pos, domain, task.static)
            queries, most = domain.wrap(torch.from_numpy(points)), len(points)
            if static and file.sample_mesh.any():
                logger.warning(
                    "%s at the query points is that of all %d samples, although their "
                    "meshes differ",
                    *(", ".join(static), num),
                )
            names = names * num
        observed = observed_steps(task, data.time_stride, file, first)
        ahead = times_ahead(task, file, observed, steps, lead_times)
        companions = [
            companion
            for part in loaded.additions.values()
            if (companion := part.companion(forecaster, len(ahead), level)) is not None
        ]
        if level and not any(companion.suffixes for companion in companions):
            given = f"level {level:g} of {len(ahead)} time steps without error bands"
            expected = f"a run with bands, and its {task.n_out} time steps"
            raise UserError(given, expected, "leave it out, or train with --bands")
        further = {
            f"{name}_{suffix}": (companion.attributes, file.units.get(name, ""))
            for companion in companions
            for suffix, name in product(companion.suffixes, file.component_names)
        }
        fields = [*file.component_names, *further]
        joined = any(companion.needs_observed for companion in companions)
        bytes_per_point = 4 * len(ahead) * len(fields) + 8 * domain.dim
        check_room(target or folder, num * most * bytes_per_point)
        values_per_point = len(ahead) * len(fields)
        block = max(1024, POINTS * VALUES // max(VALUES, values_per_point))
        forcings = known_steps(file, ahead)
        windows = WindowDataset(
            file,
            range(num),
            len(observed),
            len(forcings),
            mesh,
            numbers=np.concatenate([observed, forcings]),
            cells=info.uses_cells,
            graph=info.uses_graph,
        )
        for sample in range(num) if points is None and file.stations() else ():
            names += [*np.array(file.stations(sample))[mesh(sample).index]]

        def connect(query_pos: Tensor | None, pos: Tensor, **more: Any) -> Graphs:
            if query_pos is not None and joined:
                query_pos = torch.cat([pos, query_pos.to(pos)])
            graphs = forecaster.connect(pos, query_pos=query_pos, **more)
            for companion in companions:
                graphs = companion.connect(graphs)
            return graphs

        def static_at_queries(
            queries: Tensor | None, first: int, cache: Cache, batch: Batch
        ) -> Tensor | None:
            if queries is None or (not static and task.boundary is None):
                return None
            column, rows = len(task.components) * task.has_time, list[Tensor]()
            inputs = batch.x[:, 0, column : column + len(task.static)]
            here = {k: v[first : first + len(queries)] for k, v in static.items()}
            for sample, sample_inputs in zip(
                batch.sample.tolist(), inputs.split(batch.graphs.sizes), strict=True
            ):
                mesh_number = int(file.sample_geometry[sample])
                make = partial(_static_at, file, task, sample, queries, here)
                values = cache.get(mesh_number, make).to(inputs)
                rows += [sample_inputs, values] if joined else [values]
            return torch.cat(rows)

        staged, where, odd = list[tuple[Any, ...]](), list[Doubles](), NotFinite()
        parts = [None] if queries is None else queries.split(block)
        for number, part in enumerate(parts):
            start, done = number * block, 0
            size = most if part is None else len(part)
            for batch, u in predictions(
                forecaster,
                windows,
                max(1, min(data.batch_size, block // size)),
                connect=partial(connect, part),
                steps=steps,
                ahead=torch.from_numpy(ahead),
                query_static=partial(static_at_queries, part, start, Cache(2**28)),
            ):
                more = [
                    component
                    for c in companions
                    for component in c.components(u, batch)
                ]
                u = torch.cat([u, *more], dim=-1).cpu()
                for values in u.split(batch.graphs.predicted_sizes):
                    values = values if part is None else values[-size:]
                    odd.add(done, values)
                    array = values.numpy()
                    if part is not None:  # beside those of the sample's other blocks
                        scratch.seek((done * most + start) * array[0].nbytes)
                    if number == 0:
                        rows = len(array) if part is None else most
                        shape = rows, *array.shape[1:]
                        staged.append((array.dtype, "r", scratch.tell(), shape))
                        where.append(mesh(done).pos if points is None else points)
                    scratch.write(array.tobytes())
                    done += 1
                progress("samples", number * num + done, len(parts) * num)
        scratch.flush()
        provenance: dict[str, Any] = {"model": config.model.name}
        provenance["predicted_from"] = source.name
        if not_finite := odd.report(
            f"predictions, missing in {target or 'the result'}"
        ):
            provenance["not_finite"] = not_finite
        dims = ("point", "time", "component")
        values = [Variable(dims, np.memmap(scratch, *place)) for place in staged]
        predicted = to_fields(
            Path(source.name),
            {"u": (dims, values, {"components": fields})},
            {
                "points": (("point", "axis"), where),
                "station": ("point", names or None),
                "time": ("time", ahead),
            },
            cells=[*map(file.cells, range(num if at_all and points is None else 0))],
            domain=domain,
            parameters={
                # Every block counts the samples again.
                k: v[:num]
                for c in companions
                for k, v in c.parameters().items()
            },
            equation=file.equation,
            provenance=provenance,
            units={**file.units, **{name: unit for name, (_, unit) in further.items()}},
            split=file.split,
        )
        for name, (attributes, _) in further.items():
            predicted.dataset[name].attrs.update(attributes)
        if standard := file.dataset["x"].attrs.get("standard_name"):
            predicted.dataset["x"].attrs["standard_name"] = standard
        if target is not None:
            predicted = nfsgeo.data.open(predicted.write(target))
        about = {"provenance": json.dumps(provenance)}  # not all formats keep it
        return replace(predicted, dataset=predicted.dataset.assign_attrs(about))


def _static_at(
    file: Fields, task: Task, sample: int, points: Tensor, static: Mapping[str, Any]
) -> Tensor:
    """Static inputs of a task at query points ``[M, C_s]``, NaN where unknown."""
    values = torch.full((len(points), len(task.static)), torch.nan).double()
    boundary = boundary_at(file, task.boundary, sample, points)
    for name, column in {**boundary, **static}.items():
        values[:, task.static.index(name)] = torch.tensor(column).double()
    return values
