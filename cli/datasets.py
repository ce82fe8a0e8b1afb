"""`nfsgeo datasets`."""

from __future__ import annotations

from typing import get_args

from nfsgeo_cli.terminal import report, verb


@verb
def datasets(as_json: bool) -> None:
    """List equations and file formats.

    Equations are those of `nfsgeo generate`, formats those that are read and written.

    Example:
      nfsgeo datasets --json
    """
    from nfsgeo.data.io import FORMATS
    from nfsgeo.data.pde import EQUATIONS
    from nfsgeo.data.writers import WRITERS

    rows, lines = [], []
    for of in EQUATIONS.values():
        row = {key: getattr(of, key) for key in ("name", "title", "resolution")}
        rows.append(row | {"num_steps": of.num_steps, "options": of.model_dump()})
        size = " x ".join(map(str, of.shape(of.resolution)))
        steps = f", {of.num_steps} time steps" if of.num_steps > 1 else ""
        lines.append(f"{of.name}: {of.title}")
        lines.append(f"    {size} points{steps}, {of.samples} samples")
        for name, option in type(of).model_fields.items():
            default = f"{name}={option.default}"
            lines.append(f"    --option {default:<18}{option.description}")
            if choices := get_args(option.annotation):
                lines.append(f"{'':31}one of {', '.join(choices)}")
    formats = [each.name for each in FORMATS]
    written = [each.name for each in WRITERS]
    lines += ["\nformats read", *(f"    {name}" for name in formats)]
    lines += ["\nformats written", *(f"    {name}" for name in written)]
    found = {"equations": rows, "formats": formats, "written": written}
    report(as_json, found, *lines)
