"""The context in which benchmarks start processes of this machine."""

import multiprocessing
from typing import Any

import torch

CONTEXT: Any = multiprocessing.get_context("forkserver")


def begin_with(module: str) -> None:
    """Preload a module in the server that forks processes of :data:`CONTEXT`.

    Where there is a CUDA device, they import it themselves: an import may look for
    devices, and no process that is forked afterwards can use them.
    """
    CONTEXT.set_forkserver_preload([] if torch.cuda.is_available() else [module])
