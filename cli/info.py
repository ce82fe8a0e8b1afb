"""`nfsgeo info`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.pretrained import FOLDER, NAMES
from nfsgeo_cli.terminal import as_json, error_table, print_json, show

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.table import Table

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
@as_json
def info(source: Path, as_json: bool) -> None:
    """Show the content of a data file, a run folder or a pretrained model."""
    from nfsgeo.data.opening import is_source

    if str(source) in NAMES and not source.exists():
        source = FOLDER / source
    if source.is_dir() and not is_source(source):
        _show_run(source, as_json)
        return
    import nfsgeo.data

    with nfsgeo.data.open(source) as file:
        facts = _file_facts(file)
        if as_json:
            print_json(facts)
        else:
            show(_table(_for_reading(facts)))


def _file_facts(file: Fields) -> dict[str, Any]:
    """Sizes, ranges of the first few samples, and provenance."""
    import numpy as np

    looked_at = range(min(LOOKED_AT, file.num_samples))
    values = np.concatenate([file.read_all(s, slice(None)) for s in looked_at])
    observed, names = file.num_observed(), [*file.component_names, *file.forcing_names]
    ends = [observed] * file.components + [len(file.times)] * len(file.forcing_names)
    fields: dict[str, Any] = {
        name: {"unit": file.units.get(name)} | _statistics(values[:, : ends[c], c])
        for c, name in enumerate(names)
    }
    sizes = sorted({file.num_points(s) for s in range(file.num_samples)})
    return {
        "file": str(file.path),
        "equation": file.equation,
        "samples": {part: len(numbers) for part, numbers in file.split.items()},
        "grid": None if file.shape is None else list(file.shape),
        "points": sizes[0] if len(sizes) == 1 else [sizes[0], sizes[-1]],
        "meshes": len({file.mesh_id(s) for s in range(file.num_samples)}),
        "domain": replace(file.domain, region=None).to_dict(),
        "region": str(file.domain.region or "") or None,
        "records": len(file.times),
        "observed": observed,
        "times": [float(file.times[0]), float(file.times[-1])],
        "components": {name: fields[name] for name in file.component_names},
        "forcings": {name: fields[name] for name in file.forcing_names},
        "scalars": {
            name: [float(end(file.parameters[name])) for end in (np.min, np.max)]
            for name in file.scalar_names
        },
        "static": file.static_names,
        "time_unit": file.time_unit,
        "provenance": file.provenance,
    }


def _statistics(values: NDArray[Any]) -> dict[str, float | None]:
    """Of a component; None where all of its values are missing."""
    import numpy as np

    missing = np.isnan(values)
    if missing.any():
        values = values[~missing]
    names = ("min", "max", "std")
    found = {n: float(getattr(values, n)()) if values.size else None for n in names}
    return found | {"missing": float(missing.mean())}


def _for_reading(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts in words, without empty ones."""
    from nfsgeo.geometry import Domain

    domain, looked_at = facts["domain"], min(LOOKED_AT, sum(facts["samples"].values()))
    looked = f"in the first {looked_at} samples"
    observed, records = facts["observed"], facts["records"]
    words: dict[str, Any] = {
        "file": facts["file"],
        "equation": facts["equation"],
        "samples": facts["samples"],
        "fields": [*_lines(facts["components"]), looked],
        "forcings": [*_lines(facts["forcings"]), looked] * bool(facts["forcings"]),
        "scalars": [f"{n}  {_range(ends)}" for n, ends in facts["scalars"].items()],
        "static": facts["static"],
        "time steps": "no time"
        if records == 1
        else f"{records}, t = {_span_of_time(facts)}"
        + f", {observed} of them observed" * (observed < records),
    }
    if facts["grid"] is None:
        words |= {"points": _range(facts["points"]), "meshes": facts["meshes"]}
    else:
        words["grid"] = " x ".join(map(str, facts["grid"]))
    box = Domain.from_dict(domain)
    words["domain"] = [
        f"{box.span(axis)}{', periodic' * periodic}"
        for axis, periodic in enumerate(box.periodic)
    ]
    words["domain"] += ["longitude and latitude on a sphere"] * ("sphere" in domain)
    words["region"] = facts["region"]
    texts = {k: "\n".join(v) if isinstance(v, list) else v for k, v in words.items()}
    return {k: v for k, v in texts.items() if v} | facts["provenance"]


def _lines(fields: dict[str, Any]) -> list[str]:
    """A line for each field, with its unit and range."""
    named = {
        f"{name} ({of['unit']})" if of["unit"] else name: of
        for name, of in fields.items()
    }
    return [
        f"{name}  "
        + (
            "no value"
            if of["min"] is None
            else f"{of['min']:z.4g} to {of['max']:z.4g}, "
            f"standard deviation {of['std']:.4g}"
        )
        + (f", {100 * of['missing']:.3g} % missing" if of["missing"] else "")
        for name, of in named.items()
    ]


def _span_of_time(facts: dict[str, Any]) -> str:
    """First and last time, as dates where they were dates."""
    import numpy as np

    from nfsgeo.data.times import EPOCH

    if facts["time_unit"] != EPOCH:
        return _range(facts["times"])
    first, last = (np.datetime64(round(time), "s") for time in facts["times"])
    return f"{first} to {last} UTC"


def _range(ends: Any) -> str:
    """``a to b``, or one number if both are equal."""
    low, high = ends if isinstance(ends, list) else (ends, ends)
    return _text(low) if low == high else f"{_text(low)} to {_text(high)}"


def _show_run(source: Path, as_json: bool) -> None:
    from nfsgeo.evaluation.summary import read_summary
    from nfsgeo.training import RunPaths, read_config
    from nfsgeo.training.history import read_history

    paths = RunPaths.existing(source)
    config = read_config(paths.config)
    epochs = len(read_history(paths.metrics))
    summary = read_summary(paths)
    facts = {
        "run": str(source),
        "model": config.model.name,
        "settings": config.model.settings,
        "data": str(config.data.file or summary.get("data")),
        "points": config.data.points or config.data.grid or "all",
        "records": [config.data.n_in, config.data.n_out],
        "epochs": [epochs, config.trainer.epochs],
        "seed": config.seed,
        "summary": summary,
    }
    card = source / "card.md"
    if card.exists():
        facts["card"] = str(card)
    if as_json:
        print_json(facts)
        return
    words = {k.replace("records", "time steps"): v for k, v in facts.items()}
    if config.data.n_in == 0:
        words["time steps"] = "no time: a coefficient in, the solution out"
    del words["summary"]
    show(_table(words), *([error_table(summary)] if "test" in summary else []))


def _table(facts: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        text = _text(value)
        if isinstance(value, dict) and len(text) > 50:
            text = "\n".join(f"{key} {_text(inner)}" for key, inner in value.items())
        table.add_row(name, text)
    return table


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(inner)}" for key, inner in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)
