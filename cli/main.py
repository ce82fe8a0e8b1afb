"""The group of all commands."""

from __future__ import annotations

import click

from nfsgeo.version import __version__
from nfsgeo_cli.bench import bench
from nfsgeo_cli.compare import compare
from nfsgeo_cli.convert import convert
from nfsgeo_cli.datasets import datasets
from nfsgeo_cli.evaluate import evaluate
from nfsgeo_cli.export import export
from nfsgeo_cli.failures import OneLineErrors
from nfsgeo_cli.generate import generate
from nfsgeo_cli.info import info
from nfsgeo_cli.models import models
from nfsgeo_cli.plot import plot
from nfsgeo_cli.predict import predict
from nfsgeo_cli.train import train


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


for command in (
    train,
    evaluate,
    predict,
    export,
    plot,
    compare,
    generate,
    convert,
    info,
    models,
    datasets,
    bench,
):
    main.add_command(command)
