"""Places of values on the faces and edges of unstructured meshes (UGRID 1.0)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from xarray import DataArray, Dataset, Variable

from nfsgeo.data.io.cf_roles import Roles, is_longitude
from nfsgeo.errors import UserError

__all__ = ["with_centres"]

AXES, PLACES = "XY", ("node", "face", "edge")


def with_centres(path: Path, dataset: Dataset, kinds: Roles) -> Dataset:
    """The data set with coordinates of the faces or edges that its fields are on.

    They are those that the mesh names, or else the mean of the nodes of each face or
    edge, by its connectivity. Fields without an attribute ``coordinates`` get one;
    connectivities are no fields and are left out.

    Args:
        path: The file, for messages.
        dataset: The variables.
        kinds: What users say of them.

    Raises:
        UserError: Fields are on several places, such as faces and nodes.
    """
    stored = {n: {**v.attrs, **v.encoding} for n, v in dataset.items()}  # by xarray
    chosen = "field" in kinds.values()
    selected = [
        n for n in stored if kinds.get(str(n), "field" * (not chosen)) == "field"
    ]
    for mesh in (n for n, about in stored.items() if "node_coordinates" in about):
        about = stored[mesh]
        on = {p: [n for n in selected if _is_on(dataset[n], mesh, p)] for p in PLACES}
        places = [place for place in PLACES if on[place]]
        if len(places) > 1:
            first, second = (on[place][0] for place in places[:2])
            given = f"{path} with {first} on {places[0]}s and {second} on {places[1]}s"
            say = f"choose: --columns field={first} or field={second}"
            raise UserError(given, "fields on one grid", say)
        for place in places:
            names = str(about.get(f"{place}_coordinates", "")).split()
            if not (names and {*names} <= {*dataset.variables}):
                centres = _centres(dataset, about, place)
                names = [f"{mesh}_{place}_{axis.lower()}" for axis in AXES]
                names = names[: len(centres)]
                dataset = dataset.assign(dict(zip(names, centres, strict=True)))
            dataset = _placed(dataset, on[place], names)
        tables = {v for key, v in about.items() if key.endswith("_connectivity")}
        dataset = dataset.drop_vars(tables - kinds.keys(), errors="ignore")
    return dataset


def _is_on(values: DataArray, mesh: Hashable, place: str) -> bool:
    """Return whether attributes of a field say that it is on a place of a mesh."""
    return values.attrs.get("mesh") == mesh and values.attrs.get("location") == place


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
    dataset: Dataset, about: Mapping[Any, Any], place: str
) -> list[DataArray | Variable]:
    """The mean of the nodes of each face or edge along each axis; none without any."""
    name = about.get(f"{place}_node_connectivity")
    axes = str(about["node_coordinates"]).split()
    if name not in dataset or not {*axes} <= {*dataset.variables}:
        return []
    corners = dataset[name].variable
    along = about.get(f"{place}_dimension", corners.dims[0])
    corners = corners.transpose(along, ...)
    start = int(corners.attrs.get("start_index", 0))
    numbers = np.nan_to_num(corners.values.astype(float), nan=-1) - start
    nodes = numbers.astype(np.int64)
    exists = nodes >= 0
    centres: list[DataArray | Variable] = []
    for axis in axes[: len(AXES)]:
        at = dataset[axis].values.astype(float)[np.where(exists, nodes, 0)]
        if is_longitude(dataset[axis]):  # of faces on both sides of a meridian
            at = at[:, :1] + (at - at[:, :1] + 180) % 360 - 180
        mean = (at * exists).sum(axis=1) / exists.sum(axis=1)
        centres.append(Variable([along], mean, dict(dataset[axis].attrs)))
    return centres
