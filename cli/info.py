"""`nfsgeo info`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo.pretrained import FOLDER, NAMES
from nfsgeo_cli.terminal import as_json, columns, error_table, listing, report

if TYPE_CHECKING:
    from nfsgeo.data import Fields

LOOKED_AT = 8


@click.command(
    short_help="Describe a file, a run or a pretrained model.",
    epilog="""\b
    Examples:
      nfsgeo info ns.nc
      nfsgeo info runs/x --json
      nfsgeo info ns-small
    """,
)
@click.argument("source", metavar="FILE|RUN|NAME", type=Path)
@click.option(
    "--columns", callback=columns, metavar="ROLE=NAME,...", help="As in convert."
)
@as_json
def info(source: Path, columns: Any, as_json: bool) -> None:
    """Describe a data file, a run folder or a pretrained model."""
    import nfsgeo.data
    from nfsgeo.data.opening import is_source
    from nfsgeo.data.times import span_text

    if str(source) in NAMES and not source.exists():
        source = FOLDER / source
    errors: list[str] = []
    if source.is_dir() and not is_source(source):
        facts, errors = _run_facts(source)
        shown = facts | {"summary": None}
    else:
        with nfsgeo.data.open(source, columns=columns) as file:
            facts = _file_facts(file)
        first, last = facts["times"]
        span = span_text(first, last, facts["time_unit"])
        empty = facts["without_values"]
        few = f"{len(empty)} time steps, the first {empty[0]}" if empty else ""
        shown = facts | {"times": span, "time_unit": None, "without_values": few}
    names = {name: name.replace("records", "time steps") for name in shown}
    shown = {names[name].replace("_", " "): of for name, of in shown.items()}
    report(as_json, facts, listing(shown), *errors)


def _run_facts(source: Path) -> tuple[dict[str, Any], list[str]]:
    """Settings and size of a run, and its errors as a table, if there are any."""
    from nfsgeo.training import RunPaths, read_config
    from nfsgeo.training.history import read_history

    paths = RunPaths.existing(source)
    config, summary, errors = read_config(paths.config), {}, []
    try:
        if paths.summary.exists():
            summary = dict(json.loads(paths.summary.read_text()))
            errors = [error_table(summary)] if "test" in summary else []
    except Exception:  # whatever a damaged one lacks
        raise UserError(
            f"{paths.summary}", "a whole summary of a run", "evaluate it again"
        ) from None
    card = source / "card.md"
    facts = {
        "run": str(source),
        "model": config.model.name,
        "settings": config.model.settings,
        "data": str(config.data.file or summary.get("data")),
        "points": config.data.points or config.data.grid or "all",
        "records": [config.data.n_in, config.data.n_out],
        "epochs": [len(read_history(paths.metrics)), config.trainer.epochs],
        "seed": config.seed,
        "summary": summary,
    }
    return facts | ({"card": str(card)} if card.exists() else {}), errors


def _file_facts(file: Fields) -> dict[str, Any]:
    """Sizes, ranges of the first few samples, and provenance."""
    import numpy as np

    from nfsgeo.data.times import spacing_text, time_texts

    def statistics(name: str, last: int) -> dict[str, Any]:
        of = values[:, :last, names.index(name)]
        known = of[~np.isnan(of)]
        found: dict[str, Any] = {"unit": file.units.get(name)}
        for what in ("min", "max", "std"):
            found[what] = float(getattr(known, what)()) if known.size else None
        return found | {"missing": 1 - known.size / of.size}

    samples, names = range(file.num_samples), file.component_names + file.forcing_names
    looked_at = samples[:LOOKED_AT]
    values = np.concatenate([file.read_all(s, slice(None)) for s in looked_at])
    sizes = sorted({file.num_points(s) for s in samples})
    observed = file.num_observed()
    fields = values[:, :observed, : file.components]
    empty = np.isnan(fields).all(axis=(0, 2))
    return {
        "file": str(file.path),
        "equation": file.equation,
        "samples": {part: len(numbers) for part, numbers in file.split.items()},
        "grid": None if file.shape is None else list(file.shape),
        "points": sizes[0] if len(sizes) == 1 else [sizes[0], sizes[-1]],
        "meshes": len({file.mesh_id(s) for s in samples}),
        "domain": file.domain.box.to_dict(),
        "region": str(file.domain.region or "") or None,
        "records": len(file.times),
        "observed": observed,
        "times": file.times[[0, -1]].tolist(),
        "time_step": spacing_text(file.times, file.time_unit),
        "without_values": time_texts(file.times[:observed][empty], file.time_unit),
        "components": {n: statistics(n, observed) for n in file.component_names},
        "forcings": {n: statistics(n, len(file.times)) for n in file.forcing_names},
        "scalars": {
            name: [float(end(file.parameters[name])) for end in (np.min, np.max)]
            for name in file.scalar_names
        },
        "ranges": f"in the first {len(looked_at)} samples",
        "static": file.static_names,
        "time_unit": file.time_unit,
        "provenance": file.provenance,
    }
