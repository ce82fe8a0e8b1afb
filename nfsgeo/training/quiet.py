"""Keeps other libraries from talking over our own progress and messages."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from lightning.fabric.utilities.warnings import PossibleUserWarning

__all__ = ["quiet_lightning", "silence"]

LOGGERS = tuple(
    logging.getLogger(name)
    for name in ("lightning.pytorch", "lightning.fabric", "torch.multiprocessing.spawn")
)


def silence() -> None:
    """Drops advice that Lightning gives and that a user cannot act upon.

    Its tips and devices, how many workers it would like, and deprecations between it
    and torch. Errors come through.
    """
    warnings.filterwarnings("ignore", category=PossibleUserWarning)
    warnings.filterwarnings("ignore", module=r"(lightning|torch)\b.*")
    for logger in LOGGERS:
        logger.setLevel(logging.ERROR)


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Calls :func:`silence` for the length of the block."""
    levels = [logger.level for logger in LOGGERS]
    with warnings.catch_warnings():
        silence()
        try:
            yield
        finally:
            for logger, level in zip(LOGGERS, levels, strict=True):
                logger.setLevel(level)
