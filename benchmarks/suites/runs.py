"""The runs that a suite consists of."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nfsgeo.data.equations import find_equation
from nfsgeo.errors import UserError
from nfsgeo.models import MODELS
from nfsgeo.setting_errors import unknown
from nfsgeo.training import load_config
from nfsgeo_benchmarks.paper import Printed, printed
from nfsgeo_benchmarks.suites.files import DataFiles
from nfsgeo_benchmarks.suites.reading import in_file
from nfsgeo_benchmarks.suites.suite import DataSet, Scale, Settings, Suite

# Committed results, by scale and suite.
SHIPPED = Path(__file__).parents[1] / "results"
# Choices of a suite's search, beside its results.
CHOICES = "tuned.csv"


@dataclass(frozen=True)
class Run:
    """One training of one variant on one problem.

    Attributes:
        problem: Name of the problem.
        variant: Name of the variant.
        seed: Seed of points, weights and the order of samples.
        data: The data set.
        settings: Settings that differ from the defaults, by dotted key.
        unseen: Sizes of larger meshes to evaluate on, relative to the training mesh.
        repeats: Meshes to draw for each of these sizes.
        states: Epochs between two saved states on the grid; 0 to save none.
        meshes: Meshes of other kinds to evaluate on.
        memory: Whether to measure the memory of the parts of interpolations.
        scored: Whether test samples are scored; they are not in trials of a search.
    """

    problem: str
    variant: str
    seed: int
    data: DataSet | DataFiles
    settings: Mapping[str, Any]
    unseen: tuple[float, ...] = ()
    repeats: int = 0
    states: int = 0
    meshes: tuple[str, ...] = ()
    memory: bool = False
    scored: bool = True

    @property
    def name(self) -> str:
        """Name of the folder, with a digest of everything that determines the run."""
        data = self.data.model_dump()
        if not data.get("options"):
            data.pop("options", None)
        content = [data, self.settings, self.unseen, self.repeats]
        content += filter(None, (self.states, self.meshes, self.memory))
        if not self.scored:
            content.append("trial")
        text = json.dumps(content, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"{self.problem}-{self.variant}-seed{self.seed}-{digest}"


def runs_of(
    suite: Suite,
    scale_name: str,
    scales: Mapping[str, Scale],
    folder: Path | None = None,
) -> list[Run]:
    """All runs of a suite at a scale, ordered by seed, problem and variant.

    Args:
        suite: The suite.
        scale_name: A key of ``scales``.
        scales: Scales by name.
        folder: Where files are that problems name.

    Raises:
        UserError: A name or a setting is wrong; the message says where it stands.
    """
    if scale_name not in scales:
        raise unknown(f"--scale {scale_name}", "a scale", scale_name, scales)
    with in_file(suite.path):
        _check_problems(suite, scale_name, scales)
        return [
            _run(suite, problem, variant, seed, scale_name, scales[scale_name], folder)
            for seed in range(suite.seeds.get(scale_name, scales[scale_name].seeds))
            for problem in suite.problems
            if scale_name in suite.problems[problem].at
            for variant in suite.variants
            if suite.runs_on(variant, problem)
        ]


def with_files(runs: Sequence[Run], finished: Callable[[Run], bool]) -> list[Run]:
    """The runs that can be carried out, and those that need not be any more.

    Args:
        runs: Runs of a suite.
        finished: Whether a run has its results, so that its files may be gone.
    """
    missing = {
        run.problem: run.data.missing is not None
        for run in {run.problem: run for run in runs}.values()
        if isinstance(run.data, DataFiles)
    }
    return [run for run in runs if not missing.get(run.problem) or finished(run)]


def _check_problems(suite: Suite, scale_name: str, scales: Mapping[str, Scale]) -> None:
    for name, problem in suite.problems.items():
        here, known = f"problems.{name}", scales[scale_name].data
        for key in ("at", "models_at"):
            for scale in getattr(problem, key):
                if scale not in scales:
                    raise unknown(f"{here}.{key}.{scale}", "a scale", scale, scales)
        here_too = scale_name in problem.at and not problem.files
        if here_too and problem.data not in known:
            raise unknown(
                f"{here}.data={problem.data}",
                f"data of the scale {scale_name}",
                problem.data,
                known,
            )
    if scale_name not in suite.scales:
        raise UserError(
            f"--scale {scale_name}",
            f"one of {', '.join(suite.scales)}",
            "give a scale for which a problem of the suite has settings",
        )


def _run(
    suite: Suite,
    problem_name: str,
    variant: str,
    seed: int,
    scale_name: str,
    scale: Scale,
    folder: Path | None,
) -> Run:
    problem = suite.problems[problem_name]
    data: DataSet | DataFiles = DataFiles(files=problem.files, folder=folder)
    chosen: dict[str, Settings] = {}
    if not problem.files:
        data = scale.data[problem.data]
        dim = find_equation(data.equation).dim
        chosen = chosen_settings(suite, scale_name, dim)
    settings = settings_of(
        suite,
        problem_name,
        variant,
        seed,
        scale_name,
        scale,
        chosen.get(variant, {}),
    )
    return Run(
        problem_name,
        variant,
        seed,
        data,
        settings,
        suite.unseen,
        suite.repeats.get(scale_name, 5) if suite.unseen else 0,
        suite.states.get(scale_name, 0),
        suite.meshes,
        suite.memory,
    )


def settings_of(
    suite: Suite,
    problem_name: str,
    variant: str,
    seed: int,
    scale_name: str,
    scale: Scale,
    chosen: Settings,
) -> Settings:
    """Settings of a run, checked.

    Those of the scale, the scale's model, the problem, the problem's model, the same at
    this scale, the choice of a search, and the variant's own, the last counting most.

    Raises:
        UserError: One of them is wrong.
    """
    problem, own = suite.problems[problem_name], suite.variants[variant]
    model = own.get("model.name", variant)
    if model not in MODELS:
        raise unknown(f"variants.{variant}", "a model", model, MODELS)
    settings = {
        "model.name": model,
        **scale.settings,
        **scale.models.get(model, {}),
        **problem.settings,
        **problem.models.get(model, {}),
        **problem.at[scale_name],
        **problem.models_at.get(scale_name, {}).get(model, {}),
        **chosen,
        **own,
        "seed": seed,
    }
    _check(settings, f"problems.{problem_name} with variants.{variant}")
    return settings


def chosen_settings(suite: Suite, scale: str, dim: int) -> dict[str, Settings]:
    """What the suite's search has chosen for problems in ``dim`` dimensions.

    Returns:
        Settings by variant; empty where no search has been run at this scale.
    """
    if suite.search is None or suite.path is None:
        return {}
    path = SHIPPED / scale / suite.path.stem / CHOICES
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["chosen"] == "1"]
    found = {
        row["variant"]: json.loads(row["settings"])
        for row in rows
        if row["dim"] == str(dim)
    }
    same = suite.search.same.items()
    return found | {name: found[other] for name, other in same if other in found}


def paper_values(
    suite: Suite, scales: Mapping[str, Scale], measure: str = "mae"
) -> dict[tuple[str, str], Printed]:
    """The paper's values of a measure, by variant and problem of a suite.

    None for other equations than the paper's, such as those of another viscosity.
    """
    entries: dict[tuple[str, str], Printed] = {}
    at_scale = "paper" in scales and "paper" in suite.scales
    runs = runs_of(suite, "paper", scales) if at_scale else []
    for run in {run.problem: run for run in runs}.values():
        if isinstance(run.data, DataFiles) or run.data.options:
            continue
        equation = find_equation(run.data.equation)
        side = run.settings.get("data.grid")
        points = side**equation.dim if side else run.settings.get("data.points", 0)
        steady = equation.records == 1
        found = printed(
            equation.name,
            n_s=points,
            n_t=0 if steady else run.settings.get("data.n_in", 10),
            n_t_out=1 if steady else run.settings.get("data.n_out", 10),
            grid=side is not None,
            measure=measure,
        )
        entries |= {(name, run.problem): entry for name, entry in found.items()}
    return entries


def _check(settings: Mapping[str, Any], place: str) -> None:
    try:
        load_config(overrides=settings)
    except UserError as error:
        given = f"{place}: {error.given}"
        raise UserError(given, error.expected, error.todo) from None
