"""The whole of nfsgeo in five calls, with the objects that the commands use.

- :func:`open`: a file of fields, as :class:`Fields`
- :func:`from_arrays`, :func:`from_xarray`, :func:`from_pyg`: the same from memory
- :func:`prepare`: a model for it, and the samples to train it on
- :func:`fit`: train it, in a run folder
- :func:`evaluate`: its errors beside the baselines'
- :func:`predict`: fields at observed or other points
- :func:`plot`: a figure of fields, given or predicted
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
from typing import Any

from lightning.pytorch import Callback

import nfsgeo.training
from nfsgeo.data import Fields, open
from nfsgeo.data.io.from_memory import from_arrays, from_pyg, from_xarray, saved_path
from nfsgeo.evaluation import evaluate_run as evaluate
from nfsgeo.evaluation import export_run as export
from nfsgeo.evaluation import predict
from nfsgeo.evaluation.additions import ADDITIONS
from nfsgeo.evaluation.scored_model import ScoredModel, open_run
from nfsgeo.forecast import Forecaster
from nfsgeo.report import plot, write_report
from nfsgeo.training import Experiment, RunPaths, begin_run, load_config
from nfsgeo.training.run_paths import Run
from nfsgeo.training.trainer import progress_callback

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
    "plot",
    "predict",
    "prepare",
]


def prepare(
    data: Fields | Path | str, settings: Mapping[str, Any] | None = None
) -> Experiment:
    """Builds a model for the fields of a file, and reads the samples to train it on.

    Nothing is written. The model is ``experiment.forecaster.model``.

    Args:
        data: The file, or its path.
        settings: Settings that differ from the defaults of
            :class:`~nfsgeo.training.RunConfig`, by dotted key, such as
            ``{"model.name": "nfs", "data.points": 1024}``.

    Raises:
        UserError: The data or a setting cannot be used.
    """
    chosen = {**(settings or {}), "data.file": saved_path(data)}
    if isinstance(data, Fields) and (data.forcing_names or data.scalar_names):
        chosen.setdefault("data.known", [*data.forcing_names, *data.scalar_names])
    return nfsgeo.training.prepare(load_config(overrides=chosen))


def fit(
    experiment: Experiment,
    out: Path | str | None = None,
    *,
    callbacks: Sequence[Callback] = (),
    start_from: Run | None = None,
    progress: bool = True,
    report: bool = True,
) -> RunPaths:
    """Trains the model to its last epoch; it ends with its last weights.

    The run's folder is that of ``nfsgeo train``, with test errors in ``summary.json``
    and a ``report.html``.

    An interrupted run goes on with :func:`nfsgeo.training.resume_run`, or
    ``nfsgeo train --resume``.

    Args:
        experiment: From :func:`prepare`.
        out: A new or empty folder; None for the next free one in ``runs``.
        callbacks: Callbacks of Lightning, besides those of nfsgeo.
        start_from: A run, its folder or a name such as ``"ns-small"``, whose weights
            and scales training starts from, see
            :func:`nfsgeo.training.start_from`. Its model has the same settings;
            ``prepare(data, {"model.start_from": run})`` takes these as well.
        progress: Whether to show the epochs on stderr.
        report: Whether to evaluate the run and to write its report.

    Returns:
        The run's folder, which holds the best weights too.

    Raises:
        UserError: The folder holds something, or the loss is not finite.
    """
    if start_from is not None:
        if isinstance(start_from, RunPaths):
            start_from = start_from.root
        folder = Path(start_from)
        lines = nfsgeo.training.start_from(experiment.forecaster, folder)
        config = experiment.config
        config = config.changed(model=config.model.changed(start_from=folder))
        used = experiment.used.completed(config)
        experiment = replace(experiment, used=used, lines=lines)
    run = begin_run(experiment, None if out is None else Path(out))
    shown = [progress_callback()] if progress else []
    nfsgeo.training.fit(experiment, run, [*shown, *callbacks])
    if not nfsgeo.training.cluster.is_first():  # one process evaluates
        return run
    scored = ScoredModel(open_run(run).forecaster, experiment.used)
    for kind in ADDITIONS.values():
        kind.of_run(scored, run)
    if report:
        evaluate(run, experiment=experiment)
        write_report(run.root)
    return run


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
    return open_run(run, device).forecaster
