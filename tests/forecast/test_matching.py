"""The task of a file against that of a run."""

from typing import Any

import numpy as np
import pytest

import nfsgeo
from nfsgeo.data import Fields
from nfsgeo.errors import UserError
from nfsgeo.forecast.matching import check_times, matched
from nfsgeo.geometry import Domain
from nfsgeo.models import Task

BOX = Domain.unit(2, periodic=False)
FIELDS, STATIC = ["T", "p"], ["elevation", "soil"]


def stations(
    fields: list[str], static: list[str], domain: Domain = BOX, **more: Any
) -> Fields:
    """The same samples at 16 stations, their fields in the order of the names."""
    rng = np.random.default_rng(0)
    pos, names = rng.random((16, 2)), [*FIELDS, *STATIC, "wind", "slope", "u_0", "u_1"]
    values = {name: k + rng.normal(size=(10, 16, 8)) for k, name in enumerate(names)}
    coefficient = [values[name][..., 0] for name in static]
    return nfsgeo.from_arrays(
        np.stack([values[name] for name in fields], -1),
        pos,
        np.arange(8.0),
        static=np.stack(coefficient, -1) if static else None,
        domain=domain,
        component_names=fields,
        static_names=static or None,
        **more,
    )


def task(**changes: Any) -> Task:
    chosen: dict[str, Any] = {"domain": BOX, "components": FIELDS, "static": STATIC}
    chosen |= {"n_in": 2, "n_out": 3, "times": range(-1, 4), "num_points": 16}
    return Task(**(chosen | changes))


@pytest.mark.parametrize(
    ("fields", "static"),
    [
        (FIELDS, STATIC),
        (["p", "T"], STATIC),
        (["wind", "p", "T"], ["slope", "soil", "elevation"]),
    ],
)
def test_names_tell_what_is_what(fields, static):
    found = matched(stations(fields, static), task())
    assert (found.component_names, list(found.static_names)) == (FIELDS, STATIC)
    expected = stations(FIELDS, STATIC)
    np.testing.assert_array_equal(found.read(3, slice(8)), expected.read(3, slice(8)))
    np.testing.assert_array_equal(found.read_static(1), expected.read_static(1))


@pytest.mark.slow
def test_runs_go_by_names(tiny):
    chosen = tiny | {"data.n_in": 4, "data.n_out": 4, "trainer.epochs": 1}
    own = stations(FIELDS, STATIC)
    other = stations(["wind", "p", "T"], ["slope", "soil", "elevation"])
    run = nfsgeo.fit(nfsgeo.prepare(own, chosen), "run")
    one, two = (nfsgeo.evaluate(run, data=data)["components"] for data in (own, other))
    assert one == two
    ahead = [nfsgeo.predict(run, data, f"{id(data)}.nc") for data in (own, other)]
    assert ahead[1].component_names == FIELDS
    np.testing.assert_array_equal(*(each.read(3, slice(4)) for each in ahead))


@pytest.mark.slow
def test_runs_of_a_problem_without_time_go_by_names(tiny):
    rng = np.random.default_rng(0)
    k, pos = rng.random((10, 16)), rng.random((16, 2))

    def data(*names: str) -> Fields:
        u = np.stack([k**2] * len(names), -1)[:, :, None]
        more = {"static": k, "component_names": names, "domain": BOX}
        return nfsgeo.from_arrays(u, pos, **more)

    run = nfsgeo.fit(nfsgeo.prepare(data("pressure"), tiny), "steady")
    errors = nfsgeo.evaluate(run, data=data("pressure"))["test"]
    assert nfsgeo.evaluate(run, data=data("flux", "pressure"))["test"] == errors
    with pytest.raises(UserError, match=r"\(flux\): expected 1 component \(pressure\)"):
        nfsgeo.evaluate(run, data=data("flux"))


@pytest.mark.parametrize(
    ("fields", "static", "message"),
    [
        (["T", "wind"], STATIC, r"\(T, wind\): expected 2 components \(T, p\), as in"),
        (["T"], STATIC, r"1 component \(T\): expected 2 components \(T, p\)"),
        (FIELDS, ["elevation"], r"\(elevation\): expected 2 .* \(elevation, soil\)"),
        (FIELDS, ["elevation", "slope"], r"\(elevation, slope\): expected 2"),
        (FIELDS, [], r"no static input: expected 2 .* \(elevation, soil\)"),
    ],
)
def test_other_names_are_refused(fields, static, message, refuses):
    refuses(message, matched, stations(fields, static), task())


def test_names_that_are_made_up_do_not_count(caplog):
    named, unnamed = stations(FIELDS, []), stations(["u_0", "u_1"], [])
    without = task(static=())
    assert matched(unnamed, without).component_names == ["u_0", "u_1"]
    (line,) = caplog.messages  # the order alone tells which is which
    assert all(name in line for name in ("u_0", "u_1", *FIELDS))
    caplog.clear()
    matched(named, without)
    assert not caplog.messages
    made_up = task(components=("u_0", "u_1"), static=())
    assert matched(named, made_up).component_names == FIELDS


