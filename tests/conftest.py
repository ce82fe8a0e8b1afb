"""Fixtures that all tests share."""

import multiprocessing
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_fields import Array, build
from torch import Tensor, nn

import nfsgeo.api
from nfsgeo.data import Fields
from nfsgeo.data.conventions import STATIC
from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.forecast.transforms import Transform
from nfsgeo.geometry import Domain, Graphs
from nfsgeo.models import Model, Problem, Task
from nfsgeo.training import RunPaths, covariance

# Where there are no finite elements, all other tests can still be collected.
if find_spec("skfem") is None:
    collect_ignore = [f"data/pde/test_{name}.py" for name in ("elasticity", "wake")]
    collect_ignore += ["packaging/test_docstrings.py"]

# Small tensors gain nothing from threads, and workers of pytest share the cores.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)

# The parameters of a covariance, which training fits where points are few, need not be
# the best; finding those takes seconds of every short run.
covariance.TRIALS = 20


@pytest.fixture(autouse=True)
def without_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of Python are evaluated and reported where a test asks for it, for time."""
    for option in ("report", "progress"):
        monkeypatch.setitem(nfsgeo.api.fit.__kwdefaults__, option, False)


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder and cache, and the same random numbers, for every test."""
    # The calls that seed devices later take milliseconds where there are none.
    cuda = torch.cuda.is_available()
    (torch.manual_seed if cuda else torch.default_generator.manual_seed)(0)
    cache = tmp_path.with_name(f"{tmp_path.name}-cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.chdir(tmp_path)


NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=[pytest.mark.cuda, NO_CUDA])])
def device(request: pytest.FixtureRequest) -> torch.device:
    """Every device that this machine has."""
    return torch.device(request.param)


@pytest.fixture(scope="session")
def refuses() -> Callable[..., None]:
    """Calls a function that must raise a UserError with such words, an expression."""

    def check(words: str, call: Callable[..., Any], *args: Any, **options: Any) -> None:
        with pytest.raises(UserError) as caught:
            call(*args, **options)
        line = caught.value.line
        del caught  # a cycle with this frame, which would keep files open
        assert re.search(words, line), line

    return check


@pytest.fixture
def one_line() -> Callable[..., str]:
    """Calls a function that must raise a UserError of one line, and returns it."""

    def call(function: Callable[..., Any], *args: Any, **options: Any) -> str:
        with pytest.raises(UserError) as caught:
            function(*args, **options)
        message: str = caught.value.line
        del caught
        assert message and "\n" not in message
        return message

    return call


@pytest.fixture(scope="session")
def sent() -> Callable[[Any], Any]:
    """What arrives in another process, such as a worker that loads data."""

    def through_a_queue(value: Any) -> Any:
        queue: Any = multiprocessing.Queue()
        queue.put(value)
        return queue.get(timeout=60)

    return through_a_queue


