"""`nfsgeo models`."""

from __future__ import annotations

from nfsgeo.pretrained import NAMES
from nfsgeo_cli.terminal import report, verb


@verb
def models(as_json: bool) -> None:
    """List the models.

    POINTS: takes irregular points. UNSEEN: works on meshes it was not trained on. The
    last columns are numbers of parameters at the paper's setting for Navier-Stokes:
    nfsgeo's and the paper's. Below each model is where it comes from.

    Example:
      nfsgeo models --json
    """
    from nfsgeo.models import MODELS, PAPER_PARAMETERS, parameters_at_paper_setting

    line = "{:<14} {:<7} {:<7} {:>12} {:>12}".format
    rows, lines = [], [line("name", "points", "unseen", "parameters", "paper's")]
    for name, model in MODELS.items():
        row = {"name": name, "points": model.points}
        row |= {"unseen_meshes": model.unseen_meshes, "source": model.source}
        ours, paper = parameters_at_paper_setting(name), PAPER_PARAMETERS.get(name)
        rows.append(row | {"parameters_paper": paper})
        points = "yes" if model.points else "grids"
        unseen = "yes" if model.unseen_meshes else "no"
        counts = f"{ours:,}", f"{paper:,}" if paper else ""
        lines += [line(name, points, unseen, *counts).rstrip(), f"    {model.source}"]
    lines.append(f"pretrained, for nfsgeo predict --model: {', '.join(NAMES)}")
    report(as_json, rows, *lines)
