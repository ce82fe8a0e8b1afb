"""`nfsgeo info`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfsgeo.errors import UserError
from nfsgeo.pretrained import FOLDER, NAMES
from nfsgeo_cli.terminal import (
    error_table,
    listing,
    opened,
    opening_options,
    option,
    report,
    verb,
)

if TYPE_CHECKING:
    from nfsgeo.data import Fields
    from nfsgeo.data.conventions import Doubles
    from nfsgeo.training import RunPaths

LOOKED_AT = 8
SCORE = "best_model_score"  # in checkpoints of Lightning


@verb
@click.argument(
    "sources", metavar="FILE...|RUN|NAME", type=Path, nargs=-1, required=True
)
@opening_options
@option("--check", bool, "Read all values, and compare the files of a run.")
def info(sources: tuple[Path, ...], as_json: bool, check: bool, **options: Any) -> None:
    """Describe data files, a run folder or a pretrained model.

    With --check all values are read instead. Damage, or files of a run that do not
    belong together, end with one line and status 2.

    Examples:
      nfsgeo info ns.nc
      nfsgeo info flows --series samples
      nfsgeo info runs/x --json
      nfsgeo info --check ns.nc
      nfsgeo info ns-small
    """
    from nfsgeo.data.io.opening import files_of

    if str(source := sources[0]) in NAMES and not source.exists():
        sources = (source := FOLDER / source,)
    errors: list[str] = []
    file = opened(sources, options)
    if check:
        checked = _checked_run(source) if file is None else _checked_file(file)
        report(as_json, checked, listing(checked))
        return
    if file is None:
        facts = _run_facts(source)
        shown = facts | {"summary": None, **_shown_sizes(facts)}
        try:
            if "test" in facts["summary"]:
                errors = [error_table(facts["summary"])]
                shown |= _shown_points(facts)
        except Exception:  # whatever a damaged one lacks
            given, todo = f"{source / 'summary.json'}", "evaluate the run again"
            raise UserError(given, "a whole summary of a run", todo) from None
    else:
        with file:
            facts, times = _file_facts(file), file.times
        _, files, _ = files_of(sources)
        facts["files"] = [*map(str, files)] if len(files) > 1 else None
        shown = _shown_file(facts, times)
    names = {name: name.replace("records", "time steps") for name in shown}
    shown = {names[name].replace("_", " "): fact for name, fact in shown.items()}
    report(as_json, facts, listing(shown), *errors)


def _shown_sizes(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of time steps and epochs of a run, as they are printed."""
    (n_in, n_out), (done, planned) = facts["records"], facts["epochs"]
    return {"records": f"{n_in} in, {n_out} out", "epochs": f"{done} of {planned}"}


