"""`nfsgeo datasets`."""

from __future__ import annotations

import click

from nfsgeo_cli.terminal import as_json, print_json


@click.command(
    short_help="List equations and file formats.",
    epilog="""\b
    Example:
      nfsgeo datasets --json
    """,
)
@as_json
def datasets(as_json: bool) -> None:
    """List the equations to generate and the formats to read and write."""
    from nfsgeo.data.equations import EQUATIONS
    from nfsgeo.data.formats import FORMATS

    equations = [
        {
            "name": equation.name,
            "title": equation.title,
            "resolution": equation.resolution,
            "records": equation.records,
            "options": {each.name: each.default for each in equation.options},
        }
        for equation in EQUATIONS.values()
    ]
    formats = [each.name for each in FORMATS if each.read is not None]
    written = [each.name for each in FORMATS if each.write is not None]
    if as_json:
        print_json({"equations": equations, "formats": formats, "written": written})
        return
    for equation in EQUATIONS.values():
        size = " x ".join(map(str, equation.shape(equation.resolution)))
        steps = f", {equation.records} time steps" if equation.records > 1 else ""
        click.echo(f"{equation.name}: {equation.title}")
        click.echo(f"    {size} points{steps}, {equation.samples} samples")
        for option in equation.options:
            default = f"{option.name}={option.default}"
            click.echo(f"    --option {default:<18}{option.help}")
            if option.choices:
                click.echo(f"{'':31}one of {', '.join(option.choices)}")
    click.echo("\nformats read\n    " + "\n    ".join(formats))
    click.echo("\nformats written\n    " + "\n    ".join(written))
