"""Whether a file fits a trained model, and which of its samples and points to score."""

from __future__ import annotations

import contextlib
from itertools import compress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from nfsgeo.data import Fields
from nfsgeo.data.build import numbered
from nfsgeo.data.fields import Doubles
from nfsgeo.data.splits import SPLITS
from nfsgeo.data.times import EPOCH
from nfsgeo.data.windows import WindowDataset
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS, Problem
from nfsgeo.training import Forecaster, RunConfig
from nfsgeo.training.lead_times import check_lead
from nfsgeo.training.observation import mesh_of, observe
from nfsgeo.training.source import open_source
from nfsgeo.training.window_starts import part_samples

__all__ = [
    "Part",
    "check_fields",
    "check_times",
    "choose_part",
    "describe_scored",
    "for_named_file",
]

Part = Literal["all", "test"]
# Of the domain's lengths: points as close as this are the same, in any units.
SAME_POINT = 1e-5


def check_fields(forecaster: Forecaster, file: Fields) -> Fields:
    """What the model was trained with of a file, in domain and units of training.

    Components, static inputs, forcings and scalars become those of training, by name
    and in their order; others are left out. Where the names of either side are made
    up, ``u_0``, ``u_1``, as for formats that hold none, the order alone counts.

    Raises:
        UserError: The file lacks one of them, or has another domain or other units. A
            file that tells no domain has that of training if it holds the points.
    """
    problem = forecaster.description["problem"]
    names = forecaster.description.get("inputs", {})
    forcings, scalars = names.get("forcings", []), names.get("scalars", [])
    file = _take_inputs(forecaster, file)
    fields = _fitting(
        names.get("components"), problem["out_components"], file.component_names, "u"
    )
    if fields is None:
        given = ", ".join(file.component_names)
        wanted = _components(problem["out_components"])
        if trained := names.get("components"):
            wanted += f" ({', '.join(trained)})"
        raise UserError(
            f"{file.path} with {_components(file.components)} ({given})",
            f"{wanted}, as in training",
            "use data of the kind that the model was trained on, or rename them",
        )
    static = _static_inputs(forecaster, file)
    file = file.select(fields, static, forcings, scalars)
    _check_units(forecaster, file)
    if not file.domain_is_known:
        with contextlib.suppress(UserError):
            file = file.with_domain(Domain.from_dict(problem["domain"]))
    if file.domain.to_dict() != problem["domain"]:
        raise UserError(
            f"{file.path} on {_box(file.domain.to_dict())}",
            f"{_box(problem['domain'])}, as in training",
            "give longitudes in that range"
            if file.domain.curved and problem["domain"].get("sphere")
            else "use data on that domain, or set it: nfsgeo convert FILE --out NEW.nc "
            f"{_axes(problem['domain'])}",
        )
    return file


def check_times(forecaster: Forecaster, windows: WindowDataset) -> None:
    """Refuses a file whose time steps are longer or shorter than those of training.

    A model of lead times takes any steps that do not reach further than in training.

    Raises:
        UserError: They are.
    """
    if forecaster.lead_times:
        for item in range(len(windows)):
            times = windows[item].times
            ahead = float(times[-1] - times[windows.n_in - 1])
            check_lead(
                forecaster.description,
                ahead,
                f"{windows.file.path} with a window of which",
            )
        return
    found = np.diff(windows[0].times.numpy())
    usual = np.diff(np.array(forecaster.description["times"]))
    if not np.allclose(found, usual, rtol=1e-3, atol=0):
        raise UserError(
            f"{windows.file.path} with time steps of {found.mean():g}",
            f"time steps of {usual.mean():g}, as in training",
            "use data with the same time steps",
        )


def choose_part(
    part: Part | None, file: Fields, named: Path | None, config: RunConfig
) -> tuple[Part, Fields]:
    """The samples to score: all of a named file, the test part of the run's own.

    Of the fields that are returned, all samples are test samples then.

    Args:
        part: What was asked for; None for the default.
        file: The open file.
        named: The path of a named file, None for the run's own file.
        config: Configuration of the run.

    Raises:
        UserError: ``"all"`` without a named file, or there is no test part.
    """
    part = part or ("test" if named is None else "all")
    if part == "all" and named is None:
        raise UserError(
            "--part all of the data of the run",
            "the test part, since the model was trained on the others",
            "leave it out, or name the file to score with --data FILE",
        )
    if part == "all":
        parts = dict.fromkeys(SPLITS, np.arange(0))
        file = file.with_split(parts | {"test": np.arange(file.num_samples)})
    elif not len(part_samples(config.data, file, "test")):
        raise UserError(
            f"{file.path} without test samples, {file.num_samples} in all",
            "at least one to score",
            "give --part all with --data FILE",
        )
    return part, file


