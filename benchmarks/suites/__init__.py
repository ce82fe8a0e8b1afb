"""Suites: what the paper's tables compare, each a YAML file beside this one.

- :func:`shipped_suites`, :func:`shipped_scales`: what there is
- :func:`read_suite`: a checked :class:`Suite` of problems and variants
- :func:`runs_of`: its :class:`Run` s at a scale
- :func:`with_files`: those whose files are there
- :func:`is_finished`: whether one has its results, in its folder or in the table
- :func:`carry_out_all`: trains and evaluates those that are not finished
- :func:`submit_all`: the same as jobs of a Slurm cluster
- :func:`expected_seconds`: how long a run will take, as :func:`shipped_rows` tell
- :func:`write_invariance`: errors on meshes of every kind, for suites that ask for them
- :func:`collect`, :func:`write_results`, :func:`write_suite_report`: what they found
"""

from __future__ import annotations

from pathlib import Path

from nfsgeo_benchmarks.suites.cluster import submit_all
from nfsgeo_benchmarks.suites.earlier import is_finished
from nfsgeo_benchmarks.suites.invariance import write_invariance
from nfsgeo_benchmarks.suites.reading import read_scales, read_suite
from nfsgeo_benchmarks.suites.report import write_suite_report
from nfsgeo_benchmarks.suites.results import (
    collect,
    expected_seconds,
    shipped_rows,
    with_trivial,
    write_results,
)
from nfsgeo_benchmarks.suites.runner import carry_out_all
from nfsgeo_benchmarks.suites.runs import Run, paper_values, runs_of, with_files
from nfsgeo_benchmarks.suites.search import trial_rows, trials_of, write_choices
from nfsgeo_benchmarks.suites.suite import Scale, Suite

__all__ = [
    "Run",
    "Scale",
    "Suite",
    "carry_out_all",
    "collect",
    "expected_seconds",
    "is_finished",
    "paper_values",
    "read_suite",
    "runs_of",
    "shipped_rows",
    "shipped_scales",
    "shipped_suites",
    "submit_all",
    "trial_rows",
    "trials_of",
    "with_files",
    "with_trivial",
    "write_choices",
    "write_invariance",
    "write_results",
    "write_suite_report",
]

HERE = Path(__file__).parent


def shipped_suites() -> dict[str, Path]:
    """The suite files by name."""
    return {path.stem: path for path in sorted(HERE.glob("*.yaml"))}


def shipped_scales() -> dict[str, Scale]:
    """The scales by name."""
    return read_scales(HERE.parent / "scales.yaml")
