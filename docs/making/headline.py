"""The headline table of the README, from the committed results of `accuracy`.

``python docs/making/headline.py`` prints it: mean and standard deviation of the test
MAE over three seeds, of variants and problems that have them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from nfsgeo_benchmarks.suites import (
    read_suite,
    read_table,
    shipped_results,
    shipped_suites,
)
from nfsgeo_benchmarks.suites.suite import TRIVIAL
from nfsgeo_benchmarks.suites.tables import Means, seed_means

__all__ = ["TITLES", "headline"]

TITLES = {
    "navier-stokes-rough": "Navier–Stokes, rough",
    "navier-stokes-rough-noise-5": "the same, 5 % noise",
    "burgers-steep": "Burgers, steep",
    "burgers-steep-noise-5": "the same, 5 % noise",
    "kdv-long": "KdV, long",
    "darcy-256": "Darcy",
    "darcy-lognormal": "Darcy, lognormal",
    "elasticity": "elasticity",
}
SEEDS = 3
# Without a learned kernel where the default has one, and the other way round.
ABLATION = ("fno-spline", "nfs-kernel")
# Direct prediction where the default is residual, and the other way round.
PREDICTION = ("nfs-direct", "nfs-residual")
RECURRENT = ("gcgru", "dcrnn", "agcrn")
# No model is called the best there before it is compared with published results.
OPEN = ("darcy-256", "darcy-lognormal")


def headline(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table of the rows of a suite, in units of each problem's power of ten."""
    suite, means = read_suite(shipped_suites()["accuracy"]), whole_means(rows)
    powers = {
        problem: math.floor(math.log10(error))
        for problem in TITLES
        if not math.isnan(error := means.error(problem, "nfs"))
    }
    best = {
        name: None if name in OPEN else means.leader(name, suite.rivals)
        for name in powers
    }

    def line(title: str, names: Sequence[str]) -> str:
        cells = []
        for problem, power in powers.items():
            errors = {name: means.error(problem, name) for name in names}
            known = [name for name in names if not math.isnan(errors[name])]
            first = min(known, key=errors.__getitem__, default=None)
            text = "–" if first is None else cell(means, problem, first, power)
            cells.append(f"**{text}**" if first and first == best[problem] else text)
        return f"| {title} | {' | '.join(cells)} |"

    heads = [f"{TITLES[name]}, 1e{power}" for name, power in powers.items()]
    lines = [f"| test MAE | {' | '.join(heads)} |", "|---" + "|--:" * len(heads) + "|"]
    others = [name for name in suite.rivals[1:] if name not in RECURRENT]
    others = ["nfs-one-mesh", "nfs-paper", *others]
    lines += [line("`nfs`", ["nfs"]), line("the other kernel", ABLATION)]
    lines.append(line("the other prediction", PREDICTION))
    lines += [line(f"`{name}`", [name]) for name in others]
    lines.append(line("recurrent, the best", RECURRENT))
    lines.append(line("nothing learned", list(TRIVIAL.values())))
    return "\n".join(each for each in lines if each.count("| – ") < len(powers))


def whole_means(rows: Sequence[Mapping[str, Any]]) -> Means:
    """Means of the variants that have all seeds on a problem."""
    done = [row for row in rows if row["status"] == "ok"]
    count = Counter((row["variant"], row["problem"]) for row in done)
    whole = [row for row in done if count[row["variant"], row["problem"]] == SEEDS]
    return seed_means(whole)


def cell(means: Means, problem: str, variant: str, power: int) -> str:
    """Mean and standard deviation over this power of ten, to three digits."""
    value, spread = (
        each.at[(problem, variant), "mae"] / 10**power
        for each in (means.mean, means.std)
    )
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f} ± {spread:.{digits}f}"


if __name__ == "__main__":
    print(headline(read_table(shipped_results("accuracy", "cpu") / "results.csv")))
