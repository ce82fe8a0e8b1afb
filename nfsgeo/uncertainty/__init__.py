"""Uncertainty: error bands, and inputs that are unlike those of training.

- :class:`Bands`: ends between which values lie at a level; :func:`fit_bands`: those of
  a trained model; :func:`band_scores`: how good they are
- :class:`TrainingInputs`: the distance of inputs from those of training;
  :class:`InputStatistics`: the statistics of inputs that it compares

Importing this package adds them to what a run stores beside its model,
:data:`nfsgeo.evaluation.additions.ADDITIONS`, and checks settings before training.
"""

from nfsgeo.evaluation.additions import ADDITIONS
from nfsgeo.training.experiment import CHECKS
from nfsgeo.uncertainty.additions import BandsOfRun, InputsOfRun, check_bands
from nfsgeo.uncertainty.bands import Bands
from nfsgeo.uncertainty.fitting import band_scores, fit_bands
from nfsgeo.uncertainty.out_of_distribution import InputStatistics, TrainingInputs

__all__ = ["Bands", "InputStatistics", "TrainingInputs", "band_scores", "fit_bands"]

CHECKS.append(check_bands)
ADDITIONS |= {"error bands": BandsOfRun, "statistics of inputs": InputsOfRun}
