"""Whether a file fits a trained model, and which of its samples and points to score."""

from __future__ import annotations

from itertools import compress
from pathlib import Path
from typing import Any, Literal

import numpy as np

import nfsgeo.data
from nfsgeo.data import FieldFile
from nfsgeo.data.datasets import WindowDataset
from nfsgeo.data.fields import Doubles
from nfsgeo.data.splits import SPLITS
from nfsgeo.errors import UserError
from nfsgeo.models import MODELS, Problem
from nfsgeo.training import Forecaster, RunConfig
from nfsgeo.training.observation import mesh_of, observe
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


def check_fields(forecaster: Forecaster, file: FieldFile) -> None:
    """Refuses a file with another static input, other components or another domain.

    Forcings and scalars of the file become those that the model was trained with, in
    their order; others are left out.

    Raises:
        UserError: These are not those of the training data.
    """
    problem = forecaster.description["problem"]
    trained = problem["out_components"]
    _take_inputs(forecaster, file)
    _check_static(forecaster, file)
    if problem["has_time"] and file.components != trained:
        names = ", ".join(file.component_names)
        raise UserError(
            f"{file.path} with {_components(file.components)} ({names})",
            f"{_components(trained)}, as in training",
            "use data of the kind that the model was trained on",
        )
    if file.domain.to_dict() != problem["domain"]:
        raise UserError(
            f"{file.path} on {_box(file.domain.to_dict())}",
            f"{_box(problem['domain'])}, as in training",
            "use data on that domain, or set it: nfsgeo convert FILE --out NEW.h5 "
            f"{_axes(problem['domain'])}",
        )


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
            check_lead(forecaster, ahead, f"{windows.file.path} with a window of which")
        return
    found = np.diff(windows[0].times.numpy())
    usual = np.diff(np.array(forecaster.description["times"]))
    if not np.allclose(found, usual, rtol=1e-3, atol=0):
        raise UserError(
            f"{windows.file.path} with time steps of {found.mean():g}",
            f"time steps of {usual.mean():g}, as in training",
            "use data with the same time steps",
        )


def check_lead(forecaster: Forecaster, ahead: float, what: str) -> None:
    """Refuses times that are further ahead than any in training.

    Args:
        forecaster: A model of lead times.
        ahead: Time after the last input.
        what: Where it comes from, for the message.

    Raises:
        UserError: It is longer.
    """
    longest = forecaster.description["longest_lead"]
    if ahead > longest * (1 + 1e-3):
        raise UserError(
            f"{what} the last time is {ahead:g} after the last input",
            f"at most {longest:g}, the longest lead time in training",
            "ask for earlier times, or train with a larger --n-out",
        )


def choose_part(
    part: Part | None, file: FieldFile, named: Path | None, config: RunConfig
) -> Part:
    """The samples to score: all of a named file, the test part of the run's own.

    ``"all"`` becomes the split of the file, so that whatever takes its test part takes
    every sample.

    Args:
        part: What was asked for; None for the default.
        file: The open file, whose split is set.
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
        file.split = dict.fromkeys(SPLITS, np.arange(file.num_samples))
    elif not len(part_samples(config.data, file, "test")):
        raise UserError(
            f"{file.path} without test samples, {file.num_samples} in all",
            "at least one to score",
            "give --part all with --data FILE",
        )
    return part


def for_named_file(
    config: RunConfig, file: FieldFile, num_points: int, *, part: Part, around: bool
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


def _take_inputs(forecaster: Forecaster, file: FieldFile) -> None:
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
    file.know([*known["forcings"], *known["scalars"]])
    file.forcing_names, file.scalar_names = known["forcings"], known["scalars"]


def _check_static(forecaster: Forecaster, file: FieldFile) -> None:
    problem, model = forecaster.description["problem"], forecaster.description["model"]
    known = Problem.from_dict(problem)
    folded = known.folds * known.forcings + len(file.scalar_names)
    fields = problem["out_components"] if problem["has_time"] else 0
    indicators = fields if forecaster.missing else 0
    boundary = 1 + len(problem["domain"]["lower"]) if forecaster.boundary else 0
    trained = problem["in_components"] - fields - indicators - boundary - folded
    found = file.static_components if file.static_role == "coefficient" else 0
    if found == trained:
        return
    if not found:
        other = f", only an {file.static_role}" if file.static_role else ""
        raise UserError(
            f"{file.path} without a static input{other}",
            f"the coefficient that {model} was trained with, {_components(trained)}",
            "add it to the file as the training data had it",
        )
    names = ", ".join(file.static_names)
    given = f"{file.path} with a static input of {_components(found)} ({names})"
    expected, todo = f"none, as {model} was trained", "leave it out of the file"
    if trained:
        expected = f"{_components(trained)}, as {model} was trained with"
        todo = "use the coefficient of the training data"
    raise UserError(given, expected, todo)


def _components(number: int) -> str:
    return f"{number} component{'s' * (number != 1)}"


def _box(domain: dict[str, Any]) -> str:
    """A domain in short: ``[0, 1] x [-3.2, 4], periodic along y``."""
    ends = zip(domain["lower"], domain["upper"], strict=True)
    text = " x ".join(f"[{low:.6g}, {high:.6g}]" for low, high in ends)
    axes = ", ".join(compress("xyz", domain["periodic"]))
    text += f", {f'periodic along {axes}' if axes else 'not periodic'}"
    if "facets" in domain:
        text += f", a region with {len(domain['facets'])} facets"
    return text


def _axes(domain: dict[str, Any]) -> str:
    """The options of `nfsgeo convert` for a domain, with all digits."""
    axes = zip(domain["lower"], domain["upper"], domain["periodic"], strict=True)
    options = [
        f"--axis {low!r}:{high!r}{':periodic' * wraps}" for low, high, wraps in axes
    ]
    if "facets" in domain:
        options.append(f"--{'region' if domain['inside'] else 'obstacles'} FILE")
    return " ".join(options)


def _check_tied(config: RunConfig, file: FieldFile, num_points: int) -> None:
    """Refuses a file whose points are not those of training."""
    pos = _first_points(config, file)
    same = len(pos) == num_points
    own = config.data.file
    if same and own is not None and own.exists() and own != file.path.resolve():
        with nfsgeo.data.open(own) as trained:
            same = np.allclose(_first_points(config, trained), pos)
    if not same:
        raise UserError(
            f"{file.path} with other points than those of training",
            f"the same {num_points}, which {config.model.name} is tied to",
            "use data at these points, or a model that takes any, such as nfs",
        )


def _first_points(config: RunConfig, file: FieldFile) -> Doubles:
    return mesh_of(observe(config.data, file, config.seed), 0).pos


def _num_seen(config: RunConfig, file: FieldFile) -> int:
    """Training and validation samples of the run, if this is its own file."""
    if config.data.file != file.path.resolve():
        return 0
    with nfsgeo.data.open(file.path) as own:
        parts = (part_samples(config.data, own, part) for part in ("train", "valid"))
        return len(np.union1d(*parts))


def _span(least: int, most: int) -> int | list[int]:
    return least if least == most else [least, most]
