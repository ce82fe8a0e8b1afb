"""One process at a time works on a folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nfsgeo.errors import UserError

__all__ = ["only_here"]


@contextmanager
def only_here(folder: Path, what: str) -> Iterator[None]:
    """Keeps other processes from a folder; a kill sets it free.

    Args:
        folder: In which no file is added.
        what: The work that one process alone may do there, for the message.

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
