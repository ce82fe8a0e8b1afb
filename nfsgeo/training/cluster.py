"""Runs whose processes torchrun or Slurm has started, on one machine or several."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache, wraps
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from lightning.pytorch.plugins import environments
from torch.distributed.rendezvous import rendezvous

from nfsgeo.errors import UserError

__all__ = ["check_started", "cluster", "is_first", "joined", "on_first"]

F = TypeVar("F", bound=Callable[..., Any])
store_at = cache(lambda place, rank, size: next(rendezvous(place, rank, size))[0])


@cache
def cluster() -> environments.ClusterEnvironment | None:
    """Return how this process was started as one of several, None if it was not."""
    if "LOCAL_RANK" in os.environ and int(os.environ.get("WORLD_SIZE", 1)) > 1:
        return environments.TorchElasticEnvironment()
    several = int(os.environ.get("SLURM_STEP_NUM_TASKS", 1)) > 1  # set by srun alone
    return environments.SLURMEnvironment(auto_requeue=False) if several else None


def is_first() -> bool:
    """Return whether this process writes the run folder, prints and evaluates."""
    return (started := cluster()) is None or started.global_rank() == 0


def check_started(devices: int, num_nodes: int) -> None:
    """Raise a UserError unless there are as many processes as settings say."""
    size = started.world_size() if (started := cluster()) else devices
    if devices * num_nodes != size:
        given = f"trainer.devices={devices} with trainer.num_nodes={num_nodes}"
        expected = f"{size} processes" if started else "torchrun or srun to start them"
        todo = (
            "give --devices as many as --nproc-per-node of torchrun, or the tasks of "
        )
        todo += "a node, and --set trainer.num_nodes"
        raise UserError(given, expected, todo)


@contextmanager
def joined() -> Iterator[None]:
    """Connect all processes, for days at most; only the first to fail says why."""
    if (started := cluster()) is None:
        yield
        return
    rank, size = started.global_rank(), started.world_size()
    store = store_at(f"tcp://{started.main_address}:{started.main_port}", rank, size)
    group = dist.PrefixStore(f"{store.add(f'{rank}', 1)}", store)  # a number for each
    backends = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backends, None, timedelta(days=2), size, rank, group)
    try:
        yield
        dist.barrier()
    except BaseException:
        with suppress(RuntimeError):  # the store may be gone with the first process
            if group.add("failed", 1) > 1:
                raise SystemExit(2) from None
        raise
    dist.destroy_process_group()  # the first process goes on alone


def on_first(function: F) -> F:
    """Let the first process alone call a function, and all others get its result."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            made = [function(*args, **options) if is_first() else None]
        except BaseException:
            with joined():  # where the others wait
                raise
        with joined():
            if cluster():
                dist.broadcast_object_list(made)
        return made[0]

    return cast(F, call)
