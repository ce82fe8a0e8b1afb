"""How the variants of a suite were trained, which stays when their folders are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nfsgeo.training import RunPaths, read_config
from nfsgeo.training.artifacts import write_rows
from nfsgeo_benchmarks.suites.earlier import read_table

__all__ = ["CONDITIONS", "collect_conditions", "compared", "write_conditions"]

CONDITIONS = "conditions.csv"
# Settings of training that are not the model's.
SETTINGS = (
    "model.prediction",
    "data.point_sets",
    "data.query_points",
    "data.batch_size",
    "loss.name",
    "loss.weighting",
    "optimiser.name",
    "optimiser.lr",
    "optimiser.weight_decay",
    "optimiser.schedule",
    "trainer.epochs",
)
COLUMNS = ("problem", "variant", *SETTINGS, "folder")


def collect_conditions(
    rows: Sequence[Mapping[str, Any]], folder: Path
) -> list[dict[str, Any]]:
    """A row of settings for each finished run of the first seed.

    Of runs without a folder the rows are those of the table that is there.

    Args:
        rows: From :func:`~nfsgeo_benchmarks.suites.results.collect`.
        folder: Of the suite.
    """
    earlier = {each["folder"]: each for each in read_table(folder / CONDITIONS)}
    found = []
    for row in rows:
        if row["seed"] != 0 or not row["model"] or row["status"] != "ok":
            continue
        path = RunPaths(folder / row["folder"]).config
        if path.exists():
            config = read_config(path).model_dump(mode="json")
            same = {name: row[name] for name in ("problem", "variant", "folder")}
            found.append(same | {key: _get(config, key) for key in SETTINGS})
        elif row["folder"] in earlier:
            found.append(earlier[row["folder"]])
    return found


def write_conditions(conditions: Sequence[dict[str, Any]], folder: Path) -> Path:
    """Writes ``conditions.csv`` into the folder of the suite, and returns its path."""
    path = folder / CONDITIONS
    write_rows(path, COLUMNS, conditions)
    return path


def compared(conditions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Settings that all variants of a problem share, and the others.

    Args:
        conditions: Rows of the problem, from :func:`collect_conditions`.

    Returns:
        ``shared``, a text, and ``own``: the other settings of each variant by name, in
        the order of ``names``; empty for fewer than two variants.
    """
    if len(conditions) < 2:
        return {}
    texts = {
        row["variant"]: {key: _text(row[key]) for key in SETTINGS} for row in conditions
    }
    values = {key: {each[key] for each in texts.values()} for key in SETTINGS}
    names = [key for key in SETTINGS if len(values[key]) > 1]
    shared = [f"{key}={values[key].pop()}" for key in SETTINGS if key not in names]
    return {
        "shared": ", ".join(shared),
        "names": names,
        "own": {
            variant: [each[key] for key in names] for variant, each in texts.items()
        },
    }


def _get(config: Mapping[str, Any], key: str) -> Any:
    section, name = key.split(".")
    return config[section][name]


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
