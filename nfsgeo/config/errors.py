"""Turns what is wrong with a setting, or a name, into one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from nfsgeo.errors import UserError

__all__ = ["explained", "unknown"]

FEW = 5
# The last part of our settings, and its names in other libraries that are not like it.
OTHER_NAMES = {
    "patience": "early_stopping early_stop",
    "lr": "learning_rate base_lr max_lr",
    "name": "optimizer",
    "gradient_clip": "clip max_grad_norm",
    "weight_decay": "wd l2",
    "batch_size": "bs",
    "device": "accelerator gpu",
    "devices": "gpus num_gpus",
    "precision": "dtype amp",
    "seed": "random_seed random_state manual_seed",
    "grid": "resolution",
    "file": "dataset path",
    "n_in": "history input_steps",
    "n_out": "horizon output_steps",
    "width": "hidden hidden_dim hidden_size hidden_channels channels dim d_model "
    "embed_dim",
    "depth": "layers num_layers n_layers num_blocks",
}
ELSEWHERE = {name: key for key, names in OTHER_NAMES.items() for name in names.split()}


@contextmanager
def explained(section: str = "", known: Iterable[str] = ()) -> Iterator[None]:
    """Re-raises the first error that pydantic finds inside the block.

    Args:
        section: Dotted name of what is being checked.
        known: Dotted names of all keys, to tell the nearest one.

    Raises:
        UserError: In place of a ``ValidationError``.
    """
    try:
        yield
    except ValidationError as error:
        first: Any = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, UserError):
            raise cause from None
        key = ".".join(filter(None, [section, *map(str, first["loc"])]))
        if first["type"] == "extra_forbidden":
            if isinstance(first["input"], dict):  # of a section that does not exist
                key = ".".join([key, *map(str, list(first["input"])[:1])])
            raise unknown(key, "a known key", key, known) from None
        wanted = first["msg"].removeprefix("Input should be ")
        wanted = wanted.removeprefix("Value error, ")
        if first["type"] == "missing":
            wanted, key = f"{key} as well", key.rpartition(".")[0]
        given = f"{key}={first['input']!r}".lstrip("=")  # of all settings
        raise UserError(given, wanted, "change it") from None


def unknown(given: str, expected: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a ``name`` that does not exist, with the nearest that is ``known``.

    Of dotted names the last part counts, and the section where that is the same. Where
    none is like it, a few of the section are named.
    """
    section, _, last = name.rpartition(".")
    names = sorted(known)
    inside = [each for each in names if section and each.rpartition(".")[0] == section]
    parts = {each.rpartition(".")[2]: each for each in [*names, *inside]}
    near = [each for each in (last, ELSEWHERE.get(last, "")) if each in parts]
    near = near or get_close_matches(last, parts, n=1)
    if near:
        return UserError(given, expected, f"the nearest is {parts[near[0]]}")
    if not names:
        return UserError(given, expected, "leave it out: there is none")
    beside = {each: of for each, of in parts.items() if of in inside} or parts
    few = [beside[each] for each in get_close_matches(last, beside, n=FEW, cutoff=0.0)]
    todo = f"the nearest are {', '.join(few)}, of {len(names)} in all"
    return UserError(given, expected, todo)
