"""The learning problem that a model is built for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

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
        forcings: components of the forcing, which is known at all time steps, those of
            the result included; see :meth:`with_forcing`.
    """

    domain: Domain
    in_components: int
    out_components: int
    n_in: int
    n_out: int
    num_points: int
    grid_shape: tuple[int, ...] | None
    has_time: bool
    forcings: int = 0

    @property
    def dim(self) -> int:
        """Coordinates of a normalised position: 3 on a sphere, else its axes."""
        return self.domain.normalised.dim

    @property
    def folds(self) -> int:
        """How many input lengths it takes to cover the time steps of a forcing."""
        return -(-(self.n_in + self.n_out) // self.n_in) if self.forcings else 0

    @property
    def step_components(self) -> int:
        """Components of the input at one time step, with the forcing there alone."""
        return self.in_components - max(0, self.folds - 1) * self.forcings

    def with_forcing(self, x: Tensor, forcing: Tensor) -> Tensor:
        r"""The input of a model, ``in_components`` of it, with a forcing.

        .. math:: x_t = (u_t, f_t, f_{t + n_t}, f_{t + 2 n_t}, \dots, a),
            \qquad 0 \le t < n_t

        Right behind the fields, each input time step has the forcing there and whole
        numbers of input lengths later; past its last time step it keeps the value.

        Args:
            x: fields, then what does not change in time, ``[N, n_t, F]``.
            forcing: ``[N, n_t + n_t', C_f]``.
        """
        beyond = self.folds * self.n_in - forcing.size(1)
        held = forcing[:, -1:].expand(-1, beyond, -1)
        known = torch.cat([forcing, held], dim=1).unflatten(1, (self.folds, self.n_in))
        known = known.transpose(1, 2).flatten(2)
        fields = self.out_components
        return torch.cat([x[..., :fields], known, x[..., fields:]], dim=-1)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The parts of the input of a model.

        Args:
            x: ``[N, n_t, in_components]``, as :meth:`with_forcing` makes it.

        Returns:
            The fields ``[N, n_t, F']``, none without time, the forcing
            ``[N, n_t + n_t', C_f]``, and everything else ``[N, n_t, C_s]``.
        """
        num, steps = self.out_components * self.has_time, self.n_in + self.n_out
        if not self.forcings:
            return x[..., :num], x.new_empty(len(x), steps, 0), x[..., num:]
        ends = [num, num + self.folds * self.forcings]
        fields, known, rest = x.tensor_split(ends, dim=-1)
        forcing = known.unflatten(-1, (self.folds, self.forcings)).transpose(1, 2)
        return fields, forcing.flatten(1, 2)[:, :steps], rest

    @property
    def num_features(self) -> int:
        """Input values at each point: time steps times components."""
        return self.n_in * self.in_components

    def normalised_length(self, length: float) -> float:
        """Converts a ``length`` in the units of the data to the normalised domain."""
        return self.domain.normalised_length(length)

    def to_dict(self) -> dict[str, Any]:
        """Plain types, for a checkpoint."""
        shape = None if self.grid_shape is None else list(self.grid_shape)
        content = asdict(self) | {"domain": self.domain.to_dict(), "grid_shape": shape}
        if not self.forcings:  # as in checkpoints from before there were any
            del content["forcings"]
        return content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Problem:
        """The inverse of :meth:`to_dict`, whose result is the ``content``."""
        shape, domain = content["grid_shape"], Domain.from_dict(content["domain"])
        shape = None if shape is None else tuple(shape)
        return cls(**content | {"domain": domain, "grid_shape": shape})
