"""`nfsgeo generate`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import option, progress_bar, report, verb


@verb
@click.argument("equation", metavar="EQUATION|all")
@option("--out", Path, "File to make; a folder for all.", required=True)
@option("--samples", int, "Number of samples; by default the equation's own.")
@option(
    "--resolution",
    int,
    "Points along each axis; on meshes, squares along each side, mesh lines around a "
    "body, or parts of each edge of an icosahedron. By default the equation's own.",
)
@option(
    "--records num_steps",
    int,
    "Number of time steps to store; by default the equation's own.",
)
@option("--seed", int, "Seed of the initial conditions.", default=0)
@option(
    "--device", ["cpu", "cuda"], "On CUDA one process does the work.", default="cpu"
)
@option("--workers", int, "Number of processes.", default=os.cpu_count() or 1)
@option(
    "--option options",
    str,
    "KEY=VALUE of the equation; repeatable.",
    multiple=True,
)
def generate(
    equation: str, out: Path, options: tuple[str, ...], as_json: bool, **size: Any
) -> None:
    """Make a data set by simulation.

    An equation is solved from random initial conditions. Repeating the command
    continues a generation that was stopped. `all` makes a file for each equation in a
    folder, and keeps the files that exist. `nfsgeo datasets` lists the equations, their
    full sizes and their options. Elasticity and wake need scikit-fem (nfsgeo[fem]).

    Examples:
      nfsgeo generate navier-stokes --out ns.nc --samples 1200 --seed 0
      nfsgeo generate burgers --out b.nc --option nu=1e-3 --option time_stride=2
      nfsgeo generate all --out data
    """
    from nfsgeo.data.generation import generate as generate_file
    from nfsgeo.data.pde import EQUATIONS
    from nfsgeo.training import parse_settings

    chosen = parse_settings(options, "--option")
    if equation != "all":
        with progress_bar() as progress:
            generate_file(equation, out, options=chosen, progress=progress, **size)
        report(as_json, {"output": str(out)}, f"written  {out}")
        return
    if options:
        raise UserError(
            f"--option {options[0]} with all", "it with one equation", "make that alone"
        )
    out.mkdir(parents=True, exist_ok=True)
    lines, paths = [], [out / f"{name}.nc" for name in EQUATIONS]
    with progress_bar() as progress:
        for path, solver in zip(paths, EQUATIONS.values(), strict=True):
            lines.append(f"{'kept' if path.exists() else 'written':<9}{path}")
            if not path.exists():
                sizes = size if solver.spacing else size | {"num_steps": None}
                generate_file(solver.name, path, progress=progress, **sizes)
    report(as_json, {"output": [*map(str, paths)]}, *lines)
