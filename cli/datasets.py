"""`nfsgeo datasets`."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import click
from nfsgeo_cli.terminal import as_json, print_json, show

__all__ = ["datasets"]


@click.command(
    epilog="""\b
    Example:
      nfsgeo datasets --json
    """
)
@as_json
def datasets(as_json: bool) -> None:
    """List the equations that can be generated and the formats that can be read."""
    from nfsgeo.data.generation import EQUATIONS
    from nfsgeo.data.readers import READERS

    equations = [
        {"name": name, "about": _first_line(equation), "options": _options(equation)}
        for name, equation in EQUATIONS.items()
    ]
    formats = ["nfsgeo (.h5)", *(reader.NAME for reader in READERS)]
    if as_json:
        print_json({"equations": equations, "formats": formats})
        return
    from rich import box
    from rich.table import Table

    table = Table("equation", "what it is", "options", box=box.SIMPLE_HEAD)
    for row in equations:
        options = [f"{key}={value}" for key, value in row["options"].items()]
        table.add_row(row["name"], row["about"], "\n".join(options))
    show(table, " formats read", *(f"   {name}" for name in formats))


def _first_line(equation: Any) -> str:
    return (inspect.getdoc(equation) or "").partition("\n")[0]


def _options(equation: Any) -> dict[str, Any]:
    return {each.name: each.default for each in dataclasses.fields(equation)}
