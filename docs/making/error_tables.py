"""Tables of errors on the pages, from ``benchmarks/results``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import pandas as pd

from nfsgeo_benchmarks.suites.ratios import ratio_interval, ratio_text, read_samples
from nfsgeo_benchmarks.suites.suite import find_suite, read_suite, shipped_results
from nfsgeo_benchmarks.suites.tables import RESULTS, learns, read_table

__all__ = ["PARTS", "markdown_table"]

# Titles of problems: on meshes of the samples, and on points that are spread evenly.
MESHES = {
    "`heat`": "heat",
    "`wake`": "wake",
    "`elasticity`": "elasticity",
    "`ellipsoids`": "ellipsoids",
}
EVEN = {
    "steep Burgers": "burgers-steep",
    "long KdV": "kdv-long",
    "rough Navier–Stokes": "navier-stokes-rough",
    "the same with noise": "navier-stokes-rough-noise-5",
    "Euler": "euler",
    "lognormal Darcy": "darcy-lognormal",
}

# Titles of problems in the table of the README.
README = {
    "flow around bodies, graded meshes": "heat",
    "vortex shedding, graded meshes": "wake",
    "pressure on surfaces in space": "ellipsoids",
    "elasticity, a mesh per sample": "elasticity",
    "rough Navier–Stokes, scattered points": "navier-stokes-rough",
}

# Problems and models whose first epoch takes longer than the time of a run.
UNFINISHED = [("ellipsoids", "rigno")]

OWN = ("nfs", "fno-spline")  # how names of the models of nfsgeo begin

# Rows of the table of ablations: what each variant of the suite leaves out or changes.
CHANGED = {
    "nfs-no-messages": "no learned messages, `neighbours=0`",
    "nfs-no-path": "no [point features](how-nfs-works.md#at-the-points), "
    "`point_channels=0` and `neighbours=0`",
    "nfs-no-latent": "no [latent coordinates]"
    "(how-nfs-works.md#latent-coordinates), `latent=false`",
    "fno-spline": "none of these three, nor a learned kernel: `fno-spline`",
    "nfs-kernel": "a learned kernel, `kernel=channel`",
    "nfs-no-margin": "no margin beyond the grid, `margin=0`",
    "nfs-no-skip": "no skips of the Fourier blocks, `skip=false`",
    "nfs-full-modes": "no modes factorised by axis, `factorised=false`",
    "nfs-norm": "Layer-Norm, `norm=channel`",
    "nfs-no-norm": "no Layer-Norm, `norm=none`",
    "nfs-mean": "the mean of the neighbours as base interpolation, `base=mean`",
    "nfs-all-points": "no subsets of the points in training, `data.least_fraction=1`",
    "nfs-one-mesh": "no mesh augmentation: one sampled mesh, no query points, uniform "
    "weights",
    "nfs-4-point-sets": "four sampled meshes, `data.point_sets=4`",
    "nfs-uniform": "uniform weights in the loss, `loss.weighting=uniform`",
    "nfs-direct": "`model.prediction=direct`",
    "nfs-damped": "`model.prediction=damped`",
}


def accuracy_table(problems: Mapping[str, str]) -> str:
    """One row per model: relative L2 errors after equal time, with a column a problem.

    The smallest error of a model is bold. The last rows have the best trivial baseline,
    and the ratio of the MAE of ``nfs`` to that of the best model that is not a variant
    of it. Both MAEs of a ratio are means over the seeds that both models have.
    """
    suite = read_suite(find_suite("accuracy"))
    folder = shipped_results("accuracy", "cpu")
    table = _results("accuracy").astype({"mae": float})
    samples = read_samples(read_table(folder / RESULTS), folder, apart=suite.data_seeds)
    mae = table.set_index(["problem", "seed", "variant"])["mae"].unstack()
    models = _models(problems)
    columns = []
    for problem in problems.values():
        mean, texts = _errors("accuracy", problem)
        best = mean.reindex(models).idxmin()
        texts[best] = f"**{texts[best]}**"
        for model in models:
            if model not in suite.problems[problem].variants:
                texts[model] = "needs time"
            if (problem, model) in UNFINISHED:
                texts[model] = "no epoch"
        base = _best_other(mean, trained=False)
        rival = _best_other(mae.loc[problem].mean(), trained=True)
        both = mae.loc[problem, ["nfs", rival]].dropna().mean()
        ratio = ratio_text(
            both["nfs"] / both[rival], ratio_interval(samples, problem, "nfs", rival)
        )
        cells = [texts.get(model, "–") for model in models]
        cells.append(f"{texts[base]} ({base.replace('-', ' ')})")
        columns.append([*cells, f"{ratio}, `{rival}`"])
    titles = [*(f"`{model}`" for model in models), "best baseline"]
    titles.append("MAE of `nfs` over the best other")
    rows = zip(titles, *columns, strict=True)
    return markdown_table(["relative L2", *problems], rows, numbers=True)


def cost_table(problems: Mapping[str, str]) -> str:
    """One row per model: its parameters, epochs and, where known, CPU seconds."""
    keys, models = ["parameters", "epochs", "cpu_seconds"], _models(problems)
    table = _results("accuracy").astype(dict.fromkeys(keys, float))
    cost = table.groupby(["variant", "problem"])[keys].mean()
    texts = {
        place: f"{one.parameters / 1e6:.2g} M, {one.epochs:.0f}"
        + ("" if math.isnan(one.cpu_seconds) else f", {one.cpu_seconds:.0f} s")
        for place, one in cost.iterrows()
    }
    rows = [
        [f"`{model}`", *(texts.get((model, each), "–") for each in problems.values())]
        for model in models
    ]
    return markdown_table(["parameters, epochs, time", *problems], rows, numbers=True)


def error_table(suite: str, problems: Mapping[str, str], variants: str) -> str:
    """One row per problem: relative L2 errors of variants, and of the best baseline.

    The smallest of those of variants is bold.
    """
    names, rows = variants.split(), []
    for title, problem in problems.items():
        mean, texts = _errors(suite, problem)
        best = mean.reindex(names).idxmin()
        texts[best] = f"**{texts[best]}**"
        base = _best_other(mean, trained=False)
        cells = [texts.get(name, "–") for name in names]
        rows.append([title, *cells, f"{texts[base]} ({base.replace('-', ' ')})"])
    heads = ["relative L2", *(f"`{name}`" for name in names), "best baseline"]
    return markdown_table(heads, rows, numbers=True)


def ablation_table() -> str:
    """One row per variant: its relative L2 error over that of ``nfs``, by problem.

    Both are means over the seeds that the variant has.
    """
    table = _results("ablations").astype({"rel_l2": float})
    errors = table.set_index(["problem", "variant", "seed"])["rel_l2"].unstack(1)
    there = errors.reindex(columns=[*CHANGED]).dropna(how="all").index.unique(0)
    problems = {t: name for t, name in (MESHES | EVEN).items() if name in there}
    rows = []
    for variant, title in CHANGED.items():
        pairs = (
            errors.reindex(columns=["nfs", variant]).dropna().groupby("problem").mean()
        )
        ratios = (pairs[variant] / pairs["nfs"]).map("{:.2f}".format)
        cells = [str(ratios.get(problem, "–")) for problem in problems.values()]
        if {*cells} != {"–"}:
            rows.append([title, *cells])
    return markdown_table(["changed", *problems], rows, numbers=True)


def readme_table() -> str:
    """Errors of ``nfs``, of it without learned layers, and of the best of others."""
    heads = ["relative L2 error", "`nfs`", "`fno-spline`", "best other model"]
    heads, rows = [*heads, "best baseline"], []
    for title, problem in README.items():
        mean, texts = _errors("accuracy", problem)
        others = [_best_other(mean, trained=t) for t in (True, False)]
        cells = [texts["nfs"], texts["fno-spline"]]
        cells += [f"{texts[name]} (`{name}`)" for name in others]
        best = mean.loc[["nfs", "fno-spline", *others]].argmin()
        cells[best] = f"**{cells[best]}**"
        rows.append([title, *cells])
    return markdown_table(heads, rows, numbers=True)


def markdown_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = False
) -> str:
    """Return a table in Markdown, whose later columns are aligned right for numbers."""
    rule = ["---", *["--:" if numbers else "---"] * (len(heads) - 1)]
    lines = [heads, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _models(problems: Mapping[str, str]) -> list[str]:
    """Models that have run on one of the problems, in the order of the suite."""
    table = _results("accuracy")
    there = {*table["variant"][table["problem"].isin([*problems.values()])]}
    return [
        name for name in read_suite(find_suite("accuracy")).variants if name in there
    ]


def _best_other(mean: pd.Series[float], trained: bool) -> str:
    """The variant with the smallest error that is not ours, or the best baseline."""
    others = [name for name in mean.index if not name.startswith(OWN)]
    return str(mean[[name for name in others if learns(name) == trained]].idxmin())


def _results(suite: str) -> pd.DataFrame:
    table = pd.DataFrame(read_table(shipped_results(suite, "cpu") / RESULTS))
    return table[table["status"] == "ok"]


def _errors(suite: str, problem: str) -> tuple[pd.Series[float], dict[str, str]]:
    """Mean relative L2 errors over seeds by variant, and their texts.

    A star marks one seed.
    """
    table = _results(suite)
    table = table[table["problem"] == problem]
    errors = table.astype({"rel_l2": float}).groupby("variant")["rel_l2"]
    mean, count = errors.mean(), errors.count()
    stars = {name: "\\*" * bool(count[name] == 1) for name in mean.index}
    return mean, {name: f"{mean[name]:#.3g}{stars[name]}" for name in mean.index}


PARTS: dict[str, Callable[[], str]] = {
    "errors in short": readme_table,
    "errors on meshes": partial(accuracy_table, MESHES),
    "errors on even points": partial(accuracy_table, EVEN),
    "cost on meshes": partial(cost_table, MESHES),
    "cost on even points": partial(cost_table, EVEN),
    "ablations": ablation_table,
    "errors after equal epochs": partial(
        error_table,
        "ablations",
        {title: name for title, name in MESHES.items() if name != "ellipsoids"},
        "nfs fno-spline dse dse-skip transolver",
    ),
}
