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
    from nfsgeo.models import MODELS, parameters_at_paper_setting

    columns = ("name", "points", "unseen_meshes", "source", "parameters_paper")
    rows = [{key: getattr(info, key) for key in columns} for info in MODELS.values()]
    line = "{:<14} {:<7} {:<7} {:>12} {:>12}".format
    lines = [line("name", "points", "unseen", "parameters", "paper's")]
    for info in MODELS.values():
        points = "yes" if info.points else "grids"
        unseen = "yes" if info.unseen_meshes else "no"
        ours, paper = parameters_at_paper_setting(info.name), info.parameters_paper
        counts = f"{ours:,}", f"{paper:,}" if paper else ""
        lines += [line(info.name, points, unseen, *counts), f"    {info.source}"]
    lines.append(f"pretrained, for nfsgeo predict --model: {', '.join(NAMES)}")
    report(as_json, rows, *lines)
