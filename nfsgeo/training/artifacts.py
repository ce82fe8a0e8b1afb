"""Files that appear whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from nfsgeo.errors import UserError

__all__ = [
    "json_text",
    "replacing",
    "write_bytes",
    "write_json",
    "write_rows",
    "write_yaml",
]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name to write to beside ``path``, moved over it when the block ends well.

    Until then a reader, or someone who pulls the plug, finds the old content. An
    exception inside the block removes what was written.

    Raises:
        UserError: The folder of the file does not exist.
    """
    if not path.parent.is_dir():
        raise UserError(f"folder {path.parent}", "an existing folder", "make it first")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes | memoryview) -> None:
    """Writes a file in one step; the old content stays where that fails."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


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


def write_rows(
    path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Writes a table as CSV; floats keep all their digits."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())
