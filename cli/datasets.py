"""`nfsgeo datasets`."""

from __future__ import annotations

import click

from nfsgeo_cli.terminal import as_json, report


@click.command(
    epilog="""\b
    Example:
      nfsgeo datasets --json
    """
)
@as_json
def datasets(as_json: bool) -> None:
    """List equations and file formats.

    Equations are those of `nfsgeo generate`, formats those that are read and written.
    """
    from nfsgeo.data.equations import EQUATIONS
    from nfsgeo.data.formats import FORMATS

    rows, lines = [], []
    for of in EQUATIONS.values():
        row = {key: getattr(of, key) for key in ("name", "title", "resolution")}
        options = {each.name: each.default for each in of.options}
        rows.append(row | {"records": of.records, "options": options})
        size = " x ".join(map(str, of.shape(of.resolution)))
        steps = f", {of.records} time steps" if of.records > 1 else ""
        lines.append(f"{of.name}: {of.title}")
        lines.append(f"    {size} points{steps}, {of.samples} samples")
        for option in of.options:
            default = f"{option.name}={option.default}"
            lines.append(f"    --option {default:<18}{option.help}")
            if option.choices:
                lines.append(f"{'':31}one of {', '.join(option.choices)}")
    formats = [each.name for each in FORMATS if each.read is not None]
    written = [each.name for each in FORMATS if each.write is not None]
    lines += ["\nformats read", *(f"    {name}" for name in formats)]
    lines += ["\nformats written", *(f"    {name}" for name in written)]
    found = {"equations": rows, "formats": formats, "written": written}
    report(as_json, found, *lines)