def for_named_file(
    config: RunConfig, file: Fields, num_points: int, *, part: Part, around: bool
) -> RunConfig:
    """The configuration for scoring a named file: all of its samples and points.

    A model that is tied to the points of training keeps them.

    Args:
        config: Configuration of the run.
        file: The named file.
        num_points: Number of points in training.
        part: The samples to score; windows of all of them have all time steps.
        around: Whether to keep the points of training, for larger meshes around them.

    Raises:
        UserError: The file lacks the points that the model is tied to, or the grid
            that it needs.
    """
    info = MODELS[config.model.name]
    changes: dict[str, Any] = {"max_test": None, "max_train": None}
    changes["input_noise"] = 0.0  # what was measured has its own
    if part == "all":
        changes["split_by"] = "series"
    if not info.points and file.shape is None:
        raise UserError(
            f"the point cloud {file.path} with model {info.name}",
            "fields on a grid",
            "use a model that takes any points, such as nfs",
        )
    if not info.unseen_meshes:
        _check_tied(config, file, num_points)
    elif not around:
        # No more points per batch than in training.
        most = max(map(file.num_points, range(file.num_samples)))
        fraction = num_points / max(num_points, most)
        changes |= {
            "mesh": "all",
            "points": None,
            "grid": None,
            "mesh_per_sample": False,
            "batch_size": max(1, int(config.data.batch_size * fraction)),
        }
    data = config.data.model_copy(update=changes)
    return config.model_copy(update={"data": data})


def describe_scored(
    config: RunConfig, test: WindowDataset, part: Part, points: tuple[int, int]
) -> dict[str, Any]:
    """What was scored: the entry ``"scored"`` of a summary.

    ``"points"`` is one number, or the smallest and the largest where samples differ;
    ``"of_points"`` is the number in the file, None where points lie between these.
    ``"trained_on"`` counts samples that the run was trained or validated on, and
    ``"windows"`` those that were scored, where samples have several.

    Args:
        config: Configuration of the run.
        test: What was scored.
        part: The samples that were asked for.
        points: Smallest and largest number of points of a sample.
    """
    file = test.file
    samples = sorted(set(test.samples))
    there = [file.num_points(sample) for sample in samples]
    between = mesh_of(test.mesh, test.samples[0]).index is None
    return {
        "part": part,
        "samples": len(samples),
        "of_samples": file.num_samples,
        "points": _span(*points),
        "of_points": None if between else _span(min(there), max(there)),
        "trained_on": _num_seen(config, file) if part == "all" else 0,
        "tied": not MODELS[config.model.name].unseen_meshes,
    } | ({"windows": len(test)} if len(test) > len(samples) else {})


def _check_units(forecaster: Forecaster, file: Fields) -> None:
    """Refuses a file that says another unit than the training data did."""
    trained, found = forecaster.description.get("units", {}), file.units
    for name in trained.keys() & found.keys():
        both = (found[name], trained[name])
        one, other = ("s" if unit == EPOCH else unit for unit in both)
        if one != other:
            raise UserError(
                f"{file.path} with {name} in {one}",
                f"{other}, as in training",
                "convert the values, or correct the unit that the file tells",
            )


def _take_inputs(forecaster: Forecaster, file: Fields) -> Fields:
    names = forecaster.description.get("inputs", {})
    known = {kind: names.get(kind, []) for kind in ("forcings", "scalars")}
    there = {*file.component_names, *file.forcing_names, *file.parameters}
    missing = [
        f"the {kind[:-1]} {name}"
        for kind, group in known.items()
        for name in group
        if name not in there
    ]
    if missing:
        raise UserError(
            f"{file.path} without {' and '.join(missing)}",
            f"all inputs that {forecaster.description['model']} was trained with, by "
            "name",
            "add what is missing to the file",
        )
    return file.with_known([*known["forcings"], *known["scalars"]])


