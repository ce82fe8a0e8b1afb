"""Predictions for files."""

import json
import sys
from pathlib import Path
from typing import Any

import meshio
import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner
from small_fields import Array, build
from torch_geometric.data import Batch, Data

import nfsgeo
from nfsgeo import predict
from nfsgeo.errors import UserError
from nfsgeo.evaluation import read_points
from nfsgeo.evaluation.query_points import query_points_of
from nfsgeo.geometry import Domain
from nfsgeo.training.artifacts import write_tensors
from nfsgeo.training.checkpoints import read_checkpoint
from nfsgeo_cli import main


def part_of(waves: Path, path: Path, times: Any = range(24), offset: Any = 0) -> Path:
    """The grid of the file as a cloud, at some of its time steps, plus a number."""
    with nfsgeo.open(waves) as file:
        u = [file.read(sample, slice(None))[:, [*times]] for sample in range(2)]
        when, domain = file.times[[*times]], file.domain
        u = [each + np.float32(offset) for each in u]
        fields = nfsgeo.from_arrays(u, file.coordinates(), when, domain=domain)
        return fields.write(path)


@pytest.mark.slow
def test_the_last_snapshots_are_observed_and_what_follows_is_predicted(run, waves):
    whole = part_of(waves, Path("whole.nc"))
    ahead = predict(run, whole, Path("ahead.nc"))
    # The file ends at 6; before, predictions began at 2.75 whatever its length.
    assert np.allclose(ahead.times, 6 + 0.25 * np.arange(1, 11))
    expected = ahead.read(1, slice(None))
    last = part_of(waves, Path("last.nc"), range(14, 24))
    # Of unequal steps, of which the last ones of 0.25 are all there.
    uneven = part_of(waves, Path("uneven.nc"), [0, 1, 5, *range(10, 24)])
    for number, (data, first) in enumerate(((last, None), (whole, 14), (uneven, None))):
        out = predict(run, data, Path(f"{number}.nc"), first=first)
        assert np.allclose(out.times, ahead.times)
        assert np.allclose(out.read(1, slice(None)), expected, atol=1e-6)
    with pytest.raises(UserError, match=r"0.25 to 1.25 apart.*at least 10, 0.25 apart"):
        predict(run, uneven, Path("out.nc"), first=0)


def test_the_mesh_is_that_of_the_file(run, waves):
    """With its cells, and a period beside the box, too, where fields are the same."""
    with nfsgeo.open(waves) as file:
        u = Array(file.read(0, slice(None)), "ptc", ["u"])
        points, when, domain = file.coordinates(), file.times, file.domain
    period = np.array([domain.upper[0] - domain.lower[0], 0.0])
    beside = points - period * (points[:, :1] > 0.5)
    mesh = {"domain": domain, "cells": {"triangle": [[0, 1, 2], [2, 1, 3]]}}
    usual, found = (
        predict(run, build(at, [u], points=pos, times=when, **mesh), Path(f"{at}.nc"))
        for at, pos in ((Path("a"), points), (Path("b"), beside))
    )
    assert np.array_equal(found.coordinates(), beside)
    assert "part" not in found.dataset  # as in the source
    assert found.cells()["triangle"].tolist() == mesh["cells"]["triangle"]
    expected = usual.read(0, slice(None))
    assert np.allclose(found.read(0, slice(None)), expected, atol=1e-5)


@pytest.mark.parametrize("first", [-1, 24, 20])
def test_a_first_snapshot_that_leaves_too_few(run, waves, first, refuses):
    refuses("snapshot", predict, run.root, waves, Path("out.nc"), first=first)


def test_points_come_from_arrays():
    points = np.random.default_rng(0).random((7, 2))
    np.save("q.npy", points)
    np.savez("q.npz", pos=points, other=points[:1])
    for name in ("q.npy", "q.npz"):
        assert np.array_equal(read_points(Path(name), Domain.unit(2)), points)


def test_names_order_the_columns_of_points(refuses):
    Path("q.csv").write_text("lat,lon\n0.25,0.5\n0.75,1\n")
    found = read_points(Path("q.csv"), Domain.unit(2, periodic=False))
    assert found.tolist() == [[0.5, 0.25], [1.0, 0.75]]
    for names in ("u,x,y", "p,q", "x,lon", "z,x", "y,z"):
        zeros = ",".join("0" for _ in names.split(","))
        Path("q.csv").write_text(f"{names}\n{zeros}\n")
        refuses("columns", read_points, Path("q.csv"), Domain.unit(2))


