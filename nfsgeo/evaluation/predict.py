"""Predictions for new data, at the observed points or anywhere else."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.data.conventions import Doubles
from nfsgeo.data.io.from_memory import saved_path
from nfsgeo.data.writers import writer_of
from nfsgeo.errors import UserError
from nfsgeo.evaluation.not_finite import NotFinite
from nfsgeo.evaluation.prediction import Prediction
from nfsgeo.evaluation.scored_model import open_run
from nfsgeo.files import check_room
from nfsgeo.forecast import matched
from nfsgeo.progress import Progress, silent
from nfsgeo.training.run_paths import Run
from nfsgeo.training.source import open_as

__all__ = ["predict"]


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
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``, instead of the run's own.
        progress: Called with what is being done, how much is done and in all.

    Returns:
        The predicted snapshots, with a parameter ``out_of_distribution``.
        Their ``provenance`` has the samples that are ``"not_finite"``, if any.

    Raises:
        UserError: The run, the fields or the points cannot be used, or ``target``
            exists.
    """
    loaded = open_run(run, device)
    source, folder = saved_path(source), Path(tempfile.gettempdir())
    if target is not None:
        target = Path(target)
        writer_of(target)
        folder = target.parent
    with (
        tempfile.TemporaryFile(dir=folder) as scratch,  # also gone after a kill
        open_as(loaded.config.data, source) as file,
    ):
        file = matched(file, loaded.forecaster.task)
        asked = Prediction.of(
            loaded,
            file,
            query_pos,
            level,
            first=first,
            steps=steps,
            lead_times=lead_times,
        )
        check_room(target or folder, asked.num_bytes)
        staged, not_finite = _Staged(scratch), NotFinite()
        num = None if asked.queries is None else asked.most
        for sample, start, values in asked.blocks(steps, progress):
            not_finite.add(sample, values)
            staged.add(values.numpy(), sample, start, num)
        provenance: dict[str, Any] = {"model": loaded.config.model.name}
        provenance["predicted_from"] = source.name
        what = f"predictions, missing in {target or 'the result'}"
        if samples := not_finite.report(what):
            provenance["not_finite"] = samples
        predicted = asked.fields(staged.arrays(), Path(source.name), provenance)
        if target is not None:
            path = predicted.write(target)
            try:
                predicted = nfsgeo.data.open(path)
            except UserError:  # a table of one point may be read in two ways
                predicted = replace(predicted, dataset=predicted.dataset.load())
        about = {"provenance": json.dumps(provenance)}  # not all formats keep it
        return replace(predicted, dataset=predicted.dataset.assign_attrs(about))


class _Staged:
    """Predicted values of all samples in a file, which memory maps read."""

    def __init__(self, scratch: IO[bytes]) -> None:
        self.scratch, self.places = scratch, list[tuple[Any, ...]]()
        self.bytes_before = [0]  # of the samples before each

    def add(
        self, values: NDArray[Any], sample: int, start: int, num: int | None
    ) -> None:
        """Write values ``[m, T, C]`` of a sample at its points from ``start`` on.

        Samples follow each other, once for every block of points. They have ``num``
        points, None for those of the values.
        """
        num = len(values) if num is None else num
        if sample == len(self.places):
            place = values.dtype, "r", self.bytes_before[-1], (num, *values.shape[1:])
            self.places.append(place)
            self.bytes_before.append(self.bytes_before[-1] + num * values[0].nbytes)
        self.scratch.seek(self.bytes_before[sample] + start * values[0].nbytes)
        self.scratch.write(values.tobytes())

    def arrays(self) -> list[NDArray[Any]]:
        """The values of each sample ``[n, T, C]``, once all have been written."""
        self.scratch.flush()
        return [np.memmap(self.scratch, *place) for place in self.places]
