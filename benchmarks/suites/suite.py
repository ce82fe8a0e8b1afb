"""What a suite compares, and the sizes at which it runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    model_validator,
)

from nfsgeo.data.generation import cached_file
from nfsgeo.errors import UserError
from nfsgeo.evaluation.invariance import mesh_columns
from nfsgeo.measures import MEASURES
from nfsgeo.progress import Progress, silent
from nfsgeo.setting_errors import unknown

# Differences between the states of a run and those of other variants, before and after
# the blocks, untrained and trained.
DIFFERENCES = ("diff_begin_0", "diff_begin", "diff_end_0", "diff_end")

# References that learn nothing: their names in a summary and in tables.
TRIVIAL = {
    "persistence": "persistence",
    "linear_extrapolation": "linear-extrapolation",
    "quadratic_extrapolation": "quadratic-extrapolation",
    "cubic_extrapolation": "cubic-extrapolation",
    "mean": "training-mean",
}

# Settings of a run by dotted key, as `nfsgeo train --set` takes them.
Settings = dict[str, Any]


class Part(BaseModel):
    """Base of all parts: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def key(self) -> str:
        """The same text for the same content."""
        return self.model_dump_json()


class DataSet(Part):
    """Data that are generated once; None is the equation's own size.

    Attributes:
        equation: Its name.
        samples: Number of samples.
        resolution: Points on each axis.
        records: Number of time steps.
        options: Options of the equation that differ from its defaults, by name.
    """

    equation: str
    samples: PositiveInt | None = None
    resolution: PositiveInt | None = None
    records: PositiveInt | None = None
    options: Settings = {}

    def obtain(self, progress: Progress = silent) -> Path:
        """The file in the user's cache, generated where it is not there yet."""
        return cached_file(**self.model_dump(), progress=progress)


class Scale(Part):
    """Sizes at which suites run.

    Attributes:
        title: Its purpose, one line.
        seeds: Number of seeds, from 0.
        data: The data sets by name.
        settings: Settings of every run.
        models: Additional settings by model.
    """

    title: str
    seeds: PositiveInt = 1
    data: dict[str, DataSet]
    settings: Settings = {}
    models: dict[str, Settings] = {}


class SuiteProblem(Part):
    """A column of the table: a data set, and what is predicted from what.

    Attributes:
        data: Name of the data set in the scale; empty where ``files`` are given.
        files: Names of files that the user has, the first to be opened.
        settings: Settings of its runs.
        models: Additional settings by model.
        at: Additional settings by scale; the problem does not run at other scales.
        models_at: Additional settings by scale and model.
        variants: Variants that run on it; all if empty.
    """

    data: str = ""
    files: tuple[str, ...] = ()
    settings: Settings = {}
    models: dict[str, Settings] = {}
    at: dict[str, Settings]
    models_at: dict[str, dict[str, Settings]] = {}
    variants: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_data(self) -> SuiteProblem:
        if bool(self.data) == bool(self.files):
            given = f"data={self.data!r} and files={list(self.files)}"
            raise UserError(given, "one of the two", "leave one out")
        return self


class Ratio(Part):
    """One error over another on the same problem.

    Attributes:
        variant: The variant in the numerator.
        over: The variants that it is compared with; the smallest error counts.
        measure: Which error, such as ``mae_4`` on four times as many points.
        over_measure: Which error of the others; ``measure`` if None.
    """

    variant: str
    over: tuple[str, ...]
    measure: str = "mae"
    over_measure: str | None = None


class Claim(Ratio):
    """A claim that a ratio of errors is small.

    Attributes:
        title: The claim in words, one line.
        problems: Problems for which it is made; all if empty.
        than: Another ratio, by which this one is divided.
        at_most: Largest ratio for which the claim holds.
        tried: By problem, what was tried where it did not hold; shown in the report.
    """

    title: str
    problems: tuple[str, ...] = ()
    than: Ratio | None = None
    at_most: PositiveFloat = 1.0
    tried: dict[str, str] = {}


class Against(Part):
    """A setting against which errors are drawn.

    Attributes:
        setting: Its key. Variants that do not set it are drawn as horizontal lines.
        label: Label of the axis.
    """

    setting: str
    label: str


class Search(Part):
    """Short trials on validation samples, by which settings of variants are chosen.

    Attributes:
        problems: One problem for each number of space dimensions; what is chosen there
            holds for all problems in as many dimensions.
        epochs: Epochs of a trial over those of a run.
        cost: Longest time of a trial that may be chosen, over that of the one that
            changes no setting.
        variants: The variants that are tried.
        same: Variants that take the choice of another, by name.
        trials: Settings by name of the trial.
        models: Further trials by model.
    """

    problems: tuple[str, ...]
    epochs: PositiveFloat = 1 / 3
    cost: PositiveFloat = 3
    variants: tuple[str, ...]
    same: dict[str, str] = {}
    trials: dict[str, Settings]
    models: dict[str, dict[str, Settings]] = {}

    def trials_of(self, model: str) -> dict[str, Settings]:
        """All trials of a model, by name."""
        return self.trials | self.models.get(model, {})


