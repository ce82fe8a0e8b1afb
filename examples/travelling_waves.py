"""Waves that travel over a sphere, learned from points scattered over it.

Prints the error of `nfs` beside that of linear extrapolation in time, by how much a
rotation of the data changes it, and the error at the poles over that at the equator.
Rotated data are the same fields at rotated points. The data are made on the spot.

    python examples/travelling_waves.py
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from scipy.spatial.transform import Rotation

import nfsgeo
from nfsgeo.data.generation import generate
from nfsgeo.geometry import Domain

POINTS, STEPS_IN, STEPS_OUT = 300, 4, 8
SPHERE = Domain.sphere()

SETTINGS = {
    "model.name": "nfs",
    "model.settings": {"time": "channels"},
    "data.points": POINTS,
    "data.n_in": STEPS_IN,
    "data.n_out": STEPS_OUT,
    "data.query_points": 0,
    "trainer.epochs": 10,
    "trainer.device": "cpu",
}


def rotated(pos: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    """Longitudes and latitudes ``[n, 2]`` after a rotation."""
    x, y, z = rotation.apply(SPHERE.normalise(pos, torch.float64).numpy()).T
    degrees = np.rad2deg([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))])
    return SPHERE.wrap(torch.from_numpy(degrees.T))


def errors(
    run: nfsgeo.Run, file: nfsgeo.Fields, rotation: Rotation
) -> tuple[torch.Tensor, torch.Tensor]:
    """Absolute errors ``[samples, points, time steps]``, latitudes of the points."""
    forecaster, random = nfsgeo.load(run), np.random.default_rng(0)
    found, latitudes = [], []
    for sample in file.split["test"]:
        every = torch.from_numpy(file.coordinates(sample))
        area = np.cos(np.deg2rad(every[:, 1].numpy()))
        index = random.choice(len(every), POINTS, False, area / area.sum())
        fields = torch.from_numpy(file.read(sample, slice(0, STEPS_IN + STEPS_OUT)))
        x, truth = fields[index].split([STEPS_IN, STEPS_OUT], dim=1)
        pos = rotated(every[index], rotation)
        with torch.no_grad():
            found.append((forecaster(x, pos) - truth).abs()[..., 0])
        latitudes.append(pos[:, 1])
    return torch.stack(found), torch.stack(latitudes)


def main() -> None:
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "waves.nc"
        generate("sphere-waves", path, samples=100, resolution=32, num_steps=12)
        experiment = nfsgeo.prepare(path, SETTINGS)
        run = nfsgeo.fit(experiment, Path(folder) / "run")
        found = nfsgeo.evaluate(run)
        print(f"test MAE of nfs          {found['test']['mae']:.4f}")
        plain = found["baselines"]["linear_extrapolation"]["mae"]
        print(f"of linear extrapolation  {plain:.4f}", flush=True)
        with nfsgeo.open(path) as file:
            error, latitude = errors(run, file, Rotation.identity())
            changes = [
                errors(run, file, rotation)[0].mean() / error.mean() - 1
                for rotation in Rotation.random(8, random_state=0)
            ]
        largest = 100 * max(abs(float(change)) for change in changes)
        print(f"largest change of it by 8 rotations  {largest:.2f} %")
        bands = [latitude.abs() > 60, latitude.abs() < 20]
        poles, equator = (error.mean(2)[band].mean() for band in bands)
        print(f"at the poles, over that at the equator  {poles / equator:.3f}")


if __name__ == "__main__":
    main()
