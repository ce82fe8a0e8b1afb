"""`nfsgeo models`."""

from __future__ import annotations

import click

from nfsgeo.pretrained import NAMES
from nfsgeo_cli.terminal import print_json, show


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
    nfsgeo's and the paper's.
    """
    from nfsgeo.models import MODELS, parameters_at_paper_setting

    columns = ("name", "points", "unseen_meshes", "source", "parameters_paper")
    rows = [{key: getattr(info, key) for key in columns} for info in MODELS.values()]
    if as_json:
        print_json(rows)
        return
    from rich import box
    from rich.table import Table

    table = Table("name", "points", "unseen", "source", box=box.SIMPLE_HEAD)
    table.add_column("parameters", justify="right")
    table.add_column("paper's", justify="right")
    for row in rows:
        count = row["parameters_paper"]
        table.add_row(
            row["name"],
            "yes" if row["points"] else "grids",
            "yes" if row["unseen_meshes"] else "no",
            row["source"],
            f"{parameters_at_paper_setting(row['name']):,}",
            "" if count is None else f"{count:,}",
        )
    show(table, f"pretrained, for nfsgeo predict --model: {', '.join(NAMES)}")
