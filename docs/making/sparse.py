"""Trains on few observed points and prints errors there and at unobserved points.

For docs/limits.md: ``python docs/making/sparse.py FOLDER > sparse.csv``. A run that is
finished in ``FOLDER`` is not trained again. ``before`` is a run without query points,
and so with a spline through the last observed snapshot.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from nfsgeo.data.generation import cached_file
from nfsgeo.evaluation import evaluate_run
from nfsgeo.training import begin_run, fit, load_config, prepare

SEEDS = 3
# Equation, resolution, and what differs from the demonstration.
PROBLEMS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "burgers-12-of-16": (
        "burgers",
        16,
        {"data.points": 12, "data.n_in": 8, "data.n_out": 9, "trainer.epochs": 24},
    ),
    "burgers-32-of-1024": (
        "burgers",
        1024,
        {"data.points": 32, "trainer.epochs": 24},
    ),
    **{
        f"navier-stokes-{points}-of-4096": (
            "navier-stokes",
            64,
            {"data.points": points},
        )
        for points in (64, 128, 256)
    },
}
VARIANTS: dict[str, dict[str, Any]] = {"before": {"data.query_points": 0}, "after": {}}


def errors(folder: Path, problem: str, variant: str, seed: int) -> tuple[float, float]:
    """Relative L2 on the test samples, at observed and at unobserved points."""
    run = folder / f"{problem}-{variant}-{seed}"
    if not (run / "summary.json").exists():
        equation, resolution, settings = PROBLEMS[problem]
        file = cached_file(equation, samples=360, resolution=resolution, records=20)
        chosen = {"data.file": str(file), "seed": seed, **settings, **VARIANTS[variant]}
        experiment = prepare(load_config(overrides=chosen))
        fit(experiment, begin_run(experiment, run))
    summary = evaluate_run(run)
    return summary["test"]["rel_l2"], summary["unobserved"]["rel_l2"]


def main() -> None:
    print("problem,variant,seed,rel_l2_observed,rel_l2_unobserved")
    for seed in range(SEEDS):
        for problem in PROBLEMS:
            for variant in VARIANTS:
                observed, unobserved = errors(Path(sys.argv[1]), problem, variant, seed)
                print(
                    f"{problem},{variant},{seed},{observed:.4g},{unobserved:.4g}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