def _static_inputs(forecaster: Forecaster, file: Fields) -> list[str]:
    """Names of the static inputs of a file that are those of training."""
    problem, model = forecaster.description["problem"], forecaster.description["model"]
    known = Problem.from_dict(problem)
    inputs = forecaster.description.get("inputs", {})
    folded = known.folds * known.forcings + len(inputs.get("scalars", []))
    fields = problem["out_components"] if problem["has_time"] else 0
    indicators = fields if forecaster.missing else 0
    boundary = 1 + len(problem["domain"]["lower"]) if forecaster.boundary else 0
    num = problem["in_components"] - fields - indicators - boundary - folded
    trained, there = inputs.get("static"), file.static_names
    names = _fitting(trained, num, there, "a")
    if names is not None:
        return names
    told = _components(num) + f" ({', '.join(trained)})" * bool(trained)
    if not there:
        raise UserError(
            f"{file.path} without a static input",
            f"the coefficient that {model} was trained with, {told}",
            "add it to the file as the training data had it",
        )
    raise UserError(
        f"{file.path} with a static input of {_components(len(there))} "
        f"({', '.join(there)})",
        f"{told}, as {model} was trained with",
        "use the coefficient of the training data, or rename it",
    )


def _fitting(
    trained: list[str] | None, num: int, there: list[str], stem: str
) -> list[str] | None:
    """Names in a file of what a model was trained with, None where some are lacking.

    Args:
        trained: Names in training, None where the run does not tell them.
        num: How many they are.
        there: Names in the file.
        stem: Of names that are made up.
    """
    if trained and set(trained) <= set(there):
        return trained
    made_up = numbered(stem, num)
    if len(there) == num and (trained in (None, made_up) or there == made_up):
        return there
    return None if num else []


def _components(number: int) -> str:
    return f"{number} component{'s' * (number != 1)}"


def _box(domain: dict[str, Any]) -> str:
    """A domain in short: ``[0, 1] x [-3.2, 4], periodic along y``."""
    ends = zip(domain["lower"], domain["upper"], strict=True)
    text = " x ".join(f"[{low:.6g}, {high:.6g}]" for low, high in ends)
    axes = ", ".join(compress("xyz", domain["periodic"]))
    text += f", {f'periodic along {axes}' if axes else 'not periodic'}"
    if domain.get("sphere"):
        text += ", a sphere"
    if "facets" in domain:
        text += f", a region with {len(domain['facets'])} facets"
    return text


def _axes(domain: dict[str, Any]) -> str:
    """The options of `nfsgeo convert` for a domain, with all digits."""
    axes = zip(domain["lower"], domain["upper"], domain["periodic"], strict=True)
    if domain.get("sphere"):
        return "--sphere"
    options = [
        f"--axis {low!r}:{high!r}{':periodic' * wraps}" for low, high, wraps in axes
    ]
    if "facets" in domain:
        options.append(f"--{'region' if domain['inside'] else 'obstacles'} FILE")
    return " ".join(options)


def _check_tied(config: RunConfig, file: Fields, num_points: int) -> None:
    """Refuses a file whose points are not those of training."""
    pos = _first_points(config, file)
    same = len(pos) == num_points
    own = config.data.file
    if same and own is not None and own.exists() and own != file.path.resolve():
        with open_source(config.data) as trained:
            off = np.abs(_first_points(config, trained) - pos)
            same = bool((off <= SAME_POINT * np.array(file.domain.lengths)).all())
    if not same:
        raise UserError(
            f"{file.path} with other points than those of training",
            f"the same {num_points}, which {config.model.name} is tied to",
            "use data at these points, or a model that takes any, such as nfs",
        )


def _first_points(config: RunConfig, file: Fields) -> Doubles:
    return mesh_of(observe(config.data, file, config.seed), 0).pos


def _num_seen(config: RunConfig, file: Fields) -> int:
    """Training and validation samples of the run, if this is its own file."""
    if config.data.file != file.path.resolve():
        return 0
    with open_source(config.data) as own:
        parts = (part_samples(config.data, own, part) for part in ("train", "valid"))
        return len(np.union1d(*parts))


def _span(least: int, most: int) -> int | list[int]:
    return least if least == most else [least, most]
