"""The files of a run folder."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from nfsgeo.errors import UserError
from nfsgeo.files import safe_name
from nfsgeo.pretrained import FOLDER, NAMES

__all__ = ["Run", "RunPaths", "find_run"]


class _In:
    """A path inside the run folder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, paths: RunPaths, owner: type[RunPaths]) -> Path:
        return paths.root / self.name


@dataclass(frozen=True)
class RunPaths:
    """The folder of a run and the paths of the files in it.

    Attributes:
        root: The folder.
    """

    root: Path

    config = _In("config.yaml")  # complete
    environment = _In("environment.json")  # versions, device, seed and commit
    belongings = _In("belongings.json")  # what its checkpoints and data are known by
    metrics = _In("metrics.csv")  # one row for each epoch
    best = _In("checkpoints/best.ckpt")  # of the lowest validation RMSE
    last = _In("checkpoints/last.ckpt")  # of the last whole epoch, to go on from
    bands = _In("checkpoints/bands.pt")  # error bands, where the run has any
    inputs = _In("checkpoints/inputs.pt")  # statistics of the inputs of training
    summary = _In("summary.json")  # sizes, cost and test errors
    evaluation = _In("evaluation.npz")  # a few predictions, errors of all samples
    unseen = _In("unseen.csv")  # errors on unseen meshes
    meshes = _In("meshes.csv")  # errors on meshes of every kind
    report = _In("report.html")
    figures = _In("figures")

    @classmethod
    def new(cls, folder: Path | None, name: str) -> RunPaths:
        """Make the folder of a new run.

        Args:
            folder: The folder; ``None`` for the next free ``runs/<name>-<k>``.
            name: Name of the run, which the data may tell.
        """
        if folder is not None:
            cls.check_free(folder)
            folder.mkdir(parents=True, exist_ok=True)
            return cls(folder)
        safe = safe_name(name)
        for number in count(1):
            with suppress(FileExistsError):
                (folder := Path("runs", f"{safe}-{number}")).mkdir(parents=True)
                return cls(folder)
        raise AssertionError

    @staticmethod
    def check_free(folder: Path | None) -> None:
        """Make sure that a run can be written to a folder.

        Args:
            folder: The folder; ``None`` for one in ``runs``.

        Raises:
            UserError: The folder is not empty, is a file, or this process may not write
                there.
        """
        place = (folder or Path("runs")).absolute()
        existing = next(path for path in (place, *place.parents) if path.exists())
        expected = "a folder that is new or empty"
        if not existing.is_dir() or not os.access(existing, os.W_OK):
            out = f"--out {folder or 'runs'}, but {existing} is no folder to write to"
            raise UserError(out, expected, "choose another place")
        # A process that was killed may have left a part of config.yaml.
        if (
            folder
            and existing == place
            and any(path.suffix != ".partial" for path in place.iterdir())
        ):
            todo = f"give another, or go on with it: nfsgeo train --resume {folder}"
            raise UserError(f"--out {folder}", expected, todo)

    def trained(self) -> bool:
        """Return whether the run has had a last checkpoint, be it gone now."""
        rows = self.metrics.read_bytes().count(b"\n") if self.metrics.exists() else 0
        return self.last.exists() or rows > 2  # the first row comes before it

    def config_digest(self) -> str:
        """Return a digest of the configuration."""
        return hashlib.sha256(self.config.read_bytes()).hexdigest()[:32]

    @classmethod
    def existing(cls, folder: Path) -> RunPaths:
        """Return the run in a folder.

        Args:
            folder: The folder.

        Raises:
            UserError: It holds no run.
        """
        if not (paths := cls(folder)).config.is_file():
            advice = "give the folder that `nfsgeo train` wrote"
            raise UserError(f"{folder}", "a run folder with a config.yaml", advice)
        return paths


# A run, its folder, or a name such as "ns-small" of a model that comes with nfsgeo.
Run = RunPaths | Path | str


def find_run(run: Run) -> RunPaths:
    """Return the folder of a run, or of a model that is included in nfsgeo.

    Args:
        run: The run, its folder, or the name of such a model.

    Raises:
        UserError: There is no such run.
    """
    folder = run.root if isinstance(run, RunPaths) else Path(run)
    if str(folder) in NAMES and not folder.exists():
        return RunPaths(FOLDER / folder)
    return RunPaths.existing(folder)
