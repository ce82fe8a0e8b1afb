"""How good a trained model is, and what it predicts.

- :func:`evaluate_run`: errors of a run folder beside the baselines', in the data's
  units, and on larger meshes; :func:`evaluate` and :func:`evaluate_unseen` below it
- :func:`interpolation_memory`: memory of search, kernels and sums apart
- :func:`evaluate_meshes`: errors on meshes of every kind, at observed and other points
- :class:`KeepStates`: the states of a network on its grid, kept over training;
  :func:`grid_states`, :func:`deviation`: what they are, and how far two are apart
- :func:`predict`: fields at observed or other points, for new data
- :func:`export_run`: a trained model as a program of ``torch.export``;
  :func:`program_inputs`: what to call it with
- :func:`find_run`: a run's folder, or a model that comes with nfsgeo by its name;
  :func:`ship_run`: a run made as small as those
- :func:`persistence`, :func:`linear_extrapolation`, :func:`training_mean`: baselines
- :class:`FieldErrors`, :class:`ErrorByTimeStep`: the metrics
"""

from nfsgeo.evaluation.baselines import (
    linear_extrapolation,
    persistence,
    training_mean,
)
from nfsgeo.evaluation.convergence import (
    GridStates,
    KeepStates,
    deviation,
    grid_states,
    kept_states,
)
from nfsgeo.evaluation.evaluate import Evaluation, evaluate
from nfsgeo.evaluation.export import export_run, program_inputs
from nfsgeo.evaluation.interpolation_memory import interpolation_memory
from nfsgeo.evaluation.invariance import evaluate_meshes
from nfsgeo.evaluation.predict import predict
from nfsgeo.evaluation.pretrained import find_run, ship_run
from nfsgeo.evaluation.query_points import read_points
from nfsgeo.evaluation.run_evaluation import evaluate_run
from nfsgeo.evaluation.unseen import evaluate_unseen
from nfsgeo.training import ErrorByTimeStep, FieldErrors

__all__ = [
    "ErrorByTimeStep",
    "Evaluation",
    "FieldErrors",
    "GridStates",
    "KeepStates",
    "deviation",
    "evaluate",
    "evaluate_meshes",
    "evaluate_run",
    "evaluate_unseen",
    "export_run",
    "find_run",
    "grid_states",
    "interpolation_memory",
    "kept_states",
    "linear_extrapolation",
    "persistence",
    "predict",
    "program_inputs",
    "read_points",
    "ship_run",
    "training_mean",
]
