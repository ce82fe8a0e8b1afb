"""Tables of results: reading them, means over seeds, leads, and claims."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from nfsgeo_benchmarks.suites.suite import TRIVIAL, Claim, Ratio

RESULTS, CURVES, CHOICES = "results.csv", "curves.csv", "tuned.csv"
ABOUT = "suite.json"  # what the tables of a folder are of

Row = Mapping[str, Any]
# How the names of the columns to average begin.
ERRORS = ("mae", "rmse", "rel_l", "diff")


def read_table(path: Path) -> list[dict[str, Any]]:
    """Rows of a table with their numbers as numbers, None where a cell is empty."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{name: _value(text) for name, text in row.items()} for row in rows]


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None


@dataclass(frozen=True)
class Means:
    """Results over the seeds, a row for each problem and variant, in their order.

    Attributes:
        mean: Mean error over the seeds that finished, by measure; NaN without any.
        std: Their standard deviation, NaN for a single one.
        first: The row of the first seed that finished, or else of the first seed; its
            ``status`` is that of the last where no seed finished.
    """

    mean: pd.DataFrame
    std: pd.DataFrame
    first: pd.DataFrame

    def error(self, problem: str, variant: str, measure: str = "mae") -> float:
        """A mean error, NaN where it is not known."""
        errors = self.mean.get(measure, pd.Series(dtype=float))
        return float(errors.get((problem, variant), math.nan))

    def least(
        self, problem: str, variants: Sequence[str], measure: str = "mae"
    ) -> float:
        """The smallest mean error among variants, NaN where none is known."""
        found = [self.error(problem, name, measure) for name in variants]
        return min((e for e in found if not math.isnan(e)), default=math.nan)

    def leader(
        self, problem: str, variants: Sequence[str], measure: str = "mae"
    ) -> str | None:
        """The variant whose lead over all others exceeds two standard deviations.

        Those of the two are compared, the larger one counts; None where there is no
        such lead, or a single seed.
        """
        known = {v: self.error(problem, v, measure) for v in variants}
        found = sorted((e, v) for v, e in known.items() if not math.isnan(e))
        if len(found) < 2:
            return None
        (best, name), (second, other) = found[:2]
        spread = self.std.loc[[(problem, name), (problem, other)], measure]
        return name if second - best > 2 * spread.max(skipna=False) else None


def seed_means(rows: Sequence[Row]) -> Means:
    """Means over the seeds of each variant on each problem."""
    frame, keys = pd.DataFrame([dict(row) for row in rows]), ["problem", "variant"]
    errors = [name for name in frame if name.startswith(ERRORS)]
    done = frame["status"] == "ok"
    scored = frame[errors].astype(float).where(done).join(frame[keys])
    scored = scored.groupby(keys, sort=False)
    first = frame.loc[(~done).sort_values(kind="stable").index]
    first = first.groupby(keys, sort=False).head(1).set_index(keys)
    last = frame.groupby(keys, sort=False)["status"].last()
    first = first.reindex(last.index)
    first["status"] = first["status"].where(first["status"] == "ok", last)
    return Means(scored.mean(), scored.std(), first)


class Verdict(NamedTuple):
    """Whether a claim holds on a problem, NaN until all have run."""

    claim: Claim
    problem: str
    ratio: float

    @property
    def text(self) -> str:
        """``holds``, ``does not hold`` or ``not known yet``."""
        if math.isnan(self.ratio):
            return "not known yet"
        return "holds" if self.ratio <= self.claim.at_most else "does not hold"


def judge(claims: Sequence[Claim], means: Means) -> Iterator[Verdict]:
    """Every claim on every problem that it is made for and that was run."""
    for claim in claims:
        for problem in means.mean.index.unique("problem"):
            if problem in claim.problems or not claim.problems:
                ratio = _ratio(claim, problem, means)
                than = _ratio(claim.than, problem, means) if claim.than else 1
                yield Verdict(claim, problem, ratio / than)


def _ratio(ratio: Ratio, problem: str, means: Means) -> float:
    """A ratio of errors, NaN until all runs that it needs have ended.

    Left out are variants that failed, ran out of memory or are not for this problem,
    and references that learn nothing and need more inputs than there are.
    """
    there = [name for name in ratio.over if (problem, name) in means.first.index]
    if any(means.first.at[(problem, name), "status"] == "missing" for name in there):
        return math.nan
    own = means.error(problem, ratio.variant, ratio.measure)
    return own / means.least(problem, there, ratio.over_measure or ratio.measure)


def learns(variant: str) -> bool:
    """Whether a row is that of a model, not of a reference that learns nothing."""
    return variant not in TRIVIAL.values()
