"""Where the files of a run lie."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from nfsgeo.errors import UserError
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
    """A run folder and the names in it.

    Args:
        root: The folder.

    Attributes:
        config: The resolved configuration.
        environment: Versions, device, seed and commit.
        metrics: One row for each epoch.
        best: Checkpoint of the epoch with the lowest validation RMSE.
        last: Checkpoint of the last whole epoch, from which training goes on.
        bands: Error bands, where the run has any.
        summary: Sizes, cost and test errors.
        evaluation: Predictions for a few test samples.
        unseen: Errors on unseen meshes.
        meshes: Errors on meshes of every kind.
        report: The report, one HTML file.
        figures: Folder of its pictures.
    """

    root: Path

    config = _In("config.yaml")
    environment = _In("environment.json")
    metrics = _In("metrics.csv")
    best = _In("checkpoints/best.ckpt")
    last = _In("checkpoints/last.ckpt")
    bands = _In("checkpoints/bands.pt")
    summary = _In("summary.json")
    evaluation = _In("evaluation.npz")
    unseen = _In("unseen.csv")
    meshes = _In("meshes.csv")
    report = _In("report.html")
    figures = _In("figures")

    @classmethod
    def new(cls, folder: Path | None, name: str) -> RunPaths:
        """Makes an empty folder: the one asked for, or the next ``runs/<name>-<k>``.

        Raises:
            UserError: The folder holds something or is a file.
        """
        if folder is not None:
            cls.check_free(folder)
            folder.mkdir(parents=True, exist_ok=True)
            return cls(folder)
        for number in count(1):
            with suppress(FileExistsError):
                folder = Path("runs", f"{name}-{number}")
                folder.mkdir(parents=True)
                break
        assert folder is not None
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


# A run, its folder, or a name such as "ns-small" of a model that comes with nfsgeo.
Run = RunPaths | Path | str


def find_run(run: Run) -> RunPaths:
    """The folder of a run, or of a model that comes with nfsgeo by its name.

    Raises:
        UserError: It is neither.
    """
    folder = run.root if isinstance(run, RunPaths) else Path(run)
    if str(folder) in NAMES and not folder.exists():
        return RunPaths(FOLDER / folder)
    return RunPaths.existing(folder)
