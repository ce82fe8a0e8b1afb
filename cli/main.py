"""The group of all commands."""

from __future__ import annotations

from importlib import import_module

import click

from nfsgeo.version import __version__
from nfsgeo_cli.failures import OneLineErrors

# In the order of a workflow; each is a module of this package.
VERBS = (
    "train",
    "evaluate",
    "predict",
    "export",
    "plot",
    "compare",
    "generate",
    "convert",
    "info",
    "models",
    "datasets",
    "bench",
)


@click.group(
    cls=OneLineErrors,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="nfsgeo")
@click.pass_context
def main(context: click.Context) -> None:
    """Learn solution operators of PDEs on irregular points."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for verb in VERBS:
    main.add_command(getattr(import_module(f"nfsgeo_cli.{verb}"), verb))
