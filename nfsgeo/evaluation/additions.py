"""Parts that a run stores beside its model and that evaluation and prediction use.

Each kind is an :class:`Addition` in :data:`ADDITIONS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.geometry import Graphs
from nfsgeo.training import RunPaths
from nfsgeo.training.checkpoints import read_checkpoint

if TYPE_CHECKING:
    from nfsgeo.evaluation.references import References
    from nfsgeo.evaluation.scored_model import ScoredModel

__all__ = ["ADDITIONS", "Addition", "Companion", "additions_of", "read_stored"]

T = TypeVar("T")


class Companion:
    """The contribution of an addition to a call of :func:`nfsgeo.evaluation.predict`.

    Attributes:
        suffixes: Of the further components that it predicts for each component.
        attributes: Of the variables of these components.
        needs_observed: Whether query points have to begin with the observed points.
    """

    suffixes: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = {}
    needs_observed = False

    def connect(self, graphs: Graphs) -> Graphs:
        """The graphs of a batch, with those that this needs."""
        return graphs

    def components(self, u: Tensor, batch: Batch) -> list[Tensor]:
        """Further components ``[M, T, C]``, one tensor for each suffix.

        Args:
            u: The prediction ``[M, T, C]``.
            batch: The inputs that it was made from.
        """
        return []

    def parameters(self) -> dict[str, Any]:
        """Numbers of each sample ``[S]`` by name, once all batches are predicted."""
        return {}


class Addition(ABC):
    """A part that a run stores beside its model."""

    @classmethod
    @abstractmethod
    def load(cls, paths: RunPaths) -> Self | None:
        """Return the part that the folder of a run has stored, or ``None``."""

    @classmethod
    @abstractmethod
    def of_run(
        cls,
        scored: ScoredModel,
        paths: RunPaths,
        references: References | None = None,
        *,
        own: bool = True,
        calibrate: bool = False,
    ) -> Self | None:
        """Return the stored part, or fit and store it; ``None`` where a run has none.

        Args:
            scored: The model and its data.
            paths: The folder of the run.
            references: Those of these data, where they have been fitted already.
            own: Whether these are the data that the run was trained on.
            calibrate: Whether it is to be fitted to the samples that are scored.
        """

    def scores(self, scored: ScoredModel, references: References) -> dict[str, Any]:
        """Entries of ``summary.json`` about the samples that are scored."""
        return {}

    def companion(
        self, forecaster: Forecaster, steps: int, level: float | None
    ) -> Companion | None:
        """Return the contribution to predictions of so many time steps, if any.

        Args:
            forecaster: The model that predicts.
            steps: The number of time steps.
            level: As in :func:`nfsgeo.evaluation.predict`.
        """
        return None


ADDITIONS: dict[str, type[Addition]] = {}


def additions_of(paths: RunPaths) -> dict[str, Addition]:
    """Return the parts that the folder of a run has stored, by name."""
    found = {name: kind.load(paths) for name, kind in ADDITIONS.items()}
    return {name: each for name, each in found.items() if each is not None}


def read_stored(path: Path, make: Callable[[dict[str, Any]], T]) -> T | None:
    """Return an object made of an optional file of a run, ``None`` without the file.

    Args:
        path: The file.
        make: Makes it of the content.

    Raises:
        UserError: The file is damaged or of another version.
    """
    if not path.exists():
        return None
    content = read_checkpoint(path, of_nfsgeo=False)
    try:
        return make(content)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} from another version of nfsgeo",
            "one of this version",
            f"remove it, and evaluate {path.parents[1]} again",
        ) from error