@pytest.fixture(scope="session")
def waves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty travelling waves on a periodic 16 x 16 grid, 24 time steps 0.25 apart."""
    path = tmp_path_factory.mktemp("data") / "waves.nc"
    axis, times = np.arange(16) / 16, 0.25 * np.arange(1, 25)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    random = np.random.default_rng(0)
    u = np.empty((20, 24, 16, 16), np.float32)
    for sample in range(20):
        k, size, phase = random.integers(1, 3, 2), random.normal(), random.random()
        turns = k[0] * x + k[1] * y - 0.1 * times[:, None, None] + phase
        u[sample] = size * np.sin(2 * np.pi * turns)
    facts: dict[str, Any] = {"equation": "waves", "provenance": {"seed": 0}}
    facts |= {"axes": [axis, axis], "times": times, "domain": Domain.unit(2)}
    return build(path, [Array(u, "ntxy", ["u"])], **facts).write(path)


TYPES = {"flag_values": np.array([0, 4, 5, 6]), "flag_meanings": "normal in out wall"}


@pytest.fixture(scope="session")
def around_bodies() -> Callable[..., Fields]:
    """Makes fields on meshes around discs, one for each sample, with types and cells.

    A ring of quadrilaterals around each; the inner ring is a wall, the outer one inflow
    on the left and outflow on the right. A wave decays away from the body.
    """

    def make(
        num: int = 10, *, steps: int = 8, types: bool = True, cells: bool = True
    ) -> Fields:
        random, angles = np.random.default_rng(0), 12
        t, where = 0.25 * np.arange(steps), list[Any]()
        for _ in range(num):
            rings = int(random.integers(4, 6))
            inner, centre = random.uniform(0.15, 0.3), random.uniform(-0.2, 0.2, 2)
            turn = 2 * np.pi * (np.arange(angles) + random.random()) / angles
            radius = np.geomspace(inner, 0.75, rings)[:, None]
            ring = np.stack([radius * np.cos(turn), radius * np.sin(turn)], -1)
            kind = np.zeros((rings, angles), int)
            kind[0], kind[-1] = 6, np.where(ring[-1, :, 0] < 0, 4, 5)
            numbers = np.arange(rings * angles).reshape(rings, angles)
            beside = np.roll(numbers, -1, axis=1)
            quads = [numbers[:-1], numbers[1:], beside[1:], beside[:-1]]
            phase = np.arctan2(ring[..., 1], ring[..., 0]).reshape(-1, 1) + t
            u = np.sin(phase) * (inner / radius).repeat(angles, 1).reshape(-1, 1)
            v = np.cos(phase) + 0.1 * kind.reshape(-1, 1)
            pos = (centre + ring).reshape(-1, 2)
            nodes = np.stack(quads, -1).reshape(-1, 4)
            fields = np.stack([u, v], -1).astype("f4")
            where.append((pos, kind.ravel(), {"quad": nodes}, fields))
        points, kinds, quads, u = map(list, zip(*where, strict=True))
        arrays = [Array(u, "ptc", ["u", "v"])]
        arrays += [Array(kinds, "p", ["node_type"], STATIC, TYPES)] * types
        domain = Domain((-1.0, -1.0), (1.0, 1.0), (False, False))
        more: dict[str, Any] = {"points": points, "times": t, "domain": domain}
        return build(Path("bodies"), arrays, cells=quads if cells else (), **more)

    return make


@pytest.fixture(scope="session")
def tiny() -> dict[str, Any]:
    """Overrides that make a run a matter of a second.

    Without query points, for which a covariance is fitted in seconds.
    """
    settings = {"width": 4, "modes": 2, "time_modes": 2, "depth": 1}
    settings |= {"grid": 8, "hidden": 8}
    chosen = {f"model.settings.{key}": value for key, value in settings.items()}
    return chosen | {
        "trainer.epochs": 3,
        "trainer.device": "cpu",
        "data.query_points": 0,
    }


@pytest.fixture(scope="session")
def trained(
    waves: Path, tiny: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of a small finished run on the waves, to be read alone."""
    chosen = tiny | {"trainer.epochs": 2, "data.query_points": 16}
    out = tmp_path_factory.mktemp("trained") / "run"
    return nfsgeo.fit(nfsgeo.prepare(waves, chosen), out).root


@pytest.fixture
def run(trained: Path) -> RunPaths:
    """A copy of that run, which a test may spoil."""
    return RunPaths(Path(shutil.copytree(trained, "run")).resolve())


class Formula(Model):
    """A network whose prediction is a function of its input and graphs."""

    def __init__(self, problem: Problem, formula: Callable[..., Tensor]) -> None:
        super().__init__(problem)
        self.formula = formula
        self.kind = nn.Parameter(torch.zeros(()))  # tells device and precision

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        return self.formula(x, graphs)

    def predict_forced(
        self, x: Tensor, graphs: Graphs, forcing: Tensor | None
    ) -> Tensor:
        self.forcing = forcing
        return self.predict(x, graphs)


@pytest.fixture(scope="session")
def forecaster_of() -> Callable[..., Forecaster]:
    """Puts a formula ``(x, graphs)`` behind transforms, in the place of a network.

    Of one field ``u`` on the box from 0 to 1 that is not periodic, from one time step
    to two, unless further arguments, fields of the task, say otherwise.
    """

    def make(
        formula: Callable[..., Tensor], *transforms: Transform, **fields: Any
    ) -> Forecaster:
        chosen: dict[str, Any] = {"domain": Domain.unit(2, periodic=False)}
        chosen |= {"components": ("u",), "n_in": 1, "n_out": 2, "num_points": 1}
        chosen |= fields
        n_in, n_out = chosen["n_in"], chosen["n_out"]
        task = Task(times=tuple(range(1 - n_in, n_out + 1)), **chosen)
        problem = task.problem()
        for transform in transforms:
            problem = transform.sizes(problem)
        return Forecaster(Formula(problem, formula), "nfs", task, transforms).eval()

    return make


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts an empty disk of a size, as ``8m``, where that may be done."""
    disks: list[Path] = []

    def mount(size: str) -> Path:
        folder = tmp_path / "disk"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("no file system can be mounted here")
        disks.append(folder)
        return folder

    yield mount
    for folder in disks:
        subprocess.run(["umount", str(folder)], check=True)
