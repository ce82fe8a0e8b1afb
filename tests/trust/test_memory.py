"""Memory of long trainings."""

import gc
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from nfsgeo.geometry import Domain
from nfsgeo.models import Problem, build_model

STEPS, MESHES, POINTS = 10_000, 1000, 12
MEBIBYTE = 2**20


def sizes_in_training() -> list[int]:
    """Resident bytes after every thousand steps, of which ten are on one mesh."""
    torch.manual_seed(0)
    problem = Problem(Domain.unit(1), 1, 1, 2, 2, POINTS, None, True)
    small = {"width": 4, "modes": 2, "time_modes": 1, "depth": 1, "grid": 8}
    model = build_model("nfs", problem, small)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    sizes = []
    for step in range(STEPS):
        if step % (STEPS // MESHES) == 0:
            pos, x = torch.rand(POINTS, 1), torch.randn(POINTS, 2, 1)
        optimiser.zero_grad()
        loss = model(x, pos).square().mean()
        loss.backward()
        optimiser.step()
        if step % 1000 == 999:
            gc.collect()
            pages = Path("/proc/self/statm").read_text().split()[1]
            sizes.append(4096 * int(pages))
    return sizes


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc")
def test_memory_is_steady_over_ten_thousand_steps():
    # In a process of its own: what other tests left to the allocator would count.
    command = [sys.executable, __file__]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    sizes = json.loads(found.stdout)
    # The first third fills the cache of graphs, and the allocator's pools.
    assert max(sizes[3:]) - sizes[2] < 8 * MEBIBYTE, sizes


LIMITED = """
import resource, sys
import nfsgeo.data
from nfsgeo.data import WindowDataset
from nfsgeo.data.meshes import random_subset

fields = nfsgeo.data.open(sys.argv[1])
sizes = open("/proc/self/statm").read().split()
room = 4096 * int(sizes[0]) + 2**26
resource.setrlimit(resource.RLIMIT_AS, (room, room))
mesh = random_subset(fields, 20, 0)
windows = WindowDataset(fields, range(fields.num_samples), 1, 1, mesh)
print(sum(float(item.y.sum()) for item in windows))
fields.write(sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only there")
def test_out_of_core_reading_and_writing(tmp_path):
    """64 MiB are enough for samples of 4 MiB, of a file of 160 MiB."""
    from small_fields import Array, build  # not there when this file is run alone

    path, again = tmp_path / "a.nc", tmp_path / "b.nc"
    u = np.broadcast_to(np.arange(40.0)[:, None, None], (40, 2, 2**18))
    axes = [np.arange(2.0**18)]
    build(path, [Array(u, "ntx", ["u"])], axes=axes, times=[0.0, 1.0]).write(path)
    command = [sys.executable, "-c", LIMITED, str(path), str(again)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]
    assert float(found.stdout) == 20 * np.arange(40).sum() and again.exists()


if __name__ == "__main__":
    print(json.dumps(sizes_in_training()))
