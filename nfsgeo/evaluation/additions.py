"""Parts that a run stores beside its model and that evaluation and prediction use.

Each kind is an :class:`Addition` in :data:`ADDITIONS`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor
from torch_geometric.data import Batch

from nfsgeo.errors import UserError
from nfsgeo.files import only_here
from nfsgeo.forecast import Forecaster
from nfsgeo.geometry import Graphs
from nfsgeo.training import RunPaths
from nfsgeo.training.artifacts import write_tensors
from nfsgeo.training.checkpoints import (
    own_checkpoint,
    read_checkpoint,
    weights_digest,
)

if TYPE_CHECKING:
    from nfsgeo.evaluation.references import References
    from nfsgeo.evaluation.scored_model import ScoredModel

__all__ = ["ADDITIONS", "Addition", "Companion", "additions_of", "keeping"]

logger = logging.getLogger(__name__)


@contextmanager
def keeping(paths: RunPaths, weights: str) -> Iterator[bool]:
    """Lock results of a run, and say whether those of some weights are to be written.

    They are not if the run, which is in training, has better weights by now.
    """
    with only_here(paths.config, "results", wait=True):
        current = weights and weights_digest(own_checkpoint(paths, paths.best))
        if current != weights:
            text = "%s has other weights by now: results of those before are not kept"
            logger.warning(text, paths.root)
        yield current == weights


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
    def load(cls, paths: RunPaths, weights: str) -> Self | None:
        """Return the part that a run has stored for weights of a digest, if any."""
        if not (path := cls.path(paths)).exists():
            return None
        content = read_checkpoint(path, check_model=False)
        if content.pop("weights", weights) != weights:
            text = "%s is of other weights and left out until the run is evaluated"
            logger.warning(text, path)
            return None
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
        own_data: bool = True,
        calibrate: bool = False,
    ) -> Self | None:
        """Return the stored part, or fit and store it; ``None`` where a run has none.

        Args:
            scored: The model and its data.
            paths: The folder of the run.
            references: References on these data, where they have been fitted already.
            own_data: Whether these are the data that the run was trained on.
            calibrate: Whether to fit the stored part anew to the scored samples.
        """
        stored = cls.load(paths, scored.forecaster.digest)
        if calibrate:
            part = stored and stored.calibrated(scored, references)
        else:
            part = stored or (cls.fit(scored, references) if own_data else None)
        if part is not None and part is not stored:
            with keeping(paths, scored.forecaster.digest) as current:
                if current:
                    state = {"weights": scored.forecaster.digest, **part.state()}
                    write_tensors(cls.path(paths), state)
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


def additions_of(paths: RunPaths, weights: str) -> dict[str, Addition]:
    """Return the parts that a run has stored for weights of a digest, by name."""
    parts = {name: kind.load(paths, weights) for name, kind in ADDITIONS.items()}
    return {name: part for name, part in parts.items() if part is not None}
