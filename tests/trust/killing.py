"""What the processes that are killed run; imported by a server that forks them."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from nfsgeo_cli import main


def run(arguments: list[str], kill_at: int, before: bool, folder: str) -> None:
    """A command that is killed at the given replacement of a file.

    Args:
        arguments: Of ``nfsgeo``.
        kill_at: Number of the replacement, from 1; 0 for never.
        before: Whether the file is not yet in its place.
        folder: Where to run.
    """
    replace, count = os.replace, 0

    def replacing(*args: Any, **named: Any) -> None:
        nonlocal count
        count += 1
        if count == kill_at and before:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*args, **named)
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    os.chdir(folder)
    os.replace = replacing  # type: ignore[assignment]
    sys.stderr = open("stderr.txt", "w")  # noqa: SIM115
    sys.stdout = open("stdout.txt", "w")  # noqa: SIM115
    main(arguments)
