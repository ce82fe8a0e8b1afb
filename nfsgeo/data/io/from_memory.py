"""Fields from memory: arrays, data sets of xarray, lists of graphs."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
import xarray
from numpy.typing import ArrayLike

from nfsgeo.data.checks import as_real, finite, reading
from nfsgeo.data.conventions import FIELD, KNOWN, STATIC
from nfsgeo.data.fields import Fields
from nfsgeo.data.flat_axes import heights_as_input
from nfsgeo.data.io.edges import with_graph
from nfsgeo.data.io.flags import with_masks, with_node_types
from nfsgeo.data.io.graph_times import ASK, TimeAxis
from nfsgeo.data.io.graphs import fields_of_graphs
from nfsgeo.data.io.labelled import check_cell_types, numbered, to_fields
from nfsgeo.data.io.netcdf import fields_of
from nfsgeo.data.io.opening import check_path, with_user_answers
from nfsgeo.data.io.roles import Columns, with_kinds
from nfsgeo.data.writers import of_each_sample, write_own
from nfsgeo.errors import SAVED_NAME, UserError
from nfsgeo.files import cache_folder, safe_name
from nfsgeo.geometry import Domain

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["from_arrays", "from_pyg", "from_xarray", "name_in_memory", "saved_path"]

logger = logging.getLogger(__name__)

OBJECT = np.dtype(object)
Values = ArrayLike | Sequence[ArrayLike]  # of all samples, or an array for each


def from_arrays(
    u: Values,
    pos: Values,
    t: ArrayLike | None = None,
    *,
    static: Values | Mapping[str, Values] | None = None,
    forcing: Values | Mapping[str, Values] | None = None,
    scalars: Mapping[str, ArrayLike] | None = None,
    cells: Mapping[str, Values] | Sequence[Mapping[str, ArrayLike]] = (),
    edges: Values | None = None,
    edge_weight: Values | None = None,
    domain: Domain | None = None,
    component_names: Sequence[str] | None = None,
    static_names: Sequence[str] | None = None,
    forcing_names: Sequence[str] | None = None,
    units: Mapping[str, str] | None = None,
    node_types: Mapping[int, str] | None = None,
    equation: str = "",
    split: Mapping[str, ArrayLike] | None = None,
    name: str = "arrays",
) -> Fields:
    """Fields at points, from arrays or tensors.

    Args:
        u: Fields, ``[N, n, T, C]``, or one ``[n, T, C]`` for each sample, NaN or masked
            where there is no value. Trailing axes of length one may be left out; a
            warning tells how ``u`` is read if its axes may then be in another order,
            as those of ``[N, n]`` or of ``[N, n, T]`` with equal sizes. With one time
            step and names of all components also ``[N, n, C]``, or ``[n, C]`` each.
        pos: Points of all samples, ``[n, d]``, or one array for each sample.
        t: Time of each time step, ``[T]``, numbers or dates (``datetime64``, in UTC);
            None where there is one.
        static: Static inputs, ``[N, n, C_a]``, or one ``[n, C_a]`` for each sample; or
            arrays by name, such as ``{"node_type": types}``.
        forcing: Fields that are known ahead, with the axes of ``u``,
            ``[N, n, T, C_f]``, or by name. At time steps still to come ``u`` is NaN.
        scalars: Inputs that are one number for each sample, ``[N]``, by name.
        cells: Cells of the mesh by the type that meshio calls them, ``[cells, nodes]``,
            such as ``{"triangle": [[0, 1, 2]]}``, of all samples or, in a list or by
            type, those of each. Nodes are numbers of the points of a sample. Types are
            ``vertex``, ``line``, ``triangle``, ``quad``, ``tetra``, ``pyramid``,
            ``wedge`` and ``hexahedron``, or ``triangle6`` with further nodes.
        edges: Sources and targets ``[2, E]`` of a graph such as a road network, of all
            samples or a list of those of each, which ``gcgru`` and ``dcrnn`` use.
        edge_weight: Weights of the edges, ``[E]``, likewise; None for 1.
        domain: The box and its periodic axes; drawn around the points when None.
        component_names: Names of the ``C`` components.
        static_names: Names of the ``C_a`` components; whole numbers of the name
            ``node_type`` are categories.
        forcing_names: Names of the ``C_f`` components.
        units: Units of components, ``time`` and axes by name, ``{"x": "km"}``.
        node_types: Names of the numbers in ``node_type``, ``{0: "interior"}``.
        equation: Name of the equation.
        split: Sample numbers of ``"train"``, ``"valid"`` and ``"test"``; in order
            0.7/0.1/0.2 when None.
        name: Name of the data, for messages and for the folders of runs.

    Raises:
        UserError: A shape contradicts another, values are no finite numbers, a point is
            outside the domain, or a type of cells is not known.
    """
    arrays = [
        ("u", u, component_names, FIELD, ("point", "time", "component")),
        ("f", forcing, forcing_names, KNOWN, ("point", "time", "component")),
        ("a", static, static_names, STATIC, ("point", "component")),
    ]
    variables = {}
    for short, values, names, role, dims in arrays:
        by_name: Mapping[str, Any] = {"": values}
        if role != FIELD and (values is None or isinstance(values, Mapping)):
            by_name = values or {}
            if names and by_name:
                given = f"{role} by name, and the names {', '.join(names)}"
                raise UserError(given, "each name once", "leave out the latter")
        for key, part in by_name.items():
            samples = _by_sample(part, f"{role} {key}".strip(), len(dims))
            if len(dims) == 3 and not key and (t is None or np.size(t) == 1):
                samples = _with_one_step(samples, role, names)
            names = numbered(key, samples[0].shape[-1]) if key else names
            about = {"role": role, "components": names}
            variables[f"{role} {key}" if key else short] = dims, samples, about
    num = len(variables["u"][1])
    each: Any = pos
    # An array of objects holds one for each sample, as a list does.
    several = isinstance(pos, (list, tuple)) or getattr(pos, "dtype", 0) is OBJECT
    several = several and len(each) > 0 and np.ndim(each[0]) > 1
    points: Any = each if several else [pos] * num
    num_times = 1 if t is None else int(np.prod(np.shape(t)))
    if t is not None:
        _check_axes(variables["u"][1], points, num_times)
    _tell_order(u, points, num_times)
    with reading(Path("arrays"), "arrays of the same samples, points and time steps"):
        check_cell_types([cells] if isinstance(cells, Mapping) else cells)
        types: Any = cells if isinstance(cells, Mapping) else {}
        if any(len(part) and np.ndim(part[0]) > 1 for part in types.values()):
            per_sample = zip(*types.values(), strict=False)
            cells = [dict(zip(types, part, strict=True)) for part in per_sample]
        if not isinstance(cells, Mapping) and len(cells) not in (0, num):
            given = f"cells of {len(cells)} samples"
            raise UserError(given, f"those of {num}", "give them for each sample")
        if len(points) != num:
            given = f"points of {len(points)} samples"
            expected = f"{num}, arrays of the same samples, points and time steps"
            raise UserError(given, expected, "give points for each, or for all")
        numbers = {n: finite(as_real(v, n), n) for n, v in (scalars or {}).items()}
        fields = to_fields(
            Path("arrays"),
            variables,
            {"points": (("point", "axis"), [*points]), "time": ("time", t)},
            parameters=numbers,
            cells=cells,
            equation=equation,
            units=units,
            split=split,
        )
        if edges is not None:
            fields = with_graph(fields, edges, edge_weight)
    fields = with_node_types(_with_units(fields, units), node_types)
    todo = "give t, the time of each"
    fields = with_user_answers(fields, None, domain, list(numbers), todo)
    return _without_infinite(replace(fields, path=Path(name)))


def from_xarray(
    dataset: xarray.Dataset | xarray.DataArray,
    *,
    columns: Columns | None = None,
    domain: Domain | None = None,
    known: Sequence[str] = (),
    name: str = "dataset",
) -> Fields:
    """Fields in a data set of xarray, in memory or lazy.

    It is read as a NetCDF file is: coordinates by the CF conventions, grids, stations
    and unstructured meshes, fields that vary in time and static inputs that do not.

    Args:
        dataset: An array is the only field, ``u`` without a name.
        columns: Names of variables by what they are, ``{"x": "lon"}``, where the data
            set does not tell, see :func:`nfsgeo.data.open`.
        domain: The box and its periodic axes; that of the coordinates when None.
        known: Names of fields that are known ahead, and of variables of samples alone
            that are inputs of a model.
        name: Name of the data, for messages and for the folders of runs.

    Raises:
        UserError: The data set can be read in two ways, or has no field, or no time of
            its time steps, or infinite values in memory; lazy ones are found when read.
    """
    if isinstance(dataset, xarray.DataArray):
        dataset = dataset.to_dataset(name=dataset.name or "u")
    if isinstance(dataset, pandas.DataFrame | pandas.Series):
        given = f"{name} of type {type(dataset).__name__}"
        todo = "write a table of pandas to a file, table.to_parquet('NAME.parquet'), "
        todo += "and open that by nfsgeo.open, or give arrays to nfsgeo.from_arrays"
        raise UserError(given, "a Dataset or DataArray of xarray", todo)
    with reading(Path("dataset"), "a data set of xarray", "open files by nfsgeo.open"):
        fields = fields_of(Path("dataset"), dataset, columns)
    fields, columns = with_masks(fields, columns)
    fields = with_kinds(fields, columns, roles=True)
    fields = heights_as_input(fields, columns, domain)
    todo = "add the coordinate: dataset.assign_coords(time=...)"
    fields = with_user_answers(fields, None, domain, known, todo)
    fields.check_known()
    fields = replace(fields, path=Path(name))
    in_memory = all(v._in_memory for v in dataset.variables.values())
    return _without_infinite(fields) if in_memory else fields


def from_pyg(
    graphs: Iterable[Data] | Data,
    *,
    series: str | None = None,
    time_axis: TimeAxis = ASK,
    domain: Domain | None = None,
    known: Sequence[str] = (),
    columns: Columns | None = None,
    component_names: Sequence[str] | None = None,
    static_names: Sequence[str] | None = None,
    forcing_names: Sequence[str] | None = None,
    units: Mapping[str, str] | None = None,
    node_types: Mapping[int, str] | None = None,
    name: str = "graphs",
) -> Fields:
    """Fields in a list of PyTorch Geometric's ``Data``.

    Attributes are those of :func:`~nfsgeo.data.io.graphs.fields_of_graphs`: each
    graph has ``pos`` and ``x``, and ``y``, ``forcing`` or ``t`` where there are such.
    If the problem is steady, ``y`` are the fields, ``x`` is a coefficient if there is
    one, and ``node_type``, masks and numbers of each graph are inputs.

    Args:
        graphs: The samples, or the time steps of one: a list, a data set, a loader that
            does not shuffle, or a ``Batch``.
        series: ``"samples"`` or ``"time-steps"``, where it cannot be told.
        time_axis: The axis of ``x``, ``y`` and ``forcing`` that is time: 1 for (points,
            time steps, components) or (points, time steps), 2 for (points, components,
            time steps), None where none is. ``"ask"`` has to be said otherwise only
            where the number of times ``t`` leaves it open.
        domain: The box and its periodic axes; drawn around the points when None.
        known: Names of fields that are known ahead. Numbers of each graph are inputs
            unless ``columns`` ignore them.
        columns: Names of components that are ``static`` inputs, a ``field`` or to
            ``ignore``, where they do not change in time; and of further attributes at
            points that are static inputs.
        component_names: Names of the components of ``y``, or of ``x`` in time.
        static_names: Names of the components of a coefficient ``x``.
        forcing_names: Names of the components of ``forcing``.
        units: Units of components, ``time`` and axes by name, ``{"x": "km"}``.
        node_types: Names of the numbers in ``node_type``, ``{0: "interior"}``.
        name: Name of the data, for messages and for the folders of runs.

    Raises:
        UserError: Graphs differ in their attributes, can be read in two ways, or have
            infinite values.
    """
    what = "a list of Data with pos, x and y or t, one for each sample or time step"
    with reading(Path("graphs"), what, "give a list: from_pyg([data, ...])"):
        fields = fields_of_graphs(
            Path("graphs"),
            graphs,
            series,
            columns,
            time_axis=time_axis,
            component_names=component_names,
            static_names=static_names,
            forcing_names=forcing_names,
        )
    fields = with_kinds(_with_units(fields, units), columns)
    fields = with_node_types(fields, node_types)
    todo = "give each graph the times of its x, and of its y, data.t = ..., or say "
    todo += "which axis is time, time_axis=..."
    fields = with_user_answers(fields, None, domain, known, todo)
    return _without_infinite(replace(fields, path=Path(name)))


def saved_path(fields: Fields | Path | str) -> Path:
    """The path of a file with these fields, in the user's cache if they have none.

    It is named after their content, so that a run can be resumed and evaluated later.

    Raises:
        UserError: The ``fields`` are neither fields nor a path.
    """
    if not isinstance(fields, Fields):
        return check_path(fields)
    if fields.reopens:
        return fields.path
    about = fields.dataset.to_dict(data=False)
    digest = hashlib.blake2b(repr(about).encode(), digest_size=16)
    for sample in range(fields.num_samples):
        for name, _, values in of_each_sample(fields, sample):
            digest.update(name.encode() + np.ascontiguousarray(values).tobytes())
    path = cache_folder() / f"{safe_name(fields.path.stem)}-{digest.hexdigest()}.nc"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_own(fields, path)
    return path


def name_in_memory(path: Path) -> str:
    """Return the name that fields in memory had before :func:`saved_path` saved them.

    It is empty for any other file, such as a generated one in the same folder.
    """
    saved = re.fullmatch(SAVED_NAME, path.name)
    return saved[1] if saved and path.parent == cache_folder() else ""


def _without_infinite(fields: Fields) -> Fields:
    """Return the fields; raise a UserError if one of their values is infinite."""
    for sample in range(fields.num_samples):
        for _ in of_each_sample(fields, sample):
            pass
    return fields


def _with_units(fields: Fields, units: Mapping[str, str] | None) -> Fields:
    """The fields with units by name, each of which has to be that of a variable."""
    variables = fields.dataset.variables
    for name, unit in (units or {}).items():
        if name not in variables:
            names = (str(n) for n in variables if not str(n).startswith("row_size"))
            expected = f"units of any of {', '.join(names)}"
            raise UserError(f"units of {name}", expected, "correct the name")
        if unit:
            variables[name].attrs.setdefault("units", unit)
    return fields


def _check_axes(samples: Sequence[Any], points: Sequence[Any], num_times: int) -> None:
    """Raise a UserError if samples of ``u`` have other axes than points and times."""
    for values, place in zip(samples, points, strict=False):
        shape, sizes = np.shape(values), (np.shape(place)[0], num_times)
        if not min(sizes) or shape[:2] == sizes:
            continue
        given = f"u whose samples have the shape {tuple(shape)}"
        expected = f"points before time steps, {sizes}"
        todo = "give u as [samples, points, time steps, components]; u[None] is one"
        if shape[:2] == sizes[::-1]:
            todo = "swap both axes, as numpy.swapaxes(u, -3, -2) of [N, T, n, C] does"
        elif shape[:2] == (*np.shape(place)[1:], num_times):
            given = f"points of shape {np.shape(place)}"
            expected, todo = "points before their axes, [n, d]", "transpose pos"
        raise UserError(given, expected, todo)


def _tell_order(u: Any, points: Sequence[Any], num_times: int) -> None:
    """Tell how ``u`` is read if it lacks axes, and two that it has may be swapped."""
    order = ("samples", "points", "time steps")[: 1 + np.ndim(u[0])]
    other = {2: len(u), 3: num_times}.get(1 + np.ndim(u[0]), 0)
    if other > 1 and any(len(pos) == other for pos in points):
        text = "u with as many %s as %s is read in the order %s; give all axes, "
        text += "[samples, points, time steps, components], where that is right"
        logger.warning(text, *order[-2:], ", ".join(order))


def _with_one_step(
    samples: Sequence[np.ndarray], role: str, names: Sequence[str] | None
) -> list[np.ndarray]:
    """Return arrays ``[n, 1, C]`` for arrays ``[n, C, 1]`` with names of components.

    Raises:
        UserError: It is open whether the columns are components or time steps.
    """
    shapes = {array.shape[1:] for array in samples}
    width, last = max(shapes)
    if last > 1 or width == 1 or len(names or ()) == 1:
        return [*samples]
    if len(shapes) > 1 or len(names or ()) != width:
        what, key = ("u", "component") if role == FIELD else ("forcing", "forcing")
        given = f"{what} with samples [points, {width}] and {len(names or ()) or 'no'} "
        expected = "to be told whether its columns are components or time steps"
        todo = f"give {width} {key}_names for components, or {width} times t for time "
        raise UserError(f"{given}names", expected, f"{todo}steps")
    return [array.swapaxes(1, 2) for array in samples]


def _by_sample(values: Any, what: str, ndim: int) -> list[np.ndarray]:
    """Return an array for each sample, with trailing axes of length one added."""
    try:
        samples = list(values)
    except TypeError:  # None, or one number
        samples = []
    gaps = not what.startswith(STATIC)
    arrays = [as_real(array, what, gaps=gaps) for array in samples]
    if not arrays or not all(array.ndim for array in arrays):
        raise UserError(f"{what} without samples", "an array for each", "give them")
    return [array.reshape(*array.shape, *[1] * (ndim - array.ndim)) for array in arrays]
