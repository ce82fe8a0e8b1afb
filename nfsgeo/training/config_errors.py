"""Turns what is wrong with a configuration into one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from nfsgeo.errors import UserError

__all__ = ["explained", "unknown"]

FEW = 5
# Names that earlier versions and other libraries have for settings, and the last part
# of ours.
ELSEWHERE = {
    "predicts": "prediction",
    "meshes": "point_sets",
    "first_record": "first_step",
    "neighbours": "radius_factor",
    "fixed": "base",
    "cells": "quadrature",
    "loss_over": "weighting",
    "early_stopping": "patience",
    "early_stop": "patience",
    "learning_rate": "lr",
    "base_lr": "lr",
    "max_lr": "lr",
    "optimizer": "name",
    "lr_scheduler": "schedule",
    "scheduler": "schedule",
    "clip": "gradient_clip",
    "grad_clip": "gradient_clip",
    "max_grad_norm": "gradient_clip",
    "gradient_clip_val": "gradient_clip",
    "wd": "weight_decay",
    "l2": "weight_decay",
    "batch": "batch_size",
    "bs": "batch_size",
    "train_batch_size": "batch_size",
    "num_workers": "workers",
    "num_epochs": "epochs",
    "max_epochs": "epochs",
    "n_epochs": "epochs",
    "accelerator": "device",
    "gpu": "device",
    "gpus": "devices",
    "num_gpus": "devices",
    "dtype": "precision",
    "amp": "precision",
    "random_seed": "seed",
    "random_state": "seed",
    "manual_seed": "seed",
    "num_points": "points",
    "n_points": "points",
    "resolution": "grid",
    "dataset": "file",
    "path": "file",
    "history": "n_in",
    "input_steps": "n_in",
    "horizon": "n_out",
    "output_steps": "n_out",
    "hidden": "width",
    "hidden_dim": "width",
    "hidden_size": "width",
    "hidden_channels": "width",
    "channels": "width",
    "dim": "width",
    "d_model": "width",
    "embed_dim": "width",
    "layers": "depth",
    "num_layers": "depth",
    "n_layers": "depth",
    "num_blocks": "depth",
    "n_modes": "modes",
    "num_heads": "heads",
    "n_heads": "heads",
    "patch_size": "patch",
}


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
        raise UserError(
            f"{key}={first['input']!r}",
            first["msg"].removeprefix("Input should be ").removeprefix("Value error, "),
            "change it",
        ) from None


def unknown(given: str, expected: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist, with the nearest that do.

    Args:
        given: What came, as the message shows it.
        expected: What it should have been.
        name: The name to look for.
        known: All names that exist; dotted ones are also compared by their last part.
    """
    section, _, last = name.rpartition(".")
    # Of two with one last part, the one in the same section.
    by_last_part = {
        each.rpartition(".")[2]: each
        for each in sorted(known, key=lambda each: (_section(each) == section, each))
    }
    near = [each for each in (last, ELSEWHERE.get(last, "")) if each in by_last_part]
    near = near or get_close_matches(last, by_last_part, n=1)
    if near:
        return UserError(given, expected, f"the nearest is {by_last_part[near[0]]}")
    names = list(by_last_part.values())
    if not names:
        return UserError(given, expected, "leave it out: there is none")
    beside = [each for each in names if section and _section(each) == section] or names
    parts = {each.rpartition(".")[2]: each for each in beside}
    few = [parts[each] for each in get_close_matches(last, parts, n=FEW, cutoff=0.0)]
    return UserError(
        given, expected, f"the nearest are {', '.join(few)}, of {len(names)} in all"
    )


def _section(name: str) -> str:
    return name.rpartition(".")[0]
