"""Suites and scales: checked content of their YAML files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from pydantic import (
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

import nfsgeo_benchmarks
from nfsgeo.config.errors import explained, unknown
from nfsgeo.errors import UserError
from nfsgeo.measures import MEASURES
from nfsgeo.plugins import load_plugins
from nfsgeo.training.loading import read_yaml
from nfsgeo_benchmarks.suites.data import DataSet, Part, Settings

# Differences between the states of a run and those of other variants, before and after
# the blocks, untrained and trained.
DIFFERENCES = ("diff_begin_0", "diff_begin", "diff_end_0", "diff_end")

# Errors at points of the file where nothing is observed.
UNOBSERVED = ("mae_unobserved", "rmse_unobserved")

# Errors of a rollout of 100 time steps: their geometric mean, the first, the last.
ROLLOUT = ("gmean_nrmse", "nrmse_1", "nrmse_100")
# Scores of error bands, and the conditions that they are in, in names of columns.
BANDS = {
    "coverage": "coverage of 90 % bands",
    "coverage_lowest": "lowest coverage of a time step",
    "coverage_highest": "highest coverage of a time step",
    "width": "mean width",
    "crps": "CRPS",
    "interval_score": "interval score",
}
CONDITIONS = "", "_gaps", "_unobserved", "_unseen_mesh"
BAND_COLUMNS = {
    key + where: title + where.replace("_", " ").replace(" ", ", ", 1)
    for where in CONDITIONS
    for key, title in BANDS.items()
}

# References without a network: their names in a summary and in tables.
TRIVIAL = {
    "persistence": "persistence",
    "linear_extrapolation": "linear-extrapolation",
    "quadratic_extrapolation": "quadratic-extrapolation",
    "cubic_extrapolation": "cubic-extrapolation",
    "climatology": "climatology",
    "anomaly_persistence": "anomaly-persistence",
    "damped_anomaly": "damped-anomaly",
    "ridge": "ridge",
    "ridge_each": "ridge-each",
    "nearest_neighbours": "nearest-neighbours",
    "boosted_trees": "boosted-trees",
    "mean": "training-mean",
    "boosting": "gradient-boosting",
    "constant": "constant-width",  # bands of a model, but of one width
}


class Scale(Part):
    """Sizes at which suites run: seeds from 0, data sets by name, settings."""

    title: str
    seeds: PositiveInt = 1
    data: dict[str, DataSet]
    settings: Settings = {}
    models: dict[str, Settings] = {}


class Problem(Part):
    """A column of the table: a data set, and what is predicted from what."""

    data: str = ""  # a name in the scale
    files: tuple[str, ...] = ()  # that the user has, instead of it
    columns: dict[str, str | list[str]] = {}  # of the first of them, where it needs it
    test_file: str = ""  # beside them, whose samples are the test part
    scenario: str = ""  # of APEBench, instead of both
    arguments: dict[str, Settings] = {}  # of its class, by scale
    settings: Settings = {}
    models: dict[str, Settings] = {}
    at: dict[str, Settings]  # by scale; it does not run at others
    models_at: dict[str, dict[str, Settings]] = {}
    variants: tuple[str, ...] = ()  # all if empty
    like: str = ""  # problem of the search whose choices count here

    @model_validator(mode="after")
    def _check_data(self) -> Self:
        if sum(map(bool, (self.data, self.files, self.scenario))) != 1:
            given = f"data={self.data!r} and files={list(self.files)}"
            given += f" and scenario={self.scenario!r}" * bool(self.scenario)
            raise UserError(given, "one of them", "leave the others out")
        return self


class Search(Part):
    """Short trials on validation samples, by which settings of variants are chosen."""

    problems: tuple[str, ...]  # one at least for each number of space dimensions
    epochs: PositiveFloat = 1 / 3  # over those of a run without a budget of time
    variants: tuple[str, ...]
    same: dict[str, str] = {}  # variants that take the choice of another
    scales: dict[str, str] = {}  # scales that take the choices at another
    trials: dict[str, Settings]
    models: dict[str, dict[str, Settings]] = {}  # further trials


class Suite(Part):
    """A comparison of variants on problems.

    What its keys mean is in ``docs/extending/suite.md``.
    """

    title: str
    problems: dict[str, Problem]
    variants: dict[str, Settings]
    references: tuple[str, ...] = ()
    unseen: tuple[float, ...] = ()
    repeats: dict[str, NonNegativeInt] = {}
    states: dict[str, PositiveInt] = {}
    meshes: tuple[str, ...] = ()
    memory: bool = False
    seeds: dict[str, PositiveInt] = {}
    data_seeds: bool = False
    search: Search | None = None
    published: bool = False
    stations: bool = False
    path: Path | None = Field(None, exclude=True)  # of its file

    @property
    def scales(self) -> tuple[str, ...]:
        """Scales at which a problem runs, by name."""
        return tuple(dict.fromkeys(s for p in self.problems.values() for s in p.at))

    @property
    def measures(self) -> tuple[str, ...]:
        """Columns of errors on the training mesh and larger ones, and differences."""
        if self.rolls:
            return ROLLOUT
        larger = (f"mae_{factor:g}" for factor in self.unseen)
        medians = ("rel_l1_last_median",) if self.published else ()
        others = (*UNOBSERVED, *larger) if self.stations else larger
        return (*MEASURES, *medians, *others, *(DIFFERENCES if self.states else ()))

    @property
    def rolls(self) -> bool:
        """True if problems are scenarios of APEBench, scored over rollouts."""
        return any(problem.scenario for problem in self.problems.values())

    @property
    def base(self) -> str:
        """The first variant, to whose error the report relates all others."""
        return next(iter(self.variants))

    @property
    def rivals(self) -> tuple[str, ...]:
        """The variants that are no references."""
        return tuple(name for name in self.variants if name not in self.references)

    def trials(self, variant: str) -> dict[str, Settings]:
        """Settings of the trials of a variant in the search, by name of the trial."""
        assert self.search is not None
        model = self.variants[variant].get("model.name", variant)
        return self.search.trials | self.search.models.get(model, {})

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        def check(place: str, kind: str, names: Any, allowed: Iterable[str]) -> None:
            for name in names:
                if name not in allowed:
                    raise unknown(f"{place}: {name}", kind, name, allowed)

        for name, problem in self.problems.items():
            if self.data_seeds and not problem.data:
                given, todo = f"data_seeds with the problem {name}", "leave one out"
                raise UserError(given, "problems whose data nfsgeo generates", todo)
        variants, search = self.variants, self.search
        check("references", "a variant", self.references, variants)
        for name, problem in self.problems.items():
            place = f"problems.{name}.variants"
            check(place, "a variant", problem.variants, variants)
        if search is not None:
            named = (*search.variants, *search.same, *search.same.values())
            check("search", "a variant", named, variants)
            generated = [name for name, p in self.problems.items() if p.data]
            check("search", "a generated problem", search.problems, generated)
            like = [problem.like for problem in self.problems.values() if problem.like]
            check("like", "a problem of the search", like, search.problems)
        return self


def shipped_scales() -> dict[str, Scale]:
    """The scales by name."""
    return read_scales(nfsgeo_benchmarks.FOLDER / "scales.yaml")


def shipped_results(suite: str, scale: str) -> Path:
    """The folder of the committed results of a suite at a scale, if there are any."""
    return nfsgeo_benchmarks.FOLDER / "results" / scale / suite


def find_suite(name: str) -> Path:
    """Return the file of a suite: the user's own YAML file, or an included one."""
    shipped = nfsgeo_benchmarks.shipped_suites()
    if not name.endswith((".yaml", ".yml")) and name not in shipped:
        raise unknown(f"suite {name}", "the name of a suite", name, shipped)
    return shipped.get(name) or Path(name)


def read_suite(path: Path) -> Suite:
    """Read a suite from its YAML file; errors name the file and the key."""
    parts: dict[str, type[Part]] = {"problems.*.": Problem}
    parts |= {"search.": Search, "": Suite}
    keys = [place + key for place, part in parts.items() for key in part.model_fields]
    load_plugins()
    with in_file(path), explained(keys=keys):
        suite = Suite.model_validate(read_yaml(path))
        return suite.model_copy(update={"path": path})


def read_scales(path: Path) -> dict[str, Scale]:
    """Read scales by name from their YAML file; errors name the file and the key."""
    keys = [f"*.{key}" for key in Scale.model_fields]
    keys += [f"*.data.*.{key}" for key in DataSet.model_fields]
    scales = {}
    for name, content in read_yaml(path).items():
        with in_file(path), explained(str(name), keys=keys):
            scales[str(name)] = Scale.model_validate(content)
    return scales


@contextmanager
def in_file(path: Path | None) -> Iterator[None]:
    """Add the name of a file to user errors inside the block."""
    try:
        yield
    except UserError as error:
        given = f"{path.name}: {error.given}" if path else error.given
        raise UserError(given, error.expected, error.todo) from None
