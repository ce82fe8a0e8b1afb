"""The numbers of a run, as tables of text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nfsgeo.measures import MEASURES
from nfsgeo.report.curves import mean_and_spread
from nfsgeo.report.numbers import (
    bytes_text,
    count_text,
    decimals_for,
    error_text,
    finite,
    positive,
    seconds_text,
    with_unit,
)
from nfsgeo.report.run_folder import RunFolder

__all__ = [
    "component_tables",
    "error_table",
    "errors_of_methods",
    "facts",
    "flat",
    "settings_tables",
    "unseen_table",
    "verdict",
]

Row = dict[str, Any]


def facts(summary: Mapping[str, Any], *, steady: bool = False) -> list[tuple[str, str]]:
    """The run in a few numbers; a ``steady`` problem has no time steps."""
    n_in, n_out = summary.get("n_t"), summary.get("n_t_out")
    steps = ("time steps in → out", f"{count_text(n_in)} → {count_text(n_out)}")
    named = [
        ("points", count_text(summary.get("n_s"))),
        ("problem", "steady") if steady else steps,
        ("parameters", count_text(summary.get("parameters"))),
        ("epochs", count_text(summary.get("epochs"))),
        ("time per epoch", seconds_text(summary.get("seconds_per_epoch"))),
        ("peak memory", bytes_text(summary.get("peak_memory_bytes"))),
    ]
    return [(name, text) for name, text in named if set(text) - set("– →")]


def _methods(summary: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Errors of the model, and of every baseline, by the name shown."""
    methods: dict[str, Any] = {str(summary.get("model", "model")): summary.get("test")}
    for name, errors in (summary.get("baselines") or {}).items():
        label = "training mean" if name == "mean" else name.replace("_", " ")
        methods[label.capitalize()] = errors
    return {k: v for k, v in methods.items() if isinstance(v, Mapping) and v}


def error_table(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Test errors of the model and the baselines, the best of each column marked.

    Returns:
        ``measures``, the heads of the columns, and ``rows`` of a ``name`` and
        ``cells``; None where there is no error.
    """
    return errors_of_methods(_methods(summary))


def errors_of_methods(
    methods: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any] | None:
    """The table of :func:`error_table`, of errors by the name of a method."""
    measures = [m for m in MEASURES if any(m in errors for errors in methods.values())]
    if not measures:
        return None
    rows: list[Row] = [{"name": name, "cells": []} for name in methods]
    for measure in measures:
        values: list[Any] = [errors.get(measure) for errors in methods.values()]
        numbers = [v for v in map(finite, values) if v is not None]
        decimals = decimals_for(numbers)
        for row, value in zip(rows, values, strict=True):
            text = error_text(value, decimals)
            best = bool(numbers) and value == min(numbers)
            row["cells"].append({"text": text, "value": value, "best": best})
    return {"measures": [MEASURES[m] for m in measures], "rows": rows}


def component_tables(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The :func:`error_table` of each of several components, in its own unit.

    Each table has a ``title`` and the standard deviation ``std`` of the component.
    """
    tables: list[dict[str, Any]] = []
    for name, errors in (summary.get("components") or {}).items():
        baselines = errors.get("baselines")
        own = {"model": summary.get("model"), "test": errors, "baselines": baselines}
        if table := error_table(own):
            table["title"] = with_unit(name, errors.get("unit"))
            table["std"] = error_text(errors.get("std"))
            tables.append(table)
    return tables


def verdict(summary: Mapping[str, Any]) -> str | None:
    """How the model's error compares with the best of the baselines, in words."""
    (_, test), *others = list(_methods(summary).items()) or [("", {})]
    mae = positive(test.get("mae"))
    rivals = [(rival, name) for name, e in others if (rival := positive(e.get("mae")))]
    if not mae or not rivals or "test" not in summary:
        return None
    rival, name = min(rivals)
    factor, word = (rival / mae, "below") if rival >= mae else (mae / rival, "above")
    rival_name = name[0].lower() + name[1:]
    pooled = "Pooled test" if summary.get("components") else "Test"
    return (
        f"{pooled} MAE {error_text(mae)}: {factor:.2g} times {word} the best baseline, "
        f"{rival_name} ({error_text(rival)})."
    )


def unseen_table(run: RunFolder) -> list[Row]:
    """Errors on unseen meshes, a row for each size."""
    unseen = run.unseen
    if not {"factor", "mae"} <= unseen.keys():
        return []
    factors, mae, spread = mean_and_spread(unseen, "mae")
    seen = positive((run.summary.get("test") or {}).get("mae"))
    digits = decimals_for(mae)
    decimals = None if digits is None else digits + 1  # for the spread to show
    rows = []
    for i, factor in enumerate(factors):
        chosen = unseen["factor"] == factor
        row = {
            "factor": f"{factor:g}",
            "repeats": count_text(int(chosen.sum())),
            "mae": error_text(mae[i], decimals),
            "spread": error_text(spread[i], decimals),
            "ratio": f"{mae[i] / seen:.2f}" if seen else error_text(None),
        }
        for name in ("num_points", "mae_seen", "mae_unseen"):
            value = float(np.mean(unseen[name][chosen])) if name in unseen else None
            counts = name == "num_points"
            row[name] = count_text(value) if counts else error_text(value, digits)
        rows.append(row)
    return rows


def settings_tables(run: RunFolder) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Everything needed to repeat the run, as titled lists of names and values."""
    provenance = run.summary.get("provenance") or {}
    for title, content in (
        ("Configuration", run.config),
        ("Data", {"file": run.summary.get("data"), **provenance}),
        ("Environment", run.environment),
    ):
        rows = list(flat(content))
        if rows:
            yield title, rows


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Names and values of nested settings, as text."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    elif value is not None and value != []:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        yield name, text
