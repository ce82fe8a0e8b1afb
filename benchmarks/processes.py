"""Processes that do not wait for imports."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext, SpawnContext


def process_context(*modules: str) -> ForkServerContext | SpawnContext:
    """Processes that are forked from one which has imported modules, where there are.

    Args:
        modules: Their names.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    return context
