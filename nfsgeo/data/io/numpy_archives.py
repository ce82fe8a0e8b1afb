"""``.npz`` archives of numpy: gridded fields and point clouds, read and written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from nfsgeo.data.checks import as_real
from nfsgeo.data.conventions import FIELD, SHOWN, SPACE, STATIC
from nfsgeo.data.conventions import NPZ_ABOUT as ABOUT
from nfsgeo.data.fields import Fields
from nfsgeo.data.io.format import Format
from nfsgeo.data.io.labelled import to_fields
from nfsgeo.data.io.odd_arrays import about_odd_arrays
from nfsgeo.data.io.roles import ask
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

PARAMETER, SPLIT = "parameter_", "split_"  # how names of such arrays begin
BOX = ("lower", "upper", "periodic", "sphere")
NAMES = {"u", "mask", "t", "a", "names", "static_names", *BOX}


def _read(path: Path, times: Sequence[Any] = ()) -> Fields:
    """Fields on a grid of the axes ``x[, y[, z]]``, or at the points ``coords``.

    Fields ``u`` are (N, T, X[, Y[, Z]], C) on a grid and (N, points, T, C) at points;
    static inputs ``a`` are the same without T. These, times or dates ``t``, trailing
    axes of length one of clouds, and all that follows may be left out. ``mask`` is true
    where ``u`` is none, besides NaN. ``names`` and ``static_names`` are those of
    components. What the axes of ``u`` are is asked about where neither their number,
    nor another array, nor the number of ``times`` that a user gives tells it.
    ``lower``, ``upper``, ``periodic`` and ``sphere`` are a
    :class:`~nfsgeo.geometry.Domain`, ``parameter_NAME`` numbers of the samples,
    ``split_PART`` the samples of a part.
    """
    if error := about_odd_arrays(path):
        raise error
    with np.load(path, allow_pickle=False) as archive:
        arrays: dict[str, Any] = dict(archive.items())
    if ABOUT in arrays:
        return _written(path, arrays)
    named: dict[str, dict[str, Any]] = {PARAMETER: {}, SPLIT: {}}
    axes = [arrays[name] for name in SPACE if name in arrays]
    cloud = "coords" in arrays
    unknown = list[str]()
    for name in arrays.keys() - NAMES - ({"coords"} if cloud else {*SPACE}):
        start = next((prefix for prefix in named if name.startswith(prefix)), None)
        if start is None:
            unknown.append(name)
            continue
        named[start][name.removeprefix(start)] = arrays[name]
    of_samples = "a" in arrays or any(named.values())
    letters = _letters(path, arrays, len(times), of_samples=of_samples)
    if unknown:
        which = "of which the format knows nothing, so that the arrays are to be named"
        answer = _answer(arrays, letters[0])
        raise ask(path, sorted(unknown), which, "which arrays to read", answer)
    arrays["u"] = u = _in_order(arrays["u"], *letters)
    if "mask" in arrays:
        mask = _in_order(arrays["mask"], *letters)
        if mask.dtype != bool or mask.shape != u.shape:
            raise ValueError(f"mask of {mask.dtype} and {mask.shape}, u of {u.shape}")
        arrays["u"] = as_real(np.ma.masked_array(u, mask), f"u of {path}", gaps=True)
    space = ("point",) if cloud else (*SPACE[: len(axes)],)
    variables: dict[str, Any] = {}
    for name, key, role in (("u", "names", FIELD), ("a", "static_names", STATIC)):
        if (values := arrays.get(name)) is not None:
            time = ("time",) * (role == FIELD)
            along = (*space, *time) if cloud else (*time, *space)
            if cloud:
                ones = [1] * (len(along) + 2 - values.ndim)
                values = values.reshape(*values.shape, *ones)
            names = [*map(str, arrays.get(key, ()))]
            attrs = {"role": role, "components": names}
            variables[name] = ("sample", *along, "component"), values, attrs
    coordinates: dict[str, Any] = {
        axis: (axis, arrays[axis]) for axis in space if not cloud
    }
    coordinates["points"] = ("point", "axis"), arrays.get("coords")
    coordinates["time"] = "time", arrays.get("t")
    return to_fields(
        path,
        variables,
        coordinates,
        parameters=named[PARAMETER],
        domain=_domain(arrays, axes),
        split=named[SPLIT],
    )


def _in_order(values: Any, letters: str, layout: str) -> Any:
    """Values along the axes ``letters`` along those of the format, ``layout``."""
    if layout.startswith(letters) or values.ndim != len(letters):
        return values
    order = [letters.index(letter) for letter in layout if letter in letters]
    missing = [i for i, letter in enumerate(layout) if letter not in letters]
    return np.expand_dims(values.transpose(order), missing)


def _letters(
    path: Path, arrays: dict[str, Any], num_times: int, *, of_samples: bool
) -> tuple[str, str]:
    """A letter for each axis of ``u``, and those of the format; ask if they are open.

    An array with all axes has them in the order of the format if its sizes allow that.

    Args:
        path: The file.
        arrays: Its arrays by name.
        num_times: Number of the times that a user gives, 0 if there are none.
        of_samples: Whether other arrays have an axis of samples.

    Raises:
        UserError: It has not the axes of the format, or time steps may be its first
            axis, or may be swapped with points, because its last ones are left out.
    """
    shape, cloud = np.shape(arrays["u"]), "coords" in arrays
    space = "p" if cloud else "".join(axis for axis in SPACE if axis in arrays)
    sizes = {"t": num_times} if num_times else {}
    sizes |= {name: np.size(arrays[name]) for name in ("t", *space) if name in arrays}
    sizes |= {"p": len(arrays["coords"])} if cloud else {}
    sizes |= {"c": np.size(arrays["names"])} if "names" in arrays else {}
    needed = {*space, *(letter for letter in "tc" if sizes.get(letter, 1) > 1)}

    def fits(letters: str) -> bool:
        alike = len(letters) == len(shape) and needed <= {*letters}
        pairs = zip(letters, shape, strict=False)
        return alike and all(sizes.get(letter, n) == n for letter, n in pairs)

    layout = "nptc" if cloud else f"nt{space}c"
    usual = layout[: max(2, len(shape))] if cloud else layout
    one_sample = "tpc"[: len(shape)] if cloud and shape[0] > 1 else ""
    swapped = "ntp" if usual == "npt" else ""  # all four axes are in the usual order
    if fits(usual) and (of_samples or not fits(one_sample)) and not fits(swapped):
        return usual, layout
    found = [*filter(fits, map("".join, permutations(layout, len(shape))))]
    if len(found) == 1 and (not of_samples or "n" in found[0]):
        return found[0], layout
    ways = {space, space[::-1]}  # y, x as numpy's meshgrid has them
    apart = {r: not any(way in r for way in ways) for r in found}
    odd = {r: ("n" in r[1:], "c" in r[:-1], apart[r]) for r in found}
    say = [r for r in found if odd[r] == min(odd.values())]
    raise _open_axes(path, arrays, layout, sizes, say)


def _open_axes(
    path: Path, arrays: dict[str, Any], layout: str, sizes: Any, say: list[str]
) -> UserError:
    """Return the error that asks which axes ``u`` has, or that it has others."""
    grid = [sizes[axis] for axis in SPACE if axis in sizes]
    at = f"{sizes['p']} points" if "p" in layout else f"a grid of {grid}"
    given = f"u of shape {list(np.shape(arrays['u']))} at {at}"
    given += f" and {sizes['t']} times" if "t" in sizes else ""
    names = {"n": "samples", "p": "points", "t": "times", "c": "components"}
    words = ", ".join(names.get(a, a) for a in layout)
    if not say:
        return UserError(f"{path} with {given}", f"axes ({words})", "reorder them")
    short = "n, p, t and c" if "p" in layout else "n, t and c"
    asked = f"which of the axes ({words}) these are, {short} in short"
    answers = (_answer(arrays, r) for r in say[:SHOWN])
    return ask(path, [given], "which leaves axes out", asked, *answers)


def _answer(arrays: dict[str, Any], letters: str) -> str:
    """Return the value of ``--columns`` if ``u`` has axes of these letters."""
    where = [f"{axis}={axis}" for axis in SPACE if axis in arrays]
    where = ["points=coords"] if "coords" in arrays else where
    when = ["time=t"] if {"t"} <= arrays.keys() & {*letters} else []
    shape = np.shape(arrays["u"])
    return ",".join([f"field=u:{letters[: len(shape)]}", *where, *when])


def _domain(arrays: Any, axes: Any) -> Domain | None:
    """The box, its ends those of the axes where one of them is not told."""
    box: dict[str, Any] = {name: arrays[name] for name in BOX if name in arrays}
    if not box:
        return None
    if np.any(box.setdefault("periodic", [False] * len(axes))) and "upper" not in box:
        raise ValueError("a periodic axis, and no `upper` that tells its period")
    for name, end in (("lower", np.min), ("upper", np.max)):
        box.setdefault(name, [end(axis) for axis in axes])
    return Domain.from_dict(box)


def _written(path: Path, arrays: dict[str, Any]) -> Fields:
    about = json.loads(str(arrays[ABOUT]))
    entries = {**about["coords"], **about["data_vars"]}
    variables = {n: (v["dims"], arrays[n], v["attrs"]) for n, v in entries.items()}
    dataset = xarray.Dataset(variables, attrs=about["attrs"])
    return Fields(dataset.set_coords([*about["coords"]]), path)


NPZ = Format(
    "grids and point clouds of numpy (.npz)",
    lambda probe: (
        ABOUT in probe.zipped
        or ("u" in probe.zipped and "coords" in probe.zipped)
        or ({"u", "x"} <= probe.zipped and len(probe.shapes.get("x", (0,))) == 1)
    ),
    _read,
    "grids (.npz): arrays u, x[, y[, z]], t, a, mask, periodic, ...; or point clouds: "
    "arrays u, coords, t, a, mask, names, static_names, ...",
)
