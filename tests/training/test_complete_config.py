"""What a configuration leaves to the data."""

from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from small_fields import Array, build

import nfsgeo.data
from nfsgeo.config import RunConfig
from nfsgeo.geometry import Domain
from nfsgeo.training import load_config, parse_settings
from nfsgeo.training.complete_config import complete_config
from nfsgeo.training.run_data import RunData


def resolve(path: Path, given: str = "") -> RunConfig:
    with nfsgeo.data.open(path) as file:
        return complete_config(
            load_config(overrides=parse_settings(given.split())), file
        )


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ("", "data.mesh=random-subset data.points=64 data.point_sets=16"),
        ("", "data.n_in=10 data.n_out=10 loss.weighting=quadrature"),
        ("model.name=fno", "data.mesh=grid data.grid=8"),
        (
            "model.name=fno data.points=16",
            "data.mesh=grid data.grid=4 data.points=null",
        ),
        ("data.point_sets=1", "data.point_sets=1"),
        ("data.mesh=grid", "data.point_sets=1 loss.weighting=uniform"),
        ("data.mesh_per_sample=true", "data.point_sets=1"),
        ("model.name=mppde", "data.point_sets=1"),
        ("preset=paper", "data.point_sets=1 loss.weighting=uniform"),
        ("data.mesh=off-grid", "loss.weighting=quadrature"),
        ("data.mesh=clustered data.points=64", "loss.weighting=uniform"),
        ("model.name=dse", "loss.weighting=uniform"),
        ("loss.weighting=uniform", "loss.weighting=uniform"),
        # Noise in the last time step is not to be predicted.
        ("data.input_noise=0.05", "model.prediction=direct"),
        (
            "data.input_noise=0.05 model.prediction=residual",
            "model.prediction=residual",
        ),
        ("data.training_noise=0.05", "model.prediction=residual"),
    ],
)
def test_nothing_is_left_open(waves, given, chosen):
    config, wanted = resolve(waves, given), parse_settings(chosen.split())
    assert {key: attrgetter(key)(config) for key in wanted} == wanted
    assert config.data.file == waves.resolve()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("data.n_out=15", "at most the 24 time steps"),
        ("data.first_step=5", "at most the 24 time steps"),
        ("data.time_stride=2", "at most the 24 time steps"),
        (
            "model.name=fno data.points=60",
            r"--points 60 on a grid: .*, such as 1, 2, 4, 8, 16; give --grid 8 "
            r"\(64 points\)",
        ),
        (
            "data.grid=8 data.points=60",
            r"--grid 8 with --points 60 on .*; give --grid 8",
        ),
        ("model.name=fno data.grid=5", r"--grid 5: .*; give --grid 4 \(16 points\)"),
        (
            "data.point_sets=3 data.mesh=grid data.grid=8",
            r"data\.point_sets with --mesh",
        ),
        ("data.mesh=all data.points=64", "--points 64 with --mesh all"),
        ("data.mesh=all data.grid=8", "--grid 8 with --mesh all"),
        ("data.mesh=clustered data.grid=8", "--grid 8 with --mesh clustered"),
        ("model.prediction=rate", "model.prediction=rate with"),
        (
            "data.lead_times=true data.n_out=4 model.prediction=damped",
            "model.prediction=damped with",
        ),
    ],
)
def test_what_data_do_not_allow(waves, given, message, refuses):
    refuses(message, resolve, waves, given)


def test_the_default_grid_fits_one_of_any_size():
    axis = np.arange(22) / 22
    path = Path("odd.nc")
    u = [Array(np.random.default_rng(0).random((10, 24, 22)), "ntx", ["u"])]
    domain = Domain.unit(1)
    build(path, u, axes=[axis], times=np.arange(24.0), domain=domain).write(path)
    # A quarter would be 5 points, which do not divide 22.
    config = resolve(path, "model.name=fno")
    with nfsgeo.data.open(path) as file:
        assert len(RunData(config, file).mesh(0)) == config.data.grid == 2


