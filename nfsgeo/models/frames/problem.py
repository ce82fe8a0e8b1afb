"""The learning problem that a model is built for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from nfsgeo.geometry import Domain

__all__ = ["Problem"]


@dataclass(frozen=True)
class Problem:
    """Sizes and domain of the fields that a model maps.

    Attributes:
        domain: the box that holds the points, in the units of the data. Networks
            compute in ``domain.normalised``.
        in_components: components of the input, ``F``.
        out_components: components of the result, ``F'``.
        n_in: input time steps, ``n_t``; 1 without time.
        n_out: predicted time steps, ``n_t'``; 1 without time.
        num_points: points of a sample; of the first one where they differ.
        grid_shape: shape of the equispaced grid that the points form, or ``None``.
        has_time: whether the result depends on time.
    """

    domain: Domain
    in_components: int
    out_components: int
    n_in: int
    n_out: int
    num_points: int
    grid_shape: tuple[int, ...] | None
    has_time: bool

    @property
    def num_features(self) -> int:
        """Input values at each point: time steps times components."""
        return self.n_in * self.in_components

    def normalised_length(self, length: float) -> float:
        """Converts a ``length`` in the units of the data to the normalised domain."""
        return length / max(self.domain.lengths)

    def to_dict(self) -> dict[str, Any]:
        """Plain types, for a checkpoint."""
        shape = None if self.grid_shape is None else list(self.grid_shape)
        return asdict(self) | {"domain": self.domain.to_dict(), "grid_shape": shape}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Problem:
        """The inverse of :meth:`to_dict`, whose result is the ``content``."""
        shape, domain = content["grid_shape"], Domain.from_dict(content["domain"])
        shape = None if shape is None else tuple(shape)
        return cls(**content | {"domain": domain, "grid_shape": shape})
