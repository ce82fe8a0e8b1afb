"""Devices, processes and messages of Lightning."""

from __future__ import annotations

import logging
import platform
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from lightning.fabric.utilities.warnings import PossibleUserWarning
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch.multiprocessing import ProcessExitedException

from nfsgeo.config import RunConfig, TrainerSection
from nfsgeo.errors import UserError
from nfsgeo.training.cluster import cluster
from nfsgeo.version import __version__, commit

__all__ = [
    "SpawnedDDP",
    "check_device",
    "describe_environment",
    "device_of",
    "lost_process",
    "quiet_lightning",
]

PACKAGES = (
    *("torch", "torch-geometric", "lightning", "numpy", "scipy", "h5py", "xarray"),
    *("torch-cluster", "torch-scatter"),
)

LOGGERS = tuple(
    logging.getLogger(name)
    for name in ("lightning.pytorch", "lightning.fabric", "torch.multiprocessing.spawn")
)


def device_of(section: TrainerSection) -> torch.device:
    """Return the device of a run; ``auto`` prefers CUDA if it is available.

    Args:
        section: Settings of the trainer.
    """
    auto_cuda = section.device == "auto" and torch.cuda.is_available()
    return torch.device("cuda" if auto_cuda or section.device == "cuda" else "cpu")


def check_device(section: TrainerSection) -> None:
    """Make sure that the chosen devices exist and have the chosen precision.

    Args:
        section: Settings of the trainer.

    Raises:
        UserError: They do not.
    """
    if section.device == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "--device cuda",
            "a CUDA device, and torch sees none",
            "use --device cpu, or install a torch with CUDA",
        )
    kind, num = device_of(section).type, torch.cuda.device_count()
    if section.precision == "16-mixed" and kind == "cpu":
        raise UserError(
            "--precision 16-mixed on the CPU", "32, 64 or bf16-mixed", "choose another"
        )
    if kind == "cuda" and section.devices > num:
        raise UserError(
            f"--devices {section.devices}",
            f"at most the {num} CUDA devices that torch sees",
            "ask for fewer",
        )


def describe_environment(config: RunConfig) -> dict[str, Any]:
    """Return versions, device, seed and, in a checkout, the commit.

    Args:
        config: The complete configuration.
    """
    packages: dict[str, str | None] = dict.fromkeys(PACKAGES)
    device = device_of(config.trainer)
    cuda = device.type == "cuda"
    named = torch.cuda.get_device_name() if cuda else platform.processor()
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    return {
        "nfsgeo": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "cuda": torch.version.cuda,
        "device": str(device),
        "device_name": named or platform.machine(),
        "devices": config.trainer.devices,
        "threads": torch.get_num_threads(),
        "seed": config.seed,
    }


class SpawnedDDP(DDPStrategy):
    """DDP in spawned processes, which inherit the data and the fitted model.

    Buffers never change, so they are not broadcast; devices may then validate on
    different numbers of batches.
    """

    def __init__(self) -> None:
        method: Any = "popen" if cluster() else "spawn"  # or those that are there
        super().__init__(start_method=method, broadcast_buffers=False)

    def setup_environment(self) -> None:
        _silence()
        super().setup_environment()

    def on_train_start(self) -> None:
        # Lightning would tell the other processes, of which one may be gone.
        ending = signal.default_int_handler if cluster() else signal.SIG_DFL
        signal.signal(signal.SIGTERM, ending)
        super().on_train_start()


def lost_process(error: Exception, trainer: Trainer) -> str:
    """Return how another process ended, if that is what an error comes of.

    Args:
        error: Error of training.
        trainer: The trainer, whose processes have ended.
    """
    procs = getattr(trainer.strategy.launcher, "procs", ())
    codes = {process.exitcode for process in procs} - {None, 0, 1, -signal.SIGTERM}
    text = str(error).partition("\n")[0].strip(" .")
    if isinstance(error, ProcessExitedException) or text.startswith("DataLoader"):
        return text
    return f"signal {-min(codes)}" if codes else "no connection" * ("gloo" in text)


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Suppress warnings of Lightning that a user cannot act upon."""
    levels = {logger: logger.level for logger in LOGGERS}
    with warnings.catch_warnings():
        _silence()
        try:
            yield
        finally:
            for logger, level in levels.items():
                logger.setLevel(level)


def _silence() -> None:
    warnings.filterwarnings("ignore", category=PossibleUserWarning)
    warnings.filterwarnings("ignore", module=r"(lightning|torch|torchmetrics)\b.*")
    for logger in LOGGERS:
        logger.setLevel(logging.ERROR)
