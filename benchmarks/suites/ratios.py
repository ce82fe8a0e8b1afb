"""Ratios of the errors of two variants, and how far they depend on test samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nfsgeo_benchmarks.suites.tables import SAMPLES, Row

DRAWS = 10_000  # of the bootstrap


def read_samples(rows: Sequence[Row], folder: Path, *, apart: bool) -> pd.DataFrame:
    """Read the MAE on each test sample as means over seeds.

    Args:
        rows: Rows of ``results.csv`` in the folder.
        folder: The folder of the suite's tables.
        apart: Whether each seed has test samples of its own. The result then has a row
            for each sample of each seed.

    Returns:
        A column for each problem and variant; empty without a ``samples.csv``.
    """
    keys, path = ["problem", "variant", "seed"], folder / SAMPLES
    if not path.exists():
        return pd.DataFrame()
    runs = pd.DataFrame([dict(row) for row in rows])[[*keys, "folder"]]
    table = runs.merge(pd.read_csv(path), on="folder").drop(columns="folder")
    table = table.set_index(keys)
    return (table.unstack() if apart else table.groupby(level=keys[:2]).mean()).T


def ratio_interval(
    samples: pd.DataFrame, problem: str, variant: str, other: str
) -> tuple[float, float] | None:
    """The interval of :func:`paired_bootstrap` for the MAE of two variants.

    Args:
        samples: Errors from :func:`read_samples`.
        problem: The problem that both variants solve.
        variant: The variant whose error is the numerator.
        other: The variant whose error is the denominator.

    Returns:
        None unless both variants have an error on each of the same samples.
    """
    pair = samples.reindex(columns=[(problem, variant), (problem, other)])
    pair = pair.dropna(how="all")
    if not len(pair) or pair.isna().any(axis=None):
        return None
    return paired_bootstrap(*pair.to_numpy().T)


def paired_bootstrap(errors: NDArray[Any], others: NDArray[Any]) -> tuple[float, float]:
    """Estimate a 95 % interval of the ratio of two mean errors.

    Efron & Tibshirani (1993), chapter 13: samples are drawn with replacement, each with
    its errors of both models, and the interval lies between percentiles of the ratios.
    It shows how far the ratio depends on the samples, taken as independent.

    Args:
        errors: Errors of a model on samples ``[S]``, the numerator.
        others: Errors of another model on the same samples ``[S]``, the denominator.
    """
    pairs = np.stack([errors, others], axis=1)
    pairs = pairs[np.lexsort(pairs.T)]  # independent of the order of samples
    drawn = np.random.default_rng(0).integers(len(pairs), size=(DRAWS, len(pairs)))
    ratios = pairs[drawn, 0].mean(1) / pairs[drawn, 1].mean(1)
    low, high = np.quantile(ratios, (0.025, 0.975))
    return float(low), float(high)


def ratio_text(ratio: float, interval: tuple[float, float] | None) -> str:
    """Format a ratio with its interval; a dash where the ratio is not known."""
    text = "–" if math.isnan(ratio) else f"{ratio:.3g}"
    return text + (" ({:.3g} to {:.3g})".format(*interval) if interval else "")