@pytest.mark.parametrize("given", ["", " data.grid=3", " data.points=9"])
def test_a_grid_without_sub_grids(given, refuses):
    """Seven points around and six from wall to wall: no number fits both."""
    path, axes = Path("odd.nc"), [np.arange(7) / 7, np.linspace(0, 1, 6)]
    u = [Array(np.random.default_rng(0).random((10, 24, 7, 6)), "ntxy", ["u"])]
    domain = replace(Domain.unit(2), periodic=(True, False))
    build(path, u, axes=axes, times=np.arange(24.0), domain=domain).write(path)
    words = "the 7 x 6 grid of .*odd.nc: expected a grid with sub-grids of as many "
    refuses(words, resolve, path, f"model.name=fno{given}")


def test_points_of_a_cloud_are_all_of_them(refuses):
    random = np.random.default_rng(0)
    meshes = 5 * [random.random((num, 2)) for num in (30, 40)]
    u, domain = [random.random((len(mesh), 24)) for mesh in meshes], Domain.unit(2)
    fields = nfsgeo.from_arrays(u, meshes, np.arange(24.0), domain=domain)
    cloud = fields.write(Path("cloud.nc"))
    config = resolve(cloud)
    assert (config.data.mesh, config.data.point_sets) == ("all", 1)
    assert config.loss.weighting == "uniform"
    assert resolve(cloud, "loss.weighting=quadrature").loss.weighting == "quadrature"
    refuses("fields on a grid", resolve, cloud, "model.name=fno")
    with nfsgeo.data.open(cloud) as file:
        used = RunData(config, file)
        everywhere = RunData(resolve(cloud, "data.least_fraction=1"), file)
        for mesh in (used.mesh, everywhere.training_mesh):
            assert [len(mesh(sample)) for sample in (0, 1)] == [30, 40]
        # Training samples are observed at some of their points in every other epoch.
        assert len(used.training_mesh(0)) == 30 and len(used.training_mesh(1)) < 40
    for given in ("model.name=dse", "model.name=meshgraphnets", "preset=paper"):
        assert resolve(cloud, given).data.least_fraction == 1
    refuses("--mesh all", resolve, cloud, "data.least_fraction=.5 data.points=9")


@pytest.mark.parametrize(("power", "strong"), [(1, False), (3, True)])
def test_meshes_of_samples_share_strengths_of_latent_coordinates(power, strong):
    random = np.random.default_rng(0)
    meshes = [random.random((num, 2)) ** power for num in range(200, 320, 10)]
    u, domain = [random.random((len(mesh), 24)) for mesh in meshes], Domain.unit(2)
    fields = nfsgeo.from_arrays(u, meshes, np.arange(24.0), domain=domain)
    cloud, key = fields.write(Path("cloud.nc")), "latent_strengths"
    found = resolve(cloud).model.settings[key]
    assert [*found] == pytest.approx([0.9, 0.9] if strong else [0, 0], abs=0.1 * strong)
    own = resolve(cloud, "model.settings.latent_strengths=[0.1,0.2]")
    assert [*own.model.settings[key]] == [0.1, 0.2]
    for without in ("model.settings.latent=false", "model.name=dse", "preset=paper"):
        assert resolve(cloud, without).model.settings.get(key) is None


@pytest.mark.parametrize("given", ["optimiser.lr=1e-3", "", "preset=paper"])
def test_the_learning_rate_is_that_of_the_model_unless_it_is_given(waves, given):
    rates = [resolve(waves, f"model.name={m} {given}") for m in ("nfs", "dse")]
    expected = [3e-3, 2e-3] if not given else [1e-3, 1e-3]
    assert [config.optimiser.lr for config in rates] == expected


@pytest.mark.parametrize("mesh", ["random-subset", "off-grid", "clustered", "jittered"])
def test_meshes_follow_the_seed(waves, mesh):
    with nfsgeo.data.open(waves) as file:
        first, again, other = (
            RunData(resolve(waves, f"data.mesh={mesh} seed={seed}"), file).mesh(0).pos
            for seed in (0, 0, 1)
        )
    assert len(first) == 64
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_mesh_for_every_sample(waves):
    config = resolve(waves, "data.mesh_per_sample=true")
    with nfsgeo.data.open(waves) as file:
        one, other = map(RunData(config, file).mesh, (0, 1))
    assert not np.array_equal(one.pos, other.pos)


