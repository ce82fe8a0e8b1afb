"""Files that appear whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from nfsgeo.files import write_bytes

__all__ = ["json_text", "write_arrays", "write_bytes", "write_json", "write_rows"]
__all__ += ["write_tensors", "write_yaml"]


def json_text(content: Any) -> str:
    """JSON of plain types; what JSON has no number for (NaN, infinity) is null."""
    plain = json.loads(json.dumps(content), parse_constant=lambda _: None)
    return json.dumps(plain, indent=2)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Writes plain types as JSON."""
    write_bytes(path, f"{json_text(content)}\n".encode())


def write_yaml(path: Path, content: Mapping[str, Any]) -> None:
    """Writes plain types as YAML, keys in the order given."""
    text = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True)
    write_bytes(path, text.encode())


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Writes numpy's arrays by name, as ``.npz``."""
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_bytes(path, content.getbuffer())


def write_tensors(path: Path, content: Mapping[str, Any]) -> None:
    """Writes tensors and plain types, as torch saves them."""
    torch.save(content, found := io.BytesIO())
    write_bytes(path, found.getbuffer())


def write_rows(
    path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Writes a table as CSV; floats keep all their digits."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())
