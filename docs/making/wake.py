"""Draws the animation of the README, from a run of ``nfs`` on ``wake``:

nfsgeo bench accuracy --scale cpu --only wake --only nfs --out wake
python docs/making/wake.py wake/runs/wake-nfs-seed0-* docs/wake.gif
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation
from PIL import Image

import nfsgeo
from nfsgeo.report.style import styled
from nfsgeo.training import read_config

STEPS = 40  # time steps of the rollout
COMPONENT = 1  # the velocity across the channel


def animate(run: Path, target: Path) -> None:
    """Write truth, rollout and error of the first test sample as a GIF.

    Args:
        run: The folder of the run.
        target: The file to make.
    """
    config = read_config(run / "config.yaml")
    data = nfsgeo.open(config.data.file)
    sample = int(data.split["test"][0])
    file = data[[sample]]
    ahead = nfsgeo.predict(run, file, first=0, steps=STEPS)
    at = np.searchsorted(data.times, ahead.times)
    truth = file.read(0, slice(None))[:, at, COMPONENT]
    prediction = ahead.read(0, slice(None))[:, :, COMPONENT]
    mesh = Triangulation(*file.coordinates(0).T, file.triangles(0))
    size = np.abs(truth).max()
    pictures = []
    with styled():
        for k, time in [*enumerate(ahead.times)][1::2]:
            error = prediction[:, k] - truth[:, k]
            share = np.linalg.norm(error) / np.linalg.norm(truth[:, k])
            figure = Figure(figsize=(7.2, 4.3), layout="constrained")
            rows = zip(
                figure.subplots(3, 1, sharex=True),
                (truth[:, k], prediction[:, k], error),
                (
                    f"simulation, t = {time:.2f}, and the {len(truth)} points seen",
                    f"nfs, {k + 1} steps after the last observation",
                    f"error of v, {100 * share:.0f} % in relative L2",
                ),
                strict=True,
            )
            for axes, values, title in rows:
                shown = axes.tripcolor(
                    mesh,
                    values,
                    shading="gouraud",
                    cmap="RdBu_r",
                    vmin=-size,
                    vmax=size,
                )
                axes.set_title(title, loc="left")
                # The hole of the mesh is the cylinder.
                axes.set(aspect="equal", yticks=[0, 0.4], ylabel="y", facecolor="0.4")
                axes.margins(0)
                if "points" in title:
                    axes.plot(mesh.x, mesh.y, "k.", ms=0.7, alpha=0.6)
            axes.set_xlabel("x")
            figure.colorbar(shown, ax=figure.axes, label="velocity v", shrink=0.6)
            figure.savefig(picture := io.BytesIO(), dpi=110)
            pictures.append(Image.open(picture).convert("P", palette=Image.ADAPTIVE))
    first, *more = pictures
    first.save(target, save_all=True, append_images=more, duration=250, loop=0)


if __name__ == "__main__":
    animate(Path(sys.argv[1]), Path(sys.argv[2]))
