"""Runs whose processes torchrun has started, as two machines of one process each."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nfsgeo
from nfsgeo.evaluation import evaluate_run
from nfsgeo.training import RunPaths
from nfsgeo.training.trainer import read_history

pytestmark = pytest.mark.slow

# Notes the samples that each process reads; the second has a loss that is not finite.
SPY = """
import os
from nfsgeo.data.windows import WindowDataset
from nfsgeo.training.losses import LOSSES, mse

read = WindowDataset.__getitem__

def noted(self, item):
    with open(f"reads.{os.environ['RANK']}", "a") as file:
        print(int(self.samples[item]), file=file)
    return read(self, item)

def spoilt(*arguments):
    return mse(*arguments) * (float("nan") if os.environ["RANK"] == "1" else 1)

WindowDataset.__getitem__ = noted
LOSSES["spoilt"] = spoilt
"""


class Nodes:
    """Two agents of torchrun, which both run `nfsgeo train`."""

    def __init__(self, *options: str) -> None:
        Path("spy.py").write_text(SPY)
        with socket.socket() as free:
            free.bind(("localhost", 0))
            place = f"localhost:{free.getsockname()[1]}"
        command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2"]
        command += ["--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-id=two"]
        command += [f"--rdzv-endpoint={place}", "-m", "nfsgeo", "train", *options]
        self.agents = []
        for number in range(2):
            with open(f"node{number}", "w") as file:
                self.agents.append(subprocess.Popen(command, stderr=file, stdout=file))

    def kill(self, rank: int) -> None:
        """Kill the process of a rank, as the loss of a machine would."""
        for agent in self.agents:
            listed = ["pgrep", "-P", str(agent.pid)]
            found = subprocess.run(listed, capture_output=True, text=True)
            for number in found.stdout.split():
                environment = Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
                if f"RANK={rank}".encode() in environment:
                    os.kill(int(number), signal.SIGKILL)

    def ended(self) -> tuple[bool, list[str]]:
        """Wait; whether all went well, and the lines of nfsgeo, without torchrun's."""
        well = [agent.wait(240) == 0 for agent in self.agents]
        texts = (Path(f"node{k}").read_text(errors="replace") for k in range(2))
        lines = [line for text in texts for line in text.splitlines()]
        ours = ("Error:", "model ", "epoch ", "report ", "To continue")
        return all(well), [line for line in lines if line.startswith(ours)]


@pytest.fixture
def options(waves: Path, tiny: dict[str, Any]) -> Callable[..., list[str]]:
    """Makes options of a run with two of eight samples in each step of each node."""
    chosen = tiny | {"data.file": waves, "data.split": [8, 4, 8], "data.batch_size": 2}
    chosen |= {"trainer.epochs": 2, "trainer.num_nodes": 2}

    def make(out: str, **others: Any) -> list[str]:
        settings = (f"{key}={value}" for key, value in (chosen | others).items())
        sets = [word for setting in settings for word in ("--set", setting)]
        return ["--import", "spy.py", "--out", out, *sets]

    return make


def rows(folder: str) -> list[dict[str, float]]:
    """The history but for the times."""
    history = read_history(RunPaths(Path(folder)).metrics)
    return [{k: v for k, v in row.items() if k != "seconds"} for row in history]


def test_two_nodes_take_the_steps_of_one_process(train, options):
    well, said = Nodes(*options("two")).ended()
    assert well and len(said) == 4, said
    # Half the training and validation samples in each epoch, and none before.
    reads = [Path(f"reads.{rank}").read_text().split() for rank in range(2)]
    assert len(reads[1]) == 2 * (4 + 2) < len(reads[0])
    chosen = {"data.split": [8, 4, 8], "data.batch_size": 4, "trainer.epochs": 2}
    one = train("one", chosen)
    for alone, together in zip(one.rows(), rows("two"), strict=True):
        assert together == pytest.approx(alone, rel=1e-5)
    scores = [evaluate_run(Path(run))["test"] for run in ("one", "two")]
    assert scores[0] == pytest.approx(scores[1], rel=1e-4)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_node_is_lost_and_the_run_goes_on(train, options, rank):
    nodes = Nodes(*options("run", **{"trainer.epochs": 24}))
    metrics = RunPaths(Path("run")).metrics
    until = time.monotonic() + 120
    while len(read_history(metrics)) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    nodes.kill(rank)
    well, said = nodes.ended()
    assert not well and 3 <= len(rows("run")) < 24
    errors = [line for line in said if "To continue: nfsgeo train --resume run" in line]
    assert len(errors) == 1 and errors == [s for s in said if s[0] in "ET"], said
    well, said = Nodes("--resume", "run").ended()
    assert well, said
    chosen = {"data.split": [8, 4, 8], "data.batch_size": 4, "trainer.epochs": 24}
    for whole, resumed in zip(train("one", chosen).rows(), rows("run"), strict=True):
        assert resumed == pytest.approx(whole, rel=1e-3)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"loss.name": "spoilt"}, "loss nan in epoch 0 on samples"),
        ({"trainer.devices": 2}, "devices=2 with trainer.num_nodes=2: expected 2"),
    ],
)
def test_one_process_says_what_is_wrong(options, others, words):
    well, said = Nodes(*options("run", **others)).ended()
    errors = [line for line in said if line.startswith("Error")]
    assert not well and len(errors) == 1 and words in errors[0]


def test_nodes_are_started_from_outside(waves, tiny, refuses):
    refuses("torchrun or srun", nfsgeo.prepare, waves, tiny | {"trainer.num_nodes": 2})
