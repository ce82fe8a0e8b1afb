"""Tables of the models and of their settings, from the models themselves."""

from __future__ import annotations

from typing import Any

from nfsgeo.models import MODELS

__all__ = ["model_settings", "model_table"]


def model_table() -> str:
    """One row a model: what it takes, how large the paper's is, where it is from."""
    rows = ["| name | any points | other meshes than trained on | paper | source |"]
    rows += ["|---|:-:|:-:|--:|---|"]
    for info in MODELS.values():
        count = info.parameters_paper
        size = "" if count is None else f"{count:,}"
        marks = [_mark(info.points), _mark(info.unseen_meshes)]
        rows.append(f"| `{info.name}` | {' | '.join([*marks, size, info.source])} |")
    return "\n".join(rows)


def model_settings() -> str:
    """A folded list a model: its settings and their defaults."""
    parts = []
    for info in MODELS.values():
        rows = [f'??? info "{info.name}"', ""]
        rows += ["    | setting | default | the paper's |", "    |---|---|---|"]
        for key, field in info.config.model_fields.items():
            cells = [_code(field.default), _code(info.paper.get(key, ""))]
            rows.append(f"    | `{key}` | {' | '.join(cells)} |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def _mark(yes: bool) -> str:
    return "yes" if yes else "no"


def _code(value: Any) -> str:
    return "" if value == "" else f"`{value}`"
