"""Fields in memory, as files of fields: arrays, xarray's data sets, lists of graphs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from nfsgeo.data.disk import cache_folder
from nfsgeo.data.export import export
from nfsgeo.data.fields import FieldFile, padded_box, reading
from nfsgeo.data.numbers import as_real, check_distinct, check_num_names, dated, finite
from nfsgeo.data.opening import fitted, open_file
from nfsgeo.data.readers.clouds import CloudFile, numbered
from nfsgeo.data.readers.graphs import fields_of_graphs
from nfsgeo.data.readers.netcdf import fields_of
from nfsgeo.data.splits import check_split
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

if TYPE_CHECKING:
    import xarray
    from torch_geometric.data import Data

__all__ = ["from_arrays", "from_pyg", "from_xarray"]


def from_arrays(
    u: ArrayLike | Sequence[ArrayLike],
    pos: ArrayLike | Sequence[ArrayLike],
    t: ArrayLike | None = None,
    *,
    static: ArrayLike | Sequence[ArrayLike] | None = None,
    forcing: ArrayLike | Sequence[ArrayLike] | None = None,
    scalars: Mapping[str, ArrayLike] | None = None,
    mask: ArrayLike | Sequence[ArrayLike] | None = None,
    domain: Domain | None = None,
    component_names: Sequence[str] | None = None,
    static_names: Sequence[str] | None = None,
    forcing_names: Sequence[str] | None = None,
    units: Mapping[str, str] | None = None,
    equation: str = "",
    split: Mapping[str, ArrayLike] | None = None,
) -> FieldFile:
    """Arrays as a file of fields, for ``prepare``, ``evaluate`` and ``predict``.

    The arrays are written once, to a file in the user's cache that is named after their
    content: a run can be resumed and evaluated later, as from any other file. Arrays
    and tensors are taken alike.

    Args:
        u: Fields, ``[N, n, T, C]``, or one ``[n, T, C]`` for each sample. Trailing axes
            of length one may be left out.
        pos: Points of all samples, ``[n, d]``, or one array for each sample.
        t: Time of each time step, ``[T]``, numbers or dates (``datetime64``, in UTC);
            None where there is one.
        static: Coefficients, ``[N, n, C_a]``, or one ``[n, C_a]`` for each sample.
        forcing: What is known ahead, with the axes of ``u``: ``[N, n, T, C_f]``. At the
            time steps that are still to come ``u`` is NaN.
        scalars: Inputs that are one number for each sample, ``[N]``, by name.
        mask: True where ``u`` is missing, as numpy has it, of its shape; besides, NaN
            and masked arrays are missing values.
        domain: The box and its periodic axes; drawn around the points when None.
        component_names: Names of the ``C`` components.
        static_names: Names of the ``C_a`` components.
        forcing_names: Names of the ``C_f`` components.
        units: Units of components, ``time`` and axes by name, ``{"x": "km"}``.
        equation: Name of the equation.
        split: Sample numbers of ``"train"``, ``"valid"`` and ``"test"``; in order
            0.7/0.1/0.2 when None.

    Raises:
        UserError: A shape contradicts another, or values are no finite numbers.
    """
    fields = [_with_axes(each, 3) for each in _each(u, "u")]
    if mask is not None:
        fields = _masked(fields, [_with_axes(m, 3) for m in _each(mask, "mask")])
    own = _is_list(pos)
    points = _each(pos, "pos") if own else [as_real(pos, "pos")]
    if own and len(points) != len(fields):
        raise _differ("pos", len(points), len(fields))
    coefficients = [] if static is None else _each(static, "static")
    coefficients = [_with_axes(each, 2) for each in coefficients]
    if coefficients and len(coefficients) != len(fields):
        raise _differ("static", len(coefficients), len(fields))
    if scalars is not None and not isinstance(scalars, Mapping):
        raise UserError(
            f"scalars of type {type(scalars).__name__}",
            "numbers of each sample by name",
            'give scalars={"nu": [...]}',
        )
    names = _names(component_names, "u", "u", fields[0])
    known: list[str] = []
    if forcing is not None:
        forcings = [_with_axes(each, 3) for each in _each(forcing, "forcing")]
        fields = _side_by_side(fields, forcings)
        known = _names(forcing_names, "f", "forcing", forcings[0])
    if t is None and fields[0].shape[1] > 1:
        raise UserError(
            f"u of {fields[0].shape[1]} time steps and no t",
            "the time of each time step",
            "give t",
        )
    static_names = (
        _names(static_names, "a", "static", coefficients[0]) if coefficients else []
    )
    check_distinct("arrays", [*names, *known, *static_names, *(scalars or ())])
    file = CloudFile(
        Path("arrays"),
        meshes=points if own else points * len(fields),
        u=fields,
        times=np.zeros(1) if t is None else t,
        component_names=[*names, *known],
        a=coefficients,
        static_names=static_names,
        equation=equation,
        domain=domain,
        parameters={name: _of_samples(v, name, fields) for name, v in scalars.items()}
        if scalars
        else None,
        split=None if split is None else _parts(split, len(fields)),
    )
    file.know([*known, *(scalars or ())])
    if units:
        there = [*file.component_names, *known, *file.static_names, "time"]
        there += "xyz"[: file.domain.dim]
        for name in units:
            if name not in there:
                raise UserError(
                    f"units of {name}", f"of {', '.join(there)}", "rename it"
                )
        file.provenance = dated({"units": dict(units)}, t)
    return _kept(file)


def from_xarray(
    dataset: xarray.Dataset | xarray.DataArray,
    *,
    columns: Mapping[str, str] | None = None,
    domain: Domain | None = None,
    known: Sequence[str] = (),
) -> FieldFile:
    """A data set of xarray as a file of fields; see :func:`from_arrays`.

    It is read as a NetCDF file is: coordinates by the CF conventions, grids, stations
    and unstructured meshes, fields that vary in time and coefficients that do not.

    Args:
        dataset: In memory or lazy; an array is the only field, ``u`` without a name.
        columns: Names of variables by what they are, ``{"x": "lon"}``, where the data
            set does not tell.
        domain: The box and its periodic axes; that of the coordinates when None.
        known: Names of fields that are known ahead, and of variables of samples alone
            that are inputs of a model.

    Raises:
        UserError: The data set can be read in two ways, or has no field, or no time of
            its time steps.
    """
    import xarray

    if isinstance(dataset, xarray.DataArray):
        dataset = dataset.to_dataset(name=dataset.name or "u")
    if not isinstance(dataset, xarray.Dataset):
        raise UserError(
            f"data of type {type(dataset).__name__}",
            "a data set of xarray",
            "open a file by nfsgeo.data.open, or make a data set of it",
        )
    with reading(Path("dataset"), "fields in space", "check the data set"):
        file = fields_of(Path("dataset"), dataset, columns)
    _check_times(file, "add the coordinate: dataset.assign_coords(time=...)")
    if file.longitude is not None and domain is None:
        raise UserError(
            f"longitudes over {file.longitude:g} degrees",
            "to be told whether they close around the globe",
            "give domain=Domain.sphere() or Domain(lower, upper, periodic)",
        )
    if domain is not None:
        file.domain, file.domain_is_known = fitted(domain, file), True
    file.know(known)
    file.check_series()
    return _kept(file)


def from_pyg(
    graphs: Sequence[Data],
    *,
    series: str | None = None,
    domain: Domain | None = None,
    known: Sequence[str] = (),
) -> FieldFile:
    """A list of PyTorch Geometric's ``Data`` as a file; see :func:`from_arrays`.

    Attributes are those of :func:`~nfsgeo.data.readers.graphs.fields_of_graphs`: each
    graph has ``pos`` and ``x``, and ``y``, ``forcing`` or ``t`` where there are such.

    Args:
        graphs: The samples, or the time steps of one.
        series: ``"samples"`` or ``"time-steps"``, where it cannot be told.
        domain: The box and its periodic axes; drawn around the points when None.
        known: Names of numbers of each graph that are inputs of a model.

    Raises:
        UserError: Graphs differ in their attributes, or can be read in two ways.
    """
    from torch_geometric.data import Data

    listed = isinstance(graphs, Iterable) and not isinstance(graphs, Data)
    if not listed or not all(isinstance(each, Data) for each in graphs):
        raise UserError(
            f"{type(graphs).__name__} in place of a list of graphs",
            "PyTorch Geometric's Data, one for each sample or time step",
            "give a list of them: from_pyg([data, ...])",
        )
    if not len(graphs):
        raise UserError("a list without graphs", "a graph for each sample", "add some")
    with reading(Path("graphs"), "graphs with pos, x and y or t", "check them"):
        file = fields_of_graphs(Path("graphs"), graphs, series)
    _check_times(file, "give each graph the times of its x, and of its y, data.t = ...")
    if domain is not None:
        file.domain, file.domain_is_known = domain, True
    file.know(known)
    return _kept(file)


def _check_times(file: FieldFile, todo: str) -> None:
    if len(file.times) > 1 and not file.times_are_known:
        given = f"{file.path} with {len(file.times)} time steps and no times"
        raise UserError(given, "the time of each time step", todo)


def _kept(file: FieldFile) -> FieldFile:
    """The samples of a file in memory, from a native file in the user's cache."""
    if file.axes is None and not file.domain_is_known:
        file.domain = padded_box(file)
    digest = hashlib.blake2b(digest_size=16)
    about = [file.component_names, file.static_names, file.equation, file.static_role]
    about += [json.dumps(file.domain.to_dict()), repr(sorted(file.provenance.items()))]
    if known := [*file.forcing_names, *file.scalar_names]:
        about += [known, str(len(file.forcing_names))]
    digest.update(json.dumps(about).encode())
    digest.update(file.times.tobytes())
    for name, samples in sorted(file.split.items()):
        digest.update(name.encode() + np.asarray(samples, np.int64).tobytes())
    for name, values in sorted(file.parameters.items()):
        digest.update(name.encode() + np.asarray(values).tobytes())
    for axis in file.axes or ():
        digest.update(repr(axis.shape).encode() + axis.tobytes())
    for sample in range(file.num_samples):
        for kind, nodes in sorted(file.cells(sample).items()):
            nodes = np.asarray(nodes, np.int64)
            digest.update(repr((kind, nodes.shape)).encode() + nodes.tobytes())
        for part in (
            file.coordinates(sample),
            file.read_all(sample, slice(None)),
            file.read_static(sample),
        ):
            digest.update(repr(part.shape).encode() + part.tobytes())
    path = cache_folder() / f"{file.path.name}-{digest.hexdigest()}.h5"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        export(file, path)
    return open_file(path)


