"""Trains small networks for the gallery of the site:  python docs/making/gallery.py

Each case is learned in a minute or two on one core; its picture is that of the run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial import KDTree

import nfsgeo
from nfsgeo.data.fields import Fields
from nfsgeo.data.generation import generate
from nfsgeo.geometry import Domain, Region
from nfsgeo.report import write_report

__all__ = ["draw"]

Array = NDArray[np.float64]
SAMPLES = 60
RANDOM = np.random.default_rng(0)


def cylinder(folder: Path) -> Fields:
    """Speed of the potential flow around a cylinder, from the undisturbed velocity.

    The stream comes from any direction, with any circulation around the cylinder.
    """
    ring = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    circle = 0.5 * np.column_stack([np.cos(ring), np.sin(ring)])
    box = Domain((-2.0, -1.5), (2.0, 1.5), (False, False))
    domain = replace(box, region=Region.polygons([circle]))
    pos = RANDOM.uniform(box.lower, box.upper, (1200, 2))
    pos = pos[np.linalg.norm(pos, axis=1) > 0.505][:700]
    z = pos @ [1, 1j]
    angle, circulation = RANDOM.uniform([-0.6, -2], [0.6, 2], (SAMPLES, 2)).T
    turn = np.exp(1j * angle)[:, None]
    flow = turn.conj() - 0.25 * turn / z**2
    flow = flow - 1j * circulation[:, None] / (2 * np.pi * z)
    inputs = np.stack([angle, circulation], axis=1)[:, None].repeat(len(pos), axis=1)
    return nfsgeo.from_arrays(
        np.abs(flow),
        pos,
        static=inputs,
        domain=domain,
        component_names=["speed"],
        static_names=["angle", "circulation"],
        units={"speed": "m/s", "x": "m", "y": "m"},
    )


def sphere(folder: Path) -> Fields:
    """Waves that travel over a sphere."""
    target = folder / "waves.nc"
    generate("sphere-waves", target, samples=SAMPLES, records=8)
    return nfsgeo.data.open(target)


def body(points: Array) -> Array:
    """Below 1 inside of a body with a cabin, ``[n]``."""
    hull = np.abs(points / [2.2, 0.85, 0.42]) ** 6
    cabin = np.abs((points - [-0.2, 0.0, 0.45]) / [1.2, 0.75, 0.55]) ** 4
    return np.minimum(hull.sum(1) ** (1 / 6), cabin.sum(1) ** (1 / 4))


def slope(points: Array) -> Array:
    """Gradient of :func:`body`, ``[n, 3]``."""
    steps = 1e-5 * np.eye(3)
    return np.stack([body(points + h) - body(points - h) for h in steps], 1) / 2e-5


def surface(folder: Path) -> Fields:
    """A pressure coefficient on the surface of a car-like body, from the wind.

    It is that of Newton's law of impact: the square of the cosine between the wind and
    the normal where the wind meets the surface, and a small suction elsewhere.
    """
    points = RANDOM.uniform([-2.4, -1.0, -0.6], [2.4, 1.0, 1.2], (20000, 3))
    for _ in range(30):
        gradient = slope(points)
        away = (body(points) - 1) / np.maximum((gradient**2).sum(1), 1e-6)
        points = points - 0.7 * away[:, None] * gradient
    points = points[np.abs(body(points) - 1) < 1e-4]
    near = KDTree(points).query_pairs(0.11, output_type="ndarray")
    kept = np.ones(len(points), bool)
    for one, other in near[np.lexsort(near.T[::-1])]:
        kept[other] &= ~kept[one]
    points = points[kept]
    normal = slope(points)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    yaw = RANDOM.uniform(-0.7, 0.7, SAMPLES)
    wind = np.stack([np.cos(yaw), np.sin(yaw), np.zeros_like(yaw)], axis=1)
    towards = wind @ normal.T
    pressure = np.where(towards > 0, towards**2, 0.3 * towards)
    return nfsgeo.from_arrays(
        pressure,
        points,
        static=wind[:, None, :2].repeat(len(points), axis=1),
        component_names=["pressure coefficient"],
        static_names=["wind along x", "wind along y"],
        units={"x": "m", "y": "m", "z": "m"},
    )


def stations(folder: Path) -> Fields:
    """Temperature at stations: a daily cycle, fronts that pass, and gaps."""
    pos = RANDOM.uniform(0, [800, 500], (180, 2))
    hours = np.arange(0.0, 24 * 40, 3)
    direction = RANDOM.normal(size=(6, 2)) / 180
    phase, speed = RANDOM.uniform(0, 6, (2, 6, 1, 1))
    fronts = np.cos(
        (pos @ direction.T).T[:, :, None] + phase - (1 + speed) * hours / 24
    )
    daily = 4 * np.cos(2 * np.pi * (hours - 15) / 24)
    u = 12 + daily + 2 * fronts.sum(0)
    u[RANDOM.random(u.shape) < 0.1] = np.nan
    return nfsgeo.from_arrays(
        u[None],
        pos,
        hours,
        component_names=["temperature"],
        units={"temperature": "°C", "x": "km", "y": "km", "time": "h"},
    )


STEADY = {"data.mesh": "all", "trainer.epochs": 40}
CASES: dict[str, tuple[Callable[[Path], Fields], dict[str, object]]] = {
    "cylinder": (cylinder, STEADY),
    "sphere": (sphere, {"data.points": 300, "data.n_in": 4, "data.n_out": 4}),
    "surface": (surface, STEADY | {"model.name": "transolver"}),
    "stations": (
        stations,
        {"data.n_in": 8, "data.n_out": 8, "data.window_stride": 1, "data.mesh": "all"},
    ),
}


def draw(folder: Path, only: tuple[str, ...] = ()) -> None:
    """Write a picture of each case into ``folder``."""
    for name, (make, chosen) in CASES.items():
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as work:
            settings = {"trainer.epochs": 8, "trainer.device": "cpu"} | chosen
            experiment = nfsgeo.prepare(make(Path(work)), settings)
            run = Path(work) / "run"
            errors = nfsgeo.evaluate(nfsgeo.fit(experiment, run))["test"]
            print(f"{name}: relative L2 {errors['rel_l2']:.3f}")
            write_report(run)
            picture = sorted((run / "figures").glob("fields-*.png"))[0]
            with Image.open(picture) as whole:
                size = whole.width * 2 // 3, whole.height * 2 // 3
                small = whole.convert("RGB").resize(size, Image.Resampling.LANCZOS)
            small.quantize(256, Image.Quantize.MAXCOVERAGE).save(
                folder / f"gallery-{name}.png", optimize=True
            )


if __name__ == "__main__":
    draw(Path(__file__).parents[1] / "pictures", tuple(sys.argv[1:]))
