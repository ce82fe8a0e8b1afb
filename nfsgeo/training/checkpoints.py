"""Checkpoints: plain tensors and numbers, whole or not at all."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO

from nfsgeo.errors import UserError
from nfsgeo.training.artifacts import replacing, write_bytes

__all__ = ["KeepBestAndLast", "PlainCheckpoints", "read_checkpoint"]


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Loads a checkpoint of nfsgeo without running any code that it may hold.

    Raises:
        UserError: It is missing, damaged, holds more than plain types, or does not
            describe a model of nfsgeo.
    """
    content = _read_plain(path)
    if not isinstance(content.get("nfsgeo"), dict):
        raise UserError(
            f"{path} (no description of a model)",
            "a checkpoint of nfsgeo",
            "use an undamaged copy or train again",
        )
    return content


def _read_plain(path: Path) -> dict[str, Any]:
    """Any checkpoint of plain types, such as Lightning's between processes."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise UserError(
            f"{path}", "a checkpoint", "go on with the run: nfsgeo train --resume"
        ) from None
    try:
        # torch.load takes weights with a wrong checksum for whole.
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            if archive.testzip() is not None:
                raise ValueError("a wrong checksum")
        content = torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True)
        if not isinstance(content, dict):
            raise ValueError("no dictionary")
        return content
    except Exception:  # whatever breaks in a damaged file
        raise UserError(
            f"{path}",
            "a whole checkpoint of plain tensors",
            "use an undamaged copy or train again",
        ) from None


class PlainCheckpoints(TorchCheckpointIO):
    """How Lightning stores a checkpoint: in one step, and read with weights only."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None
    ) -> None:
        content = io.BytesIO()
        torch.save(checkpoint, content)
        # Lightning's own callbacks leave it to this to make their folders.
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(Path(path), content.getbuffer())

    def load_checkpoint(self, path: Any, *_: Any, **__: Any) -> dict[str, Any]:
        return _read_plain(Path(path))


class KeepBestAndLast(Checkpoint):
    """Keeps the last epoch, and the one with the lowest validation RMSE.

    Args:
        best: Where to keep the best.
        last: Where to keep the last, from which training goes on.
    """

    def __init__(self, best: Path, last: Path) -> None:
        self.best, self.last = best, last
        self.best_rmse = float("inf")

    def state_dict(self) -> dict[str, Any]:
        return {"best_rmse": self.best_rmse}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best_rmse = state_dict["best_rmse"]

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        rmse = float(trainer.callback_metrics["valid_rmse"])
        improved = rmse < self.best_rmse
        if improved:
            self.best_rmse = rmse
        fresh = self.last.with_name("fresh.ckpt.partial")
        trainer.save_checkpoint(fresh)
        if trainer.is_global_zero:
            # Best before last: after a kill in between, the epoch is trained again
            # and arrives at the same best.
            if improved:
                with replacing(self.best) as copy:
                    _link_or_copy(fresh, copy)
            os.replace(fresh, self.last)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
