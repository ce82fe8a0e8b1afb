"""The data of a run: its file, the points, the samples of each part, their windows."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from scipy.spatial import cKDTree

import nfsgeo.data
from nfsgeo.config import DataSection, RunConfig
from nfsgeo.data import Fields
from nfsgeo.data.conventions import Indices
from nfsgeo.data.generation import generate
from nfsgeo.data.io.joining import joined
from nfsgeo.data.io.opening import takes_columns
from nfsgeo.data.meshes import (
    MESH_KINDS,
    Mesh,
    MeshesInTurn,
    MeshOfFile,
    with_queries,
)
from nfsgeo.data.splits import SPLITS, published_split, split_in_order
from nfsgeo.data.times import clock, same_steps
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.models import MODELS
from nfsgeo.progress import Progress, silent

__all__ = ["Observation", "RunData", "open_as", "open_source", "queried"]
__all__ += ["samples_of", "steps_of", "with_parts"]

T = TypeVar("T")

# Sets of query points that training samples on one mesh cycle through.
QUERY_SETS = 16

# From a sample to its mesh; the mesh itself where all samples share one.
Observation = Callable[[int], Mesh]


@dataclass(frozen=True)
class RunData:
    """The data of a run: its file, and what of it the configuration uses.

    What is computed once is kept in :meth:`once`, also for a completed configuration.

    Args:
        config: The configuration, as far as it is known; the sections ``data`` and
            ``loss.weighting``, the name of the model and the seed are used.
        file: The fields.

    Raises:
        UserError: On access, where the file does not have such points or time steps.
    """

    config: RunConfig
    file: Fields
    _made: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The object that ``make`` returned at the first call with this ``key``.

        Args:
            key: Name of the object.
            make: Makes it of the data, and of settings that no longer change.
        """
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def completed(self, config: RunConfig) -> Self:
        """The same data with further settings, and all that has been computed.

        Args:
            config: The configuration, with the same samples, windows and points.
        """
        return replace(self, config=config)

    def samples(self, part: str) -> Indices:
        """The numbers of the samples of a part.

        Args:
            part: ``"train"``, ``"valid"`` or ``"test"``.
        """
        return samples_of(self.config.data, self.file, part)

    @property
    def steps(self) -> dict[str, range]:
        """The time steps of the file that the windows of each part lie in."""
        return steps_of(self.config.data, self.file)

    def starts(self, part: str, num_steps: int, stride: int | None = None) -> Indices:
        """First time steps of the windows that a sample of a part has.

        But for lead times, windows in which the file lacks time steps are left out
        where there are others.

        Args:
            part: ``"train"``, ``"valid"`` or ``"test"``.
            num_steps: Number of time steps of a window.
            stride: Time steps from one window to the next; None for that of the run.
        """
        data, file = self.config.data, self.file
        times, _ = clock(file.times, file.time_unit)
        own = data.window_stride if part == "train" else data.evaluation_stride
        if (stride := stride or own) is None:
            return np.array([data.first_step])
        steps, apart = self.steps[part], data.time_stride
        starts = np.arange(steps.start, steps.stop - data.length(num_steps) + 1, stride)
        if data.lead_times:
            return starts
        usual = np.median(times[apart:] - times[:-apart])
        gaps = np.diff(times[starts[:, None] + apart * np.arange(num_steps)])
        even = same_steps(gaps, usual).all(axis=1)
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
        """The windows of a part of the data.

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
                "ask for fewer (--steps), or use a longer file",
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
        )

    def training_windows(self, beyond: int = 0) -> WindowDataset:
        """The windows of training, on its meshes.

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
        """The points where samples are observed.

        Args:
            seed: Seed of the points, where they are drawn.
        """
        kind = MESH_KINDS[self.config.data.mesh or ""]
        if kind.size is None and self._many:
            return MeshOfFile(self.file)
        draw = self._draw(seed)
        each = kind.drawn and (self.config.data.mesh_per_sample or self._many)
        return draw if each else draw(0)

    @property
    def training_mesh(self) -> Observation:
        """The points where training samples are observed, each on another mesh in every
        epoch where there are several.
        """
        queries = self.config.data.query_points or 0
        return self.once("training mesh", lambda: self.training_observation(queries))

    def training_observation(self, query_points: int) -> Observation:
        """The points where training samples are observed, and their query points.

        Each of several meshes has its own unobserved query points, and a single one
        others in every turn, where the file has any.

        Args:
            query_points: Number of unobserved query points of a sample at most.
        """
        data, file = self.config.data, self.file
        # Of more meshes than windows, the others would serve none.
        most = file.num_samples
        if data.window_stride is not None:
            most *= len(range(0, len(file.times), data.window_stride))
        num = min(data.point_sets or 1, most)
        queries = 0 if data.mesh == "all" else query_points
        if num > 1 and not (data.mesh_per_sample or self._many):
            meshes = [*map(self._draw(self._seed), range(num))]
        elif not queries:
            return self.mesh
        elif isinstance(self.mesh, Mesh):
            meshes = [self.mesh] * min(QUERY_SETS, most)
        else:
            return queried(self.mesh, file, queries, self._seed)
        if queries:
            more = file, queries, self._seed
            meshes = [with_queries(mesh, *more, k) for k, mesh in enumerate(meshes)]
        return MeshesInTurn(tuple(meshes))

    def trained_points(self, sample: int) -> Indices:
        """The points of a sample that training has seen, on any point set.

        Query points count as seen. Points of samples on several meshes are told by
        their coordinates, so that meshes of the file that share points are one.

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
        """Whether samples live on meshes of their own."""
        return bool(self.file.sample_mesh.any())

    def _draw(self, seed: int) -> Observation:
        """The points of a number."""
        kind = MESH_KINDS[self.config.data.mesh or ""]
        size = getattr(self.config.data, kind.size) if kind.size else None
        return partial(kind.sampler, self.file, size, seed)


def samples_of(data: DataSection, file: Fields, part: str) -> Indices:
    """The numbers of the samples of a part; where parts differ in time, of all.

    Args:
        data: Settings of the data.
        file: The fields.
        part: ``"train"``, ``"valid"`` or ``"test"``.
    """
    by_time = data.split_by == "time"
    samples = np.arange(file.num_samples) if by_time else file.split[part]
    return samples[: getattr(data, f"max_{part}")]


def steps_of(data: DataSection, file: Fields) -> dict[str, range]:
    """The time steps of the file that the windows of each part lie in.

    Where samples are split by time, training, validation and test follow each other
    with 0.7/0.1/0.2 of the time steps, none of them shorter than a window. Time steps
    at the end that hold forcings alone belong to none.

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
            "ask for fewer time steps (--n-in, --n-out, --steps), or use a longer file"
            + " or more samples" * few,
        )
    parts = split_in_order(len(steps))
    valid, test = (max(least, len(parts[part])) for part in ("valid", "test"))
    cuts = [steps.start, steps.stop - test - valid, steps.stop - test, steps.stop]
    return {part: range(*cuts[i : i + 2]) for i, part in enumerate(SPLITS)}


