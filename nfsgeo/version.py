"""The version of nfsgeo."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

__all__ = ["__version__", "commit"]

__version__ = "0.1.0"


def commit() -> str | None:
    """The commit of the checkout that this is; None where it is none."""
    root = Path(__file__).resolve().parents[1]
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "rev-parse", "HEAD"]
        with suppress(OSError):
            result = subprocess.run(command, capture_output=True, text=True)
            return result.stdout.strip() or None
    return None
