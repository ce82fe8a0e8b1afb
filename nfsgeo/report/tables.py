"""Errors and settings of a run, as tables of text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from nfsgeo.measures import MEASURES
from nfsgeo.report.run_folder import RunFolder
from nfsgeo.report.text import (
    bytes_text,
    count_text,
    error_text,
    finite,
    seconds_text,
    with_unit,
)

__all__ = [
    "component_tables",
    "error_table",
    "facts",
    "flat",
    "methods_of",
    "settings_tables",
    "unseen_table",
    "verdict",
]

Errors = Mapping[str, Any]


def facts(run: RunFolder) -> list[tuple[str, str]]:
    """The run in a few numbers; a steady problem has no time steps."""
    summary = run.summary
    steps = f"{count_text(summary.get('n_t'))} → {count_text(summary.get('n_t_out'))}"
    named = {
        "points": count_text(summary.get("n_s")),
        "problem" if run.steady else "time steps in → out": (
            "steady" if run.steady else steps
        ),
        "parameters": count_text(summary.get("parameters")),
        "epochs": count_text(summary.get("epochs")),
        "time per epoch": seconds_text(summary.get("seconds_per_epoch")),
        "peak memory": bytes_text(summary.get("peak_memory_bytes")),
    }
    return [(name, text) for name, text in named.items() if set(text) - set("– →")]


def methods_of(summary: Errors) -> dict[str, Errors]:
    """Errors of the model, and of every baseline, by the name shown."""
    methods: dict[str, Any] = {str(summary.get("model", "model")): summary.get("test")}
    for name, errors in (summary.get("baselines") or {}).items():
        label = "training mean" if name == "mean" else name.replace("_", " ")
        methods[label.capitalize()] = errors
    return {k: v for k, v in methods.items() if isinstance(v, Mapping) and v}


def error_table(
    methods: Mapping[str, Errors],
    measures: Mapping[str, str] = MEASURES,
    mark: bool = True,
    **about: Any,
) -> dict[str, Any] | None:
    """Errors by the name of a method.

    Args:
        methods: What ``summary.json`` holds of each.
        measures: Heads of the columns by the name of an error.
        mark: Whether to mark the best of each column.
        about: More entries of the table: its ``title``, and the standard deviation
            ``std`` of the field.

    Returns:
        ``measures``, the heads of the columns, and ``rows`` of a ``name`` and
        ``cells``; None where there is no error.
    """
    shown = [m for m in measures if any(m in errors for errors in methods.values())]
    values = [[finite(e.get(m)) for m in shown] for e in methods.values()]
    if not shown:
        return None
    best = pd.DataFrame(values, dtype=float).min() if mark else [None] * len(shown)
    rows = [
        {
            "name": name,
            "cells": [
                {
                    "text": error_text(value),
                    "best": value is not None and value == least,
                }
                for value, least in zip(row, best, strict=True)
            ],
        }
        for name, row in zip(methods, values, strict=True)
    ]
    heads = [measures[measure] for measure in shown]
    return {"measures": heads, "rows": rows, "title": None, "std": None, **about}


def component_tables(summary: Errors) -> Iterator[dict[str, Any]]:
    """The :func:`error_table` of each of several components, in its own unit."""
    for name, errors in (summary.get("components") or {}).items():
        baselines = errors.get("baselines")
        own = {"model": summary.get("model"), "test": errors, "baselines": baselines}
        title = with_unit(name, errors.get("unit"))
        std = error_text(errors.get("std"))
        if table := error_table(methods_of(own), title=title, std=std):
            yield table


def verdict(summary: Errors) -> str | None:
    """How the model's error compares with the best of the baselines, in words."""
    test = summary.get("test")
    mae = finite(test.get("mae")) if isinstance(test, Mapping) else None
    others = {k: v for k, v in methods_of(summary).items() if v is not test}
    rivals = [(rival, k) for k, e in others.items() if (rival := finite(e.get("mae")))]
    if not mae or not rivals:
        return None
    rival, name = min(rivals)
    factor, word = (rival / mae, "below") if rival >= mae else (mae / rival, "above")
    pooled = "Pooled test" if summary.get("components") else "Test"
    return (
        f"{pooled} MAE {error_text(mae)}: {factor:.2g} times {word} the best baseline, "
        f"{name[0].lower() + name[1:]} ({error_text(rival)})."
    )


def unseen_table(run: RunFolder) -> dict[str, Any] | None:
    """The :func:`error_table` of unseen meshes: means over the repeats, by size."""
    if not {"factor", "mae"} <= set(run.unseen):
        return None
    means = run.unseen.groupby("factor").mean()
    rows = {
        f"{factor:g}\u2009×, {count_text(row.get('num_points'))} points": row
        for factor, row in means.iterrows()
    }
    measures = {
        "mae": "MAE",
        "mae_seen": "at training points",
        "mae_unseen": "at unseen points",
    }
    return error_table(rows, measures, mark=False)


def settings_tables(run: RunFolder) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Everything needed to repeat the run, as titled lists of names and values."""
    provenance = run.summary.get("provenance") or {}
    for title, content in (
        ("Configuration", run.config),
        ("Data", {"file": run.summary.get("data"), **provenance}),
        ("Environment", run.environment),
    ):
        if rows := list(flat(content)):
            yield title, rows


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Names and values of nested settings, as text."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    elif value is not None and value != []:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        yield name, text
