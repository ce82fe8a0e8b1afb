"""Processes: data-parallel training, their errors and messages, locks on folders."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lightning.fabric.utilities.warnings import PossibleUserWarning
from lightning.pytorch.strategies import DDPStrategy
from torch.multiprocessing.spawn import ProcessRaisedException

from nfsgeo.errors import UserError

__all__ = ["SpawnedDDP", "errors_of_workers", "only_here", "quiet_lightning"]

LINE = re.compile(r"^nfsgeo\.errors\.UserError: (.*): expected (.*); (.*?)$", re.M)
LOGGERS = tuple(
    logging.getLogger(name)
    for name in ("lightning.pytorch", "lightning.fabric", "torch.multiprocessing.spawn")
)


class SpawnedDDP(DDPStrategy):
    """DDP in spawned processes, which inherit what has been read and fitted already.

    Buffers are the same everywhere and never change; without their broadcast, devices
    may validate on different numbers of batches.
    """

    def __init__(self) -> None:
        super().__init__(start_method="spawn", broadcast_buffers=False)

    def setup_environment(self) -> None:
        _silence()
        super().setup_environment()


@contextmanager
def errors_of_workers() -> Iterator[None]:
    """Re-raises a :class:`UserError` that ended a reading or training process.

    Such a process hands over no exception but the text of its traceback.
    """
    try:
        yield
    except (ProcessRaisedException, RuntimeError) as error:
        found = LINE.findall(str(error))
        if not found:
            raise
        raise UserError(*found[-1]) from None


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Drops advice that Lightning gives and that a user cannot act upon.

    Its tips and devices, how many workers it would like, and deprecations between it
    and torch. Errors come through.
    """
    levels = [logger.level for logger in LOGGERS]
    with warnings.catch_warnings():
        _silence()
        try:
            yield
        finally:
            for logger, level in zip(LOGGERS, levels, strict=True):
                logger.setLevel(level)


@contextmanager
def only_here(folder: Path, what: str) -> Iterator[None]:
    """Locks a folder against other processes; the lock ends with its process.

    Args:
        folder: In which no file is added.
        what: The work that only one process may do there, for the message.

    Raises:
        UserError: Another process works there.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder}",
                f"{what} that no other process works on",
                "wait for that process, or stop it",
            ) from None
        except OSError:
            pass  # a disk without locks
        yield
    finally:
        os.close(descriptor)


def _silence() -> None:
    warnings.filterwarnings("ignore", category=PossibleUserWarning)
    warnings.filterwarnings("ignore", module=r"(lightning|torch)\b.*")
    for logger in LOGGERS:
        logger.setLevel(logging.ERROR)
