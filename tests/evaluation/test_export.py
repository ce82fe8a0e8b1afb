"""Exported programs against the models that they come from."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import nfsgeo
from nfsgeo.errors import UserError
from nfsgeo.evaluation import export_run, program_inputs
from nfsgeo.forecast import Forecaster
from nfsgeo.geometry import Domain, Region
from nfsgeo.models import MODELS

# Its weights are complex numbers.
WITHOUT_ONNX = "nfs-fnet"


@pytest.fixture(scope="module")
def exported(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("exported") / "waves.pt2"
    assert nfsgeo.export(trained, target) == target
    return target


@pytest.fixture(scope="module")
def forecaster(trained: Path) -> Forecaster:
    return nfsgeo.load(trained)


@pytest.mark.slow
@pytest.mark.parametrize("num_points", [64, 40, 333])
@pytest.mark.parametrize("num_queries", [None, 51])
def test_equals_the_model_on_meshes_of_any_size(
    exported, forecaster, num_points, num_queries
):
    program = torch.export.load(exported).module()
    x, pos = torch.randn(num_points, 10, 1), torch.rand(num_points, 2)
    query_pos = None if num_queries is None else torch.rand(num_queries, 2)
    with torch.no_grad():
        found = program(*program_inputs(forecaster, x, pos, query_pos))
        expected = forecaster(x, pos, query_pos=query_pos)
    assert expected.shape == (num_queries or num_points, 10, 1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert (expected - expected.mean(0)).abs().mean() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("dim", [2, 3])
def test_equals_the_model_on_graded_meshes(dim):
    """Latent coordinates are others than those of the points, and of each mesh."""
    random = np.random.default_rng(0)
    pos = [random.random((90, dim)) ** 5 for _ in range(8)]
    a = [np.exp(3 * random.normal(size=(90, 1))) for _ in pos]
    u = [np.sin(9 * each[:, :1, None]) for each in pos]
    box = Domain.unit(dim, periodic=False)
    data = nfsgeo.from_arrays(u, pos, static=a, static_names=["a"], domain=box)
    sizes = {"width": 8, "modes": 2, "depth": 1, "point_channels": 6, "messages": 5}
    sizes |= {"latent": True}
    settings = {f"model.settings.{key}": value for key, value in sizes.items()}
    settings |= {"trainer.epochs": 1, "trainer.logger": "none"}
    run = nfsgeo.fit(nfsgeo.prepare(data, settings), Path("graded"))
    program = torch.export.load(nfsgeo.export(run, Path("graded.pt2"))).module()
    forecaster = nfsgeo.load(run)
    x, places = torch.tensor(a[3])[:, None].float(), torch.tensor(pos[3])
    graphs = forecaster.connect(places)
    assert (graphs.latent - graphs.pos).abs().max() > 0.1
    for queries in (None, torch.rand(30, dim) ** 5):
        with torch.no_grad():
            found = program(*program_inputs(forecaster, x, places, queries))
            expected = forecaster(x, places, query_pos=queries)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(UserError, match="query_static for an exported program"):
        program_inputs(forecaster, x, places, query_static=x[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["gaps", "forcing", "times and forcing", "damped", "season", "boundary", "kernel"],
)
def test_programs_have_every_transform(kind):
    """Gaps, what is known ahead, lead times, damping, walls, and a kernel."""
    random = np.random.default_rng(0)
    u, pos = random.normal(size=(8, 40, 9)).cumsum(2), random.random((40, 2))
    if kind == "gaps":
        u[random.random(u.shape) < 0.2] = np.nan
    ring = [[[-1, -1], [2, -1], [2, 2], [-1, 2]]]
    walls = Region.polygons(ring, inside=True) if kind == "boundary" else None
    known = {"forcing": random.normal(size=u.shape)} if "forcing" in kind else {}
    domain = Domain((0, 0), (1, 1), (False, False), walls)
    if kind == "season":
        u = random.normal(size=(1, 40, 900)) + np.sin(np.arange(900) / 58)
    times = np.arange(u.shape[2]).astype("M8[D]" if kind == "season" else float)
    data = nfsgeo.from_arrays(u, pos, times, domain=domain, **known)
    small = {"width": 8, "modes": 2, "depth": 1, "grid": 8}
    settings = {f"model.settings.{key}": value for key, value in small.items()}
    settings |= {"data.n_in": 3, "data.n_out": 2, "trainer.epochs": 1}
    settings |= {"data.query_points": 0, "data.lead_times": "times" in kind}
    settings |= {"data.boundary_inputs": kind == "boundary"}
    forms = {"damped": "damped", "season": "linear"}
    settings |= {"model.prediction": forms.get(kind, "residual")}
    if kind == "kernel":  # the graph among the nodes is a constant of the program
        settings |= {"model.settings.kernel": "channel"}
    run = nfsgeo.fit(nfsgeo.prepare(data, settings), Path("run")).root
    program = torch.export.load(nfsgeo.export(run, Path("run.pt2"))).module()
    forecaster, given = nfsgeo.load(run), dict[str, torch.Tensor]()
    x = torch.randn(33, 3, 1)
    if kind == "gaps":
        x[::3, 1:] = torch.nan
        x[5] = torch.nan
    if kind == "season":
        given["times"] = 86400.0 * torch.arange(800, 805).double()
    if "times" in kind:
        given["times"] = torch.tensor([0.0, 1.0, 1.5, 2.75]).double()
    if "forcing" in kind:
        given["forcing"] = torch.randn(33, 4 if "times" in kind else 5, 1)
    pos, query_pos = torch.rand(33, 2), torch.rand(12, 2)
    for queries in (query_pos, None):
        with torch.no_grad():
            found = program(*program_inputs(forecaster, x, pos, queries, **given))
            expected = forecaster(x, pos, query_pos=queries, **given)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_arguments_have_the_types_of_the_program(forecaster):
    x, pos = torch.randn(40, 10, 1), torch.rand(40, 2)
    single = program_inputs(forecaster, x, pos)
    double = program_inputs(forecaster, x.double(), pos.double())
    for one, other in zip(single, double, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_names_the_models_that_export(waves, refuses):
    settings = {"model.name": "gcgru", "model.settings.width": 4, "trainer.epochs": 1}
    settings |= {"data.max_train": 2, "data.points": 16}
    other = nfsgeo.fit(nfsgeo.prepare(waves, settings), Path("gcgru"))
    refuses("a run of gcgru.*nfs", export_run, other.root, Path("no.pt2"))
    assert not Path("no.pt2").exists()


LOADED_ALONE = """
import sys, numpy, torch
program = torch.export.load(sys.argv[1]).module()
given = numpy.load(sys.argv[2], allow_pickle=False)
with torch.no_grad():
    out = program(*(torch.from_numpy(given[str(i)]) for i in range(len(given))))
