"""`dcrnn`: gated recurrent units with diffusion convolutions, on any points."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.models.info import ModelInfo
from nfsgeo.models.radius_graph import PAPER_RADIUS, graph_builder
from nfsgeo.models.recurrent import RecurrentOperator, RecurrentSettings
from nfsgeo.nn import DiffusionGRU, transition_matrices

__all__ = ["DCRNN", "DCRNN_INFO"]


class DCRNN(RecurrentOperator):
    """Diffusion gated recurrent units as encoder and decoder.

    After "Diffusion Convolutional Recurrent Neural Network: Data-Driven Traffic
    Forecasting".
    """

    Settings = RecurrentSettings
    settings: RecurrentSettings

    def make_cell(self, channels: int) -> nn.Module:
        """A gated recurrent unit."""
        return DiffusionGRU(channels, self.settings.width, self.settings.order)

    def edges(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """A random walk among all pairs within the radius, as weights of edges.

        The graph is symmetric, so that the walks along and against its edges coincide.
        """
        near = graph_builder(self.problem, self.settings).points_to_points(pos)
        return {"walk": transition_matrices(near, pos.dtype)[0]}

    def matrices(self, graphs: Graphs) -> Sequence[tuple[BipartiteGraph, ...]]:
        """The walks of a batch along and against the edges, for every cell."""
        return [(graphs.edges["walk"],) * 2] * len(self.cells)


DCRNN_INFO = ModelInfo(
    name="dcrnn",
    model=DCRNN,
    family="graph",
    source="Diffusion Convolutional Recurrent Neural Network",
    autoregressive=True,
    parameters_paper=148_673,
    paper={"radius": PAPER_RADIUS, "residual": False},
)
