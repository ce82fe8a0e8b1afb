"""The device of a run, and what it was made with, to make it again."""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from nfsgeo.errors import UserError
from nfsgeo.training.config import RunConfig, TrainerSection
from nfsgeo.version import __version__, commit

__all__ = ["check_device", "describe_environment", "device_of"]

PACKAGES = (
    *("torch", "torch-geometric", "lightning", "numpy", "scipy", "h5py", "xarray"),
    *("torch-cluster", "torch-scatter"),
)


def device_of(section: TrainerSection) -> torch.device:
    """The device that was asked for, or that ``auto`` means on this machine."""
    there = section.device == "auto" and torch.cuda.is_available()
    return torch.device("cuda" if there or section.device == "cuda" else "cpu")


def check_device(section: TrainerSection) -> None:
    """Makes sure that the devices asked for are there, and can do what is asked.

    Raises:
        UserError: They are not.
    """
    if section.device == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "--device cuda",
            "a CUDA device, and torch sees none",
            "use --device cpu, or install a torch with CUDA",
        )
    kind, there = device_of(section).type, torch.cuda.device_count()
    if section.precision == "16-mixed" and kind == "cpu":
        raise UserError(
            "--precision 16-mixed on the CPU", "32, 64 or bf16-mixed", "choose another"
        )
    if kind == "cuda" and section.devices > there:
        raise UserError(
            f"--devices {section.devices}",
            f"at most the {there} CUDA devices that torch sees",
            "ask for fewer",
        )


def describe_environment(config: RunConfig) -> dict[str, Any]:
    """Versions, device, seed and, from a checkout, the commit."""
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
