"""Files whose fields are in another order than those of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfsgeo
from nfsgeo.data import Fields
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

FIELDS, STATIC = ["T", "p"], ["elevation", "soil"]
SETTINGS = {"data.n_in": 4, "data.n_out": 4, "trainer.epochs": 1} | {
    "data.query_points": 0,
    "trainer.device": "cpu",
    "model.settings.width": 4,
    "model.settings.modes": 2,
    "model.settings.depth": 1,
    "model.settings.grid": 4,
}


def stations(fields: list[str], static: list[str]) -> Fields:
    """The same ten samples at 16 stations, their fields in the order of the names."""
    rng = np.random.default_rng(0)
    pos, names = rng.random((16, 2)), [*FIELDS, *STATIC, "wind", "slope"]
    values = {name: k + rng.normal(size=(10, 16, 8)) for k, name in enumerate(names)}
    return nfsgeo.from_arrays(
        np.stack([values[name] for name in fields], -1),
        pos,
        np.arange(8.0),
        static=np.stack([values[name][..., 0] for name in static], -1),
        domain=Domain.unit(2, periodic=False),
        component_names=fields,
        static_names=static,
    )


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("names")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.chdir(folder)
        yield


@pytest.fixture(scope="module")
def run(cache: None) -> Path:
    return nfsgeo.fit(nfsgeo.prepare(stations(FIELDS, STATIC), SETTINGS), "run").root


def test_names_tell_what_is_what(run: Path, tmp_path: Path) -> None:
    errors = nfsgeo.evaluate(run, data=stations(FIELDS, STATIC))["components"]
    other = stations(["wind", "p", "T"], ["slope", "soil", "elevation"])
    assert nfsgeo.evaluate(run, data=other)["components"] == errors
    with (
        nfsgeo.predict(run, stations(FIELDS, STATIC), tmp_path / "one.nc") as one,
        nfsgeo.predict(run, other, tmp_path / "other.nc") as two,
    ):
        assert two.component_names == FIELDS
        np.testing.assert_array_equal(one.read(3, slice(4)), two.read(3, slice(4)))


def test_a_problem_without_time_goes_by_name_too() -> None:
    rng = np.random.default_rng(0)
    k, pos = rng.random((10, 16)), rng.random((16, 2))

    def data(*names: str) -> Fields:
        return nfsgeo.from_arrays(
            np.stack([k**2] * len(names), -1)[:, :, None],
            pos,
            static=k,
            component_names=names,
            domain=Domain.unit(2, periodic=False),
        )

    chosen = {
        key: v for key, v in SETTINGS.items() if key not in ("data.n_in", "data.n_out")
    }
    run = nfsgeo.fit(nfsgeo.prepare(data("pressure"), chosen), "steady")
    errors = nfsgeo.evaluate(run, data=data("pressure"))["test"]
    assert nfsgeo.evaluate(run, data=data("flux", "pressure"))["test"] == errors
    with pytest.raises(UserError, match=r"\(flux\): expected 1 component \(pressure\)"):
        nfsgeo.evaluate(run, data=data("flux"))
