"""Training: configurations, the Lightning module around a model, run folders.

- :func:`load_config`: a checked :class:`RunConfig` from defaults, YAML and overrides
- :func:`prepare`: the :class:`Experiment` that it describes, nothing written yet
- :func:`begin_run`, :func:`resume_run`: its folder, new or existing
- :func:`fit`: trains, from wherever the folder stands
- :func:`restore`: the trained :class:`~nfsgeo.forecast.Forecaster` of a folder

>>> experiment = prepare(load_config(overrides={"trainer.epochs": 3}))
>>> fit(experiment, begin_run(experiment))
"""

from nfsgeo.config import RunConfig
from nfsgeo.training.checkpoints import restore, start_from
from nfsgeo.training.experiment import Experiment, prepare
from nfsgeo.training.loading import load_config, parse_settings, read_config
from nfsgeo.training.metrics import FieldErrors
from nfsgeo.training.module import TrainingModule
from nfsgeo.training.run import begin_run, fit, resume_run
from nfsgeo.training.run_paths import RunPaths

__all__ = [
    "Experiment",
    "FieldErrors",
    "RunConfig",
    "RunPaths",
    "TrainingModule",
    "begin_run",
    "fit",
    "load_config",
    "parse_settings",
    "prepare",
    "read_config",
    "restore",
    "resume_run",
    "start_from",
]