class Suite(Part):
    """A comparison of variants on problems.

    Attributes:
        title: What is compared, one line.
        problems: Problems by name.
        variants: Settings by name; the name of a model selects that model.
        references: Variants that are shown for comparison and never marked as best.
        unseen: Also evaluate on larger meshes, these multiples of the training mesh.
        repeats: Meshes to draw for each factor, by scale.
        states: Also save the states on the grid every so many epochs, by scale, and
            compare those of the variants of a seed.
        meshes: Also evaluate on these, see :func:`nfsgeo.evaluation.evaluate_meshes`;
            errors such as ``mae_half`` at observed and ``mae_unobserved_half`` at
            unobserved points go into a table of their own.
        against: Also draw errors against a setting of the variants.
        memory: Also measure the memory of the parts of interpolations in a training
            step of one sample, see :func:`nfsgeo.evaluation.interpolation_memory`.
        seeds: Number of seeds by scale, in place of the scale's.
        search: How settings of variants are chosen, see ``nfsgeo bench tune``.
        published: Also show what others published on its problems, and the median
            relative L1 that some of them print.
        claims: What the results should show.
    """

    title: str
    problems: dict[str, SuiteProblem]
    variants: dict[str, Settings]
    references: tuple[str, ...] = ()
    unseen: tuple[float, ...] = ()
    repeats: dict[str, NonNegativeInt] = {}
    states: dict[str, PositiveInt] = {}
    meshes: tuple[str, ...] = ()
    against: Against | None = None
    memory: bool = False
    seeds: dict[str, PositiveInt] = {}
    search: Search | None = None
    published: bool = False
    claims: tuple[Claim, ...] = ()
    _path: Path | None = PrivateAttr(None)

    @property
    def path(self) -> Path | None:
        """The file that it comes from."""
        return self._path

    @property
    def scales(self) -> tuple[str, ...]:
        """Scales at which a problem runs, by name."""
        return tuple(dict.fromkeys(s for p in self.problems.values() for s in p.at))

    @property
    def measures(self) -> tuple[str, ...]:
        """Columns: errors on the mesh of training, on larger meshes, deviations."""
        larger = (f"mae_{factor:g}" for factor in self.unseen)
        medians = ("rel_l1_last_median",) if self.published else ()
        states = DIFFERENCES if self.states else ()
        return (*MEASURES, *medians, *larger, *states)

    @property
    def needs_files(self) -> bool:
        """Whether a problem is on files that the user has."""
        return any(problem.files for problem in self.problems.values())

    @property
    def abscissae(self) -> dict[str, float]:
        """Values of the setting that errors are drawn against, by variant."""
        if self.against is None:
            return {}
        set_by = {
            name: settings.get(self.against.setting)
            for name, settings in self.variants.items()
        }
        return {
            name: float(value)
            for name, value in set_by.items()
            if isinstance(value, int | float)
        }

    @property
    def rivals(self) -> tuple[str, ...]:
        """The variants that compete."""
        return tuple(name for name in self.variants if name not in self.references)

    def runs_on(self, variant: str, problem: str) -> bool:
        """Whether a variant runs on a problem."""
        return variant in (self.problems[problem].variants or self.variants)

    @model_validator(mode="after")
    def _check_names(self) -> Suite:
        for name in self.references:
            _known(f"references: {name}", "a variant", name, self.variants)
        for problem, each in self.problems.items():
            for name in each.variants:
                place = f"problems.{problem}.variants: {name}"
                _known(place, "a variant", name, self.variants)
        if self.against is not None and not self.abscissae:
            raise UserError(
                f"against: {self.against.setting}",
                "a setting that a variant sets to a number",
                "name it as the variants do",
            )
        if self.search is not None:
            named = (*self.search.variants, *self.search.same)
            for name in (*named, *self.search.same.values()):
                _known(f"search: {name}", "a variant", name, self.variants)
            generated = [name for name, each in self.problems.items() if each.data]
            for name in self.search.problems:
                _known(f"search: {name}", "a generated problem", name, generated)
        errors = (*self.measures, *mesh_columns(self.meshes))
        known = (*self.variants, *TRIVIAL.values())
        for claim in self.claims:
            for ratio in filter(None, (claim, claim.than)):
                for name in (ratio.variant, *ratio.over):
                    _known(f"claims: {name}", "a variant", name, known)
                for name in filter(None, (ratio.measure, ratio.over_measure)):
                    _known(f"claims: {name}", "an error", name, errors)
            for name in (*claim.problems, *claim.tried):
                _known(f"claims: {name}", "a problem", name, self.problems)
        return self


def _known(given: str, expected: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise unknown(given, expected, name, known)
