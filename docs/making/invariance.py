"""Tables of errors on other meshes, from the committed results.

``python docs/making/invariance.py`` prints what docs/mesh-invariance.md holds.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

__all__ = ["invariance_tables", "read_errors"]

CSV = Path(__file__).parents[2] / "benchmarks/results/cpu/invariance/results.csv"
PREFIX = "mae_unobserved_"
MESHES = ["off-grid", "nested-2", "nested-4", "disjoint", "half", "quarter"]
MESHES += ["clustered", "own", "noise-1", "noise-10"]
NOISE = ["seen", "noise-1", "noise-10"]
TITLES = {
    ("darcy-1024", "1"): "Darcy, 1024 points",
    ("burgers-512", "1"): "Burgers, 512 points, from one time step",
    ("burgers-512", "10"): "Burgers, 512 points",
    ("ns-1024", "10"): "Navier–Stokes, 1024 points",
    ("ns-4096", "10"): "Navier–Stokes, 4096 points",
}

# Observed and unobserved error by problem, mesh and seed.
Errors = Mapping[tuple[str, ...], tuple[float, float]]


def read_errors(path: Path = CSV) -> Errors:
    """Observed and unobserved MAE by PDE, input time steps, mesh and seed."""
    found = {}
    with open(path, newline="") as table:
        for row in csv.DictReader(table):
            pde = re.sub(r"-\d+-to-\d+$", "", row["problem"])
            for name, value in row.items():
                if name.startswith(PREFIX) and row["mae_" + name[len(PREFIX) :]]:
                    mesh = name[len(PREFIX) :]
                    pair = float(row[f"mae_{mesh}"]), float(value or "nan")
                    found[pde, row["n_t"], mesh, row["seed"]] = pair
    return found


def invariance_tables(errors: Errors) -> str:
    """Tables: errors on the training mesh, ratios on other meshes, noise, bounds."""
    head = ["", "seen", "grid", "over grid", "off-grid", "unobserved"]
    lines = [f"| {' | '.join(head)} |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for title, by_mesh in _rows(errors):
        seen, grid = by_mesh["seen"], by_mesh.get("equispaced", {})
        cells = [title, _spread(seen, 0), _spread(grid, 0)]
        away = by_mesh.get("off-grid", {})
        cells += [_shown(*pair) for pair in ((seen, grid, 0), (away, seen, 0))]
        cells.append(_shown(away, seen, 1))
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"| over `seen` | {' | '.join(f'`{mesh}`' for mesh in MESHES)} |"]
    lines.append("|---" + "|--:" * len(MESHES) + "|")
    for title, by_mesh in _rows(errors):
        cells = [_shown(by_mesh.get(mesh, {}), by_mesh["seen"], 0) for mesh in MESHES]
        lines.append(f"| {' | '.join([title, *cells])} |")
    lines += ["", f"| MAE | {' | '.join(f'`{mesh}`' for mesh in NOISE)} |"]
    lines.append("|---" + "|--:" * len(NOISE) + "|")
    for title, by_mesh in _rows(errors):
        cells = [_spread(by_mesh.get(mesh, {}), 0) for mesh in NOISE]
        lines.append(f"| {' | '.join([title, *cells])} |")
    return "\n".join([*lines, "", *_bounds(errors)])


BySeed = dict[str, tuple[float, float]]


class Bound(NamedTuple):
    """A bound on the ratio of an error of the default to another one."""

    name: str
    at_most: float
    mesh: str
    over_mesh: str = "seen"
    unobserved: bool = False
    one_step: tuple[bool, ...] = (False, True)


BOUNDS = (
    Bound("`off-grid` over `seen`", 1.05, "off-grid"),
    Bound("`unobserved` over `seen`", 1.1, "off-grid", unobserved=True),
    Bound("`nested-4` over `seen`", 1.05, "nested-4"),
    Bound("`disjoint` over `seen`", 1.05, "disjoint"),
    Bound("`quarter` over `seen`", 1.5, "quarter"),
    Bound("`clustered` over `seen`", 1.2, "clustered"),
    Bound("`seen` over `grid`", 1.05, "seen", "equispaced", one_step=(False,)),
    Bound("the same from one time step", 1.5, "seen", "equispaced", one_step=(True,)),
)


def _bounds(errors: Errors) -> list[str]:
    """The largest ratio of each kind, and the problem where it is."""
    lines = ["| ratio | at most | largest | in |", "|---|--:|--:|---|"]
    for bound in BOUNDS:
        found = []
        for title, by_mesh in _rows(errors):
            if ("one time step" in title) in bound.one_step:
                above, below = (
                    by_mesh.get(mesh, {}) for mesh in (bound.mesh, bound.over_mesh)
                )
                ratio = _ratio(above, below, int(bound.unobserved))
                found += [(ratio, title)] if ratio is not None else []
        if found:
            ratio, title = max(found)
            mark = "**" if ratio > bound.at_most else ""
            cells = [bound.name, f"{bound.at_most:g}", f"{mark}{ratio:.3f}{mark}"]
            lines.append(f"| {' | '.join([*cells, title])} |")
    return lines


def _rows(errors: Errors) -> list[tuple[str, dict[str, BySeed]]]:
    """Problem, and errors by mesh and seed."""
    found: dict[tuple[str, ...], dict[str, BySeed]] = defaultdict(dict)
    for (pde, n_in, mesh, seed), pair in errors.items():
        found[pde, n_in].setdefault(mesh, {})[seed] = pair
    return [
        (title, found[key]) for key, title in TITLES.items() if "seen" in found[key]
    ]


def _spread(by_seed: BySeed, which: int) -> str:
    values = [pair[which] for pair in by_seed.values()]
    if not values:
        return "–"
    spread = f" ± {stdev(values):.1e}" if len(values) > 1 else ""
    return f"{mean(values):.2e}{spread}"


def _ratio(above: BySeed, below: BySeed, which: int) -> float | None:
    """Ratio of the means over the seeds that both have."""
    seeds = above.keys() & below.keys()
    if not seeds:
        return None
    top = mean(above[seed][which] for seed in seeds)
    return top / mean(below[seed][0] for seed in seeds)


def _shown(above: BySeed, below: BySeed, which: int) -> str:
    ratio = _ratio(above, below, which)
    return "–" if ratio is None else f"{ratio:.2f}"


if __name__ == "__main__":
    print(invariance_tables(read_errors(*map(Path, sys.argv[1:]))))