def test_everything_that_differs_is_named_at_once():
    asked = task(
        components=("T", "q"),
        static=("soil",),
        forcings=("rain",),
        scalars=("nu",),
        units={"T": "K", "x": "m", "time": "h"},
    )
    box = Domain((0, 0), (2, 1), (False, True))
    file = stations(FIELDS, ["slope"], box, units={"T": "°C", "x": "m", "time": "s"})
    with pytest.raises(UserError) as caught:
        matched(file, asked)
    message = str(caught.value)
    given, expected = message.split(": expected ")
    for there, wanted in (
        ("no rain, nu", "rain, nu, known ahead"),
        ("2 components (T, p)", "2 components (T, q)"),
        ("1 static input (slope)", "1 static input (soil)"),
        ("T in °C", "T in K"),
        ("time in s", "time in h"),
        ("[0, 2] x [0, 1], periodic along y", "[0, 1] x [0, 1], not periodic"),
    ):
        assert there in given and wanted in expected, message
    assert "x in m" not in message


def test_units_that_a_file_does_not_tell_are_those_of_training():
    asked = task(units={"T": "K", "time": "h"})
    matched(stations(FIELDS, STATIC, units={"p": "Pa"}), asked)
    with pytest.raises(UserError, match="T in °C: expected T in K"):
        matched(stations(FIELDS, STATIC, units={"T": "°C"}), asked)


def test_time_steps_are_those_of_training():
    file, times = stations(FIELDS, STATIC), np.arange(7.0, 12.0)
    check_times(task(), file, [(1.0005 * times).tolist()])
    with pytest.raises(UserError, match="time steps of 0.5: expected time steps of 1"):
        check_times(task(), file, [(0.5 * times).tolist()])
    ahead = task(any_time=True, longest_lead=2.0)
    check_times(ahead, file, [[0, 0.1, 0.7, 2.1]])
    with pytest.raises(UserError, match=r"the last time is 3 after the last input"):
        check_times(ahead, file, [[0, 1, 2, 3], [0, 1, 2, 4]])


def steady(role: str, values: Any, *, ragged: bool) -> Fields:
    """Four samples with ``speed`` in a role, of ``values [4]`` or ``[4, n]``."""
    rng = np.random.default_rng(0)
    pos = [rng.random((9 + k * ragged, 2)) for k in range(4)]
    pos = pos if ragged else pos[:1] * 4
    u, height = ([rng.random(len(xy)) for xy in pos] for _ in range(2))
    speed = [np.broadcast_to(v, len(xy)) for v, xy in zip(values, pos, strict=True)]
    more: dict[str, Any] = {"static": {"height": height}, "domain": BOX}
    if role == "scalar":
        more["scalars"] = {"speed": values}
    elif role == "static":
        more["static"]["speed"] = speed
    else:
        u = [np.stack(pair, -1) for pair in zip(u, speed, strict=True)]
        more["component_names"] = ["u", "speed"]
    return nfsgeo.from_arrays(u, pos, **more)


ASKED: dict[str, dict[str, Any]] = {
    "scalar": {"static": ["height"], "scalars": ["speed"]},
    "static": {"static": ["height", "speed"]},
    "forcing": {"static": ["height"], "forcings": ["speed"]},
}


def steady_task(role: str) -> Task:
    about = {"components": ["u"], "n_in": 0, "n_out": 1, "times": [0.0]}
    return task(**about, **ASKED[role])


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("asked", ["scalar", "static"])
@pytest.mark.parametrize("role", ["scalar", "static"])
def test_constant_inputs_may_be_scalars_or_static_inputs(role, asked, ragged):
    values = np.array([2.0, 0.5, 3.0, 1.0])
    found = matched(steady(role, values, ragged=ragged), steady_task(asked))
    expected = matched(steady(asked, values, ragged=ragged), steady_task(asked))
    assert found.input_names == expected.input_names == ["height", "speed"]
    assert found.scalar_names == expected.scalar_names
    for sample in range(4):
        np.testing.assert_array_equal(
            found.read_inputs(sample), expected.read_inputs(sample)
        )
    assert found.fingerprint() == expected.fingerprint()


@pytest.mark.parametrize(
    ("role", "asked", "message"),
    [
        ("static", "scalar", "as a static input: expected speed as a number for each"),
        ("field", "scalar", "as a field: expected speed as a number for each sample"),
        ("field", "static", "inputs (height, speed), as in training; say so, "),
        ("static", "forcing", "as a static input: expected speed as a forcing"),
    ],
)
def test_inputs_in_another_role_are_named(role, asked, message, one_line):
    values = np.random.default_rng(1).random((4, 9))
    file = steady(role, values, ragged=False)
    text = one_line(matched, file, steady_task(asked))
    assert message in text and "no speed" not in text
