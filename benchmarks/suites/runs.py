"""The runs that a suite consists of: one training each, named by its parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nfsgeo.config.errors import unknown
from nfsgeo.data.pde import find_equation
from nfsgeo.errors import UserError
from nfsgeo.files import safe_name
from nfsgeo.models import MODELS
from nfsgeo.training import load_config
from nfsgeo_benchmarks.suites.apebench import Scenario
from nfsgeo_benchmarks.suites.data import DataFiles, DataSet, Settings
from nfsgeo_benchmarks.suites.suite import (
    Suite,
    in_file,
    shipped_results,
    shipped_scales,
)
from nfsgeo_benchmarks.suites.tables import CHOICES, finished, read_table

EPOCHS = "trainer.epochs"
# No part of a name where they are empty.
OPTIONAL = ("seed", "options", "columns", "test_file")


@dataclass(frozen=True)
class Run:
    """One training of one variant on one problem; for the rest see :class:`Suite`."""

    problem: str
    variant: str
    seed: int
    data: DataSet | DataFiles | Scenario
    settings: Mapping[str, Any]  # that differ from the defaults, by dotted key
    unseen: tuple[float, ...] = ()
    repeats: int = 0
    states: int = 0
    meshes: tuple[str, ...] = ()
    memory: bool = False
    stations: bool = False
    boosting: bool = False  # whether it is a reference
    trial: str = ""  # of a search, whose test samples are not scored

    @property
    def network(self) -> str:
        """A network of APEBench, such as ``FNO;12;18;4;gelu``; empty if it is ours."""
        model = self.settings["model.name"]
        return model if ";" in model else ""

    @property
    def name(self) -> str:
        """Name of the folder, with a digest of everything that determines the run."""
        data = self.data.model_dump()
        data = {k: v for k, v in data.items() if v or k not in OPTIONAL}
        content = [data, self.settings, self.unseen, self.repeats]
        content += filter(None, (self.states, self.meshes, self.memory))
        content += ["boosting"] * self.boosting + ["trial"] * bool(self.trial)
        text = json.dumps(content, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        variant = f"{self.variant}@{self.trial}" if self.trial else self.variant
        names = safe_name(self.problem), safe_name(variant)
        return f"{'-'.join(names)}-seed{self.seed}-{digest}"


def runs_of(suite: Suite, scale: str, folder: Path | None = None) -> list[Run]:
    """All runs of a suite at a scale, ordered by seed, problem and variant.

    Files that problems name are in ``folder``.

    Raises:
        UserError: A name or a setting is wrong; the message says where it stands.
    """
    with in_file(suite.path):
        at = _AtScale(suite, scale)
        more: dict[str, Any] = {
            "unseen": suite.unseen,
            "repeats": suite.repeats.get(scale, 5) if suite.unseen else 0,
            "states": suite.states.get(scale, 0),
            "meshes": suite.meshes,
            "memory": suite.memory,
            "stations": suite.stations,
        }
        runs = []
        for seed in range(suite.seeds.get(scale, at.scale.seeds)):
            for name in at.problems:
                variants = at.variants(name)
                for variant in variants:
                    settings = at.settings(name, variant, seed)
                    # As slow as a training, and the same for all of them.
                    more["boosting"] = suite.stations and variant == variants[0]
                    data = at.data(name, seed, folder)
                    runs.append(Run(name, variant, seed, data, settings, **more))
        return runs


def trials_of(suite: Suite, scale: str) -> list[Run]:
    """All trials of a suite's search.

    They train for the same budget of time as runs do, or a fraction of the epochs.
    """
    runs: list[Run] = []
    with in_file(suite.path):
        if suite.search is None:
            given, expected = "a suite without a search", "a suite with a search"
            raise UserError(given, expected, "add one to its file")
        at = _AtScale(suite, scale)
        for name in suite.search.problems:
            for variant in at.variants(name):
                if variant not in suite.search.variants:
                    continue
                for trial, changes in suite.trials(variant).items():
                    settings = at.settings(name, variant, 0, changes)
                    section = load_config(overrides=settings).trainer
                    if section.budget is None:
                        epochs = max(1, round(suite.search.epochs * section.epochs))
                        settings[EPOCHS] = epochs
                    data = at.data(name)
                    runs.append(Run(name, variant, 0, data, settings, trial=trial))
    return runs


def planned_runs(
    suite: Suite,
    scale: str,
    out: Path,
    *,
    data_folder: Path | None = None,
) -> tuple[list[Run], list[str]]:
    """The runs of a suite that are finished or whose data are available.

    Args:
        suite: The suite.
        scale: Name of the scale.
        out: Folder of the suite's tables and runs.
        data_folder: Folder of the files that problems name.

    Returns:
        The runs, and a line for each problem whose files are missing.

    Raises:
        UserError: An argument does not fit the suite, or no run is left.
    """
    named = any(problem.files for problem in suite.problems.values())
    if data_folder is not None and not named:
        expected = "none, since the data of this suite are generated"
        raise UserError(f"--data-folder {data_folder}", expected, "leave it out")
    runs = runs_of(suite, scale, data_folder)
    files = {r.problem: r.data for r in runs if isinstance(r.data, DataFiles)}
    absent = {name: line for name, data in files.items() if (line := data.absent())}
    done = finished(runs, out)
    runs = [r for r in runs if r.problem not in absent or r.name in done]
    if not runs:
        where = "without --data-folder" if data_folder is None else f"in {data_folder}"
        given = f"the files of none of {len(absent)} problems {where}"
        todo = "give --data-folder FOLDER with them"
        raise UserError(given, "those of one or more", todo)
    for problem in {run.problem for run in runs}:
        absent.pop(problem, None)
    lines = [f"{problem}: {line}" for problem, line in absent.items()]
    return runs, lines


def selected(runs: Sequence[Run], only: Sequence[str]) -> list[Run]:
    """The runs of problems and variants that are named, all of either if none is.

    Raises:
        UserError: A name is neither of a problem nor of a variant, or no run is left.
    """
    chosen, names = [*runs], set[str]()
    for part in ("problem", "variant"):
        values = {getattr(run, part) for run in runs}
        if named := values.intersection(only):
            chosen = [run for run in chosen if getattr(run, part) in named]
        names |= values
    for name in only:
        if name not in names:
            raise unknown(f"--only {name}", "a problem or variant", name, names)
    if not chosen:
        raise UserError(
            f"--only {' --only '.join(only)}, of which this scale has no run",
            "a variant of these problems, at a scale that has it",
            "leave one out",
        )
    return chosen


class _AtScale:
    """A suite at a scale at which it can run, with the ``problems`` that do."""

    def __init__(self, suite: Suite, name: str) -> None:
        if name not in (scales := shipped_scales()):
            raise unknown(f"--scale {name}", "a scale", name, scales)
        self.suite, self.name, self.scale = suite, name, scales[name]
        for problem, content in suite.problems.items():
            here, data = f"problems.{problem}", self.scale.data
            for key in ("at", "models_at"):
                for other in getattr(content, key):
                    if other not in scales:
                        raise unknown(f"{here}.{key}.{other}", "a scale", other, scales)
            if name in content.at and content.data and content.data not in data:
                given, expected = f"{here}.data={content.data}", f"data of {name}"
                raise unknown(given, expected, content.data, data)
        borrowed = suite.search.scales if suite.search else {}
        for other in (*borrowed, *borrowed.values()):
            if other not in scales:
                raise unknown(f"search.scales.{other}", "a scale", other, scales)
        self.problems = [key for key, p in suite.problems.items() if name in p.at]
        if not self.problems:
            raise UserError(
                f"--scale {name}",
                f"one of {', '.join(suite.scales)}",
                "give a scale for which a problem of the suite has settings",
            )
        self.choices: list[dict[str, Any]] = []
        if suite.search is not None and suite.path is not None:
            searched = suite.search.scales.get(name, name)
            results = shipped_results(suite.path.stem, searched)
            self.choices = read_table(results / CHOICES)

    def data(
        self, problem: str, seed: int = 0, folder: Path | None = None
    ) -> DataSet | DataFiles | Scenario:
        """The data of a problem; files are in a folder."""
        content = self.suite.problems[problem]
        if content.data:
            data = self.scale.data[content.data]
            update = {"seed": seed} if self.suite.data_seeds else {}
            return data.model_copy(update=update)
        if content.scenario:
            arguments = content.arguments.get(self.name, {})
            return Scenario(scenario=content.scenario, arguments=arguments)
        names = content.model_dump(include={"files", "columns", "test_file"})
        return DataFiles(**names, folder=folder)

    def variants(self, problem: str) -> list[str]:
        """The variants that run on a problem."""
        some = self.suite.problems[problem].variants
        return [name for name in self.suite.variants if not some or name in some]

    def choice(self, problem: str, variant: str) -> Settings:
        """The settings that the suite's search chose, on this problem or one like it.

        For variants without a trial there, one of as many space dimensions counts.
        """
        search, data = self.suite.search, self.data(problem)
        if search is None or not data.equation:
            return {}
        dim = find_equation(data.equation).domain.dim
        like = self.suite.problems[problem].like or problem
        choices = {
            row["variant"]: json.loads(row["settings"])
            for key, value in (("dim", dim), ("problem", like))
            for row in self.choices
            if row["chosen"] and row[key] == value
        }
        return choices.get(search.same.get(variant, variant), choices.get(variant, {}))

    def settings(
        self, problem: str, variant: str, seed: int, chosen: Settings | None = None
    ) -> Settings:
        """Settings of a run; where two set the same key, the later one counts."""
        content, fixed = self.suite.problems[problem], self.suite.variants[variant]
        model = fixed.get("model.name", variant)
        network = bool(content.scenario) and ";" in model
        if model not in MODELS and not network:
            raise unknown(f"variants.{variant}", "a model", model, MODELS)
        settings = {
            "model.name": model,
            **self.scale.settings,
            **self.scale.models.get(model, {}),
            **content.settings,
            **content.models.get(model, {}),
            **content.at[self.name],
            **content.models_at.get(self.name, {}).get(model, {}),
            **(self.choice(problem, variant) if chosen is None else chosen),
            **fixed,
            "seed": seed,
        }
        if "trainer.budget" in settings:
            settings.pop(EPOCHS, None)  # of the scale
        try:
            if not network:  # whose program reads its own
                load_config(overrides=settings)
        except UserError as error:
            given = f"problems.{problem} with variants.{variant}: {error.given}"
            raise UserError(given, error.expected, error.todo) from None
        return settings
