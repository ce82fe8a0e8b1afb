"""Rows of results, gathered over seeds into the cells of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from nfsgeo_benchmarks.suites.suite import Claim, Ratio

__all__ = ["Cell", "Verdict", "best_of", "cells_of", "judge"]

Row = Mapping[str, Any]
STARTS = (
    "mae",
    "rmse",
    "rel_l2",
    "diff",
    "seconds_per_epoch",
)  # of the columns to average


@dataclass(frozen=True)
class Cell:
    """What the seeds of one variant on one problem found.

    Attributes:
        values: Mean over the seeds that finished, by measure; empty without any.
        spread: Standard deviation over them, NaN for a single one.
        first: A row that finished, or else any.
        status: ``ok``, or why there is no value: that of the last row.
    """

    values: Mapping[str, float]
    spread: Mapping[str, float]
    first: Row
    status: str


def cells_of(rows: Sequence[Row]) -> dict[tuple[str, str], Cell]:
    """Cells by variant and problem, in the order of the rows."""
    gathered: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        gathered.setdefault((row["variant"], row["problem"]), []).append(row)
    return {key: _cell(here) for key, here in gathered.items()}


def _cell(rows: Sequence[Row]) -> Cell:
    done = [row for row in rows if row["status"] == "ok"]
    names = [n for n in (done or rows)[0] if n.startswith(STARTS)]
    columns = {
        name: [float(row[name]) for row in done if row[name] is not None]
        for name in names
    }
    return Cell(
        {name: fmean(column) for name, column in columns.items() if column},
        {n: stdev(c) if len(c) > 1 else math.nan for n, c in columns.items()},
        (done or rows)[0],
        "ok" if done else rows[-1]["status"],
    )


def best_of(
    cells: Mapping[tuple[str, str], Cell],
    problem: str,
    measure: str,
    variants: Sequence[str],
) -> float:
    """The smallest error on a problem among some variants, infinite without any."""
    return min(
        (
            cell.values[measure]
            for (variant, where), cell in cells.items()
            if where == problem and variant in variants and measure in cell.values
        ),
        default=math.inf,
    )


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds on a problem.

    Attributes:
        claim: What is claimed.
        problem: Where.
        ratio: Error over the best of those it is compared with, over the same of
            :attr:`Claim.than`; None while some of them are missing.
    """

    claim: Claim
    problem: str
    ratio: float | None

    @property
    def text(self) -> str:
        """``holds``, ``does not hold`` or ``not known yet``."""
        if self.ratio is None:
            return "not known yet"
        return "holds" if self.ratio <= self.claim.at_most else "does not hold"

    @property
    def tried(self) -> str | None:
        """What was done about it, where it does not hold."""
        held = self.ratio is None or self.ratio <= self.claim.at_most
        return None if held else self.claim.tried.get(self.problem)


def judge(
    claims: Sequence[Claim], cells: Mapping[tuple[str, str], Cell]
) -> list[Verdict]:
    """Every claim on every problem that it is made for and that was run."""
    problems = dict.fromkeys(problem for _, problem in cells)
    return [
        Verdict(claim, problem, _claimed(claim, problem, cells))
        for claim in claims
        for problem in problems
        if problem in (claim.problems or problems)
    ]


def _claimed(
    claim: Claim, problem: str, cells: Mapping[tuple[str, str], Cell]
) -> float | None:
    ratio = _ratio(claim, problem, cells)
    than = _ratio(claim.than, problem, cells) if claim.than else 1.0
    return None if ratio is None or than is None else ratio / than


def _ratio(
    ratio: Ratio, problem: str, cells: Mapping[tuple[str, str], Cell]
) -> float | None:
    """A variant without a result is no rival, unless it can still get one."""
    own = cells.get((ratio.variant, problem))
    others = [cells.get((name, problem)) for name in ratio.over]
    if own is None or ratio.measure not in own.values:
        return None
    if any(other is None or other.status == "missing" for other in others):
        return None
    name = ratio.over_measure or ratio.measure
    rivals = [c.values[name] for c in others if c and name in c.values]
    return own.values[ratio.measure] / min(rivals) if rivals else None
