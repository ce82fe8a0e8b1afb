"""Commands in processes forked from a server that has imported everything."""

import os
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nfsgeo_cli import main


def run(
    arguments: list[str],
    folder: str,
    environment: Mapping[str, str],
    kill_at: int = 0,
    before: bool = True,
    limits: Mapping[str, int] | None = None,
    closed: tuple[int, ...] = (),
) -> None:
    """A command that prints to files, and may be killed when it replaces a file.

    Args:
        arguments: Of ``nfsgeo``.
        folder: Where to run; ``stdout`` and ``stderr`` are beside it, with its name.
        environment: In place of the server's.
        kill_at: Number of the replacement, from 1; 0 for never.
        before: Whether the file is not yet in its place.
        limits: By the names of :mod:`resource`; of ``AS``, bytes beside those in use.
        closed: Numbers of the streams that are closed.
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

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.replace = replacing  # type: ignore[assignment]
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(f"{folder}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
    # Tests that run in the background of a shell ignore Ctrl-C, and pass that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, value in (limits or {}).items():
        if name == "AS":
            value += 4096 * int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    for number in closed:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    main(arguments)
