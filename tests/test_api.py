"""nfsgeo from Python."""

import shutil

import numpy as np
import pytest
import torch

import nfsgeo
import nfsgeo.api
from nfsgeo.errors import UserError
from nfsgeo.evaluation import evaluate_run
from nfsgeo.files import cache_folder
from nfsgeo.geometry import Domain


def test_five_lines(waves, tiny, tmp_path):
    data = nfsgeo.open(waves)
    experiment = nfsgeo.prepare(data, {**tiny, "model.name": "nfs"})
    run = nfsgeo.fit(experiment, tmp_path / "run")
    summary = nfsgeo.evaluate(run)
    predicted = nfsgeo.predict(run, data, tmp_path / "predicted.nc", first=0)

    assert summary == evaluate_run(tmp_path / "run")
    assert summary["model"] == "nfs" and np.isfinite(summary["test"]["mae"])
    with predicted:
        assert predicted.num_samples == data.num_samples
        np.testing.assert_allclose(predicted.times, data.times[10:20])
        valid = experiment.data.parts["valid"]
        window, sample = valid[0], valid.samples[0]
        u, pos = predicted.read(sample, slice(None)), predicted.coordinates(sample)
        np.testing.assert_allclose(pos, window.pos, atol=1e-6)
    forecaster = nfsgeo.load(tmp_path / "run")
    with torch.no_grad():
        found = forecaster(window.x, window.pos)
    np.testing.assert_allclose(u, found, rtol=1e-5, atol=1e-6)


def test_the_package_has_what_the_module_has():
    assert {*nfsgeo.api.__all__} < {*nfsgeo.__all__} < {*dir(nfsgeo)}
    for name in nfsgeo.api.__all__:
        assert getattr(nfsgeo, name) is getattr(nfsgeo.api, name)
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        nfsgeo.fitt  # noqa: B018


def test_what_python_callers_mistake_is_said_in_their_words(one_line):
    u, pos = np.zeros((6, 5, 8, 1)), np.random.default_rng(0).random((5, 2))
    fields = nfsgeo.from_arrays(u, pos, np.arange(8.0))
    assert "did you mean model.name?" in one_line(
        nfsgeo.prepare, fields, {"model": "nfs"}
    )
    swapped = one_line(nfsgeo.from_arrays, u.swapaxes(1, 2), pos, np.arange(8.0))
    assert "(8, 5, 1)" in swapped and "swap" in swapped
    one = one_line(nfsgeo.from_arrays, u[0], pos, np.arange(8.0))
    assert "[samples, points, time steps, components]" in one and "u[None]" in one
    with pytest.raises(UserError, match="of arrays") as short:
        nfsgeo.prepare(fields, {"data.n_in": 9})
    assert str(cache_folder()) not in str(short.value)
    assert "points=5" in repr(fields)
    assert nfsgeo.models.NFS(nfsgeo.models.Problem(Domain.unit(2))).problem.n_out == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--points 9000 of 64", "points=9000 of 64"),
        ("no --mesh, or leave --n-out out", "no mesh, or leave n_out out"),
        (
            "try --set data.split=[0.8,0.2] (or not)",
            "try data.split=[0.8,0.2] (or not)",
        ),
        ("say --columns x=lon,y=lat", "say columns={'x': 'lon', 'y': 'lat'}"),
        ("say --columns 'x=a b',x=c", "say columns={'x': ['a b', 'c']}"),
        ("or nfsgeo convert F --out N.nc", "or nfsgeo convert F --out N.nc"),
    ],
)
def test_errors_name_arguments_in_python_and_options_elsewhere(line, told):
    error = UserError("this", "that", line)
    assert str(error) == f"this: expected that; {told}"
    assert error.line == f"this: expected that; {line}"


@pytest.mark.slow
def test_runs_from_memory_keep_their_data(tiny, monkeypatch):
    rng = np.random.default_rng(0)
    u, pos = rng.random((8, 40, 20, 1)), rng.random((40, 2))
    fields = nfsgeo.from_arrays(u, pos, np.arange(20.0), name="waves")
    run = nfsgeo.fit(nfsgeo.prepare(fields, tiny | {"trainer.epochs": 1}))
    assert run.root.name == "nfs-waves-1" and [*run.root.glob("waves-*.nc")]
    generated = shutil.copy(
        fields.write("d.nc"), cache_folder() / "burgers-32-seed0.nc"
    )
    again = nfsgeo.fit(nfsgeo.prepare(generated, tiny | {"trainer.epochs": 1}), "again")
    assert not [*again.root.glob("*.nc")]  # which can be generated again
    shutil.rmtree(cache_folder())
    assert nfsgeo.evaluate(run)["test"]["mae"] > 0


@pytest.mark.slow
def test_fit_leaves_what_the_command_leaves(waves, tiny, capsys):
    experiment = nfsgeo.prepare(waves, tiny)
    run = nfsgeo.fit(experiment, "run", report=True, progress=True)
    names = {path.name for path in run.root.iterdir()}
    assert {"summary.json", "report.html", "figures", "metrics.csv"} <= names
    assert "epoch 1/3" in capsys.readouterr().err
    assert nfsgeo.evaluate(run)["baselines"].keys() >= {"persistence"}
