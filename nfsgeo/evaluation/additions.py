"""Parts that a run stores beside its model and that evaluation and prediction use.

Each kind is an :class:`Addition` in :data:`ADDITIONS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.geometry import Graphs
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_tensors
from nfsgeo.training.checkpoints import read_checkpoint

if TYPE_CHECKING:
    from nfsgeo.evaluation.references import References
    from nfsgeo.evaluation.scored_model import ScoredModel

__all__ = ["ADDITIONS", "Addition", "Companion", "additions_of"]


class Companion:
    """The contribution of an addition to a call of :func:`nfsgeo.evaluation.predict`.

    Attributes:
        suffixes: Suffixes of the further components that it predicts for each one.
        attributes: Attributes of the variables of these components.
        needs_observed: Whether query points have to begin with the observed points.
    """

    suffixes: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = {}
    needs_observed = False

    def connect(self, graphs: Graphs) -> Graphs:
        """Return the graphs of a batch with those that this needs."""
        return graphs

    def components(self, u: Tensor, batch: Batch) -> list[Tensor]:
        """Return further components ``[M, T, C]`` of a prediction, one per suffix."""
        return []

    def parameters(self) -> dict[str, Any]:
        """Return numbers of each sample ``[S]`` by name, after the last batch."""
        return {}


class Addition(ABC):
    """A part that a run stores beside its model."""

    @staticmethod
    @abstractmethod
    def path(paths: RunPaths) -> Path:
        """Return its file in the folder of a run."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the tensors and numbers that are stored."""

    @classmethod
    @abstractmethod
    def of_state(cls, state: dict[str, Any]) -> Self:
        """Return the part that has such a :meth:`state`."""

    @classmethod
    @abstractmethod
    def fit(cls, scored: ScoredModel, references: References | None) -> Self | None:
        """Fit the part to training and validation samples.

        The result is None where the run is to have no such part.
        """

    def calibrated(self, scored: ScoredModel, references: References | None) -> Self:
        """Return the part fitted anew to the samples that are scored, if it can be."""
        return self

    @classmethod
    def load(cls, paths: RunPaths) -> Self | None:
        """Return the part that the folder of a run has stored, or ``None``."""
        if not (path := cls.path(paths)).exists():
            return None
        content = read_checkpoint(path, of_nfsgeo=False)
        try:
            return cls.of_state(content)
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"{path} from another version of nfsgeo",
                "one of this version",
                f"remove it, and evaluate {paths.root} again",
            ) from error

    @classmethod
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
            references: References on these data, where they have been fitted already.
            own: Whether these are the data that the run was trained on.
            calibrate: Whether to fit the stored part anew to the scored samples.
        """
        stored = cls.load(paths)
        if calibrate:
            part = stored and stored.calibrated(scored, references)
        else:
            part = stored or (cls.fit(scored, references) if own else None)
        if part is not None and part is not stored:
            write_tensors(cls.path(paths), part.state())
        return part

    def scores(self, scored: ScoredModel, references: References) -> dict[str, Any]:
        """Return entries of ``summary.json`` about the samples that are scored."""
        return {}

    def companion(
        self, forecaster: Forecaster, steps: int, level: float | None
    ) -> Companion | None:
        """Return the contribution to predictions of so many time steps, if any.

        The level is that of :func:`nfsgeo.evaluation.predict`.
        """
        return None


ADDITIONS: dict[str, type[Addition]] = {}


def additions_of(paths: RunPaths) -> dict[str, Addition]:
    """Return the parts that the folder of a run has stored, by name."""
    parts = {name: kind.load(paths) for name, kind in ADDITIONS.items()}
    return {name: part for name, part in parts.items() if part is not None}
