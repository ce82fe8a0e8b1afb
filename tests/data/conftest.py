"""Fixtures for the tests of data: small asymmetric fields, and their content."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from small_fields import Array, build
from xarray import Variable

import nfsgeo.data
from nfsgeo.data import Fields
from nfsgeo.data.conventions import FIELD, INITIAL, KNOWN, STATIC
from nfsgeo.geometry import Domain, Region

# Fixtures of functions serve all examples, of which some write large files.
settings.register_profile(
    "data", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("data")


@dataclass
class Case:
    """A file of nfsgeo, and the function that makes its fields with some changes."""

    path: Path
    u: Any
    a: Any
    make: Callable[..., Fields]


@pytest.fixture
def grid_case(tmp_path: Path) -> Case:
    """7 samples, 5 time steps, 2 components and a static input on a 6 x 4 grid."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=(7, 5, 6, 4, 2)).astype(np.float32)
    a = rng.normal(size=(7, 6, 4, 1)).astype(np.float32)

    def make(u: Any = u, a: Any = a, **changes: Any) -> Fields:
        options = {
            "axes": [np.arange(6) / 2, np.linspace(-1, 1, 4)],
            "times": 0.25 * np.arange(1, 6),
            "domain": Domain((0.0, -1.0), (3.0, 1.0), (True, False)),
            "parameters": {"nu": np.arange(7) / 10},
            "equation": "test",
            "provenance": {"seed": 3, "solver": {"dt": 0.025}},
        }
        arrays = [Array(u, "ntxyc", ["u", "v"]), Array(a, "nxyc", ["k"], STATIC)]
        return build(Path("grid"), arrays, **options | changes)

    return Case(make().write(tmp_path / "grid.nc"), u, a, make)


MESHES = [np.random.default_rng(1).random((n, 2)) for n in (5, 8)]
CELLS = [{}, {"triangle": np.array([[0, 1, 2], [2, 3, 7]])}]


@pytest.fixture
def point_case(tmp_path: Path) -> Case:
    """3 samples of 3 time steps, on meshes of 8, 5 and 8 points; one mesh has cells."""
    rng, meshes = np.random.default_rng(2), (1, 0, 1)
    u = [rng.normal(size=(len(MESHES[i]), 3, 2)).astype("f4") for i in meshes]

    def make(u: Any = u, a: Any = None, **changes: Any) -> Fields:
        options = {
            "points": [MESHES[i] for i in meshes],
            "cells": [CELLS[i] for i in meshes],
            "times": np.arange(3.0),
            "domain": Domain.unit(2, periodic=False),
            "parameters": {"re": [8.0, 5.0, 8.0]},
            "equation": "test",
        }
        return build(Path("points"), [Array(u, "ptc", ["u", "v"])], **options | changes)

    return Case(make().write(tmp_path / "points.nc"), u, None, make)


def content(fields: Fields) -> list[Any]:
    found: list[Any] = [fields.equation, fields.domain, fields.provenance]
    found += [fields.times.tobytes(), fields.component_names, fields.input_names]
    found += [fields.forcing_names, fields.units, fields.dtype]
    for table in (fields.split, fields.parameters):
        found.append({name: values.tobytes() for name, values in table.items()})
    for sample in range(fields.num_samples):
        found.append((fields.sample_mesh[sample], fields.coordinates(sample).tobytes()))
        found.append(fields.read_all(sample, slice(None)).tobytes())
        found.append(fields.read_inputs(sample).tobytes())
        cells = fields.cells(sample).items()
        found.append({name: nodes.tobytes() for name, nodes in cells})
    return found


@pytest.fixture(scope="session")
def contents() -> Callable[[Path | Fields], list[Any]]:
    """Lists everything that fields, or those of a file, hold, to compare exactly."""

    def listed(source: Path | Fields) -> list[Any]:
        if isinstance(source, Fields):
            return content(source)
        with nfsgeo.data.open(source) as fields:
            return content(fields)

    return listed


def box(dim: int, side: float, inside: bool) -> Domain:
    """With a square hole in the plane, or bounded by a square."""
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]) * side
    region = Region.polygons([square if inside else square + 1.4], inside=inside)
    ends = (0.0,) * dim, (2.0,) * dim, (False,) * dim
    return Domain(*ends, region if dim == 2 else None)


DOMAINS = [
    None,
    lambda dim: Domain((-1.0,) * dim, (2.0,) * dim, (True,) + (False,) * (dim - 1)),
    lambda dim: Domain.sphere(0.0) if dim == 2 else Domain.unit(dim, periodic=False),
    partial(box, side=0.2, inside=False),
    partial(box, side=1.9, inside=True),
]