def test_samples_take_turns_on_meshes(waves):
    config = resolve(waves, "data.point_sets=3")
    with nfsgeo.data.open(waves) as file:
        used = RunData(config, file)
        meshes = [used.training_mesh(sample).pos for sample in range(6)]
        alone = [used.mesh(sample).pos for sample in range(2)]
    assert np.array_equal(alone[0], alone[1])
    assert np.array_equal(meshes[0], alone[0])
    assert np.array_equal(meshes[1], meshes[4])
    assert len({pos.tobytes() for pos in meshes}) == 3


@pytest.mark.slow
def test_the_typical_number_of_points_does_not_depend_on_the_order(tmp_path):
    """One sample of few points decides neither the grid nor the radius."""
    rng, sizes = np.random.default_rng(0), [9, 60, 70, 80, 90, 60, 70]
    meshes = [rng.random((num, 2)) for num in sizes]
    u = [np.sin(5 * pos[:, :1]) for pos in meshes]
    chosen = {"data.split": [5, 1, 1], "data.mesh": "all", "model.settings.width": 4}
    chosen |= {"data.n_in": 0, "data.n_out": 1}
    found = set()
    for first in range(5):
        order = [first, *(i for i in range(5) if i != first), 5, 6]
        values, points = [u[i] for i in order], [meshes[i] for i in order]
        fields = nfsgeo.from_arrays(values, points, static=values)
        task = nfsgeo.prepare(fields, chosen).task
        found.add(task.num_points)
    assert found == {70}


def steady(path: Path, header: str) -> Path:
    """A folder of tables at one time, with columns of random numbers."""
    path.mkdir()
    for sample in range(8):
        rows = np.random.default_rng(sample).random((12, header.count(",") + 1))
        table = "\n".join(",".join(map(str, row)) for row in [header.split(","), *rows])
        (path / f"{sample}.csv").write_text(table)
    return path


def test_fields_at_one_time_are_told_from_inputs(tmp_path, one_line):
    """Also after a conversion, until somebody tells them apart."""
    folder = steady(tmp_path / "runs", "x,y,T,dist,k")
    converted = nfsgeo.data.convert(folder, tmp_path / "runs.nc")
    for path in (folder, converted):
        message = one_line(resolve, path)
        assert "T and dist and k at one time step" in message
        assert "--columns static=k" in message
    for told in ({"static": ["dist", "k"]}, {"field": ["T", "dist"], "static": "k"}):
        with nfsgeo.data.open(folder, columns=told) as file:
            copy = file.write(tmp_path / f"{len(told)}.nc")
        assert resolve(copy).data.n_in == 0


def test_what_is_told_later_counts(tmp_path, one_line):
    """Fields that are chosen, known ahead or left out, and complete configurations."""

    def n_in(fields: nfsgeo.data.Fields, given: str = "") -> int | None:
        config = load_config(overrides=parse_settings(given.split()))
        return complete_config(config, fields).data.n_in

    folder = steady(tmp_path / "runs", "x,y,T,q,dist")
    fields = nfsgeo.data.open(folder)
    left_out = nfsgeo.data.open(folder, columns={"ignore": "dist"})
    assert "T and q at one time step" in one_line(n_in, left_out)
    alone = nfsgeo.data.open(folder, columns={"ignore": ["q", "dist"]})
    assert "no static inputs" in one_line(n_in, alone)
    numbers = fields.dataset.assign(Re=("sample", np.arange(8.0), {"role": "known"}))
    with_number = fields.with_dataset(numbers)
    assert n_in(with_number) == n_in(with_number, "data.n_in=0 data.n_out=1") == 0
    assert "T and q and dist" in one_line(n_in, fields)


def test_names_tell_inputs_at_one_time(tmp_path, one_line):
    assert resolve(steady(tmp_path / "named", "x,y,a_k,T,q")).data.n_in == 0
    alone = one_line(resolve, steady(tmp_path / "alone", "x,y,T"))
    assert "one time step and no static inputs" in alone
    types = steady(tmp_path / "types", "x,y,T,q")
    for table in types.iterdir():
        lines = table.read_text().splitlines()
        lines = [f"{lines[0]},node_type", *(f"{line},1" for line in lines[1:])]
        table.write_text("\n".join(lines))
    assert "T and q at one time step" in one_line(resolve, types)