def _shown_points(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the number of points of a finished run that takes all of a sample."""
    from nfsgeo.report.text import points_text

    summary = facts["summary"]
    if facts["points"] != "all" or "scored" not in summary:
        return {}
    num = points_text(summary["n_s"], summary["scored"]["points"])
    return {"points": f"all, {num}"}


def _shown_file(facts: Mapping[str, Any], times: Doubles) -> dict[str, Any]:
    """Return the facts of a file as they are printed; None leaves one out."""
    import numpy as np

    from nfsgeo.data.times import span_text

    (first, last), unit, steps = facts["times"], facts["time_unit"], facts["records"]
    span = span_text(first, last, unit, np.diff(times).min(initial=np.inf))
    points, grid, empty = facts["points"], facts["grid"], facts["without_values"]
    some = "1 time step, " if len(empty) == 1 else f"{len(empty)} time steps, from "
    samples, num = facts["samples"], sum(facts["samples"].values())
    by_time = samples["train"] == num < len(samples) and steps > 1  # in training
    files, order = facts["files"] or [], facts["split"] == "file order"
    sizes = "in file order; train --set data.split=[0.8,0.1,0.1] sets the sizes"
    if by_time:
        samples = f"{num} series, split by time"
    elif order:
        parts = " + ".join(f"{n} {part}" for part, n in samples.items())
        samples = f"{num}{f', in training by default {parts}' * (num > 2)}"
    return {
        **facts,
        "samples": samples,
        "split": sizes if order and not by_time else None,
        "cells": {kind: _ends_text(ends) for kind, ends in facts["cells"].items()},
        "grid": grid and " x ".join(map(str, grid)),
        "points": points if isinstance(points, int) else _ends_text(points),
        "observed": None if facts["observed"] == steps else facts["observed"],
        "times": None if steps == 1 and not unit else span,
        "time_unit": None,
        "without_values": f"{some}{empty[0]}" if empty else None,
        "ranges": facts["ranges"] if num > 1 else None,
        "files": f"{len(files)}, from {files[0]} to {files[-1]}" if files else None,
    }


def _ends_text(ends: Sequence[int]) -> str:
    """Return the smallest and the largest number, or the only one."""
    return " to ".join(map(str, dict.fromkeys(ends)))


def _checked_file(file: Fields) -> dict[str, Any]:
    """Read all values of a file, by which their checksums are compared."""
    import h5py

    from nfsgeo.data.writers.netcdf import of_each_sample

    values = 0
    with file:
        for sample in range(file.num_samples):
            values += sum(part.size for *_, part in of_each_sample(file, sample))
        names, protected = map(str, file.dataset.variables), False
        if file.path.is_file() and h5py.is_hdf5(file.path):
            with h5py.File(file.path) as content:
                sets = [content[name] for name in names if name in content]
                protected = all(array.fletcher32 or not array.shape for array in sets)
    which = "of all values" if protected else "none known to nfsgeo"
    return {"whole": str(file.path), "values_read": values, "checksums": which}


def _checked_run(source: Path) -> dict[str, Any]:
    """Read all files of a run, and compare the weights and data that they are of."""
    import numpy as np

    from nfsgeo.report.run_folder import read_run_folder
    from nfsgeo.training import RunPaths, read_config
    from nfsgeo.training.artifacts import read_json
    from nfsgeo.training.checkpoints import own_checkpoint, read_checkpoint, restore

    paths = RunPaths.existing(source)
    read_run_folder(source)
    checkpoint = own_checkpoint(paths, paths.best)
    best = restore(paths.best, read_config(paths.config), checkpoint)
    weights: dict[Path, Any] = {paths.best: best.digest}
    weights[paths.summary] = read_json(paths.summary).get("weights")
    for path in filter(Path.exists, (paths.bands, paths.inputs)):
        weights[path] = read_checkpoint(path, check_model=False).get("weights")
    if paths.evaluation.exists():
        with np.load(paths.evaluation, allow_pickle=False) as arrays:
            weights[paths.evaluation] = str(arrays.get("weights", ""))
    elif "run" in checkpoint and paths.summary.exists():
        given, todo = f"{paths.evaluation}, which is gone", "evaluate the run again"
        raise UserError(given, "the predictions of summary.json", todo)
    digests = {path: digest for path, digest in weights.items() if digest}
    if len({*digests.values()}) > 1:
        given = f"{', '.join(map(str, digests))}, of different weights"
        todo = f"evaluate the run again: nfsgeo evaluate {source}"
        raise UserError(given, "results of the same weights", todo)
    if "run" in checkpoint:  # which those of earlier versions lack
        _check_training(paths, checkpoint["run"], best.task.fingerprint)
    files = [path for path in sorted(source.rglob("*")) if path.is_file()]
    return {
        "whole": str(source),
        "files": len(files),
        "weights": [*digests.values()][:1],
    }


def _check_training(paths: RunPaths, name: str, fingerprint: str) -> None:
    """Compare the configuration, last checkpoint and epochs of a run.

    Args:
        paths: The run.
        name: Its name, which its best checkpoint has.
        fingerprint: The data of its best checkpoint.

    Raises:
        UserError: One of them is gone, or of another run.
    """
    from nfsgeo.training import read_config
    from nfsgeo.training.artifacts import read_json
    from nfsgeo.training.checkpoints import own_checkpoint, restore
    from nfsgeo.training.trainer import read_history

    belongings, digest = read_json(paths.belongings), paths.config_digest()
    if belongings.get("run") != name:
        given, todo = f"{paths.belongings}, gone or damaged", "put it back"
        raise UserError(given, "the name of the run of its checkpoints", todo)
    if belongings.get("config", digest) != digest:
        given, todo = f"{paths.config}, changed since training", "put it back"
        raise UserError(given, "the configuration of the training", todo)
    config, last = read_config(paths.config), own_checkpoint(paths, paths.last)
    if restore(paths.last, config, last).task.fingerprint != fingerprint:
        given = f"{paths.last} of other data than {paths.best}"
        raise UserError(given, "checkpoints of one run", "use undamaged copies")
    rows = [r for r in read_history(paths.metrics) if r["epoch"] <= last["epoch"]]
    lowest = min((row["valid_rmse"] for row in rows), default=math.nan)
    states = last["callbacks"].values()
    (score,) = (float(state[SCORE]) for state in states if SCORE in state)
    # The linear forecast alone, before the first epoch, may be the best.
    before = config.model.prediction == "linear" and score <= lowest
    alike = before or math.isclose(score, lowest, rel_tol=1e-5)
    if len(rows) <= last["epoch"] or not alike:
        given = f"{paths.metrics} of other epochs than {paths.last}"
        raise UserError(given, "the epochs of this run", "use undamaged copies")


def _run_facts(source: Path) -> dict[str, Any]:
    """Collect settings, size and errors of a run."""
    from nfsgeo.report.run_folder import read_run_folder
    from nfsgeo.training import RunPaths, read_config

    config, run = read_config(RunPaths.existing(source).config), read_run_folder(source)
    card, data = source / "card.md", config.data
    grid = data.grid and run.summary.get("n_s", f"{data.grid} along each axis")
    facts = {
        "run": str(source),
        "model": config.model.name,
        "settings": config.model.settings,
        "data": str(data.file or run.summary.get("data")),
        "points": data.points or grid or "all",
        "records": [data.n_in, data.n_out],
        "epochs": [len(run.metrics), config.trainer.epochs],
        "seed": config.seed,
        "summary": run.summary,
    }
    return facts | ({"card": str(card)} if card.exists() else {})


def _file_facts(file: Fields) -> dict[str, Any]:
    """Collect sizes, ranges of the first few samples, and provenance of a file."""
    import numpy as np

    from nfsgeo.data.times import spacing_text, time_texts

    samples, names = range(file.num_samples), file.component_names + file.forcing_names
    looked_at, observed = samples[:LOOKED_AT], file.num_observed()
    values = np.concatenate([file.read_all(s, slice(None)) for s in looked_at])

    def statistics(name: str, last: int) -> dict[str, Any]:
        field = values[:, :last, names.index(name)]
        finite = field[~np.isnan(field)]
        facts: dict[str, Any] = {"unit": file.units.get(name)}
        for what in ("min", "max", "std"):
            facts[what] = float(getattr(finite, what)()) if finite.size else None
        return facts | {"missing": 1 - finite.size / field.size}

    sizes = sorted({file.num_points(s) for s in samples})
    cells: dict[str, list[int]] = {}
    for sample in looked_at:
        for kind, corners in file.cells(sample).items():
            cells.setdefault(kind, []).append(len(corners))
    empty = np.isnan(values[:, :observed, : file.components]).all(axis=(0, 2))
    return {
        "file": str(file.path),
        "equation": file.equation,
        "samples": {part: len(numbers) for part, numbers in file.split.items()},
        "split": "stored" if "part" in file.dataset else "file order",
        "grid": None if file.shape is None else list(file.shape),
        "points": sizes[0] if len(sizes) == 1 else [sizes[0], sizes[-1]],
        "meshes": len({*file.sample_mesh[[*samples]]}),
        "cells": {kind: [min(nums), max(nums)] for kind, nums in cells.items()},
        "domain": file.domain.box.to_dict(),
        "units": {n: file.units.get(n) for n in (*file.space, *file.input_names)},
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
