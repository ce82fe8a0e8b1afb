"""One self-contained page about a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nfsgeo.evaluation.interpolation_memory import PARTS
from nfsgeo.report.html import HERE, template
from nfsgeo.report.numbers import error_text
from nfsgeo.training.artifacts import write_bytes
from nfsgeo.version import __version__
from nfsgeo_benchmarks.paper import Printed
from nfsgeo_benchmarks.suites.section import (
    measure_title,
    mesh_picture,
    problem_section,
)
from nfsgeo_benchmarks.suites.suite import Scale, Suite
from nfsgeo_benchmarks.suites.table import Cell, cells_of, judge

__all__ = ["write_suite_report"]

Row = Mapping[str, Any]


def write_suite_report(
    suite: Suite,
    scale: Scale,
    command: str,
    rows: Sequence[Row],
    folder: Path,
    paper: Mapping[tuple[str, str], Printed] | None = None,
) -> Path:
    """Writes ``report.html`` from whatever runs there are.

    Args:
        suite: What is compared.
        scale: At which sizes.
        command: That makes it again.
        rows: From :func:`~nfsgeo_benchmarks.suites.results.collect`.
        folder: Of the suite.
        paper: What the paper prints, by variant and problem.

    Returns:
        The path of the page, which loads nothing and runs no script.
    """
    cells = cells_of(rows)
    done = sum(row["status"] == "ok" for row in rows)
    page = template("suite.html.j2", Path(__file__).parent, HERE).render(
        title=suite.title,
        scale=scale.title,
        command=command,
        version=__version__,
        done=done,
        total=len(rows),
        references=suite.references if suite.rivals else (),
        parts=PARTS if suite.memory else (),
        measures=[measure_title(measure) for measure in suite.measures],
        sections=[
            problem_section(problem, suite, cells, rows, folder, paper or {})
            for problem in dict.fromkeys(row["problem"] for row in rows)
        ],
        claims=_claims(suite, cells),
        overview=mesh_picture(suite, cells),
        failures=[row for row in rows if row["message"]],
    )
    path = folder / "report.html"
    write_bytes(path, page.encode())
    return path


def _claims(
    suite: Suite, cells: Mapping[tuple[str, str], Cell]
) -> list[dict[str, Any]]:
    """Each claim with what became of it on every problem."""
    shown = []
    for claim in suite.claims:
        verdicts = judge([claim], cells)
        shown.append(
            {
                "title": claim.title,
                "at_most": f"{claim.at_most:g}",
                "verdicts": [
                    {
                        "problem": verdict.problem,
                        "ratio": error_text(verdict.ratio),
                        "text": verdict.text,
                        "tried": verdict.tried,
                    }
                    for verdict in verdicts
                ],
            }
        )
    return [claim for claim in shown if claim["verdicts"]]
