"""Prediction in the units of the data: a model between its transforms.

- :class:`Forecaster`: fields at points to later fields, at these or other points
- :class:`~nfsgeo.models.Task`: what it maps; :func:`matched`: a file of the same task
- :mod:`nfsgeo.forecast.transforms`: normalisation, gaps, lead times ...
- :func:`rollout`: predictions further ahead than training
"""

from nfsgeo.forecast.forecaster import Criterion, Forecaster
from nfsgeo.forecast.matching import matched
from nfsgeo.forecast.rollout import rollout
from nfsgeo.forecast.statistics import Moments, Statistics

__all__ = ["Criterion", "Forecaster", "Moments", "Statistics", "matched", "rollout"]
