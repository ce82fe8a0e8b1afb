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
        static=np.stack([values[name][..., 0] for name in static], -1)
        if static
        else None,
        domain=Domain.unit(2, periodic=False),
        component_names=fields,
        static_names=static or None,
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


@pytest.mark.parametrize(
    ("fields", "static"),
    [
        (["p", "T"], STATIC),
        (FIELDS, ["soil", "elevation"]),
        (["wind", "p", "T"], ["slope", "soil", "elevation"]),
    ],
)
def test_names_tell_what_is_what(
    run: Path, tmp_path: Path, fields: list[str], static: list[str]
) -> None:
    errors = nfsgeo.evaluate(run, data=stations(FIELDS, STATIC))["components"]
    other = stations(fields, static)
    assert nfsgeo.evaluate(run, data=other)["components"] == errors
    with (
        nfsgeo.predict(run, stations(FIELDS, STATIC), tmp_path / "one.nc") as one,
        nfsgeo.predict(run, other, tmp_path / "other.nc") as two,
    ):
        assert two.component_names == FIELDS
        np.testing.assert_array_equal(one.read(3, slice(4)), two.read(3, slice(4)))


@pytest.mark.parametrize(
    ("fields", "static", "message"),
    [
        (["T", "wind"], STATIC, r"\(T, wind\): expected 2 components \(T, p\), as in"),
        (["T"], STATIC, r"1 component \(T\): expected 2 components \(T, p\)"),
        (FIELDS, ["elevation"], r"\(elevation\): expected 2 .* \(elevation, soil\)"),
        (FIELDS, ["elevation", "slope"], r"\(elevation, slope\): expected 2"),
        (FIELDS, [], r"without a static input: .* 2 components \(elevation, soil\)"),
    ],
)
def test_other_names_are_refused(
    run: Path, fields: list[str], static: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        nfsgeo.evaluate(run, data=stations(fields, static))


def test_names_that_are_made_up_do_not_count(run: Path, tmp_path: Path) -> None:
    named = stations(FIELDS, STATIC)
    u = np.stack([named.read(sample, slice(0, 8)) for sample in range(10)])
    static = np.stack([named.read_static(sample) for sample in range(10)])
    unnamed = nfsgeo.from_arrays(
        u, named.coordinates(), named.times, static=static, domain=named.domain
    )
    assert unnamed.component_names == ["u_0", "u_1"]
    errors = nfsgeo.evaluate(run, data=named)["test"]
    assert nfsgeo.evaluate(run, data=unnamed)["test"] == errors


def test_the_choice_of_fields_reaches_other_processes(run: Path, sent: Any) -> None:
    file = stations(["wind", *FIELDS], ["slope", *STATIC])
    file = file.select(FIELDS[::-1], STATIC[::-1], [], [])
    with sent(file) as other:
        assert (other.component_names, other.static_names) == (
            FIELDS[::-1],
            STATIC[::-1],
        )
        np.testing.assert_array_equal(
            other.read(0, slice(8)), stations(FIELDS[::-1], []).read(0, slice(8))
        )
        np.testing.assert_array_equal(other.read_static(0), file.read_static(0))


def test_other_units_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    u, pos = rng.normal(size=(10, 16, 8)), rng.random((16, 2))

    def data(**units: str) -> Fields:
        domain = Domain.unit(2, periodic=False)
        return nfsgeo.from_arrays(u, pos, np.arange(8.0), domain=domain, units=units)

    run = nfsgeo.fit(nfsgeo.prepare(data(u="K", x="km", time="h"), SETTINGS), "units")
    nfsgeo.evaluate(run, data=data())  # which tells none
    nfsgeo.evaluate(run, data=data(u="K", y="m"))
    for units in ({"u": "°C"}, {"x": "m"}, {"time": "s"}):
        with pytest.raises(
            UserError, match=f"with {[*units][0]} in {[*units.values()][0]}"
        ):
            nfsgeo.evaluate(run, data=data(**units))


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


def test_time_steps_without_a_value_are_not_observed(run: Path, tmp_path: Path) -> None:
    whole = stations(FIELDS, STATIC)
    u = np.stack([whole.read(sample, slice(0, 8)) for sample in range(10)])
    static = np.stack([whole.read_static(sample) for sample in range(10)])
    later = np.concatenate([u, np.full((10, 16, 4, 2), np.nan)], axis=2)
    same = {"static": static, "domain": whole.domain}
    found = []
    for number, fields in enumerate((u, later)):
        times = np.arange(fields.shape[2])
        file = nfsgeo.from_arrays(fields, whole.coordinates(), times, **same)
        with nfsgeo.predict(run, file, tmp_path / f"{number}.nc") as ahead:
            assert ahead.times.tolist() == [8, 9, 10, 11]
            found.append(ahead.read(0, slice(4)))
    np.testing.assert_array_equal(*found)
    nothing = np.full_like(u, np.nan)
    file = nfsgeo.from_arrays(nothing, whole.coordinates(), np.arange(8), **same)
    with pytest.raises(UserError, match="without any value of u_0 and u_1"):
        nfsgeo.predict(run, file, tmp_path / "none.nc")
