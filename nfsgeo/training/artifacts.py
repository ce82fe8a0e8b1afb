"""Files that appear whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from nfsgeo.files import write_bytes

__all__ = ["json_text", "read_json", "write_arrays", "write_bytes", "write_json"]
__all__ += ["write_rows", "write_tensors", "write_yaml"]


def json_text(content: Any) -> str:
    """Return JSON of plain types, with null for NaN and infinity.

    Args:
        content: Plain types.
    """
    plain = json.loads(json.dumps(content), parse_constant=lambda _: None)
    return json.dumps(plain, indent=2)


def read_json(path: Path) -> dict[str, Any]:
    """Return what a file of JSON holds by name, nothing where it cannot be read."""
    content = None
    with suppress(OSError, ValueError):
        if not path.is_file():  # a pipe has no end
            return {}
        content = json.loads(path.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write plain types as JSON.

    Args:
        path: The file.
        content: Plain types.
    """
    write_bytes(path, f"{json_text(content)}\n".encode())


def write_yaml(path: Path, content: Mapping[str, Any]) -> None:
    """Write plain types as YAML; keys keep their order.

    Args:
        path: The file.
        content: Plain types.
    """
    text = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True)
    write_bytes(path, text.encode())


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays of numpy as ``.npz``.

    Args:
        path: The file.
        arrays: Arrays by name.
    """
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_bytes(path, content.getbuffer())


def write_tensors(path: Path, content: Mapping[str, Any]) -> None:
    """Write tensors and plain types, as torch saves them.

    Args:
        path: The file.
        content: Tensors and plain types.
    """
    torch.save(content, buffer := io.BytesIO())
    write_bytes(path, buffer.getbuffer())


def write_rows(
    path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Write a table as CSV; floats keep all their digits.

    Args:
        path: The file.
        columns: Names of the columns.
        rows: Values of each row by column.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())
