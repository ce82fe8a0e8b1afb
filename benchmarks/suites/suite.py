"""What a suite compares, and the sizes at which it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    model_validator,
)

from nfsgeo.errors import UserError
from nfsgeo.evaluation.invariance import mesh_columns
from nfsgeo.training.config_errors import explained, unknown

__all__ = [
    "DEVIATIONS",
    "Claim",
    "DataSet",
    "Problem",
    "Ratio",
    "Scale",
    "Suite",
    "in_file",
    "read_scales",
    "read_suite",
]

# Of the states of a run from those of other variants, before and after the blocks, in
# the beginning and after training.
DEVIATIONS = ("diff_begin_0", "diff_begin", "diff_end_0", "diff_end")

# Settings of a run by dotted key, as `nfsgeo train --set` takes them.
Settings = dict[str, Any]


class Part(BaseModel):
    """Base of all parts: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DataSet(Part):
    """Data that are generated once; None is the equation's own size.

    Attributes:
        equation: Its name.
        samples: Number of samples.
        resolution: Points on each axis.
        records: Number of records.
    """

    equation: str
    samples: PositiveInt | None = None
    resolution: PositiveInt | None = None
    records: PositiveInt | None = None


class Scale(Part):
    """Sizes at which suites run.

    Attributes:
        title: What it is for, one line.
        seeds: Number of seeds, from 0.
        data: The data sets by name.
        settings: Of every run.
        models: Further settings of the runs of a model, by its name.
    """

    title: str
    seeds: PositiveInt = 1
    data: dict[str, DataSet]
    settings: Settings = {}
    models: dict[str, Settings] = {}


class Problem(Part):
    """A column of the table: data, and what is predicted from what.

    Attributes:
        data: Name of the data set, at whatever scale.
        settings: Of its runs.
        models: Further settings of the runs of a model, by its name.
        at: Further settings by scale; it is left out at a scale that is not there.
        models_at: Further settings of the runs of a model by scale and its name.
    """

    data: str
    settings: Settings = {}
    models: dict[str, Settings] = {}
    at: dict[str, Settings]
    models_at: dict[str, dict[str, Settings]] = {}


class Ratio(Part):
    """One error over another on the same problem.

    Attributes:
        variant: Whose error.
        over: The variants that it is compared with, the best of them.
        measure: Which error, ``mae_4`` for that on four times as many points.
        over_measure: Which error of the others; the same where it is None.
    """

    variant: str
    over: tuple[str, ...]
    measure: str = "mae"
    over_measure: str | None = None


class Claim(Ratio):
    """What the errors of a suite should show: that a ratio of them is small.

    Attributes:
        title: In words, one line.
        problems: Where; everywhere when empty.
        than: Another ratio, by which this one is divided.
        at_most: Largest ratio.
        tried: What was done about it where it did not hold, by problem; printed there.
    """

    title: str
    problems: tuple[str, ...] = ()
    than: Ratio | None = None
    at_most: PositiveFloat = 1.0
    tried: dict[str, str] = {}


class Against(Part):
    """A setting that errors are drawn against.

    Attributes:
        setting: That variants set to numbers; those that do not are levels.
        label: Of the axis.
    """

    setting: str
    label: str


class Suite(Part):
    """A comparison of variants on problems.

    Attributes:
        title: What is compared, one line.
        problems: By name.
        variants: Settings by name; a name of a model stands for that model.
        references: Variants that others are measured by and that do not compete.
        unseen: Also evaluate on meshes with so many times as many points.
        repeats: Such meshes for each factor, by scale.
        states: Also keep the states on the grid, every so many epochs, by scale; the
            variants of a seed are compared by them.
        meshes: Also evaluate on these, see :func:`nfsgeo.evaluation.evaluate_meshes`;
            their errors are ``mae_half`` at observed points, ``mae_unobserved_half`` at
            others, which training has not seen, and go into a table of their own.
        against: Also draw errors against a setting of the variants.
        memory: Also say what the parts of interpolations hold in a training step of
            one sample, see :func:`nfsgeo.evaluation.interpolation_memory`.
        seeds: Number of seeds by scale, where it is not the scale's.
        claims: What it should show.
    """

    title: str
    problems: dict[str, Problem]
    variants: dict[str, Settings]
    references: tuple[str, ...] = ()
    unseen: tuple[float, ...] = ()
    repeats: dict[str, NonNegativeInt] = {}
    states: dict[str, PositiveInt] = {}
    meshes: tuple[str, ...] = ()
    against: Against | None = None
    memory: bool = False
    seeds: dict[str, PositiveInt] = {}
    claims: tuple[Claim, ...] = ()
    _path: Path | None = PrivateAttr(None)

    @property
    def path(self) -> Path | None:
        """The file that it comes from."""
        return self._path

    @property
    def measures(self) -> tuple[str, ...]:
        """Columns: errors on the mesh of training, on larger meshes, deviations."""
        larger = (f"mae_{factor:g}" for factor in self.unseen)
        return ("mae", "rmse", "rel_l2", *larger, *(DEVIATIONS if self.states else ()))

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

    @model_validator(mode="after")
    def _check_names(self) -> Suite:
        for name in self.references:
            _known(f"references: {name}", "a variant", name, self.variants)
        if self.against is not None and not self.abscissae:
            raise UserError(
                f"against: {self.against.setting}",
                "a setting that a variant sets to a number",
                "name it as the variants do",
            )
        errors = (*self.measures, *mesh_columns(self.meshes))
        for claim in self.claims:
            for ratio in filter(None, (claim, claim.than)):
                for name in (ratio.variant, *ratio.over):
                    _known(f"claims: {name}", "a variant", name, self.variants)
                for name in filter(None, (ratio.measure, ratio.over_measure)):
                    _known(f"claims: {name}", "an error", name, errors)
            for name in (*claim.problems, *claim.tried):
                _known(f"claims: {name}", "a problem", name, self.problems)
        return self


def _known(given: str, expected: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise unknown(given, expected, name, known)


def read_suite(path: Path) -> Suite:
    """A suite from its YAML file.

    Raises:
        UserError: It is no such file; names the file and the key.
    """
    content = _read(path)
    keys = [
        *Suite.model_fields,
        *(f"problems.*.{key}" for key in Problem.model_fields),
        *(f"claims.*.{key}" for key in Claim.model_fields),
        *(f"against.{key}" for key in Against.model_fields),
    ]
    with in_file(path), explained(known=keys):
        suite = Suite.model_validate(content)
    suite._path = path
    return suite


def read_scales(path: Path) -> dict[str, Scale]:
    """Scales by name, from their YAML file.

    Raises:
        UserError: It is no such file; names the file and the key.
    """
    scales = {}
    for name, content in _read(path).items():
        keys = [
            *(f"*.{key}" for key in Scale.model_fields),
            *(f"*.data.*.{key}" for key in DataSet.model_fields),
        ]
        with in_file(path), explained(str(name), known=keys):
            scales[str(name)] = Scale.model_validate(content)
    return scales


@contextmanager
def in_file(path: Path | None) -> Iterator[None]:
    """Adds the name of a file to what is wrong inside the block."""
    try:
        yield
    except UserError as error:
        given = f"{path.name}: {error.given}" if path else error.given
        raise UserError(given, error.expected, error.todo) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path} ({reason})", "a YAML file", "mend it") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}", "keys and values", "see the suites that are shipped")
    return content
