"""Errors of a run, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from nfsgeo.measures import MEASURES
from nfsgeo.report.text import count_text, error_text, with_unit

__all__ = ["error_table", "error_tables", "verdict"]

Errors = Mapping[str, Any]


def _methods(summary: Errors, errors: Errors) -> dict[str, Errors]:
    """Errors of the model and, from ``errors``, of every baseline, by names to show."""
    methods = {str(summary.get("model", "model")): errors}
    for name, baseline in (errors.get("baselines") or {}).items():
        label = "training mean" if name == "mean" else name.replace("_", " ")
        methods[label.capitalize()] = baseline
    return methods


def error_table(methods: Mapping[str, Errors]) -> pd.DataFrame:
    """Errors, with a column for each measure that any of the methods has."""
    table = pd.DataFrame([*methods.values()], [*methods], [*MEASURES], dtype=float)
    return table.rename(columns=MEASURES).dropna(axis="columns", how="all")


def _pooled(summary: Errors) -> Errors:
    """Test errors of all components."""
    return {**(summary.get("test") or {}), "baselines": summary.get("baselines")}


def error_tables(summary: Errors) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Titles, remarks and tables: of all components, of each, at unobserved points, and
    at those of each node type.
    """
    components, away = summary.get("components") or {}, summary.get("unobserved")
    pooled = "All components, pooled" if components else ""
    parts = [(pooled, "", _pooled(summary))]
    for name, errors in components.items():
        remark = f"standard deviation {error_text(errors.get('std'))}"
        parts.append((with_unit(name, errors.get("unit")), remark, errors))
    if away:
        num = count_text(away.get("num_points"))
        title = f"At {num} points where a sample is not observed"
        parts.append((title + ", pooled" * bool(components), "", away))
    for title, remark, errors in parts:
        if (table := error_table(_methods(summary, errors))).size:
            yield title, remark, table
    table = error_table(summary.get("by_node_type") or {})
    if table.size:
        yield "By node type" + ", pooled" * bool(components), "", table


def verdict(summary: Errors) -> str | None:
    """Compare the model's error with that of the best baseline, in a sentence."""
    table = error_table(_methods(summary, _pooled(summary)))
    mae = table.get("MAE", pd.Series(dtype=float))
    rivals = mae[1:].dropna()
    if not (len(rivals) and mae.iloc[0] > 0):
        return None
    name, rival = rivals.idxmin(), rivals.min()
    pooled = "pooled test" if summary.get("components") else "test"
    ratio = mae.iloc[0] / rival
    how = f"{100 - 100 * ratio:.0f} % lower than"
    how = how if ratio < 0.995 else f"{ratio:.3g} times"
    text = f"The {pooled} MAE is {error_text(mae.iloc[0])}, {how} that of the best "
    text += f"baseline, {name[0].lower()}{name[1:]} ({error_text(rival)})."
    l2 = table.get("relative L2", pd.Series(dtype=float)).reindex([table.index[0]])
    relative = error_text(l2.iloc[0])
    return text + f" The relative L2 error is {relative}." * bool(l2.notna().all())
