"""`nfsgeo generate`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import as_json, progress_bar, report

CORES = os.cpu_count() or 1


@click.command(
    epilog="""Equations, their full sizes and their options: nfsgeo datasets. Elasticity
    needs scikit-fem (nfsgeo[fem]).

    \b
    Examples:
      nfsgeo generate navier-stokes --out ns.nc --samples 1200 --seed 0
      nfsgeo generate burgers --out b.nc --option nu=1e-3 --option time_stride=2
      nfsgeo generate all --out data
    """,
)
@click.argument(
    "equation", metavar="burgers|kdv|darcy|navier-stokes|elasticity|sphere-waves|all"
)
@click.option("--out", type=Path, required=True, help="File to make; a folder for all.")
@click.option("--samples", type=int, help="How many.  [1200; of sphere-waves 240]")
@click.option(
    "--resolution",
    type=int,
    help="Points along each axis, of elasticity squares along each side.",
)
@click.option("--records", "num_steps", type=int, help="Time steps to store.")
@click.option("--seed", type=int, default=0, help="Seed of the initial fields.  [0]")
@click.option("--device", default="cpu", help="cpu or cuda.  [cpu]")
@click.option("--workers", type=int, default=CORES, help="Processes.  [all cores]")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Option of the equation; repeatable.",
)
@as_json
def generate(
    equation: str, out: Path, options: tuple[str, ...], as_json: bool, **size: Any
) -> None:
    """Make a data set by simulation.

    An equation is solved from random initial conditions. Repeating the command
    continues a generation that was stopped. `all` makes a file for each equation in a
    folder, and keeps the files that exist.
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
        for path, of in zip(paths, EQUATIONS.values(), strict=True):
            lines.append(f"{'kept' if path.exists() else 'written':<9}{path}")
            if not path.exists():
                its = size if of.spacing else size | {"num_steps": None}
                generate_file(of.name, path, progress=progress, **its)
    report(as_json, {"output": [*map(str, paths)]}, *lines)
