"""Processes of this machine, in which benchmarks run."""

import multiprocessing
from typing import Any

import torch

CONTEXT: Any = multiprocessing.get_context("forkserver")


def begin_with(module: str) -> None:
    """Has processes of :data:`CONTEXT` begin with a module that is imported already.

    Where there is a CUDA device, they import it themselves: an import may look for
    devices, and no process that is forked afterwards can use them.
    """
    CONTEXT.set_forkserver_preload([] if torch.cuda.is_available() else [module])
