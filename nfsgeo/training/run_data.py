"""The samples, windows and points that each part of a run uses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
from scipy.spatial import cKDTree

from nfsgeo.config import DataSection, RunConfig
from nfsgeo.data import Fields
from nfsgeo.data.conventions import Indices
from nfsgeo.data.meshes import (
    MESH_KINDS,
    Mesh,
    MeshBySample,
    MeshesInTurn,
    MeshOfFile,
    Observation,
    SubsetsInTurn,
    with_queries,
)
from nfsgeo.data.splits import SPLITS, split_in_order
from nfsgeo.data.times import clock, same_steps
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError, option
from nfsgeo.models import MODELS

__all__ = ["RunData", "queried", "samples_of", "steps_of"]

T = TypeVar("T")

# Sets of query points that training samples on one mesh cycle through.
QUERY_SETS = 16


@dataclass(frozen=True)
class RunData:
    """The file of a run, and the samples, windows and points that its parts use.

    Results that are computed once are cached by :meth:`once`, also for a completed
    configuration.

    Args:
        config: The configuration, of which the section ``data``, ``loss.weighting``,
            the name of the model and the seed are used.
        file: The fields.

    Raises:
        UserError: On access, if the file lacks such points or time steps.
    """

    config: RunConfig
    file: Fields
    _made: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the object of a key, which is made at the first call.

        Args:
            key: Name of the object.
            make: Makes it from the data, and from settings that no longer change.
        """
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def completed(self, config: RunConfig) -> Self:
        """Return the same data with further settings, and all that has been computed.

        Args:
            config: The configuration, with the same samples, windows and points.
        """
        return replace(self, config=config)

    def samples(self, part: str) -> Indices:
        """Return the numbers of the samples of a part.

        Args:
            part: ``"train"``, ``"valid"`` or ``"test"``.
        """
        return samples_of(self.config.data, self.file, part)

    def typical_size(self, samples: Sequence[int]) -> int:
        """Return the median number of observed points of some samples."""
        distinct = dict.fromkeys(samples) if self.file.own_meshes else samples[:1]
        return int(np.median([len(self.mesh(sample)) for sample in distinct]))

    @property
    def steps(self) -> dict[str, range]:
        """The time steps of the file that the windows of each part lie in."""
        return steps_of(self.config.data, self.file)

    def starts(self, part: str, num_steps: int, stride: int | None = None) -> Indices:
        """Return the first time steps of the windows of a sample.

        Windows in which the file lacks time steps are left out if there are others,
        unless the model has lead times.

        Args:
            part: ``"train"``, ``"valid"`` or ``"test"``.
            num_steps: Number of time steps of a window.
            stride: Time steps from one window to the next; None for that of the run.
        """
        data, file = self.config.data, self.file
        times, _ = clock(file.times, file.time_unit)
        usual = data.window_stride if part == "train" else data.evaluation_stride
        if (stride := stride or usual) is None:
            return np.array([data.first_step])
        steps, apart = self.steps[part], data.time_stride
        starts = np.arange(steps.start, steps.stop - data.length(num_steps) + 1, stride)
        if data.lead_times:
            return starts
        median = np.median(times[apart:] - times[:-apart])
        gaps = np.diff(times[starts[:, None] + apart * np.arange(num_steps)])
        even = same_steps(gaps, median).all(axis=1)
        return starts[even] if even.any() else starts

    def windows(
        self,
        part: str,
        mesh: Observation | None = None,
        *,
        n_out: int | None = None,
        beyond: int = 0,
        stride: int | None = None,
        max_samples: int | None = None,
        volumes: bool = False,
    ) -> WindowDataset:
        """Return the windows of a part of the data.

        Args:
            part: ``"train"``, ``"valid"`` or ``"test"``.
            mesh: The points at which samples are observed; None for :attr:`mesh`.
            n_out: Time steps to predict, where they are not those of training.
            beyond: Further time steps after these, as far as there are any.
            stride: Time steps from one window to the next, as for :meth:`starts`.
            max_samples: Number of samples at most, the first ones.
            volumes: Whether batches carry the quadrature weights of their points.
        """
        data, file = self.config.data, self.file
        n_in, n_out = data.n_in or 0, n_out or data.n_out or 1
        most = len(self.steps[part][:: data.time_stride]) - n_in
        if data.split_by == "time" and n_out > most:
            raise UserError(
                f"{n_out} predicted time steps in the {part} part of {file.path}",
                f"at most {most}, after {n_in} observed ones",
                "ask for fewer, or use a longer file",
            )
        n_out += max(0, min(beyond, most - n_out))
        samples = self.samples(part)[:max_samples]
        starts = self.starts(part, n_in + n_out, stride)
        return WindowDataset(
            file,
            np.repeat(samples, len(starts)),
            n_in,
            n_out,
            self.mesh if mesh is None else mesh,
            first_step=np.tile(starts, len(samples)),
            numbers=data.time_stride * np.arange(n_in + n_out),
            volumes=volumes,
            cells=MODELS[self.config.model.name].uses_cells,
            graph=MODELS[self.config.model.name].uses_graph,
        )

    def training_windows(self, beyond: int = 0) -> WindowDataset:
        """Return the windows of training, on its meshes.

        Args:
            beyond: Further time steps after the predicted ones.
        """
        weighted = self.config.loss.weighting == "quadrature"
        return self.windows(
            "train", self.training_mesh, beyond=beyond, volumes=weighted
        )

    @property
    def mesh(self) -> Observation:
        """The points where samples are observed, a function of the file and the seed.

        Training samples that cycle through several point sets begin with this one.
        """
        return self.once("mesh", lambda: self.observation(self._seed))

    def observation(self, seed: int) -> Observation:
        """Return the points where samples are observed.

        Args:
            seed: Seed of the points, if they are drawn.
        """
        kind = MESH_KINDS[self.config.data.mesh or ""]
        if kind.size is None and self._many:
            return MeshOfFile(self.file)
        draw = self._draw(seed)
        by_sample = kind.drawn and (self.config.data.mesh_per_sample or self._many)
        return MeshBySample(draw) if by_sample else draw(0)

    @property
    def training_mesh(self) -> Observation:
        """The points where training samples are observed, which may cycle by epoch."""
        queries = self.config.data.query_points or 0
        return self.once("training mesh", lambda: self.training_observation(queries))

    def training_observation(self, query_points: int) -> Observation:
        """Return the points where training samples are observed, with query points.

        Each of several meshes has its own unobserved query points; a single mesh has
        others in every epoch, as far as the file has any.

        Args:
            query_points: Number of unobserved query points of a sample at most.
        """
        data, file = self.config.data, self.file
        # More meshes than windows would never be used.
        most = file.num_samples
        if data.window_stride is not None:
            most *= len(range(0, len(file.times), data.window_stride))
        num = min(data.point_sets or 1, most)
        queries = 0 if data.mesh == "all" else query_points
        fraction = data.least_fraction or 1.0
        if fraction < 1:
            return SubsetsInTurn(self.mesh, file.sample_mesh, fraction, self._seed)
        if num > 1 and not (data.mesh_per_sample or self._many):
            meshes = [*map(self._draw(self._seed), range(num))]
        elif not queries:
            return self.mesh
        elif isinstance(self.mesh, Mesh):
            meshes = [self.mesh] * min(QUERY_SETS, most)
        else:
            return queried(self.mesh, file, queries, self._seed)
        if queries:
            meshes = [
                with_queries(mesh, file, queries, self._seed, number)
                for number, mesh in enumerate(meshes)
            ]
        return MeshesInTurn(tuple(meshes))

    def trained_points(self, sample: int) -> Indices:
        """Return the numbers of the points of a sample that training has seen.

        Query points count as seen. Points of several meshes are compared by their
        coordinates, since meshes of a file may share points.

        Args:
            sample: Number of the sample.
        """
        mesh = int(self.file.sample_mesh[sample])
        return self.once(("trained points", mesh), lambda: self._trained_points(sample))

    def _trained_points(self, sample: int) -> Indices:
        seen = self.once("training meshes", self._training_meshes)
        numbers = [mesh.index for mesh in seen if mesh.index is not None]
        if not self._many and len(numbers) == len(seen):
            return np.unique(np.concatenate(numbers))
        pos = [mesh.pos for mesh in seen]
        tree = self.once("training points", lambda: cKDTree(np.concatenate(pos)))
        return np.flatnonzero(tree.query(self.file.coordinates(sample))[0] == 0)

    def _training_meshes(self) -> list[Mesh]:
        observation = self.training_mesh
        meshes = getattr(observation, "meshes", None)
        if meshes is None:
            samples = self.samples("train")
            samples = samples if len(samples) else np.arange(self.file.num_samples)
            meshes = {observation(int(sample)) for sample in samples}
        return [mesh.with_queries_joined() for mesh in meshes]

    @property
    def _seed(self) -> int:
        seed = self.config.data.mesh_seed
        return self.config.seed if seed is None else seed

    @property
    def _many(self) -> bool:
        """Return whether samples live on meshes of their own."""
        return bool(self.file.sample_mesh.any())

    def _draw(self, seed: int) -> Callable[[int], Mesh]:
        """Return a function that draws the points of a number."""
        kind = MESH_KINDS[self.config.data.mesh or ""]
        size = getattr(self.config.data, kind.size) if kind.size else None
        return partial(kind.sampler, self.file, size, seed)


