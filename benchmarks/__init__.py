"""Benchmarks."""

from pathlib import Path

# Where the suites are, their scales, and committed results.
FOLDER = Path(__file__).parent


def shipped_suites() -> dict[str, Path]:
    """The files of the suites that come along, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("suites/*.yaml"))}