@st.composite
def drawn_fields(draw: st.DrawFn) -> tuple[Fields, list[dict[str, Any]]]:
    """Fields of any layout, and of each sample its points, fields and inputs."""
    layout = draw(st.sampled_from(["grid", "shared", "padded", "ragged"]))
    dim, num, steps = (draw(st.integers(1, most)) for most in (3, 4, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind, space = draw(st.sampled_from(["f4", "f8"])), "xyz"[:dim]
    box = draw(st.sampled_from(DOMAINS))
    # Opening leaves out axes of one node where there are several and no domain.
    least = 2 if dim > 1 and box is None else 1
    shape = tuple(rng.integers(least, 5, dim).tolist())
    shape, space = (shape, space) if layout == "grid" else (shape[:1], "p")
    sizes = [int(rng.integers(1, 7)) for _ in range(num)]
    sizes = sizes if layout == "ragged" else [prod(shape)] * num
    axes, there = [np.sort(rng.random(n)) for n in shape], None
    if layout == "grid":
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)
        points = [grid] * num
    elif layout == "shared":
        points = [rng.random((sizes[0], dim))] * num
    else:
        points = [rng.random((n, dim)) for n in sizes]
    if layout == "padded":
        there = rng.random((num, sizes[0])) < 0.7
        there[:, 0] = True
    arrays, expected = [], [{"pos": each} for each in points]

    def add(name: str, role: str, along: str, width: int = 1) -> None:
        of = {"n": num, "t": steps, **dict(zip(space, shape, strict=True)), "c": width}
        if layout == "ragged" and space in along:
            along = along.replace("n", "")
            lengths = [[n if a == "p" else of[a] for a in along + "c"] for n in sizes]
            values: Any = [rng.normal(size=each).astype(kind) for each in lengths]
        else:
            values = rng.normal(size=[of[a] for a in along + "c"]).astype(kind)
        if role == FIELD:
            for each in values if isinstance(values, list) else [values]:
                each[rng.random(each.shape) < 0.2] = np.nan
        if there is not None and "p" in along:
            axis = along.index("p")
            np.moveaxis(values, axis, 1)[~there] = np.nan
        names = [name] if width == 1 else [f"{name}{i}" for i in range(width)]
        arrays.append(Array(values, along + "c", names, role))
        for i, sample in enumerate(expected):
            mine, rest = values, along
            if isinstance(values, list) or "n" in along:
                mine, rest = values[i], along.replace("n", "")
            whole = np.moveaxis(mine, rest.index("t"), -2) if "t" in rest else mine
            whole = whole if "t" in rest else whole[..., None, :]
            if not set(space) <= set(rest):
                whole = whole[(None,) * len(space)]
            full = np.broadcast_to(
                whole,
                (*(shape if layout == "grid" else sizes[i : i + 1]), steps, width),
            )
            sample[name] = full.reshape(sizes[i], steps, width)

    some = st.booleans()
    one = "n" if layout == "padded" or draw(some) else ""
    add("u", FIELD, one + "t" * draw(some) + space, 2)
    own = draw(some)
    add("sun", KNOWN, ("n" if own and one else "") + "t" + (space if own else ""))
    add("k", STATIC, one + space)
    add("start", INITIAL, one + space)
    if there is not None:
        for i, sample in enumerate(expected):
            expected[i] = {name: each[there[i]] for name, each in sample.items()}
        padded = np.where(there[..., None], points, np.nan)
        each = zip("xyz"[:dim], np.moveaxis(padded, -1, 0), strict=True)
        points = {axis: Variable(("sample", "point"), v) for axis, v in each}
    part = rng.integers(0, 3, num)
    parts = zip(("train", "valid", "test"), range(3), strict=True)
    fields = build(
        Path("drawn"),
        arrays,
        axes=axes if layout == "grid" else None,
        points=None if layout == "grid" else points,
        times=np.sort(rng.random(steps)),
        domain=box and box(dim),
        parameters={"nu": rng.random(num), "table": rng.random((num, 2))},
        equation=draw(st.sampled_from(["", "heat", "wärme"])),
        units={"u0": "K", "x": "m", "time": "h"},
        split={name: np.flatnonzero(part == i) for name, i in parts},
    )
    return fields.with_known(["nu"]), expected


@pytest.fixture(scope="session")
def any_fields() -> Any:
    """Draws fields of any layout, and the points and the values of each sample."""
    return drawn_fields()
