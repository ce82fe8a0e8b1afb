"""Heat in two chambers that a thin wall separates, but for a gap in it.

The temperatures of the chambers have nothing to do with each other at first, and the
wall lets no heat through. The same network learns them twice: told of the wall by the
region of the domain, and without. Errors are those at points that are not observed.
The data are made on the spot.

    python examples/two_chambers.py
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray
from scipy.sparse import coo_array, csc_array, eye_array
from scipy.sparse.linalg import splu

import nfsgeo
from nfsgeo.geometry import Domain, Region

SIZE, SAMPLES, STEPS = 32, 40, 10
CENTRES = (np.arange(SIZE) + 0.5) / SIZE
GAP = 0.75, 0.9  # The wall is open from here to there.
WALL = 0.498, 0.502  # It lies between two columns of cells.
BETWEEN = 1e-4  # Diffusivity times the time from one snapshot to the next.

BOX = Domain.unit(2, periodic=False)
BELOW, ABOVE = (
    [[WALL[0], low], [WALL[1], low], [WALL[1], high], [WALL[0], high]]
    for low, high in ((-0.1, GAP[0]), (GAP[1], 1.1))
)
CHAMBERS = replace(BOX, region=Region.polygons([BELOW, ABOVE]))

SETTINGS = {
    "model.name": "nfs",
    "data.points": 256,
    "data.query_points": 0,
    "data.n_in": 2,
    "data.n_out": STEPS - 2,
    "trainer.epochs": 6,
    "trainer.device": "cpu",
}


def laplacian(wall: bool = True) -> csc_array:
    """The five-point Laplacian of the cells, without flow through walls or sides."""
    number = np.arange(SIZE**2).reshape(SIZE, SIZE)
    across = [number[:-1], number[1:]]
    if wall:
        closed = (GAP[0] > CENTRES) | (GAP[1] < CENTRES)
        middle = np.zeros((SIZE - 1, SIZE), bool)
        middle[SIZE // 2 - 1] = closed
        across = [side[~middle] for side in across]
    left = np.concatenate([across[0].ravel(), number[:, :-1].ravel()])
    right = np.concatenate([across[1].ravel(), number[:, 1:].ravel()])
    flow = coo_array((np.ones(len(left)), (left, right)), (SIZE**2, SIZE**2))
    flow = flow + flow.T
    return csc_array((flow - eye_array(SIZE**2).multiply(flow.sum(1))) * SIZE**2)


def diffused(start: np.ndarray, operator: csc_array, substeps: int = 4) -> np.ndarray:
    """Snapshots ``[STEPS, n, N]`` from ``start [n, N]``, by an implicit method.

    The L-stable diagonally implicit Runge-Kutta method of two stages and order 2.
    """
    part = 1 - 0.5**0.5
    step = BETWEEN / substeps
    solve = splu(csc_array(eye_array(operator.shape[0]) - part * step * operator)).solve
    field, snapshots = start, [start]
    for _ in range(STEPS - 1):
        for _ in range(substeps):
            first = solve(operator @ field)
            second = solve(operator @ (field + (1 - part) * step * first))
            field = field + step * ((1 - part) * first + part * second)
        snapshots.append(field)
    return np.stack(snapshots)


def initial(random: np.random.Generator) -> np.ndarray:
    """Temperatures ``[n]``: a mean and some waves in each chamber, its own."""
    fields = []
    for _ in range(2):
        size = random.normal(size=(5, 5)) / (1 + np.add.outer(*[np.arange(5) ** 2] * 2))
        size[0, 0] *= 2
        waves = np.cos(np.pi * np.outer(CENTRES, np.arange(5)))
        fields.append(waves @ size @ waves.T)
    left = np.broadcast_to((CENTRES < 0.5)[:, None], fields[0].shape)
    return np.where(left, *fields).ravel()


def make(path: Path, domain: Domain) -> None:
    """Writes the data, with the wall or without it in the domain."""
    random = np.random.default_rng(0)
    start = np.stack([initial(random) for _ in range(SAMPLES)], axis=1)
    fields = diffused(start, laplacian())
    u = fields.reshape(STEPS, SIZE, SIZE, SAMPLES)
    dataset = xarray.Dataset(
        {"T": (("time", "x", "y", "sample"), u.astype(np.float32))},
        {"time": np.arange(float(STEPS)), "x": CENTRES, "y": CENTRES},
    )
    nfsgeo.from_xarray(dataset, domain=domain).write(path)


def main() -> None:
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for name, domain in (("with the wall", CHAMBERS), ("without", BOX)):
            path = Path(folder) / f"{name}.nc"
            make(path, domain)
            experiment = nfsgeo.prepare(path, SETTINGS)
            run = nfsgeo.fit(experiment, Path(folder) / name)
            error = nfsgeo.evaluate(run)["unobserved"]["mae"]
            print(f"test MAE {name:<15}{error:.5f}", flush=True)


if __name__ == "__main__":
    main()
