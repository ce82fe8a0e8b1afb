"""Where the files of a run lie."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path

from nfsgeo.errors import UserError

__all__ = ["RunPaths"]


@dataclass(frozen=True)
class RunPaths:
    """A run folder and the names in it.

    Args:
        root: The folder.
    """

    root: Path

    @property
    def config(self) -> Path:
        """The resolved configuration."""
        return self.root / "config.yaml"

    @property
    def environment(self) -> Path:
        """Versions, device, seed and commit."""
        return self.root / "environment.json"

    @property
    def metrics(self) -> Path:
        """One row for each epoch."""
        return self.root / "metrics.csv"

    @property
    def best(self) -> Path:
        """Checkpoint of the epoch with the lowest validation RMSE."""
        return self.root / "checkpoints" / "best.ckpt"

    @property
    def last(self) -> Path:
        """Checkpoint of the last whole epoch, from which training goes on."""
        return self.root / "checkpoints" / "last.ckpt"

    @property
    def summary(self) -> Path:
        """Sizes, cost and test errors."""
        return self.root / "summary.json"

    @property
    def evaluation(self) -> Path:
        """Predictions for a few test samples."""
        return self.root / "evaluation.npz"

    @property
    def unseen(self) -> Path:
        """Errors on meshes that were not trained on."""
        return self.root / "unseen.csv"

    @property
    def meshes(self) -> Path:
        """Errors on meshes of every kind."""
        return self.root / "meshes.csv"

    @property
    def report(self) -> Path:
        """The report, one HTML file."""
        return self.root / "report.html"

    @classmethod
    def new(cls, folder: Path | None, name: str) -> RunPaths:
        """Makes an empty folder: the one asked for, or the next ``runs/<name>-<k>``.

        Raises:
            UserError: The folder holds something or is a file.
        """
        if folder is None:
            return cls(_next_free(Path("runs"), name))
        cls.check_free(folder)
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder)

    @staticmethod
    def check_free(folder: Path | None) -> None:
        """Makes sure that a folder for a new run is new or empty.

        Raises:
            UserError: The folder holds something or is a file.
        """
        if folder is None or not folder.exists():
            return
        if folder.is_file() or any(folder.iterdir()):
            raise UserError(
                f"--out {folder}",
                "a folder that is new or empty",
                f"give another, or go on with it: nfsgeo train --resume {folder}",
            )

    @classmethod
    def existing(cls, folder: Path) -> RunPaths:
        """Finds a run.

        Raises:
            UserError: The folder holds no run.
        """
        paths = cls(folder)
        if not paths.config.is_file():
            raise UserError(
                f"{folder}",
                "a run folder with a config.yaml",
                "give the folder that `nfsgeo train` wrote",
            )
        return paths


def _next_free(parent: Path, name: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        folder = parent / f"{name}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("unreachable: count() does not end")