def test_points_are_read_from_tables_as_fields_are():
    """With names of the points, other separators, units and comments."""
    box = Domain.unit(2, periodic=False)
    for text in (
        "id,lat,lon\n007,0.25,0.5\n008,0.75,1\n",
        "# places\nlon [deg];lat [deg];station\n0.5;0.25;007\n# a line\n1;0.75;008\n",
        "0.5;0.25\n1;0.75\n",
        "# x y\n0.5 0.25\n1 0.75\n",
    ):
        Path("q.csv").write_text(text)
        assert read_points(Path("q.csv"), box).tolist() == [[0.5, 0.25], [1.0, 0.75]]


def test_names_of_query_points_are_kept(run, waves):
    Path("q.csv").write_text("name,x,y\nA,0.5,0.25\nB,0.75,0.5\n")
    found = predict(run.root, waves, Path("out.nc"), query_pos=Path("q.csv"))
    assert found.stations(1) == ["A", "B"]


@pytest.mark.parametrize(
    ("points", "complaint"),
    [
        ([[0.5, 0.5], [2.5, 0.5]], "point 1 at"),
        ([[0.5, 0.5], [0.5, float("nan")]], "1 of 2 points .* number 1"),
        ([[0.5, 0.5, 0.5]], "one row of 2 coordinates"),
        ([0.5, 0.5], "one row of 2 coordinates"),
        (np.empty((0, 2)), "one row of 2 coordinates"),
        ([[0.5 + 1j, 0.5]], "q.npy of type complex128: expected real numbers"),
        ([{}], "an array of points"),
    ],
)
def test_points_that_cannot_be_used(points, complaint, refuses):
    np.save(Path("q.npy"), np.array(points))
    refuses(complaint, read_points, Path("q.npy"), Domain.unit(2))


PLACES = np.full((5, 2), 0.5)


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"points": PLACES, "u": PLACES}, "q.npz with arrays points, u: .* pos and"),
        ({}, "q.npz with none: .* pos and"),
        ({"pos": PLACES.T}, r"array pos of q.npz of shape \(2, 5\)"),
        ({"pos": PLACES.astype(str)}, "array pos of q.npz of type"),
        ({"pos": PLACES.astype(object)}, "array pos of q.npz"),
        ({"pos": PLACES * np.nan}, "array pos of q.npz with 5 of 5 points"),
        ({"pos": PLACES, "k": np.ones(3)}, r"q.npz .* k of shape \(3,\): .* \(5,\)"),
        ({"pos": PLACES, "k": ["a"] * 5}, "k of q.npz of type"),
        ({"pos": PLACES, "k": np.full(5, np.inf)}, "k of q.npz with 5 of 5"),
        ({"pos": PLACES, "K": np.ones(5)}, "q.npz with the array K.* pos and .* k"),
    ],
)
def test_arrays_of_query_points_that_cannot_be_used_are_named(
    arrays, complaint, refuses
):
    np.savez("q.npz", **arrays)
    refuses(complaint, query_points_of, "q.npz", Domain.unit(2), ["k"])


def test_points_beside_a_periodic_axis_are_brought_back():
    """As longitudes from 0 to 360 degrees, or the date line itself."""
    np.save(Path("q.npy"), [[180.0, 10.0], [270.0, 90.0], [-190.0, 0.0]])
    found = read_points(Path("q.npy"), Domain.sphere())
    assert found.tolist() == [[-180.0, 10.0], [-90.0, 90.0], [170.0, 0.0]]


