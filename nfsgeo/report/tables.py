"""Errors of a run, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from nfsgeo.measures import MEASURES
from nfsgeo.report.text import count_text, error_text, with_unit

__all__ = ["band_table", "compared_errors", "error_table", "error_tables"]
__all__ += ["further_tables", "verdict", "worse_than_mean"]

# Columns of the table of bands, by the names in files.
BANDS = {
    "coverage": "coverage",
    "width": "width",
    "crps": "CRPS",
    "interval_score": "interval score",
}

Errors = Mapping[str, Any]


def _methods(summary: Errors, errors: Errors) -> dict[str, Errors]:
    """Errors of the model and, from ``errors``, of every baseline, by names to show."""
    return {str(summary.get("model", "model")): errors, **_baselines(errors)}


def _baselines(errors: Errors) -> dict[str, Errors]:
    """Errors of every baseline, by names to show."""
    methods = dict[str, Errors]()
    for name, baseline in (errors.get("baselines") or {}).items():
        label = "training mean" if name == "mean" else name.replace("_", " ")
        methods[label.capitalize()] = baseline
    return methods


def worse_than_mean(summary: Errors) -> list[str]:
    """Names to show of the baselines with a larger MAE than the training mean."""
    baselines = _baselines(_pooled(summary))
    mean = baselines.get("Training mean", {}).get("mae")
    if mean is None:
        return []
    return [name for name, b in baselines.items() if (b.get("mae") or 0) > mean]


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
    components = summary.get("components") or {}
    pooled = "All components, pooled" if components else ""
    parts = [(pooled, "", _pooled(summary))]
    for name, errors in components.items():
        remark = f"standard deviation {error_text(errors.get('std'))}"
        parts.append((with_unit(name, errors.get("unit")), remark, errors))
    for title, remark, errors in parts:
        if (table := error_table(_methods(summary, errors))).size:
            yield title, remark, table
    yield from further_tables(summary)


def further_tables(summary: Errors) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Titles, remarks and tables of errors at some of the points."""
    pooled, away = ", pooled" * bool(summary.get("components")), "unobserved"
    if errors := summary.get(away):
        num = count_text(errors.get("num_points"))
        title = f"At {num} points where a sample is not observed{pooled}"
        if (table := error_table(_methods(summary, errors))).size:
            yield title, "", table
    if (table := error_table(summary.get("by_node_type") or {})).size:
        yield f"By node type{pooled}", "", table


def compared_errors(
    summaries: Mapping[str, Errors],
) -> tuple[dict[str, pd.DataFrame], bool]:
    """Tables of errors by title, with a row for each of several runs.

    Rows of baselines come after those of runs if all runs have the same ones.

    Args:
        summaries: Summaries of runs, by the names to show.

    Returns:
        The tables, and whether they have the baselines.
    """
    methods = dict[str, dict[str, Errors]]()
    for name, summary in summaries.items():
        unit = summary.get("units")
        title = f"In {unit}" if unit else ""
        title = "All components, pooled" if summary.get("components") else title
        methods.setdefault(title, {})[name] = _pooled(summary)
        for component, errors in (summary.get("components") or {}).items():
            methods.setdefault(component, {})[name] = errors
    baselines = [
        [_baselines(errors) for errors in runs.values()] for runs in methods.values()
    ]
    same = all(first == each for first, *others in baselines for each in others)
    tables = {
        title: error_table(runs | first if same else runs)
        for (title, runs), (first, *_) in zip(methods.items(), baselines, strict=True)
    }
    return {title: table for title, table in tables.items() if table.size}, same


def band_table(summary: Errors) -> pd.DataFrame:
    """Scores of a run's error bands and of reference bands; empty without bands."""
    bands = summary.get("bands")
    if not bands:
        return pd.DataFrame()
    rows = {str(summary.get("model", "model")): bands, **bands["references"]}
    scores = pd.DataFrame(rows).T[[*BANDS]].astype(float).rename(columns=BANDS)
    scores = scores.rename({"constant": "constant width", "mean": "training mean"})
    scores = scores.rename(lambda name: name.replace("_", " "))
    percent = (100 * scores["coverage"]).map("{:.1f} %".format, na_action="ignore")
    return scores.assign(coverage=percent)


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
