"""`nfsgeo models` and `nfsgeo datasets`."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from textwrap import wrap
from typing import get_args

from nfsgeo.errors import UserError
from nfsgeo_cli.terminal import report, verb


@verb
def models(as_json: bool) -> None:
    """List the models.

    POINTS: takes irregular points. UNSEEN: works on meshes it was not trained on. The
    last columns are numbers of parameters at the paper's setting for Navier-Stokes:
    nfsgeo's and the paper's. Their sources are in the list of --json.

    Example:
      nfsgeo models --json
    """
    from nfsgeo.models import MODELS, PAPER_PARAMETERS, parameters_at_paper_setting
    from nfsgeo.plugins import load_plugins
    from nfsgeo.pretrained import NAMES

    line = "{:<14} {:<7} {:<7} {:>12} {:>12}".format
    load_plugins()
    heads = "name", "points", "unseen", "nfsgeo's", "paper's"
    rows, lines = [], ["parameters, paper's setting".rjust(56), line(*heads)]
    for name, model in MODELS.items():
        row = {"name": name, "points": model.points}
        row |= {"unseen_meshes": model.unseen_meshes, "source": model.source}
        paper, lacking = PAPER_PARAMETERS.get(name), list[str]()
        try:
            ours = f"{parameters_at_paper_setting(name):,}"
        except UserError as error:  # an extra that is not installed
            ours, lacking = "", [f"    {error.todo}"]
        rows.append(row | {"parameters_paper": paper})
        points = "yes" if model.points else "grids"
        unseen = "yes" if model.unseen_meshes else "no"
        counts = ours, f"{paper:,}" if paper else ""
        summary, *_ = (inspect.getdoc(model) or "").splitlines()
        lines += [
            line(name, points, unseen, *counts).rstrip(),
            f"    {summary}",
            *lacking,
        ]
    lines.append("parameters are those at the paper's setting for Navier-Stokes")
    lines.append(f"pretrained, for nfsgeo predict --model: {', '.join(NAMES)}")
    report(as_json, rows, *lines)


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
    from nfsgeo.plugins import load_plugins

    load_plugins()
    rows, lines = [], []
    for equation in EQUATIONS.values():
        row = {key: getattr(equation, key) for key in ("name", "title", "resolution")}
        row |= {"num_steps": equation.num_steps, "options": equation.model_dump()}
        rows.append(row)
        size, needs = "", " (pip install 'nfsgeo[fem]')"
        if all(map(find_spec, equation.needs)):
            shape = " x ".join(map(str, equation.shape(equation.resolution)))
            size, needs = f"{shape} points, ", ""
        steps = f"{equation.num_steps} time steps, " if equation.num_steps > 1 else ""
        lines.append(f"{equation.name}: {equation.title}")
        lines.append(f"    {size}{steps}{equation.samples} samples{needs}")
        for name, option in type(equation).model_fields.items():
            default = f"{name}={option.default}"
            lines.append(f"    --option {default:<18}{option.description}")
            if choices := get_args(option.annotation):
                lines.append(f"{'':31}one of {', '.join(choices)}")
    formats = [format.name for format in FORMATS]
    written = [writer.name for writer in WRITERS]
    for title, names in (("read", formats), ("written", written)):
        lines.append(f"\nformats {title}")
        for name in names:
            lines += wrap(name, 80, initial_indent=" " * 4, subsequent_indent=" " * 8)
    content = {"equations": rows, "formats": formats, "written": written}
    report(as_json, content, *lines)