def test_points_may_be_an_array(run, waves, refuses):
    points = np.random.default_rng(0).random((7, 2))
    found = predict(run.root, waves, Path("out.nc"), query_pos=points)
    assert np.array_equal(found.coordinates(1), points)
    given = run.root, waves, Path("new.nc")
    refuses("one row of 2 coordinates", predict, *given, query_pos=points[0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", ["", "no points here\n"])
@pytest.mark.parametrize("name", ["q.npy", "q.npz", "q.csv", "q.txt"])
def test_files_that_hold_no_points(name, text, refuses):
    (Path(name)).write_text(text)
    refuses(name, read_points, Path(name), Domain.unit(2))
    refuses("missing", read_points, Path(f"missing-{name}"), Domain.unit(2))


def test_time_steps_without_values_are_not_observed(run, waves):
    gone = np.where(np.arange(24) < 20, 0, np.nan)
    ahead = part_of(waves, Path("ahead.nc"), offset=gone[:, None])
    predict(run.root, ahead, Path("p.nc"), first=10)
    with pytest.raises(UserError, match="20 observed .* time steps 11 to 20"):
        predict(run.root, ahead, Path("q.nc"), first=11)


@pytest.mark.slow
def test_inputs_unlike_those_of_training_are_told(waves, tiny, caplog):
    chosen = tiny | {"trainer.epochs": 1, "data.window_stride": 1}
    run = nfsgeo.fit(nfsgeo.prepare(waves, chosen), "run")
    usual = predict(run, waves, "usual.nc").dataset["out_of_distribution"].values
    assert usual.shape == (20,) and (usual[:14] < 1).all()  # those of training
    other = part_of(waves, Path("other.nc"), offset=9)
    found = predict(run, other, "out.nc").dataset["out_of_distribution"].values
    assert found.shape == (2,) and (found > 1).all()
    assert "2 of 2 samples are unlike" in caplog.text
    summary = nfsgeo.evaluate(run, data=other)["out_of_distribution"]
    assert (summary["samples"], summary["total"]) == (2, 2)
    assert summary["z_score"] > 3 and "u" in summary["statistic"]
    assert summary["distance"] == pytest.approx(found.max(), rel=1e-3)
    assert f"at up to {summary['distance']:.3g} times the limit" in caplog.text
    # Evaluation has the first time steps, and prediction the last ones unless told.
    first = predict(run, other, first=0).dataset["out_of_distribution"].values
    assert first.max() == pytest.approx(summary["distance"], rel=1e-9)


@pytest.mark.slow
def test_query_points_in_blocks(run, waves, monkeypatch):
    """Predictions in blocks are those at all points together, in their order."""
    data, points = (
        part_of(waves, Path("2.nc")),
        np.random.default_rng(0).random((2500, 2)),
    )
    together = predict(run, data, Path("a.nc"), query_pos=points)
    # The function has the name of its module.
    monkeypatch.setattr(sys.modules["nfsgeo.evaluation.prediction"], "POINTS", 1024)
    done = list[int]()
    progress = {"progress": lambda what, num, total: done.append(num / total)}
    blocks = predict(run, data, Path("b.nc"), query_pos=points, **progress)
    assert np.array_equal(blocks.coordinates(), points)
    for sample in (0, 1):
        one, other = (each.read(sample, slice(None)) for each in (together, blocks))
        assert np.allclose(one, other, atol=1e-6)
    assert done == sorted(done) and done[-1] == 1
    before = sorted(Path().iterdir())
    in_memory = predict(run, data, query_pos=torch.from_numpy(points))
    assert in_memory.parameters.keys() == together.parameters.keys()
    assert np.array_equal(in_memory.read(1, slice(None)), blocks.read(1, slice(None)))
    assert in_memory.provenance == together.provenance
    assert sorted(Path().iterdir()) == before


def test_predictions_that_are_not_finite_are_told(run, waves, caplog):
    checkpoint = read_checkpoint(run.best)
    for name, weight in checkpoint["state_dict"].items():
        if name.startswith("forecaster.model.") and weight.is_floating_point():
            weight *= 1e20
    write_tensors(run.best, checkpoint)
    made = predict(run, waves, Path("out.nc"))
    assert np.isnan(made.read(3, slice(None))).any()
    assert made.provenance["not_finite"][3] == {"sample": 3, "time_step": 1}
    assert "not finite in sample 0 from time step 1" in caplog.text
    command = ["predict", str(run.root), "--input", str(waves), "--output", "p.csv"]
    result = CliRunner().invoke(main, [*command, "--json"])
    assert result.exit_code == 0 and len(json.loads(result.stdout)["not_finite"]) == 20
    summary = nfsgeo.evaluate(run)
    assert [each["sample"] for each in summary["not_finite"]] == [16, 17, 18, 19]
    assert summary["test"]["mae"] == np.inf


@pytest.mark.parametrize("way", ["file", "query points", "list", "Batch"])
def test_predictions_from_no_value_at_all_are_told(run, waves, caplog, way):
    """Once, with the number of the samples; one with some values is none of them."""
    with nfsgeo.open(waves) as file:
        pos, times, domain = file.coordinates(), file.times[:10], file.domain
        u = np.stack([file.read(sample, slice(None))[:, :10] for sample in range(3)])
    u[0], u[1, :, 1:] = np.nan, np.nan
    if way in ("list", "Batch"):
        graphs = [Data(torch.tensor(x), pos=torch.tensor(pos)) for x in u]
        data = Batch.from_data_list(graphs) if way == "Batch" else graphs
        nfsgeo.load(run).predict(data)
    else:
        fields = nfsgeo.from_arrays(u, pos, times, domain=domain)
        predict(run, fields, query_pos=pos[:3] if way == "query points" else None)
    lines = [r.getMessage() for r in caplog.records if "no value" in r.getMessage()]
    assert len(lines) == 1 and lines[0].startswith("1 of 3 samples"), caplog.text


def test_longitudes_keep_their_name_in_tables_of_predictions(run, waves):
    """The columns of a table are called as in the file that is predicted."""
    with nfsgeo.open(part_of(waves, Path("a.nc"))) as file:
        file.dataset["x"].attrs["standard_name"] = "longitude"
        marked = file.write(Path("marked.nc"))
    tables = [predict(run, data, Path(f"{data}.csv")) for data in ("a.nc", marked)]
    columns = [pd.read_csv(table.path, nrows=1).columns for table in tables]
    assert [{"lon", "lat", "x", "y"} & {*names} for names in columns] == [
        {"x", "y"},
        {"lon", "lat"},
    ]


def test_points_are_those_of_a_mesh_with_its_inputs(refuses):
    places = np.c_[np.random.default_rng(0).random((9, 2)), np.zeros(9)]
    values = {"distance": places[:, 0].copy(), "T": places[:, 1].copy()}
    cells = [("triangle", np.arange(9).reshape(3, 3))]
    meshio.Mesh(places, cells, point_data=values).write("q.vtu")
    box = Domain.unit(2, periodic=False)
    found = query_points_of("q.vtu", box, ["distance", "k"])
    np.testing.assert_allclose(found.pos, places[:, :2])
    assert list(found.static) == ["distance"]
    np.testing.assert_allclose(found.static["distance"], places[:, 0], rtol=1e-6)
    meshio.Mesh(places, cells).write("bare.vtu")
    np.testing.assert_allclose(query_points_of("bare.vtu", box).pos, places[:, :2])
    Path("q.tsv").write_text("name\tx\ty\nA\t0.2\t0.3\n")
    assert query_points_of("q.tsv", box).names == ["A"]
    nfsgeo.from_arrays(np.zeros((2, 9, 1)), places[:, :2]).write("two.nc")
    refuses("two.nc with 2 samples", query_points_of, "two.nc", box)


def test_heights_of_query_points_are_those_of_stations():
    """A third coordinate, or a column called as in tables that nfsgeo writes."""
    box = Domain.unit(2, periodic=False)
    for head in ("station,lon,lat,z", "station,lon,lat,a_height"):
        Path("q.csv").write_text(f"{head}\nA,0.2,0.3,700\nB,0.4,0.5,900\n")
        found = query_points_of("q.csv", box, ["height"])
        assert found.pos.tolist() == [[0.2, 0.3], [0.4, 0.5]]
        assert found.static["height"].tolist() == [700, 900]
    Path("q.csv").write_text("station,lon,lat,alt\nA,0.2,0.3,700\n")
    with pytest.raises(UserError, match=r"columns .*alt.* rename alt if it is height"):
        query_points_of("q.csv", box, ["height"])


def test_a_plane_mesh_tells_no_heights():
    """Its third coordinate is that of a plane in space."""
    places = np.c_[np.random.default_rng(0).random((9, 2)), np.zeros(9)]
    meshio.Mesh(places, [("triangle", np.arange(9).reshape(3, 3))]).write("q.vtu")
    found = query_points_of("q.vtu", Domain.unit(2, periodic=False), ["height"])
    assert found.pos.shape == (9, 2) and not found.static


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_steady_field_at_one_point_is_written_as_a_table(tmp_path, ending):
    random = np.random.default_rng(0)
    points, a = random.random((30, 2)), random.random((10, 1, 1))
    u = a * points[:, :1]
    static = np.broadcast_to(a, (10, 30, 1))
    data = nfsgeo.from_arrays(u[..., None], points, static=static)
    settings = {"data.n_in": 0, "data.n_out": 1, "trainer.epochs": 1}
    settings |= {"model.name": "nfs", "model.settings.width": 8, "data.mesh": "all"}
    experiment = nfsgeo.prepare(data, settings)
    run = nfsgeo.fit(experiment, tmp_path / "run", report=False)
    where, out = np.array([[0.5, 0.5]]), tmp_path / f"p.{ending}"
    found = predict(run, data, out, query_pos=where)
    assert found.num_points() == 1 and out.stat().st_size > 0
    table = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    values = [found.read(sample, slice(None)).item() for sample in range(10)]
    np.testing.assert_allclose(table["u"], values, rtol=1e-5)
