"""`gcgru`: gated recurrent units with Chebyshev convolutions, on any points."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.models.info import ModelInfo
from nfsgeo.models.radius_graph import PAPER_RADIUS, graph_builder
from nfsgeo.models.recurrent import RecurrentOperator, RecurrentSettings
from nfsgeo.nn import ChebConvGRU, scaled_laplacian

__all__ = ["GCGRU", "GCGRU_INFO"]


class GCGRU(RecurrentOperator):
    """Chebyshev gated recurrent units as encoder and decoder.

    After "Structured Sequence Modeling with Graph Convolutional Recurrent Networks".
    """

    Settings = RecurrentSettings
    settings: RecurrentSettings

    def make_cell(self, channels: int) -> nn.Module:
        """A gated recurrent unit."""
        return ChebConvGRU(channels, self.settings.width, self.settings.order)

    def edges(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """The scaled Laplacian of all pairs within the radius, as weights of edges."""
        near = graph_builder(self.problem, self.settings).points_to_points(pos)
        return {"laplacian": scaled_laplacian(near, pos.dtype)}

    def matrices(self, graphs: Graphs) -> Sequence[BipartiteGraph]:
        """The Laplacian of a batch, the same for every cell."""
        return [graphs.edges["laplacian"]] * len(self.cells)


GCGRU_INFO = ModelInfo(
    name="gcgru",
    model=GCGRU,
    family="graph",
    source="Structured Sequence Modeling with Graph Convolutional Recurrent Networks",
    autoregressive=True,
    parameters_paper=74_945,
    paper={"radius": PAPER_RADIUS, "residual": False},
)
