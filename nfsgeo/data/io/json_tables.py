"""Tables of JSON."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas

from nfsgeo.data.io.packed_files import whole_text
from nfsgeo.errors import UserError

__all__ = ["json_table"]


def json_table(path: Path, encoding: str) -> pandas.DataFrame:
    """A table of JSON: a list of rows, columns by name, a row a line, or points of
    GeoJSON.
    """
    text = whole_text(path, encoding)
    try:
        content: Any = json.loads(text)
    except ValueError:
        content = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(content, dict) and isinstance(content.get("features"), list):
        features, content = content["features"], []
        for number, feature in enumerate(features, 1):
            place = feature.get("geometry") or {}
            if place.get("type") != "Point":
                given = f"{path} with feature {number}, which is no point"
                raise UserError(given, "points", "remove it, or give its centre")
            axes = zip(("lon", "lat", "z"), place["coordinates"], strict=False)
            content.append((feature["properties"] or {}) | dict(axes))
    rows = content.values() if isinstance(content, dict) else content
    if rows and all(isinstance(row, (list, dict)) for row in rows):
        by_row = isinstance(content, dict) and all(map(str.isdigit, content))
        with suppress(ValueError, TypeError):  # lists that differ in length
            frame = pandas.DataFrame([*rows] if by_row else content).rename(columns=str)
            nested = frame.map(lambda cell: isinstance(cell, (list, dict)))
            if not nested.to_numpy().any():
                return frame
    expected = "JSON of a list of rows, [{'time': ..., 'x': ..., 'u': ...}, ...]"
    todo = "write a table of the part that is one, as by pandas.json_normalize(content"
    todo += "['PART']).to_csv('NAME.csv', index=False)"
    raise UserError(f"{path}, JSON that is no table", expected, todo)
