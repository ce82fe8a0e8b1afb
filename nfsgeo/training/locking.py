"""One process at a time trains a run."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from nfsgeo.errors import UserError
from nfsgeo.training.run_paths import RunPaths

__all__ = ["only_here"]


@contextmanager
def only_here(paths: RunPaths) -> Iterator[None]:
    """Keeps other processes from training a run; a kill sets it free.

    Args:
        paths: The run's folder, in which no file is added.

    Raises:
        UserError: Another process trains it.
    """
    with open(paths.config) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{paths.root}",
                "a run that no other process trains",
                "wait for that process, or stop it",
            ) from None
        except OSError:
            pass  # a disk without locks
        yield
