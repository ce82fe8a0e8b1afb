"""Evaluation of trained models, and predictions.

- :func:`evaluate_run`: errors of a run beside those of the baselines, in the data's
  units, and on larger meshes
- :func:`evaluate_meshes`: errors on meshes of every kind, at observed and other points
- :func:`interpolation_memory`: memory of the search, the kernels and the sums
- :class:`KeepStates`: saves the states of a network on its grid during training;
  :func:`grid_states`, :func:`relative_difference`: these states, and how far apart
  two of them are
- :func:`predict`: fields at observed or other points, for new data
- :func:`export_run`: a trained model as a program of ``torch.export`` or ONNX;
  :func:`program_inputs`: its arguments
- :func:`find_run`: the folder of a run, or of a model that comes with nfsgeo
- :class:`References`: all that predicts without a network: :func:`persistence`,
  :func:`extrapolation`, :func:`training_mean`; of a single series, those of
  :class:`SeriesReferences`; of a problem without time, the nearest neighbours and trees
  of :class:`StaticReferences`
"""

from nfsgeo.evaluation.export import export_run, program_inputs
from nfsgeo.evaluation.grid_states import (
    KeepStates,
    grid_states,
    interpolation_memory,
    kept_states,
    relative_difference,
)
from nfsgeo.evaluation.predict import predict
from nfsgeo.evaluation.query_points import read_points
from nfsgeo.evaluation.references import (
    References,
    SeriesReferences,
    extrapolation,
    persistence,
    training_mean,
)
from nfsgeo.evaluation.run_evaluation import evaluate_run
from nfsgeo.evaluation.static_references import StaticReferences
from nfsgeo.evaluation.unseen import evaluate_meshes
from nfsgeo.training.run_paths import find_run

__all__ = [
    "KeepStates",
    "References",
    "SeriesReferences",
    "StaticReferences",
    "relative_difference",
    "evaluate_meshes",
    "evaluate_run",
    "export_run",
    "find_run",
    "grid_states",
    "interpolation_memory",
    "kept_states",
    "extrapolation",
    "persistence",
    "predict",
    "program_inputs",
    "read_points",
    "training_mean",
]
