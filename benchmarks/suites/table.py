"""Means over the seeds of each variant on each problem, and claims about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from nfsgeo_benchmarks.suites.suite import Claim, Ratio

Row = Mapping[str, Any]
# How the names of the columns to average begin.
STARTS = ("mae", "rmse", "rel_l", "diff", "seconds_per_epoch")


@dataclass(frozen=True)
class SeedMean:
    """Mean results of one variant on one problem over the seeds.

    Attributes:
        values: Mean over the seeds that finished, by measure; empty without any.
        spread: Standard deviation over these seeds, NaN for a single one.
        first: The row of the first seed that finished, or else of the first seed.
        status: ``ok``, or the status of the last row where no seed finished.
    """

    values: Mapping[str, float]
    spread: Mapping[str, float]
    first: Row
    status: str


# By variant and problem.
Means = Mapping[tuple[str, str], SeedMean]


def seed_means(rows: Sequence[Row]) -> dict[tuple[str, str], SeedMean]:
    """Means by variant and problem, in the order of the rows."""
    gathered: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        gathered.setdefault((row["variant"], row["problem"]), []).append(row)
    return {key: _cell(here) for key, here in gathered.items()}


def _cell(rows: Sequence[Row]) -> SeedMean:
    done = [row for row in rows if row["status"] == "ok"]
    names = [n for n in (done or rows)[0] if n.startswith(STARTS)]
    columns = {
        name: [float(row[name]) for row in done if row[name] is not None]
        for name in names
    }
    return SeedMean(
        {name: fmean(column) for name, column in columns.items() if column},
        {n: stdev(c) if len(c) > 1 else math.nan for n, c in columns.items()},
        (done or rows)[0],
        "ok" if done else rows[-1]["status"],
    )


def best_of(
    means: Means,
    problem: str,
    measure: str,
    variants: Sequence[str],
) -> float:
    """The smallest error on a problem among some variants, infinite without any."""
    return min(
        (
            mean.values[measure]
            for (variant, where), mean in means.items()
            if where == problem and variant in variants and measure in mean.values
        ),
        default=math.inf,
    )


def leader(
    means: Means, problem: str, measure: str, variants: Sequence[str]
) -> str | None:
    """The variant whose lead over all others exceeds two standard deviations.

    Those of the two are compared, the larger one counts; None where there is no such
    lead, or a single seed.
    """
    found = sorted(
        (mean.values[measure], mean.spread[measure], variant)
        for (variant, where), mean in means.items()
        if where == problem and variant in variants and measure in mean.values
    )
    if len(found) < 2:
        return None
    (best, spread, name), (second, other, _) = found[:2]
    known = not math.isnan(spread + other)
    return name if known and second - best > 2 * max(spread, other) else None


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds on a problem.

    Attributes:
        claim: What is claimed.
        problem: The problem on which it is judged.
        ratio: Error over the smallest of those it is compared with, divided by the
            ratio :attr:`Claim.than` if any; None while some of them are missing.
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
        """What was tried where it does not hold."""
        failed = self.text == "does not hold"
        return self.claim.tried.get(self.problem) if failed else None


def judge(claims: Sequence[Claim], means: Means) -> list[Verdict]:
    """Every claim on every problem that it is made for and that was run."""
    problems = dict.fromkeys(problem for _, problem in means)
    return [
        Verdict(claim, problem, _claimed(claim, problem, means))
        for claim in claims
        for problem in problems
        if problem in (claim.problems or problems)
    ]


def _claimed(claim: Claim, problem: str, means: Means) -> float | None:
    ratio = _ratio(claim, problem, means)
    than = _ratio(claim.than, problem, means) if claim.than else 1.0
    return None if ratio is None or than is None else ratio / than


def _ratio(ratio: Ratio, problem: str, means: Means) -> float | None:
    """A ratio of errors, None while a run that it needs is missing.

    Variants that failed or ran out of memory are left out of the comparison.
    """
    own = means.get((ratio.variant, problem))
    # Some variants are not for this problem, and some of the references that learn
    # nothing need more inputs than there are.
    others = [means[name, problem] for name in ratio.over if (name, problem) in means]
    if own is None or ratio.measure not in own.values:
        return None
    if any(other.status == "missing" for other in others):
        return None
    name = ratio.over_measure or ratio.measure
    rivals = [c.values[name] for c in others if name in c.values]
    return own.values[ratio.measure] / min(rivals) if rivals else None