def open_source(data: DataSection, progress: Progress = silent) -> Fields:
    """The fields that a run is trained, validated and tested on.

    Without a file these are Navier-Stokes on a coarse grid, viscosity 1e-3, a snapshot
    every 0.25 time units, made once and kept in the user's cache.
    """
    path = data.file or generate(
        "navier-stokes",
        None,
        samples=360,
        resolution=64,
        num_steps=20,
        workers=os.cpu_count() or 1,
        progress=progress,
    )
    return with_parts(data, nfsgeo.data.open(path, columns=data.columns))


def with_parts(data: DataSection, fields: Fields) -> Fields:
    """The fields of ``data.file`` with the parts and the known fields of a run.

    Args:
        data: Settings of the data.
        fields: The content of the file as it is.

    Raises:
        UserError: The parts do not fit to the file.
    """
    split, path = data.split, fields.path
    if data.test_file is not None:
        num, share = fields.num_samples, split[1] if split else 1 / 8
        fields = joined([fields, open_as(data, data.test_file)], "samples")
        valid = round(share if share >= 1 else share * num)
        if not 0 < valid < num:
            raise UserError(
                f"{num} samples of {path} to train and validate on",
                "some for each",
                "change data.split, or use a longer file",
            )
        sizes = num - valid, valid, fields.num_samples - num
        fields = fields.with_split(published_split(fields.num_samples, *sizes))
    elif split is not None:
        fields = fields.with_split(_parts(split, fields))
    return fields.with_known(data.known) if data.known else fields


def open_as(data: DataSection, path: Path) -> Fields:
    """Another file than that of training, which may leave its columns open or not."""
    given = data.columns if data.columns and takes_columns(path) else None
    return nfsgeo.data.open(path, columns=given)


def _parts(split: tuple[float, float, float], fields: Fields) -> dict[str, Indices]:
    """Sample numbers of each part, of three fractions or three numbers of samples."""
    num = fields.num_samples
    if abs(sum(split) - 1) < 1e-6 and min(split) > 0:
        train, valid, test = (each / sum(split) for each in split)
        return split_in_order(num, (train, valid, test))
    if any(each != int(each) for each in split) or sum(split) > num:
        raise UserError(
            f"data.split={list(split)} with {num} samples of {fields.path}",
            "three fractions with the sum 1, or three numbers of samples that it has",
            "for example --set data.split=[0.8,0.1,0.1]",
        )
    return published_split(num, *map(int, split))


def queried(observation: Observation, file: Fields, num: int, seed: int) -> Observation:
    """Where samples are observed, with at most ``num`` unobserved query points each."""
    if isinstance(observation, Mesh):
        return with_queries(observation, file, num, seed)
    return partial(_queried, observation, file, num, seed)


def _queried(mesh: Observation, file: Fields, num: int, seed: int, sample: int) -> Mesh:
    return with_queries(mesh(sample), file, num, seed, sample)
