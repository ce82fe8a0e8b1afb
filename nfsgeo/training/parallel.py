"""Data-parallel training on several devices of one machine."""

from __future__ import annotations

from lightning.pytorch.strategies import DDPStrategy

from nfsgeo.training.quiet import silence

__all__ = ["SpawnedDDP"]


class SpawnedDDP(DDPStrategy):
    """DDP in processes that inherit what has been read and fitted already.

    Buffers are the same everywhere and never change; not sending them around lets
    devices validate on different numbers of batches.
    """

    def __init__(self) -> None:
        super().__init__(start_method="spawn", broadcast_buffers=False)

    def setup_environment(self) -> None:
        silence()
        super().setup_environment()
