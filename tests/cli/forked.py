"""Commands in processes forked from a server that has imported everything."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from nfsgeo_cli import main


def run(arguments: list[str], folder: str, environment: Mapping[str, str]) -> None:
    """A command that prints to files.

    Args:
        arguments: Of ``nfsgeo``.
        folder: Where to run; ``stdout`` and ``stderr`` are beside it, with its name.
        environment: In place of the server's.
    """
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(f"{folder}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
    # Tests that run in the background of a shell ignore Ctrl-C, and pass that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(arguments)