numpy.save(sys.argv[3], out.numpy())
assert not [name for name in sys.modules if name.startswith(("nfsgeo", "torch_geo"))]
"""


@pytest.mark.slow
def test_runs_without_nfsgeo(exported, forecaster):
    x, pos = torch.randn(77, 10, 1), torch.rand(77, 2)
    inputs = program_inputs(forecaster, x, pos, torch.rand(31, 2))
    given, found = Path("given.npz"), Path("found.npy")
    np.savez(given, **{str(i): tensor.numpy() for i, tensor in enumerate(inputs)})
    script = [sys.executable, "-c", LOADED_ALONE, str(exported), str(given)]
    subprocess.run([*script, str(found)], check=True)
    with torch.no_grad():
        expected = forecaster(x, pos, query_pos=inputs[2])
    out = np.load(found, allow_pickle=False)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def run_of(model: str, waves: Path, folder: Path) -> Path:
    settings = {"model.name": model, "model.settings.width": 8}
    settings |= {"model.settings.grid": 8, "model.settings.depth": 1}
    settings |= {"trainer.epochs": 1, "trainer.device": "cpu", "data.n_out": 4}
    return nfsgeo.fit(nfsgeo.prepare(waves, settings), folder).root


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [n for n in MODELS if n.startswith("nfs") and n != WITHOUT_ONNX]
)
def test_onnx_equals_the_model_on_meshes_of_any_size(model, waves):
    pytest.importorskip("onnxscript", reason="the extra onnx")
    run = run_of(model, waves, Path("run"))
    runtime = pytest.importorskip("onnxruntime", reason="the extra onnx")
    file = nfsgeo.export(run, Path("run.onnx"), format="onnx")
    session = runtime.InferenceSession(file)
    forecaster = nfsgeo.load(run)
    for num_points, num_queries in ((64, 40), (200, None), (33, 150)):
        x, pos = torch.randn(num_points, 10, 1), torch.rand(num_points, 2)
        query_pos = None if num_queries is None else torch.rand(num_queries, 2)
        inputs = program_inputs(forecaster, x, pos, query_pos)
        names = [given.name for given in session.get_inputs()]
        assert names[:3] == ["x", "pos", "query_pos"]
        given = {n: t.numpy() for n, t in zip(names, inputs, strict=True)}
        (found,) = session.run(None, given)
        with torch.no_grad():
            expected = forecaster(x, pos, query_pos=query_pos)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_onnx_names_the_operator_that_it_lacks(waves, refuses):
    pytest.importorskip("onnxscript", reason="the extra onnx")
    run = run_of(WITHOUT_ONNX, waves, Path("run"))
    lacking = f"a run of {WITHOUT_ONNX}, which needs.*complex"
    refuses(lacking, export_run, run, Path("no.onnx"), format="onnx")
    assert not Path("no.onnx").exists()


def test_a_format_that_there_is_not(refuses):
    wanted = "format 'pt2': expected torch-export or onnx"
    refuses(wanted, export_run, "ns-small", Path("no.pt2"), format="pt2")
