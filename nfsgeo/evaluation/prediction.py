"""Predicts with a run in blocks of query points."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch
from xarray import Variable

from nfsgeo.data import Fields
from nfsgeo.data.boundary import boundary_at
from nfsgeo.data.cache import Cache
from nfsgeo.data.conventions import TIME_ZONE, Doubles, Indices
from nfsgeo.data.flat_axes import with_axes_left_out
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.meshes import MeshOfFile, Observation
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError, option
from nfsgeo.evaluation.additions import Companion
from nfsgeo.evaluation.horizon import known_steps, observed_steps, times_ahead
from nfsgeo.evaluation.query_points import QueryPoints, query_points_of
from nfsgeo.evaluation.scored_model import LoadedRun, predictions
from nfsgeo.forecast.in_memory import is_empty, warn_of_empty
from nfsgeo.geometry import Graphs
from nfsgeo.geometry.cells import outside_cells
from nfsgeo.models import MODELS, Task
from nfsgeo.progress import Progress
from nfsgeo.training.run_data import RunData

__all__ = ["Prediction"]

logger = logging.getLogger(__name__)

# Meshes, the first ones, whose cells are compared with query points.
MESHES = 8
# Points that a batch predicts at, approximately; a batch has at least one sample.
POINTS = 1 << 16
# Values of each of these, above which fewer points are predicted at once.
VALUES = 32


@dataclass(frozen=True)
class Prediction:
    """Predicts with a run, from given time steps, at given times and points.

    Attributes:
        loaded: The run.
        file: The fields, in the terms of the run.
        mesh: Where samples are observed.
        queries: Where they are predicted; None for where they are observed.
        observed: Numbers of the observed time steps.
        ahead: Times to predict.
        companions: Parts of the run that add fields and parameters.
    """

    loaded: LoadedRun
    file: Fields
    mesh: Observation
    queries: QueryPoints | None
    observed: Indices
    ahead: Doubles
    companions: Sequence[Companion]

    @classmethod
    def of(
        cls,
        loaded: LoadedRun,
        file: Fields,
        query_pos: Path | str | Doubles | Tensor | None,
        level: float | None,
        *,
        first: int | None,
        steps: int | None,
        lead_times: Sequence[float] | None,
    ) -> Self:
        """Return what the arguments of :func:`predict` ask for."""
        config, forecaster = loaded.config, loaded.forecaster
        task, queries = forecaster.task, None
        whole = _is_observed_everywhere(file, loaded)
        mesh = MeshOfFile(file) if whole else RunData(config, file).mesh
        if query_pos is not None:
            queries = query_points_of(query_pos, task.domain, task.static, task.units)
            _tell_holes(file, queries)
            if queries.static and file.sample_mesh.any():
                logger.warning(
                    "%s at the query points is that of all %d samples, although their "
                    "meshes differ",
                    *(", ".join(queries.static), file.num_samples),
                )
        observed = observed_steps(task, config.data.time_stride, file, first)
        ahead = times_ahead(task, file, observed, steps, lead_times)
        parts = [
            part.companion(forecaster, len(ahead), level)
            for part in loaded.additions.values()
        ]
        companions = [part for part in parts if part is not None]
        if level and not any(companion.suffixes for companion in companions):
            given = f"level {level:g} of {len(ahead)} time steps without error bands"
            expected = f"a run with bands, and its {task.n_out} time steps"
            raise UserError(
                given, expected, f"leave it out, or train, {option('bands')}"
            )
        return cls(loaded, file, mesh, queries, observed, ahead, companions)

    @cached_property
    def task(self) -> Task:
        return self.loaded.forecaster.task

    @cached_property
    def further(self) -> dict[str, tuple[Mapping[str, Any], str]]:
        """Return attributes and units of the fields of companions, by name."""
        return {
            f"{name}_{suffix}": (companion.attributes, self.file.units.get(name, ""))
            for companion in self.companions
            for suffix, name in product(companion.suffixes, self.file.component_names)
        }

    @cached_property
    def names(self) -> list[str]:
        return [*self.file.component_names, *self.further]

    @cached_property
    def most(self) -> int:
        """Return the largest number of predicted points of a sample."""
        if self.queries is not None:
            return len(self.queries.pos)
        return max(map(self.file.num_points, range(self.file.num_samples)))

    @property
    def num_bytes(self) -> int:
        """Return the number of bytes that the predictions take at most."""
        values = 4 * len(self.ahead) * len(self.names)
        return self.file.num_samples * self.most * (values + 8 * self.task.domain.dim)

    def blocks(
        self, steps: int | None, progress: Progress
    ) -> Iterator[tuple[int, int, Tensor]]:
        """Yield predictions ``[m, T, C]`` of samples, each at a block of their points.

        Before them are the number of the sample and that of the first of the points.
        The samples follow each other, once for every block.

        Args:
            steps: Number of time steps of a rollout; None for those of training.
            progress: Called with how much is done.
        """
        values_per_point = len(self.ahead) * len(self.names)
        block = max(1024, POINTS * VALUES // max(VALUES, values_per_point))
        num, windows = self.file.num_samples, self._windows()
        parts: Sequence[Tensor | None] = [None]
        if self.queries is not None:
            pos = self.task.domain.wrap(torch.from_numpy(self.queries.pos))
            parts = pos.split(block)
        for number, part in enumerate(parts):
            start, done, empty = number * block, 0, list[bool]()
            size = self.most if part is None else len(part)
            for batch, u in predictions(
                self.loaded.forecaster,
                windows,
                max(1, min(self.loaded.config.data.batch_size, block // size)),
                connect=partial(self._connect, part),
                steps=steps,
                ahead=torch.from_numpy(self.ahead),
                query_static=partial(self._static, part, start, Cache(2**28)),
            ):
                more = [
                    c for each in self.companions for c in each.components(u, batch)
                ]
                u = torch.cat([u, *more], dim=-1).cpu()
                inputs = batch.x.split(batch.graphs.sizes)
                empty += [is_empty(self.task, x) for x in inputs]
                for values in u.split(batch.graphs.predicted_sizes):
                    yield done, start, values if part is None else values[-size:]
                    done += 1
                progress("samples", number * num + done, len(parts) * num)
            if not number:
                warn_of_empty(empty)

    def fields(
        self, arrays: Sequence[NDArray[Any]], path: Path, provenance: dict[str, Any]
    ) -> Fields:
        """Return the predicted fields.

        Args:
            arrays: Their values in each sample ``[n, T, C]``.
            path: The file that they were predicted from, for messages.
            provenance: How they were made.
        """
        file, queries, dims = self.file, self.queries, ("point", "time", "component")
        samples = range(file.num_samples)
        whole = queries is None and _is_observed_everywhere(file, self.loaded)
        if queries is not None:
            stations = queries.names * len(samples)
            where = [np.asarray(queries.pos)] * len(samples)
        else:
            where = [self.mesh(sample).pos for sample in samples]
            named = samples if file.stations() else ()
            stations = [
                name
                for sample in named
                for name in np.array(file.stations(sample))[self.mesh(sample).index]
            ]
        values = [Variable(dims, array) for array in arrays]
        predicted = to_fields(
            path,
            {"u": (dims, values, {"components": self.names})},
            {
                "points": (("point", "axis"), where),
                "station": ("point", stations or None),
                "time": ("time", self.ahead, self._zone()),
            },
            cells=[*map(file.cells, samples)] if whole else [],
            domain=self.task.domain,
            parameters={
                # Every block counts the samples again.
                name: values[: len(samples)]
                for companion in self.companions
                for name, values in companion.parameters().items()
            },
            equation=file.equation,
            provenance=provenance,
            units=file.units | {name: unit for name, (_, unit) in self.further.items()},
            split=file.split if "part" in file.dataset else None,
        )
        for name, (attributes, _) in self.further.items():
            predicted.dataset[name].attrs.update(attributes)
        if standard := file.dataset["x"].attrs.get("standard_name"):
            predicted.dataset["x"].attrs["standard_name"] = standard
        return with_axes_left_out(predicted, file)

    def _zone(self) -> dict[str, str]:
        """The time zone of the times of the file, if it tells one."""
        times = self.file.dataset.variables.get("time", Variable((), 0))
        zone = times.attrs.get(TIME_ZONE)
        return {TIME_ZONE: zone} if zone else {}

    def _windows(self) -> WindowDataset:
        info = MODELS[self.loaded.config.model.name]
        forcings = known_steps(self.file, self.ahead)
        return WindowDataset(
            self.file,
            range(self.file.num_samples),
            len(self.observed),
            len(forcings),
            self.mesh,
            numbers=np.concatenate([self.observed, forcings]),
            cells=info.uses_cells,
            graph=info.uses_graph,
        )

    @cached_property
    def _with_observed(self) -> bool:
        """Return whether a companion needs predictions at the observed points, too."""
        return any(companion.needs_observed for companion in self.companions)

    def _connect(self, query_pos: Tensor | None, pos: Tensor, **more: Any) -> Graphs:
        if query_pos is not None and self._with_observed:
            query_pos = torch.cat([pos, query_pos.to(pos)])
        graphs = self.loaded.forecaster.connect(pos, query_pos=query_pos, **more)
        for companion in self.companions:
            graphs = companion.connect(graphs)
        return graphs

    def _static(
        self, pos: Tensor | None, first: int, cache: Cache, batch: Batch
    ) -> Tensor | None:
        """Return static inputs at the predicted points of a batch, None without any."""
        task, queries = self.task, self.queries
        if pos is None or queries is None:
            return None
        if not queries.static and task.boundary is None:
            return None
        column, rows = len(task.components) * task.has_time, list[Tensor]()
        inputs = batch.x[:, 0, column : column + len(task.static)]
        here = {k: v[first : first + len(pos)] for k, v in queries.static.items()}
        for sample, sample_inputs in zip(
            batch.sample.tolist(), inputs.split(batch.graphs.sizes), strict=True
        ):
            make = partial(_static_at, self.file, task, sample, pos, here)
            values = cache.get(int(self.file.sample_geometry[sample]), make).to(inputs)
            rows += [sample_inputs, values] if self._with_observed else [values]
        return torch.cat(rows)


def _tell_holes(file: Fields, queries: QueryPoints) -> None:
    """Warn of query points outside the cells of a plane mesh, where no fields are."""
    box = file.domain.box
    if len(file.space) != 2 or any(box.periodic) or file.domain.curved:
        return
    _, first = np.unique(file.sample_mesh, return_index=True)
    for sample in np.sort(first)[:MESHES].tolist():
        pos, points = (
            torch.from_numpy((at - np.array(box.lower)) / np.array(box.lengths))
            for at in (file.coordinates(sample), np.asarray(queries.pos))
        )
        if num := int(outside_cells(file.cells(sample), pos, points).sum()):
            logger.warning(
                "%d of %d query points lie outside the cells of sample %d of %s, as "
                "in a hole, where the fields are not defined",
                *(num, len(points), sample, file.path),
            )
            return


def _is_observed_everywhere(file: Fields, loaded: LoadedRun) -> bool:
    """Return whether all points are observed: of a cloud, with a model of any points.

    Other models refuse a point cloud.
    """
    return file.shape is None and MODELS[loaded.config.model.name].any_mesh


def _static_at(
    file: Fields, task: Task, sample: int, points: Tensor, static: Mapping[str, Any]
) -> Tensor:
    """Static inputs of a task at query points ``[M, C_s]``, NaN where unknown."""
    values = torch.full((len(points), len(task.static)), torch.nan).double()
    boundary = boundary_at(file, task.boundary, sample, points)
    for name, column in {**boundary, **static}.items():
        values[:, task.static.index(name)] = torch.tensor(column).double()
    return values
