"""Places of values on the faces and edges of unstructured meshes (UGRID 1.0)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import DataArray, Dataset, Variable

from nfsgeo.data.io.cf_roles import Roles, is_longitude
from nfsgeo.errors import UserError, option

__all__ = ["with_centres"]

AXES, PLACES = "XY", ("node", "face", "edge")


def with_centres(path: Path, dataset: Dataset, kinds: Roles) -> Dataset:
    """The data set with coordinates of the faces or edges that its fields are on.

    They are those that the mesh names, or else the mean of the nodes of each face or
    edge, by its connectivity. Fields without an attribute ``coordinates`` get one;
    connectivities are no fields and are left out. Fields without an attribute
    ``location`` are on the place whose dimension they have.

    Args:
        path: The file, for messages.
        dataset: The variables.
        kinds: What users say of them.

    Raises:
        UserError: Fields are on several places, such as faces and nodes, or on another
            than they say, or have another number of values than any place.
    """
    stored = {n: {**v.attrs, **v.encoding} for n, v in dataset.items()}  # by xarray
    usual = "" if "field" in kinds.values() else "field"
    selected = [n for n in stored if kinds.get(str(n), usual) == "field"]
    for mesh in (n for n, about in stored.items() if "node_coordinates" in about):
        about = stored[mesh]
        words = {word for text in about.values() for word in str(text).split()}
        along = _dimensions(dataset, about)
        found = {
            n: _place_of(path, dataset[n], mesh, along)
            for n in selected
            if str(n) not in words | {mesh}
            and ("mesh" in stored[n] or "coordinates" not in stored[n])
        }
        on = {p: [n for n in found if found[n] == p] for p in PLACES}
        told = {found[n] for n in found if "mesh" in stored[n]} or {*found.values()}
        places = [place for place in PLACES if place in told]
        if len(places) > 1:
            first, second = (on[place][0] for place in places[:2])
            given = f"{path} with {first} on {places[0]}s and {second} on {places[1]}s"
            say = f"choose: {option('columns', f'field={first}', f'field={second}')}"
            raise UserError(given, "fields on one grid", say)
        for place in places:
            names = str(about.get(f"{place}_coordinates", "")).split()
            if not (names and {*names} <= {*dataset.variables}):
                centres = _centres(path, dataset, about, along.get(place), place)
                names = [f"{mesh}_{place}_{axis.lower()}" for axis in AXES]
                names = names[: len(centres)]
                dataset = dataset.assign(dict(zip(names, centres, strict=True)))
            dataset = _placed(dataset, on[place], names)
        tables = {v for key, v in about.items() if key.endswith("_connectivity")}
        dataset = dataset.drop_vars(tables - kinds.keys(), errors="ignore")
    return dataset


def _dimensions(dataset: Dataset, about: Mapping[Any, Any]) -> dict[str, Hashable]:
    """The dimension of the nodes, faces and edges of a mesh, as far as it has them."""
    along = dict[str, Hashable]()
    for place in PLACES:
        first = str(about.get(f"{place}_coordinates", "")).split()[:1]
        arrays = [
            dataset.get(n) for n in (*first, about.get(f"{place}_node_connectivity"))
        ]
        dims = [
            values.dims[0] for values in arrays if values is not None and values.ndim
        ]
        dims = [about.get(f"{place}_dimension"), *dims]
        along |= {place: next(filter(None, dims))} if any(dims) else {}
    return along


def _place_of(
    path: Path, values: DataArray, mesh: Hashable, along: Mapping[str, Hashable]
) -> str:
    """The place of a mesh that a field is on, "" if it is on none.

    Raises:
        UserError: The field names the mesh, but its dimensions fit no place of it, or
            several, or another one than the attribute ``location`` says.
    """
    said = str(values.attrs.get("location", ""))
    fits = [place for place, dim in along.items() if dim in values.dims]
    if values.attrs.get("mesh", mesh) != mesh:
        return ""
    if said in fits or (said in PLACES and said not in along):
        return said
    by_dimension = fits[0] if len(fits) == 1 else ""
    if "mesh" not in values.attrs or (by_dimension and not said):
        return by_dimension
    sizes = ", ".join(f"{dim} {num}" for dim, num in values.sizes.items())
    given = f"{path} with {values.name} along {sizes}"
    given += f" and the location {said}" if said else " and no location"
    expected = " or ".join(f"location {place} along {d}" for place, d in along.items())
    leave = option("columns", f"ignore={values.name}")
    todo = f"correct it, or leave it out: {leave}"
    raise UserError(given, expected, todo)


def _placed(dataset: Dataset, fields: list[Hashable], names: list[str]) -> Dataset:
    """The data set with the coordinates of fields that name none."""
    dims = {d for n in names if n in dataset.variables for d in dataset[n].dims}
    changed = {}
    for name in fields:
        values = dataset[name]
        if dims and "coordinates" not in {**values.attrs, **values.encoding}:
            changed[name] = values.assign_attrs(coordinates=" ".join(names))
    if not changed:
        return dataset
    axes = {
        name: dataset[name].assign_attrs(axis=axis)
        for name, axis in zip(names, AXES, strict=False)
    }
    return dataset.assign(changed | axes).set_coords(names)


def _centres(
    path: Path,
    dataset: Dataset,
    about: Mapping[Any, Any],
    along: Hashable,
    place: str,
) -> list[DataArray | Variable]:
    """The mean of the nodes of each face or edge along each axis; none without any."""
    name = about.get(f"{place}_node_connectivity")
    axes = str(about["node_coordinates"]).split()
    if name not in dataset or not {*axes} <= {*dataset.variables}:
        return []
    corners = dataset[name].variable
    corners = corners.transpose(along, ...)
    nodes = _nodes(path, str(name), corners, dataset[axes[0]].size, place)
    exists = nodes >= 0
    centres: list[DataArray | Variable] = []
    for axis in axes[: len(AXES)]:
        at = dataset[axis].values.astype(float)[np.where(exists, nodes, 0)]
        if is_longitude(dataset[axis]):  # of faces on both sides of a meridian
            at = at[:, :1] + (at - at[:, :1] + 180) % 360 - 180
        mean = (at * exists).sum(axis=1) / exists.sum(axis=1)
        centres.append(Variable([along], mean, dict(dataset[axis].attrs)))
    return centres


def _nodes(
    path: Path, name: str, corners: Variable, num: int, place: str
) -> NDArray[np.int64]:
    """The nodes of each face or edge from 0, negative where one has fewer nodes.

    Raises:
        UserError: Numbers of nodes contradict the attribute ``start_index``.
    """
    start = int(corners.attrs.get("start_index", 0))
    numbers = np.nan_to_num(corners.values.astype(float), nan=-1).astype(np.int64)
    low, high = numbers[numbers >= 0].min(initial=num), numbers.max(initial=-1)
    # Some programs fill rows of fewer nodes with 0 where the first node has number 1.
    first = 2 if place == "edge" else 3
    may_fill = bool(low < start and numbers[:, :first].all())
    filled = may_fill and high == num - 1 + start
    if high >= num + start or (low < start and not filled):
        given = f"{path} with start_index {start} of {name}, and nodes {low} to {high}"
        expected = f"nodes {start} to {num - 1 + start}, since there are {num}"
        found = 0 if low == 0 else 1
        todo = "correct the numbers of the nodes"
        if found != start and high < num + found:
            todo = 'correct it: dataset = xarray.open_dataset("FILE", decode_cf=False)'
            todo += f', dataset["{name}"].attrs["start_index"] = {found}, '
            todo += "nfsgeo.from_xarray(dataset)"
            todo += '; or, if 0 fills rows, .attrs["_FillValue"] = 0' * may_fill
        raise UserError(given, expected, todo)
    return numbers - start
