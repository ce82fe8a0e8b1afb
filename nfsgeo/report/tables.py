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
    "cost",
    "error_table",
    "facts",
    "flat",
    "methods_of",
    "settings_tables",
    "unobserved_table",
    "verdict",
]

Errors = Mapping[str, Any]


def facts(run: RunFolder) -> list[tuple[str, str]]:
    """The run in a few numbers; a steady problem has no time steps."""
    summary = run.summary
    steps = f"{count_text(summary.get('n_t'))} → {count_text(summary.get('n_t_out'))}"
    named = {
        "points": count_text(summary.get("n_s")),
        **({"problem": "steady"} if run.steady else {"time steps in → out": steps}),
        "epochs": count_text(summary.get("epochs")),
        **cost(run),
    }
    return [(name, text) for name, text in named.items() if set(text) - set("– →")]


def cost(run: RunFolder) -> dict[str, str]:
    """Size of the model, and what its training took."""
    return {
        "parameters": count_text(run.summary.get("parameters")),
        "time per epoch": seconds_text(run.summary.get("seconds_per_epoch")),
        "peak memory": bytes_text(run.summary.get("peak_memory_bytes")),
    }


def methods_of(summary: Errors) -> dict[str, Errors]:
    """Errors of the model, and of every baseline, by the name shown."""
    methods: dict[str, Any] = {str(summary.get("model", "model")): summary.get("test")}
    for name, errors in (summary.get("baselines") or {}).items():
        label = "training mean" if name == "mean" else name.replace("_", " ")
        methods[label.capitalize()] = errors
    return {k: v for k, v in methods.items() if isinstance(v, Mapping) and v}


def error_table(methods: Mapping[str, Errors]) -> pd.DataFrame:
    """Errors with a row for each method and a column for each measure that any has.

    Args:
        methods: What ``summary.json`` holds of each, by the name of the method.
    """
    rows = [[finite(errors.get(m)) for m in MEASURES] for errors in methods.values()]
    table = pd.DataFrame(rows, list(methods), list(MEASURES.values()), dtype=float)
    return table.dropna(axis="columns", how="all")


def component_tables(summary: Errors) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Title, standard deviation and :func:`error_table` of each component."""
    for name, errors in (summary.get("components") or {}).items():
        baselines = errors.get("baselines")
        own = {"model": summary.get("model"), "test": errors, "baselines": baselines}
        std = f"standard deviation {error_text(errors.get('std'))}"
        yield with_unit(name, errors.get("unit")), std, error_table(methods_of(own))


def unobserved_table(summary: Errors) -> tuple[str, pd.DataFrame] | None:
    """Title and :func:`error_table` of points that are not observed, if any are not."""
    if not (errors := summary.get("unobserved")):
        return None
    baselines = errors.get("baselines")
    own = {"model": summary.get("model"), "test": errors, "baselines": baselines}
    title = f"At the {count_text(errors.get('num_points'))} points not observed"
    return title, error_table(methods_of(own))


def verdict(summary: Errors) -> str | None:
    """How the model's error compares with the best of the baselines, in words."""
    test = summary.get("test")
    mae = finite(test.get("mae")) if isinstance(test, Mapping) else None
    others = {k: v for k, v in methods_of(summary).items() if v is not test}
    rivals = [(rival, k) for k, e in others.items() if (rival := finite(e.get("mae")))]
    if not mae or not rivals:
        return None
    rival, name = min(rivals)
    pooled = "Pooled test" if summary.get("components") else "Test"
    return (
        f"{pooled} MAE {error_text(mae)}: {mae / rival:.3g} times that of the best "
        f"baseline, "
        f"{name[0].lower() + name[1:]} ({error_text(rival)})."
    )


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
