"""One long series at stations: what a network corrects, and is compared with.

- :class:`Climatology`: the transform by which the network sees and predicts anomalies
- :class:`LinearForecast`: the transform by which it corrects a linear forecast
- :func:`fitted_climatology`: the mean and the season at each point, in closed form
- :func:`fitted_series`: the same with a linear forecast of the anomalies
- :class:`StationReferences`: forecasts by the climatology and regressions

Importing this package adds them to the registries of transforms, of base forecasts, and
of references.
"""

from nfsgeo.evaluation.references import SERIES_REFERENCES
from nfsgeo.forecast.transforms import add_transform
from nfsgeo.stations.climatology import Climatology
from nfsgeo.stations.linear_forecast import LinearForecast
from nfsgeo.stations.references import StationReferences, station_references
from nfsgeo.stations.seasonal_means import fitted_climatology
from nfsgeo.stations.series_fit import SeriesFit, base_forecast, fitted_series
from nfsgeo.training.experiment import BASE_FORECASTS

__all__ = ["Climatology", "LinearForecast", "SeriesFit", "StationReferences"]
__all__ += ["fitted_climatology", "fitted_series"]

add_transform("climatology", Climatology, before="normalise")
add_transform("linear_forecast", LinearForecast, before="residual")
BASE_FORECASTS.append(base_forecast)
SERIES_REFERENCES.append(station_references)