def _parts(split: Mapping[str, ArrayLike], num: int) -> dict[str, np.ndarray]:
    try:
        parts = {name: np.asarray(part) for name, part in split.items()}
        if any(part.size and part.dtype.kind not in "iu" for part in parts.values()):
            raise ValueError("sample numbers that are no integers")
        check_split(parts, num)
        return {name: part.astype(np.int64) for name, part in parts.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise UserError(
            f"a split of {num} samples that is none ({error})",
            "sample numbers of train, valid and test, each number at most once",
            'give split={"train": [...], "valid": [...], "test": [...]}',
        ) from error


def _is_list(values: Any) -> bool:
    listed = isinstance(values, list | tuple) and len(values) > 0
    return listed and np.ndim(values[0]) > 1


def _each(values: Any, name: str) -> list[np.ndarray]:
    """One array for each sample.

    Raises:
        UserError: There is none.
    """
    try:
        samples = list(values)
    except TypeError:  # None, or one number
        samples = []
    found = [as_real(each, name, gaps=name == "u") for each in samples]
    if not found or not all(each.ndim for each in found):
        raise UserError(f"{name} without samples", "an array for each", "give them")
    return found


def _with_axes(values: np.ndarray, ndim: int) -> np.ndarray:
    return values.reshape(*values.shape, *[1] * (ndim - values.ndim))


def _names(
    given: Sequence[str] | None, letter: str, what: str, values: np.ndarray
) -> list[str]:
    """The given name of each component of an array, or the letter and its number."""
    num = values.shape[-1]
    names = list(given or numbered(letter, num))
    check_num_names("arrays", what, names, values.shape, num)
    return names


def _side_by_side(
    fields: list[np.ndarray], forcings: list[np.ndarray]
) -> list[np.ndarray]:
    """Fields and forcings of each sample, one behind the other."""
    if len(forcings) != len(fields):
        raise _differ("forcing", len(forcings), len(fields))
    for field, forcing in zip(fields, forcings, strict=True):
        if forcing.shape[:2] != field.shape[:2]:
            raise UserError(
                f"forcing of shape {forcing.shape} and u of shape {field.shape}",
                "the same points and time steps",
                "give u as NaN at the time steps that are still to come",
            )
    pairs = zip(fields, forcings, strict=True)
    return [np.concatenate(pair, axis=-1) for pair in pairs]


def _of_samples(values: ArrayLike, name: str, fields: list[np.ndarray]) -> np.ndarray:
    numbers = finite(as_real(values, f"scalar {name}"), f"scalar {name}")
    if numbers.shape != (len(fields),):
        raise UserError(
            f"scalar {name} of shape {numbers.shape}",
            f"a number for each of {len(fields)} samples",
            "give one array for each scalar",
        )
    return numbers


def _masked(fields: list[np.ndarray], masks: list[np.ndarray]) -> list[np.ndarray]:
    if len(masks) != len(fields):
        raise _differ("mask", len(masks), len(fields))
    for field, mask in zip(fields, masks, strict=True):
        if mask.shape != field.shape or mask.dtype != bool:
            raise UserError(
                f"a mask of shape {mask.shape} and type {mask.dtype}",
                f"booleans of shape {field.shape}, as the fields",
                "give True where they are missing",
            )
    pairs = zip(fields, masks, strict=True)
    return [np.where(m, np.nan, np.asarray(f, np.float64)) for f, m in pairs]


def _differ(name: str, num: int, samples: int) -> UserError:
    return UserError(
        f"{name} of {num} samples and u of {samples}",
        "as many of both",
        "give one array for each sample, or one for all where that is allowed",
    )
