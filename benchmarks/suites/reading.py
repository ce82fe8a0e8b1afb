"""Reads suites and scales from their YAML files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from nfsgeo.errors import UserError
from nfsgeo.setting_errors import explained
from nfsgeo_benchmarks.suites.suite import (
    Against,
    Claim,
    DataSet,
    Scale,
    Search,
    Suite,
    SuiteProblem,
)


def read_suite(path: Path) -> Suite:
    """A suite from its YAML file.

    Raises:
        UserError: It is no such file; names the file and the key.
    """
    content = _read(path)
    keys = [
        *Suite.model_fields,
        *(f"problems.*.{key}" for key in SuiteProblem.model_fields),
        *(f"claims.*.{key}" for key in Claim.model_fields),
        *(f"against.{key}" for key in Against.model_fields),
        *(f"search.{key}" for key in Search.model_fields),
    ]
    with in_file(path), explained(known=keys):
        suite = Suite.model_validate(content)
    suite._path = path
    return suite


def read_scales(path: Path) -> dict[str, Scale]:
    """Scales by name, from their YAML file.

    Raises:
        UserError: It is no such file; names the file and the key.
    """
    scales = {}
    for name, content in _read(path).items():
        keys = [
            *(f"*.{key}" for key in Scale.model_fields),
            *(f"*.data.*.{key}" for key in DataSet.model_fields),
        ]
        with in_file(path), explained(str(name), known=keys):
            scales[str(name)] = Scale.model_validate(content)
    return scales


@contextmanager
def in_file(path: Path | None) -> Iterator[None]:
    """Adds the name of a file to what is wrong inside the block."""
    try:
        yield
    except UserError as error:
        given = f"{path.name}: {error.given}" if path else error.given
        raise UserError(given, error.expected, error.todo) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path} ({reason})", "a YAML file", "correct it") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}", "keys and values", "see the suites that are shipped")
    return content
