"""Errors in the README and on the pages are those of the results that come along."""

import math
from pathlib import Path

import pandas as pd
import pytest

from nfsgeo_benchmarks.suites.ratios import ratio_interval, read_samples
from nfsgeo_benchmarks.suites.suite import TRIVIAL
from nfsgeo_benchmarks.suites.tables import learns

ROOT = Path(__file__).parents[2]
RESULTS, BY = ROOT / "benchmarks" / "results" / "cpu", ["problem", "variant"]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def rows(text: str, head: str) -> list[list[str]]:
    """Cells of the table whose first line begins so, without its two first lines."""
    lines = text[text.index(head) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def results(suite: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / suite / "results.csv").query("status == 'ok'")


def table(name: str) -> pd.DataFrame:
    """A generated table of the results, with its first column as index."""
    text = page("docs/results.md").partition(f"<!-- begin {name} -->\n\n")[2]
    head, _, *lines = text.partition("\n\n")[0].splitlines()
    names, *cells = (
        [c.strip(" `") for c in row.split("|")[1:-1]] for row in (head, *lines)
    )
    return pd.DataFrame(cells, columns=names).set_index("relative L2")


@pytest.mark.parametrize(
    ("shown", "suite", "problem"),
    [
        (table("errors after equal epochs").T["heat"], "ablations", "heat"),
        (table("errors on meshes")["heat"], "accuracy", "heat"),
        (table("errors on even points")["steep Burgers"], "accuracy", "burgers-steep"),
    ],
)
def test_generated_tables_of_errors(shown, suite, problem):
    texts = {name: text for name, text in shown.items() if not name.count(" ")}
    errors = results(suite).query(f"problem == '{problem}'").groupby("variant").rel_l2
    assert "nfs" in texts and "dse" in texts
    for variant, part in errors:
        if cell := texts.pop(variant, ""):
            assert cell.startswith("**") == (variant == "nfs")
            assert (r"\*" in cell) == (len(part) == 1)
            error = float(cell.replace(r"\*", "").strip("*"))
            assert error == pytest.approx(part.mean(), rel=5e-3)
    assert {*texts.values()} <= {"–", "needs time", "no epoch"}


def test_errors_with_noise():
    table = results("noise").set_index(["problem", "variant"])
    found = rows(page("docs/experiments.md"), "| variant | 0 | 1 % |")
    names = {"Burgers": "burgers-10-to-10", "Navier–Stokes": "navier-stokes-10-to-10"}
    for title, *cells in found:
        problem, variant = title.split(", ")
        row = table.loc[(names[problem], variant.strip("`"))]
        values = row[["mae", "mae_noise-1", "mae_noise-5", "mae_noise-10"]]
        assert cells == [f"{value:.1e}".replace("e-0", "e-") for value in values]


def test_errors_on_other_meshes():
    means = results("invariance").groupby(BY).mean(numeric_only=True)
    problems = {
        "Darcy, 1024 points": "darcy-1024",
        "Burgers, 512 points, from one time step": "burgers-512-1-to-10",
        "Burgers, 512 points": "burgers-512-10-to-10",
        "Navier–Stokes, 1024 points": "ns-1024-10-to-10",
        "Navier–Stokes, 4096 points": "ns-4096-10-to-10",
    }
    meshes = ["off-grid", "unobserved_off-grid", "nested-4", "disjoint", "quarter"]
    meshes.append("clustered")
    found = rows(page("docs/mesh-invariance.md"), "| | `seen` | over `grid` |")
    assert [row[0] for row in found] == list(problems)
    for title, seen, over_grid, *cells in found:
        row = means.loc[(problems[title], "default")]
        grid = means.loc[(problems[title], "default-equispaced"), "mae_equispaced"]
        assert seen == f"{row['mae_seen']:.2e}"
        assert over_grid == f"{row['mae_seen'] / grid:.2f}"
        ratios = row[[f"mae_{mesh}" for mesh in meshes]] / row["mae_seen"]
        assert cells == ["–" if math.isnan(r) else f"{r:.2f}" for r in ratios]


def test_problems_are_not_solved_without_learning():
    """A criterion that knows no model: the best reference has an error of 5 %."""
    table = results("accuracy")
    trivial = table[~table["variant"].map(learns)]
    assert trivial.groupby("problem")["rel_l2"].min().min() > 0.05


def test_error_bands():
    means = results("bands").groupby(BY).mean(numeric_only=True)
    problems = [
        *("navier-stokes-rough", "burgers-steep", "kdv-long", "darcy-lognormal"),
        *("elasticity", "lowest-held-out", "wind-held-out", "rain-held-out"),
    ]
    conditions = ("", "_unseen_mesh", "_unobserved", "_gaps")
    found = rows(page("docs/how-far-to-trust.md"), "| 90 % bands |")
    for problem, (_, seen, steps, *cells) in zip(problems, found, strict=True):
        own, one = (means.loc[(problem, name)] for name in ("nfs", "constant-width"))
        best = means.loc[problem].drop(["nfs", "constant-width"]).interval_score.min()
        ends = own.coverage_lowest, own.coverage_highest
        assert steps in ("–", "{:.2f} to {:.2f}".format(*ends))
        coverage = [own[f"coverage{condition}"] for condition in conditions]
        score, crps = (own[k] / one[k] for k in ("interval_score", "crps"))
        values = [*coverage, score, crps, own.interval_score / best]
        texts = ["–" if math.isnan(value) else f"{value:.2f}" for value in values]
        assert [seen, *cells] == texts, problem


def test_the_table_of_stations():
    table = results("stations")
    names = {"lowest temperature": "lowest", "highest temperature": "highest"}
    models = ["nfs", "mppde", "gcgru", "dse", "gino", "meshgraphnets"]
    held_out = False
    for what, *cells in rows(page("docs/results.md"), "| test MAE | `nfs` | best"):
        what, colon, rest = what.partition(": ")
        held_out |= bool(colon)
        name = (rest if colon else what).split(",")[0]
        problem = names.get(name, name) + "-held-out" * held_out
        found = table[table.problem == problem].groupby("variant")
        mae = found["mae_unobserved" if held_out else "mae"].mean().dropna()
        others = mae[mae.index.isin(models[1:])]
        expected = f"{others.min():.2f} (`{others.idxmin()}`)" if len(others) else "–"
        best = mae.drop(models, errors="ignore")
        assert cells[0] == f"{mae['nfs']:.2f}" and cells[1] == expected
        value, reference = cells[2].rstrip(")").split(" (")
        assert value == f"{best.min():.2f}" == f"{best[reference]:.2f}"


def test_the_table_of_apebench():
    errors = results("apebench").groupby(BY).gmean_nrmse.mean()
    networks = ["nfs-small", "ape-fno", "ape-resnet", "ape-unet", "persistence"]
    found = rows(page("docs/results.md"), "| scenario | `nfs` |")
    problems = "kdv", "ks", "burgers", "burgers-2d", "ks-2d"
    for problem, (_, *cells) in zip(problems, found, strict=True):
        places = [(problem, "nfs"), (f"{problem}-irregular", "nfs")]
        places += [(problem, name) for name in networks]
        values = [errors.get(place, math.nan) for place in places]
        texts = ["–" if math.isnan(value) else f"{value:.3g}" for value in values]
        assert [cell.strip("*") for cell in cells] == texts, problem


@pytest.mark.parametrize(
    ("problem", "own", "over"),
    [
        ("heat", "nfs", "dse"),
        ("elasticity", "nfs", "dse"),
    ],
)
def test_intervals_over_test_samples(problem, own, over):
    table = results("accuracy").to_dict("records")
    samples = read_samples(table, RESULTS / "accuracy", apart=True)
    interval = ratio_interval(samples, problem, own, over)
    assert interval is not None
    assert "{:.3g} to {:.3g}".format(*interval) in page("docs/results.md")


def test_errors_on_the_files_of_neuraloperator():
    errors = results("foreign").groupby(BY).rel_l2.agg(["mean", "std", "count"])
    found = rows(page("docs/results.md"), "| relative L2 | Darcy | Burgers |")
    assert len(found) > 3
    for name, *cells in found:
        for problem, text in zip(("darcy", "burgers"), cells, strict=True):
            if text != "–":
                of = errors.loc[f"{problem}-neuralop", name.strip("`")]
                assert text == f"{of['mean']:.5f} ± {of['std']:.5f}", (problem, name)
                assert of["count"] == 3


@pytest.mark.parametrize(
    ("variant", "begin", "problem"),
    [
        ("nfs-no-path", "no [point features", "heat"),
        ("fno-spline", "none of these", "burgers-steep"),
    ],
)
def test_what_each_part_is_worth(variant, begin, problem):
    errors = results("ablations").set_index([*BY, "seed"]).rel_l2.loc[problem]
    ratio = errors[variant].mean() / errors["nfs"][errors[variant].index].mean()
    text = page("docs/experiments.md").partition("<!-- begin ablations -->\n\n")[2]
    heads = text.splitlines()[0].split(" | ")
    (line,) = (row for row in text.splitlines() if row.startswith(f"| {begin}"))
    titles = {"heat": "`heat`", "burgers-steep": "steep Burgers"}
    assert line.split(" | ")[heads.index(titles[problem])] == f"{ratio:.2f}"


RIVALS = (
    "mppde meshgraphnets rigno gcgru dcrnn agcrn dse dse-skip gino transolver flare"
)
BASELINES = " ".join(TRIVIAL.values())
STATIONS = "ozone wind rain lowest highest"
HELD_OUT = " ".join(f"{name}-held-out" for name in STATIONS.split())
ALL_STATIONS = f"{STATIONS} {HELD_OUT}"
NOISE = "navier-stokes-10-to-10 burgers-10-to-10"


@pytest.mark.parametrize(
    ("suite", "variant", "others", "measure", "bound", "above"),
    [
        ("accuracy", "nfs", RIVALS, "mae", 0.9, ""),
        ("accuracy", "nfs", BASELINES, "mae", 0.25, "ellipsoids euler"),
        ("accuracy", "nfs", "nfs-paper", "mae", 0.5, "euler"),
        ("ablations", "nfs", RIVALS, "mae", 0.9, "wake"),
        ("ablations", "nfs", "fno-spline", "mae", 0.9, "elasticity wake"),
        ("ablations", "nfs", "fno-spline nfs-mean nfs-norm", "mae", 1, ""),
        ("ablations", "nfs", "nfs-no-skip nfs-direct", "mae", 1, ""),
        ("foreign", "nfs", "neuralop-fno neuralop-fno-published", "rel_l2", 1, ""),
        ("apebench", "nfs", "ape-fno ape-resnet ape-unet", "gmean_nrmse", 0.5, ""),
        ("apebench", "nfs-small", "ape-fno ape-resnet ape-unet", "gmean_nrmse", 1, ""),
        (
            "stations",
            "nfs",
            f"{RIVALS} {BASELINES}",
            "mae",
            0.98,
            f"{STATIONS} {HELD_OUT}",
        ),
        ("stations", "nfs", f"{RIVALS} {BASELINES}", "mae_unobserved", 0.95, HELD_OUT),
        ("noise", "nfs", "nfs-paper", "mae_noise-1", 1, ""),
        ("noise", "nfs", "nfs-paper", "mae_noise-10", 1, NOISE),
        ("bands", "nfs", BASELINES, "interval_score", 1, "wind-held-out"),
    ],
)
def test_ratios_of_errors(suite, variant, others, measure, bound, above):
    """Ratios to the best of others have a bound, with the exceptions that are named."""
    errors = results(suite).groupby(BY)[measure].mean().unstack()
    rivals = errors.reindex(columns=others.split()).drop(
        columns="constant-width", errors="ignore"
    )
    ratios = (errors[variant] / rivals.min(axis=1)).dropna()
    assert len(ratios)
    assert sorted(ratios.index[ratios > bound]) == sorted(above.split()), ratios
