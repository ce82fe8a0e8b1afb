"""Gets the measurements of the suite ``stations`` from the CRAN packages they are in.

``python docs/making/stations.py FOLDER`` writes ``ozone.csv``, ``wind.csv``,
``wind_stations.csv`` and ``colorado.csv.gz`` there. It needs ``pip install rdata``.
Files of R that the folder has already are not downloaded.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlretrieve

import numpy as np
import pandas as pd

SOURCE = "https://raw.githubusercontent.com/cran"  # a mirror of CRAN
FIRST = "1950"  # year of the series of Colorado; earlier stations are few


def fetch(folder: Path) -> None:
    """Writes the tables into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    ozone = _read(folder, "fields", "ozone2")["ozone2"]
    dates = pd.to_datetime([f"19{each}" for each in ozone["dates"]])
    table = pd.DataFrame(np.asarray(ozone["y"]), dates, ozone["station.id"])
    pos = pd.DataFrame(ozone["lon.lat"], table.columns, ["lon", "lat"])
    _long({"ozone": table}, pos).to_csv(folder / "ozone.csv", index=False)

    found = _read(folder, "gstat", "wind")
    wind, places = found["wind"], found["wind.loc"].set_index("Code")
    days = wind[["year", "month", "day"]].astype(int)
    wind.insert(0, "date", pd.to_datetime(days.assign(year=1900 + days["year"])))
    wind.drop(columns=list(days)).to_csv(folder / "wind.csv", index=False)
    east, north = (places[axis].map(_degrees) for axis in ("Longitude", "Latitude"))
    table = pd.DataFrame({"lon": -east.astype(float), "lat": north.astype(float)})
    table.to_csv(folder / "wind_stations.csv")

    found = _read(folder, "fields", "COmonthlyMet")
    pos = found["CO.loc"].set_index(found["CO.id"]).assign(elevation=found["CO.elev"])
    months = pd.date_range(f"{found['CO.years'][0]}-01-01", periods=1236, freq="MS")
    tables = {
        name: pd.DataFrame(
            np.reshape(found[f"CO.{name}"], (1236, -1)), months, pos.index
        ).loc[FIRST:]
        for name in ("ppt", "tmin", "tmax")
    }
    _long(tables, pos).to_csv(folder / "colorado.csv.gz", index=False)


def _read(folder: Path, package: str, name: str) -> dict[str, Any]:
    """The objects of a package's data file."""
    import rdata

    path = folder / f"{name}.rda"
    if not path.exists():
        urlretrieve(f"{SOURCE}/{package}/HEAD/data/{name}.rda", path)
    return dict(rdata.read_rda(path))


def _long(tables: dict[str, pd.DataFrame], pos: pd.DataFrame) -> pd.DataFrame:
    """A row for each station and time, of tables with a column for each station."""
    columns = {name: each.T.stack(future_stack=True) for name, each in tables.items()}
    whole = pd.DataFrame(columns).rename_axis(["station", "date"]).reset_index()
    return whole.iloc[:, :2].join(pos, on="station").join(whole.iloc[:, 2:])


def _degrees(text: str) -> float:
    """Degrees of ``52d16'56.791"N``."""
    parts = zip(re.findall(r"[\d.]+", text), (1, 60, 3600), strict=False)
    return sum(float(part) / unit for part, unit in parts)


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
