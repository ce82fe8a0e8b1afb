"""Suites: comparisons of models on problems, each a YAML file beside this one.

- :func:`shipped_suites`, :func:`find_suite`: their files, and those of one's own
- :func:`read_suite`: a checked :class:`Suite` of problems and variants
- :func:`runs_of`, :func:`trials_of`: its :class:`Run` s, or the trials of its search
- :func:`planned_runs`, :func:`selected`: those that can be carried out, or are named
- :func:`carry_out_all`: trains and evaluates those that are not finished
- :func:`collect`, :func:`write_tables`: what they found
- :func:`write_suite_report`: the page about these tables, :func:`measure_title`
"""

from nfsgeo_benchmarks import shipped_suites
from nfsgeo_benchmarks.suites.execution import carry_out_all
from nfsgeo_benchmarks.suites.report import measure_title, write_suite_report
from nfsgeo_benchmarks.suites.runs import (
    Run,
    planned_runs,
    runs_of,
    selected,
    trials_of,
)
from nfsgeo_benchmarks.suites.suite import (
    Suite,
    find_suite,
    read_suite,
    shipped_scales,
)
from nfsgeo_benchmarks.suites.tables import (
    collect,
    finished,
    read_table,
    result_of,
    seed_means,
    write_choices,
    write_tables,
)

__all__ = [
    "Run",
    "Suite",
    "carry_out_all",
    "collect",
    "find_suite",
    "finished",
    "measure_title",
    "planned_runs",
    "read_suite",
    "read_table",
    "result_of",
    "runs_of",
    "seed_means",
    "selected",
    "shipped_scales",
    "shipped_suites",
    "trials_of",
    "write_choices",
    "write_suite_report",
    "write_tables",
]
