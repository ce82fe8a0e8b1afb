"""`nfsgeo models`."""

from __future__ import annotations

import click

from nfsgeo.pretrained import NAMES
from nfsgeo_cli.terminal import print_json


@click.command(
    epilog="""\b
    Example:
      nfsgeo models --json
    """
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def models(as_json: bool) -> None:
    """List the models.

    POINTS: takes irregular points. UNSEEN: works on meshes it was not trained on. The
    last columns are numbers of parameters at the paper's setting for Navier-Stokes:
    nfsgeo's and the paper's. Below each model is where it comes from.
    """
    from nfsgeo.models import MODELS, parameters_at_paper_setting

    columns = ("name", "points", "unseen_meshes", "source", "parameters_paper")
    rows = [{key: getattr(info, key) for key in columns} for info in MODELS.values()]
    if as_json:
        print_json(rows)
        return
    line = "{:<14} {:<7} {:<7} {:>12} {:>12}".format
    click.echo(line("name", "points", "unseen", "parameters", "paper's"))
    for row in rows:
        count = row["parameters_paper"]
        click.echo(
            line(
                row["name"],
                "yes" if row["points"] else "grids",
                "yes" if row["unseen_meshes"] else "no",
                f"{parameters_at_paper_setting(row['name']):,}",
                "" if count is None else f"{count:,}",
            ).rstrip()
        )
        click.echo(f"    {row['source']}")
    click.echo(f"pretrained, for nfsgeo predict --model: {', '.join(NAMES)}")