def samples_of(data: DataSection, file: Fields, part: str) -> Indices:
    """Return the numbers of the samples of a part, all of them if split by time.

    Args:
        data: Settings of the data.
        file: The fields.
        part: ``"train"``, ``"valid"`` or ``"test"``.
    """
    by_time = data.split_by == "time"
    samples = np.arange(file.num_samples) if by_time else file.split[part]
    return samples[: getattr(data, f"max_{part}")]


def steps_of(data: DataSection, file: Fields) -> dict[str, range]:
    """Return the time steps of the file for the windows of each part.

    If samples are split by time, training, validation and test follow each other with
    0.7/0.1/0.2 of the time steps, none of them shorter than a window. Time steps at the
    end that only have forcings belong to no part.

    Args:
        data: Settings of the data.
        file: The fields.

    Raises:
        UserError: There are too few time steps to split.
    """
    steps = range(data.first_step, file.num_observed())
    if data.split_by != "time":
        return dict.fromkeys(SPLITS, steps)
    least = data.length((data.n_in or 0) + (data.n_out or 1))
    if len(steps) < 3 * least:
        few = file.num_samples < len(SPLITS)
        raise UserError(
            f"{len(steps)} time steps of {file.path}, split by time"
            + f" for lack of {len(SPLITS)} samples" * few,
            f"at least {3 * least}, for windows of {least} of each part",
            f"ask for fewer time steps, {option('n_in', 'N')} and "
            f"{option('n_out', 'N')}, or use a longer file" + " or more samples" * few,
        )
    parts = split_in_order(len(steps))
    valid, test = (max(least, len(parts[part])) for part in ("valid", "test"))
    cuts = [steps.start, steps.stop - test - valid, steps.stop - test, steps.stop]
    return {part: range(*cuts[i : i + 2]) for i, part in enumerate(SPLITS)}


def queried(observation: Observation, file: Fields, num: int, seed: int) -> Observation:
    """Return points of observation with unobserved query points.

    Args:
        observation: Where samples are observed.
        file: The fields.
        num: Number of query points of each sample at most.
        seed: Seed by which they are drawn.
    """
    if isinstance(observation, Mesh):
        return with_queries(observation, file, num, seed)
    return MeshBySample(partial(_queried, observation, file, num, seed))


def _queried(mesh: Observation, file: Fields, num: int, seed: int, sample: int) -> Mesh:
    return with_queries(mesh(sample), file, num, seed, sample)
