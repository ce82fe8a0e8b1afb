"""Concatenation of several files along samples or time steps, read lazily."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xarray
from numpy.typing import NDArray
from xarray import Variable

from nfsgeo.data.cache import Cache
from nfsgeo.data.conventions import (
    FIELD,
    KNOWN,
    PARAMETER,
    STATIC,
    STATION,
    STRUCTURE,
    TIME_ZONE,
)
from nfsgeo.data.domains import domain_of, with_domain
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.edges import edge_variables
from nfsgeo.data.io.file_order import have_numbers
from nfsgeo.data.io.labelled import cell_variables
from nfsgeo.data.lazy import Key, deferred, spread, stacked
from nfsgeo.data.times import EPOCH, time_texts
from nfsgeo.errors import UserError, option

__all__ = ["concatenated", "joined"]

logger = logging.getLogger(__name__)

Opener = Callable[[Path], Fields]
SMALL = (PARAMETER, "rows", "part", "facets")  # roles of what is kept in memory


def concatenated(
    paths: Sequence[Path], opener: Opener, along: str | None, *, gaps: bool = False
) -> Fields:
    """Files of one kind, one after the other as samples or as time steps.

    Values are read from the files when they are asked for. Points may differ from
    sample to sample. Time steps are put in the order of their times.

    They go ``along`` ``"samples"`` or the ``"time-steps"`` of one. None is for samples,
    where files of several time steps each can be nothing else, and files on different
    points have the same times and either no cells or names without numbers. With
    ``gaps``, a field that some time steps lack is missing there, as a line tells.

    Raises:
        UserError: The files differ in what they hold.
    """
    return _joined([_part(path, opener) for path in paths], along, gaps=gaps)


def joined(parts: Sequence[Fields], along: str | None) -> Fields:
    """Fields of one kind, one after the other as :func:`concatenated` joins files.

    Args:
        parts: The fields, which keep their values.
        along: ``"samples"``, ``"time-steps"`` or None.

    Raises:
        UserError: They differ in what they hold.
    """
    return _joined([(part, _mesh_of(part)) for part in parts], along)


def _joined(
    parts_and_meshes: Sequence[tuple[Fields, str | None]],
    along: str | None,
    *,
    gaps: bool = False,
) -> Fields:
    parts_and_meshes = _in_one_order(parts_and_meshes)
    parts = [part for part, _ in parts_and_meshes]
    parts = _with_gaps(parts) if gaps and along == "time-steps" else parts
    meshes = {mesh for _, mesh in parts_and_meshes}
    first, num = parts[0], f"{len(parts)} files from {parts[0].path}"
    for part in parts[1:]:
        _check_alike(part, first)
    _tell_zones(parts)
    alone = len(meshes) == 1 and all(part.num_samples == 1 for part in parts)
    single = all(part.num_samples == len(part.times) == 1 for part in parts)
    if along is None and single and len(parts) > 1:
        _ask_kind(parts, num, same_points=alone)
    if along == "time-steps":
        if not alone:
            one, todo = "one sample a file, all on one mesh", "join them as samples"
            if len(meshes) > 1 and None not in meshes:
                todo = "convert those of each simulation by themselves and join the "
                todo += "results; where meshes move, interpolate them to fixed points, "
                todo += "as the filter Resample With Dataset of ParaView does"
                if single:
                    todo += ", or read each step as a sample, "
                    todo += option("series", "samples")
            raise UserError(f"{num} as time steps", one, todo)
        dataset = _by_time(parts)
    else:
        several = len(meshes) > 1 or None in meshes
        several |= len({(*part.stations(),) for part in parts}) > 1
        ragged = several and first.shape is None
        dataset = _by_sample(parts, ragged=ragged, single=single, steps=alone)
    if (domain := domain_of(first.dataset)) is not None:
        dataset = with_domain(dataset, domain)
    return Fields(dataset, first.path)


def _ask_kind(parts: Sequence[Fields], num: str, *, same_points: bool) -> None:
    """Ask whether files of one time step are samples, unless each is a shape.

    Shapes differ in their points, and in numbers that are inputs of a sample, or else
    have no times that differ and, with cells, names without numbers.

    Raises:
        UserError: They may be time steps.
    """
    series = bool(parts[0].names_of("cells")) and have_numbers([p.path for p in parts])
    series |= len({part.times[0] for part in parts}) > 1
    inputs = [{n: part.dataset[n].item() for n in part.scalar_names} for part in parts]
    series &= all(numbers == inputs[0] for numbers in inputs)
    if same_points or series:
        given = f"{num}, of one time step each on "
        given += "the same points" if same_points else "different points"
        expected = "to be told whether they are samples or time steps of one sample"
        kinds = (option("series", kind) for kind in ("samples", "time-steps"))
        raise UserError(given, expected, f"say it: {' or '.join(kinds)}")
    logger.warning("%s, on different points, are samples", num)


def _in_one_order(
    parts_and_meshes: Sequence[tuple[Fields, str | None]],
) -> Sequence[tuple[Fields, str | None]]:
    """Parts whose points are those of the first in its order, if all have these.

    A line tells how many have been put in this order.
    """
    (first, mesh), *others = parts_and_meshes
    whole, moved = [(first, mesh)], list[Fields]()
    for part, other in others:
        if other != mesh:
            order = _order(part, first) if mesh and other else None
            if order is None:
                return parts_and_meshes
            part = replace(part, dataset=part.dataset.isel(point=order))
            moved.append(part)
        whole.append((part, mesh))
    if moved:
        text = "%s: the points are in another order than in %s, as in %d of %d files; "
        text += "they are matched by place"
        logger.warning(text, moved[0].path, first.path, len(moved), len(whole))
    return whole


def _order(part: Fields, first: Fields) -> NDArray[np.intp] | None:
    """The index of the points in the order of the first; None if they are others."""
    points, own = (f.coordinates().astype(np.float32) for f in (first, part))
    sizes = {len(points), part.dataset.sizes.get("point")}
    if points.shape != own.shape or len(sizes) > 1 or first.has_graph:
        return None
    ranks, own_ranks = np.lexsort(points.T), np.lexsort(own.T)
    places = points[ranks]
    twice = (places[1:] == places[:-1]).all(axis=1).any()
    if twice or not np.array_equal(places, own[own_ranks]):
        return None
    order = np.empty_like(ranks)
    order[ranks] = own_ranks
    return order


AT_ONCE = 16  # files that stay open, or in memory, whatever their size
OPENED = Cache(2**29, at_least=AT_ONCE)


def _opened(opener: Opener, path: Path) -> xarray.Dataset:
    opened: xarray.Dataset = OPENED.get((opener, path), lambda: opener(path).dataset)
    return opened


def _reopen(opener: Opener, path: Path, name: str, key: Key) -> NDArray[Any]:
    """Read a variable of a file, which is opened again unless it is cached."""
    return np.asarray(_opened(opener, path)[name].variable[key].values)


def _part(path: Path, opener: Opener) -> tuple[Fields, str | None]:
    """A file without its values, and a digest of its points if it has one mesh."""
    dataset = _opened(opener, path)
    variables = dict(dataset.variables)
    for name, variable in variables.items():
        if variable.attrs.get("role") not in SMALL and variable.dims != (name,):
            read = partial(_reopen, opener, path, str(name))
            size, about = variable.shape, variable.attrs
            variables[name] = deferred(variable.dims, size, variable.dtype, read, about)
    return Fields(_dataset(variables, dataset), path), _mesh_of(Fields(dataset, path))


def _mesh_of(fields: Fields) -> str | None:
    """A digest of the points of fields on one mesh, the same for all grids."""
    if fields.num_samples > 1 and fields.own_meshes:
        return None
    if fields.axes is not None:
        return ""
    points = fields.coordinates().astype(np.float32)  # in which some files store them
    return hashlib.blake2b(points.tobytes()).hexdigest()


def _with_gaps(parts: Sequence[Fields]) -> list[Fields]:
    """Time steps with all fields that one of them has, missing where it is not."""
    templates: dict[Any, Variable] = {}
    for part in parts:
        for name in part.component_names:
            templates.setdefault(name, part.dataset[name].variable)
    lacking = {n: [p for p in parts if n not in p.dataset] for n in templates}
    filled = []
    for part in parts:
        absent = {n: v for n, v in templates.items() if n not in part.dataset}
        for name, variable in absent.items():
            missing = Variable([], np.float32("nan"), variable.attrs)
            sizes = {dim: part.dataset.sizes.get(dim, 1) for dim in variable.dims}
            absent[name] = spread(missing, sizes)
        dataset = part.dataset.assign(absent)
        filled.append(replace(part, dataset=dataset) if absent else part)
    for name, some in ((name, some) for name, some in lacking.items() if some):
        text = "%s: %s is missing at %d of %d time steps, which lack it"
        logger.warning(text, some[0].path, name, len(some), len(parts))
    return filled


def _check_alike(part: Fields, first: Fields) -> None:
    """Raise a UserError if two files differ in names, grids, domains or units."""
    names = "component_names", "forcing_names", "static_names", "scalar_names"
    sets = [(n, {*getattr(part, n)}, {*getattr(first, n)}) for n in names]
    odd = [n.replace("_", " ") for n, one, other in sets if one != other]
    odd += ["shape"] * (part.shape != first.shape)
    odd += ["edges"] * (part.names_of("edges") != first.names_of("edges"))
    if domain_of(part.dataset) != domain_of(first.dataset):
        odd = ["domain"]
    if not odd and not all(map(_same, part.axes or (), first.axes or ())):
        odd = ["grid"]
    for name in sorted({*first.units, *part.units}):
        unit, other = first.units.get(name, ""), part.units.get(name, "")
        # Numbers and dates are not the same times, whatever the one is in.
        both = (unit and other) or (name == "time" and "time" in part.dataset.variables)
        if both and unit != other:
            odd.append(f"units of {name} ({other or 'none'}, not {unit or 'none'})")
    if odd:
        given = f"{part.path} with other {odd[0]} than the file before"
        raise UserError(given, "files of one kind", "convert it by itself")


def _by_sample(
    parts: Sequence[Fields], *, ragged: bool, single: bool, steps: bool
) -> xarray.Dataset:
    """The samples of all parts, with a mesh for each sample where they are ragged.

    The times of samples of a ``single`` time step are left out if they differ, of which
    a line tells. With ``steps``, the parts may be time steps instead.
    """
    odd = [part for part in parts if not _same(part.times, parts[0].times)]
    if odd and single:
        text = "%s and %d others: left out the times of samples, which differ"
        logger.warning(text, parts[0].path, len(parts) - 1)
        bare = [part.dataset.drop_vars("time", errors="ignore") for part in parts]
        parts = [replace(p, dataset=d) for p, d in zip(parts, bare, strict=True)]
    elif odd:
        given = f"{odd[0].path} with other times than {parts[0].path}"
        todo = "give the times since the beginning of each sample"
        if steps:
            todo = f"say {option('series', 'time-steps')} if they are of one sample"
        raise UserError(given, "samples with the same times", todo)
    datasets = rows = [part.dataset for part in parts]
    cells: Any = [parts[0].cells()]
    if ragged:
        samples = [_at(part, s) for part in parts for s in range(part.num_samples)]
        rows, cells = zip(*samples, strict=True)
    result: dict[Any, Variable] = dict(cell_variables(cells))
    if parts[0].has_graph:
        result |= edge_variables([p.graph(s) for p in parts for s in range(len(p))])
    if ragged:
        sizes = np.array([row.sizes["obs"] for row in rows])
        about = {"sample_dimension": "obs", "role": "rows"}
        result["row_size"] = Variable("sample", sizes, about)
    for name, variable in datasets[0].variables.items():
        role, several = variable.attrs.get("role"), variable.dims != ("sample",)
        if role in STRUCTURE or not all(name in other.variables for other in datasets):
            continue
        placed = name in (*parts[0].space, STATION)
        placed |= role not in (None, PARAMETER) and several
        if ragged and placed:
            result[name] = _stacked(rows, name, "obs")
        else:
            result[name] = _stacked(datasets, name, "sample") if role else variable
    return _dataset(result, datasets[0])


def _at(part: Fields, sample: int) -> tuple[xarray.Dataset, dict[str, Any]]:
    """Return the variables of a sample along ``obs``, and its cells."""
    dataset, rows = part.dataset, dict[Any, Any](obs=part.rows(sample), sample=sample)
    if rows["obs"] is None:
        exists = part.existing(sample)
        rows["obs"] = slice(None) if exists is None else np.flatnonzero(exists)
        dataset = dataset.rename(point="obs")
    part._cached_points.clear()  # of many files at once
    return dataset.isel(rows, missing_dims="ignore"), part.cells(sample)


def _stacked(datasets: Sequence[xarray.Dataset], name: Any, along: str) -> Variable:
    """A variable of all files, one behind the other along a dimension."""
    variables, parts = [dataset.variables[name] for dataset in datasets], []
    has = dict.fromkeys(str(dim) for variable in variables for dim in variable.dims)
    dims = [*has] if along in has else [along, *has]
    for dataset, variable in zip(datasets, variables, strict=True):
        sizes = {dim: dataset.sizes.get(dim, 1) for dim in dims}
        if any(sizes[d] != datasets[0].sizes.get(d, 1) for d in dims if d != along):
            given = f"{name} of {len(datasets)} files, which differ in its shape"
            raise UserError(given, "files of one kind", "convert them one by one")
        parts.append(spread(variable, sizes))
    return stacked(parts, along).copy(deep=False)


def _by_time(parts: Sequence[Fields]) -> xarray.Dataset:
    """The time steps of all parts, in the order of their times where they tell them."""
    # Without a time of its own a file has one time step, at 0.
    timed = all("time" in part.dataset.variables for part in parts)
    timed &= len(parts) == 1 or len({part.times[0] for part in parts}) > 1
    parts = sorted(parts, key=lambda part: part.times[0]) if timed else parts
    datasets = [part.dataset for part in parts]
    result = dict[Any, Variable]()
    for name, variable in datasets[0].variables.items():
        role = variable.attrs.get("role")
        if role in (FIELD, KNOWN) and variable.dims != ("sample",):
            result[name] = _stacked(datasets, name, "time")
            # So many steps of all fields are read together, each file once.
            result[name].encoding["preferred_chunks"] = {"time": AT_ONCE}
        elif role in (KNOWN, STATIC, PARAMETER):
            same = [variable.equals(d.variables.get(name)) for d in datasets]
            odd = [part for part, fine in zip(parts, same, strict=True) if not fine]
            if not odd:
                result[name] = variable
            elif role == PARAMETER:
                logger.warning("%s: left out %s, which changes", odd[0].path, name)
            else:
                given = f"{odd[0].path} with {name}, which changes in time"
                expected = "the same values at all time steps of a static input"
                todo = "rename it if it is a field to predict"
                raise UserError(given, expected, todo)
        elif role != "part" and name != "time":
            result[name] = variable
    if timed:
        for one, other in pairwise(parts):
            if not one.times[-1] < other.times[0]:
                ends = time_texts([one.times[-1], other.times[0]], one.time_unit)
                given = f"{one.path} until {ends[0]} and {other.path} from {ends[1]} on"
                todo = "leave out what is there twice, or merge the files"
                raise UserError(given, "files one after the other in time", todo)
        times = np.concatenate([part.times for part in parts])
        result["time"] = Variable("time", times, datasets[0]["time"].attrs)
    return _dataset(result, datasets[0])


def _tell_zones(parts: Sequence[Fields]) -> None:
    """Tell in a line that dates of some parts, unlike others, have no time zone."""
    dated = [part for part in parts if part.time_unit == EPOCH]
    bare = [p for p in dated if TIME_ZONE not in p.dataset["time"].attrs]
    if 0 < len(bare) < len(dated):
        other = next(p for p in dated if TIME_ZONE in p.dataset["time"].attrs)
        text = "%s: times without a time zone are read as UTC, beside those of %s"
        logger.warning(text, bare[0].path, other.path)


def _dataset(variables: dict[Any, Variable], source: xarray.Dataset) -> xarray.Dataset:
    coords = [name for name in variables if name in source.coords]
    return xarray.Dataset(variables, attrs=source.attrs).set_coords(coords)


def _same(values: NDArray[Any], first: NDArray[Any]) -> bool:
    """Return whether times or coordinates are equal up to 1e-3 of their least step."""
    rounding = 1e-3 * np.diff(first).min() if len(first) > 1 else 0.0
    equal = values.shape == first.shape
    return equal and np.allclose(values, first, rtol=0, atol=rounding)
