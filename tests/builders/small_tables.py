"""Small tables."""

import re
import shlex

import click
import numpy as np

from nfsgeo_cli.terminal import COLUMNS

R = np.random.default_rng(0)
P = R.random((5, 2)).round(3)


def lines(form: str, *loops) -> str:
    """A line for each value of all loops and each point."""
    grid = np.stack(np.meshgrid(*loops, range(5), indexing="ij"), -1)
    grid = grid.reshape(-1, len(loops) + 1)
    text = [form.format(*row[:-1], *P[int(row[-1])], u=k) for k, row in enumerate(grid)]
    return "\n".join([*text, ""])


def answer(message: str) -> dict:
    """The first answer of a question, as the command line reads it."""
    said = message.partition("--columns ")[2].partition(" (or train")[0]
    option = click.Option(["--columns"])
    said = " ".join(shlex.split(re.split(", or |; ", said)[0]))
    return COLUMNS.convert(said, option, None)


DAY = "2026-01-0{0}"
HOURS = "time,lon,lat,{},u\n"
Q = np.random.default_rng(5).random((24, 2)).round(4)


def stations(names: str, cells, hours: int = 6) -> str:
    """A table of 24 stations, with cells of station k at hour t, row n."""
    rows = [
        f"2026-01-01T{t:02}:00,{x},{y},{cells(k, t, 24 * t + k)},{np.sin(k + t):.3f}"
        for t in range(hours)
        for k, (x, y) in enumerate(Q)
    ]
    return "\n".join([HOURS.format(names).strip(), *rows, ""])
