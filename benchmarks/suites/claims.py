"""What suites claim about errors, and what their tables say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nfsgeo_benchmarks.suites.suite import Claim, Ratio
from nfsgeo_benchmarks.suites.tables import SAMPLES, Means, Row

DRAWS = 10_000  # of the bootstrap


class Verdict(NamedTuple):
    """Whether a claim holds on a problem, NaN until all have run."""

    claim: Claim
    problem: str
    ratio: float
    interval: tuple[float, float] | None  # of 95 %, over test samples

    @property
    def text(self) -> str:
        """``holds``, ``does not hold`` or ``not known yet``."""
        if math.isnan(self.ratio):
            return "not known yet"
        within = self.claim.at_least <= self.ratio <= self.claim.at_most
        return "holds" if within else "does not hold"


def judge(
    claims: Sequence[Claim], means: Means, samples: pd.DataFrame
) -> Iterator[Verdict]:
    """Every claim on every problem that it is made for and that was run.

    Ratios of MAE have intervals where both variants have the same test samples in
    ``samples``, see :func:`read_samples`.
    """
    for claim in claims:
        for problem in means.mean.index.unique("problem"):
            if problem in claim.problems or not claim.problems:
                ratio, rival = _ratio(claim, problem, means)
                than = _ratio(claim.than, problem, means)[0] if claim.than else 1
                pair = [(problem, claim.variant), (problem, rival)]
                both = samples.reindex(columns=pair).dropna(how="all")
                known = len(both) > 0 and both.notna().all(axis=None)
                of_mae = claim.measure == "mae" and claim.over_measure in (None, "mae")
                found = None
                if known and of_mae and claim.than is None:
                    found = paired_bootstrap(*both.to_numpy().T)
                yield Verdict(claim, problem, ratio / than, found)


def _ratio(ratio: Ratio, problem: str, means: Means) -> tuple[float, str]:
    """A ratio of errors, NaN until all runs that it needs have ended, and its rival.

    Left out are variants that failed, ran out of memory or are not for this problem,
    and references that learn nothing and need more inputs than there are.
    """
    there = [name for name in ratio.over if (problem, name) in means.first.index]
    if any(means.first.at[(problem, name), "status"] == "missing" for name in there):
        return math.nan, ""
    own = means.errors(problem, [ratio.variant], ratio.measure).iloc[0]
    over = means.errors(problem, there, ratio.over_measure or ratio.measure).dropna()
    rival = str(over.idxmin()) if len(over) else ""
    return float(own / over.min() if ratio.over else own), rival


def read_samples(rows: Sequence[Row], folder: Path, *, apart: bool) -> pd.DataFrame:
    """MAE on each test sample, columns by problem and variant, means over seeds.

    Where seeds have samples ``apart`` from each other, there is a row for each of each.
    """
    keys, path = ["problem", "variant", "seed"], folder / SAMPLES
    if not path.exists():
        return pd.DataFrame()
    places = pd.DataFrame([dict(row) for row in rows])[[*keys, "folder"]]
    table = places.merge(pd.read_csv(path), on="folder").drop(columns="folder")
    table = table.set_index(keys)
    return (table.unstack() if apart else table.groupby(level=keys[:2]).mean()).T


def paired_bootstrap(own: NDArray[Any], over: NDArray[Any]) -> tuple[float, float]:
    """95 % interval of a ratio of mean errors, those of two models on samples ``[S]``.

    Efron & Tibshirani (1993), chapter 13: samples are drawn with replacement, each with
    its errors of both models, and the interval lies between percentiles of the ratios.
    It shows how far the ratio depends on the samples, taken as independent.
    """
    pairs = np.stack([own, over], axis=1)
    pairs = pairs[np.lexsort(pairs.T)]  # the order of samples is not to count
    drawn = np.random.default_rng(0).integers(len(pairs), size=(DRAWS, len(pairs)))
    ratios = pairs[drawn, 0].mean(1) / pairs[drawn, 1].mean(1)
    low, high = np.quantile(ratios, (0.025, 0.975))
    return float(low), float(high)
