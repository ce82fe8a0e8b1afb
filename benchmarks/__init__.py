"""Benchmarks: suites of models on problems, and speed."""

from pathlib import Path

# Where the suites are, their scales, and committed results.
FOLDER = Path(__file__).parent


def shipped_suites() -> dict[str, Path]:
    """Return the files of the included suites by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("suites/*.yaml"))}
