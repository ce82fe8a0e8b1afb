"""`agcrn`: gated recurrent units on a learned graph, tied to one mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from nfsgeo.errors import TooLarge, UserError
from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.models.info import ModelInfo
from nfsgeo.models.problem import Problem
from nfsgeo.models.recurrent import CellSettings, RecurrentOperator
from nfsgeo.nn import AdaptiveGRU, adjacency_bytes

__all__ = ["AGCRN", "AGCRN_INFO"]

GIB = 2**30


class AGCRNSettings(CellSettings):
    """Settings of `agcrn`, which needs no radius.

    Attributes:
        embedding_size: number of learned values that describe a point.
        max_gib: limit on the memory of the learned graphs, in GiB.
    """

    embedding_size: PositiveInt = 2
    max_gib: PositiveFloat = 4.0


class AGCRN(RecurrentOperator):
    """Adaptive gated recurrent units as encoder and decoder.

    After "Adaptive Graph Convolutional Recurrent Network for Traffic Forecasting".
    Every cell learns a graph of its own on the mesh of training.

    Raises:
        TooLarge: when the learned graphs would not fit into memory.
    """

    Settings = AGCRNSettings
    settings: AGCRNSettings
    mesh: Tensor

    def __init__(self, problem: Problem, settings: Any = None, **keywords: Any) -> None:
        settings = self._checked(settings, keywords)
        needed = adjacency_bytes(problem.num_points, settings.depth) / GIB
        if needed > settings.max_gib:
            raise TooLarge(
                f"agcrn at {problem.num_points} points, whose learned graphs need "
                f"{needed:.1f} GiB in a training step",
                f"at most max_gib = {settings.max_gib:g} GiB",
                "use fewer points or another model, or raise max_gib if there is room",
            )
        super().__init__(problem, settings)
        # Filled by the first points that come: the weights hold for no others.
        mesh = torch.full((problem.num_points, problem.dim), torch.nan)
        self.register_buffer("mesh", mesh)
        self._filled = False

    def _load_from_state_dict(
        self, state: dict[str, Any], prefix: str, *given: Any
    ) -> None:
        former = prefix + "supports.mesh"  # in checkpoints of nfsgeo 0.1
        if former in state:
            state[prefix + "mesh"] = state.pop(former)
        super()._load_from_state_dict(state, prefix, *given)

    def make_cell(self, channels: int) -> nn.Module:
        """A gated recurrent unit with a graph of its own."""
        settings = self.settings
        return AdaptiveGRU(
            self.problem.num_points,
            channels,
            settings.width,
            settings.order,
            settings.embedding_size,
        )

    def edges(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """No edges: the graph is learned.

        Raises:
            UserError: when a sample has other points than those of training.
        """
        known = self.mesh.to(pos)
        if len(pos) != len(known) or not (
            known.isnan().any() or torch.allclose(known, pos)
        ):
            raise UserError(
                "agcrn on another mesh",
                f"in every sample the {len(known)} points that it learned on, in their "
                "order",
                "observe all samples there, or train gcgru, dcrnn, mppde or nfs",
            )
        return {}

    def matrices(self, graphs: Graphs) -> Sequence[Tensor]:
        """The learned adjacency matrix of each cell."""
        if not self._filled:
            if self.mesh.isnan().any():
                self.mesh.copy_(graphs.pos[: len(self.mesh)])
            self._filled = True
        return [cell.adjacency() for cell in self.cells]  # type: ignore[operator]


AGCRN_INFO = ModelInfo(
    name="agcrn",
    model=AGCRN,
    family="graph",
    unseen_meshes=False,
    source="Adaptive Graph Convolutional Recurrent Network",
    autoregressive=True,
    paper={"residual": False},
)
