"""The whole of nfsgeo in five calls, with the objects that the commands use.

- :func:`open`: a file of fields, as :class:`Fields`
- :func:`from_arrays`, :func:`from_xarray`, :func:`from_pyg`: the same from memory
- :func:`prepare`: a model for it, and the samples to train it on
- :func:`fit`: train it, in a run folder
- :func:`evaluate`: its errors beside the baselines'
- :func:`predict`: fields at observed or other points
- :func:`load`: the trained model as a module of PyTorch
- :func:`export`: the trained model as a program of ``torch.export``

All of them can be had from ``nfsgeo`` itself:

>>> data = nfsgeo.open("ns.nc")
>>> experiment = nfsgeo.prepare(data, {"model.name": "nfs", "trainer.epochs": 12})
>>> run = nfsgeo.fit(experiment, "runs/ns")
>>> errors = nfsgeo.evaluate(run)["test"]
>>> predicted = nfsgeo.predict(run, "new.nc", "predicted.nc")

Where a run is asked for, the name of a model that comes with nfsgeo will do:

>>> predicted = nfsgeo.predict("ns-small", "new.nc", "predicted.nc")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from lightning.pytorch import Callback

import nfsgeo.evaluation
import nfsgeo.training
from nfsgeo.data import Fields, open
from nfsgeo.data.memory import from_arrays, from_pyg, from_xarray, kept
from nfsgeo.data.opening import check_path
from nfsgeo.evaluation.run_evaluation import open_run
from nfsgeo.evaluation.unseen import UnseenAt
from nfsgeo.forecast import Forecaster
from nfsgeo.training import Experiment, RunPaths, begin_run, load_config
from nfsgeo.training.run_paths import find_run

__all__ = [
    "Fields",
    "evaluate",
    "export",
    "fit",
    "from_arrays",
    "from_pyg",
    "from_xarray",
    "load",
    "open",
    "predict",
    "prepare",
]

Data = Fields | Path | str
Run = RunPaths | Path | str


def prepare(data: Data, settings: Mapping[str, Any] | None = None) -> Experiment:
    """Builds a model for the fields of a file, and reads the samples to train it on.

    Nothing is written. The model is ``experiment.forecaster.model``.

    Args:
        data: The file, or its path.
        settings: What differs from the defaults of
            :class:`~nfsgeo.training.RunConfig`, by dotted key, such as
            ``{"model.name": "nfs", "data.points": 1024}``.

    Raises:
        UserError: The data or a setting cannot be used.
    """
    chosen = {**(settings or {}), "data.file": _path(data)}
    if isinstance(data, Fields) and (data.forcing_names or data.scalar_names):
        chosen.setdefault("data.known", [*data.forcing_names, *data.scalar_names])
    return nfsgeo.training.prepare(load_config(overrides=chosen))


def fit(
    experiment: Experiment,
    out: Path | str | None = None,
    *,
    callbacks: Sequence[Callback] = (),
    start_from: Run | None = None,
) -> RunPaths:
    """Trains the model to its last epoch; it ends with its last weights.

    An interrupted run goes on with :func:`nfsgeo.training.resume_run`, or
    ``nfsgeo train --resume``.

    Args:
        experiment: From :func:`prepare`.
        out: A new or empty folder; None for the next free one in ``runs``.
        callbacks: Callbacks of Lightning, besides those of nfsgeo.
        start_from: A run, its folder or a name such as ``"ns-small"``, whose weights
            and scales training starts from, see
            :func:`nfsgeo.training.start.start_from`. Its model has the same settings;
            ``prepare(data, {"model.start_from": run})`` takes these as well.

    Returns:
        The run's folder, which holds the best weights too.

    Raises:
        UserError: The folder holds something, or the loss is not finite.
    """
    if start_from is not None:
        taken = nfsgeo.training.start_from(experiment.forecaster, _folder(start_from))
        model = {"start_from": _folder(start_from)}
        chosen = experiment.config.model.model_copy(update=model)
        config = experiment.config.model_copy(update={"model": chosen})
        experiment = replace(experiment, config=config, lines=taken)
    run = begin_run(experiment, None if out is None else Path(out))
    nfsgeo.training.fit(experiment, run, callbacks)
    return run


def evaluate(
    run: Run,
    *,
    data: Data | None = None,
    part: Literal["all", "test"] | None = None,
    factors: Sequence[float] = (),
    repeats: int = 5,
    unseen_at: UnseenAt | None = None,
    steps: int | None = None,
) -> dict[str, Any]:
    """Errors of a run on the test samples, or on a file that is named.

    Args:
        run: From :func:`fit`, its folder, or a name such as ``"ns-small"``.
        data: Another file to score, at all of its points unless the model is tied to
            those of training.
        part: ``"all"`` samples of that file, or its ``"test"`` part; all unless told.
        factors: Also evaluate on unseen meshes with so many times as many points.
        repeats: Meshes to draw for each factor.
        unseen_at: Whether the further points of these lie ``"off-grid"``, between the
            points of the file, or are points of the ``"file"`` that training has not
            seen; None for off the grid where the file tells its fields there.
        steps: Also evaluate so many time steps ahead, by an autoregressive rollout.

    Returns:
        As ``summary.json`` holds them: the model's errors as ``"test"``, those of
        simple predictions as ``"baselines"``, and of several components each one's in
        its own unit as ``"components"``. ``"scored"`` says how many samples and points
        they are over.

    Raises:
        UserError: The run has no checkpoint, or the data do not fit it.
    """
    return nfsgeo.evaluation.evaluate_run(
        _folder(run),
        data=None if data is None else _path(data),
        part=part,
        factors=factors,
        repeats=repeats,
        unseen_at=unseen_at,
        steps=steps,
    )


def predict(
    run: Run,
    source: Data,
    target: Path | str,
    *,
    query_points: Path | str | None = None,
    first: int | None = None,
    steps: int | None = None,
    lead_times: Sequence[float] | None = None,
) -> Fields:
    """Predicts every sample of a file, from its last snapshots on beyond its end.

    Args:
        run: From :func:`fit`, its folder, or a name such as ``"ns-small"``.
        source: Fields with at least the run's input snapshots, or their path.
        target: The file to make; its ending chooses the format, see
            :func:`nfsgeo.data.write`.
        query_points: A .npy, .npz or .csv file of query points; None for the
            observed points.
        first: Number of the first observed snapshot, from 0, to predict from elsewhere
            in the file.
        steps: Number of time steps to predict, by an autoregressive rollout where they
            are more than in training.
        lead_times: Times to predict, after the last observed one, for a model that was
            trained with ``data.lead_times``.

    Returns:
        The predicted snapshots, as ``target`` holds them.

    Raises:
        UserError: The run, the fields or the points cannot be used, or ``target``
            exists.
    """
    written = nfsgeo.evaluation.predict(
        _folder(run),
        _path(source),
        Path(target),
        query_points=None if query_points is None else Path(query_points),
        first=first,
        steps=steps,
        lead_times=lead_times,
    )
    return open(written)


def load(run: Run, device: str = "cpu") -> Forecaster:
    """The trained model with its best weights, to call on tensors.

    ``forecaster(x, pos, batch, query_pos=, query_batch=)`` takes fields and returns
    them in the units of the data.

    Args:
        run: From :func:`fit`, its folder, or a name such as ``"ns-small"``.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.

    Raises:
        UserError: The run has no checkpoint, or there is no such device.
    """
    return open_run(find_run(_folder(run)), device)[1]


def export(
    run: Run,
    target: Path | str,
    *,
    format: Literal["torch-export", "onnx"] = "torch-export",
) -> Path:
    """Writes the trained model as a program that runs without nfsgeo.

    Args:
        run: From :func:`fit`, its folder, or a name such as ``"ns-small"``.
        target: The file to make, ``.pt2`` or ``.onnx``.
        format: ``"torch-export"`` or ``"onnx"``.

    Raises:
        UserError: As :func:`nfsgeo.evaluation.export_run`.
    """
    return nfsgeo.evaluation.export_run(_folder(run), Path(target), format=format)


def _path(data: Data) -> Path:
    """The path of data, which runs open again; in the user's cache if it has no own.

    Raises:
        UserError: They are no path and no fields.
    """
    return kept(data) if isinstance(data, Fields) else check_path(data)


def _folder(run: Run) -> Path:
    return run.root if isinstance(run, RunPaths) else Path(run)
