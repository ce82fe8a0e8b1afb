"""`gcgru`, `dcrnn` and `agcrn`: recurrent graph networks that encode and decode."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from nfsgeo.errors import TooLarge, UserError
from nfsgeo.geometry import BipartiteGraph, Graphs
from nfsgeo.models.base import Model
from nfsgeo.models.settings import GraphSettings, ModelSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn import (
    AdaptiveGRU,
    ChebConvGRU,
    DiffusionGRU,
    scaled_laplacian,
    transition_matrices,
)

__all__ = ["AGCRN", "DCRNN", "GCGRU", "RecurrentOperator"]

# Memory of a dense graph in a training step per pair of nodes: scores, their softmax
# and the gradients of both, in single precision.
PAIR_GIB = 4 * 4 / 2**30


class CellSettings(ModelSettings):
    """Settings of recurrent encoders and decoders.

    Attributes:
        width: hidden channels.
        depth: number of stacked cells.
        order: terms of every graph convolution, one more than its hops.
        residual: whether the cells predict the change since the last input time step
            instead of the field, if there is time.
        coordinates: whether normalised positions are inputs.
    """

    width: PositiveInt = 64
    depth: PositiveInt = 2
    order: PositiveInt = 2
    residual: bool = True
    coordinates: bool = False


class RecurrentSettings(CellSettings, GraphSettings):
    """Settings of recurrent cells on a graph.

    Attributes:
        graph: ``given`` for the edges that the data have, such as roads; ``radius`` for
            all pairs within the radius. ``None`` for those of the data if they have
            any.
    """

    graph: Literal["given", "radius"] | None = None


class RecurrentOperator(Model):
    r"""Base class of recurrent encoders and decoders on a graph.

    .. math::
        h_{t+1} = \mathrm{cells}(u_t, h_t), \quad t \le n_t; \qquad
        \hat u_t = W h_t + b, \quad h_{t+1} = \mathrm{cells}(\hat u_t, h_t)

    The cells encode the input time steps one by one. The same cells then decode,
    starting from zeros, with each prediction as the next input (autoregressive
    rollout). Coefficients stay the same, and the forcing is that of the time step that
    is encoded or predicted. With ``residual`` the last input time step is added to
    every prediction. Without time there is one step of each kind.

    Subclasses name the cell and make the edges ``"shift"`` of a sample.
    """

    paper = {"radius": 0.05, "residual": False}
    spheres = True
    predicts_anywhere = False
    autoregressive = True
    Cell: ClassVar[type[nn.Module]]

    def __init__(self, problem: Problem, **settings: Any) -> None:
        super().__init__(problem, **settings)
        width = self.settings.width
        first = problem.in_components + problem.forcings
        if self.settings.coordinates:
            first += problem.dim
        inputs = [first] + [width] * (self.settings.depth - 1)
        self.cells = nn.ModuleList(self.make_cell(channels) for channels in inputs)
        self.output = nn.Linear(width, problem.out_components)

    def make_cell(self, channels: int) -> nn.Module:
        """Make a cell from input ``[N, channels]``, hidden state and matrix.

        It returns the next hidden state, ``[N, width]``.
        """
        return self.Cell(channels, self.settings.width, self.settings.order)

    def matrices(self, graphs: Graphs) -> Sequence[Any]:
        """Return the graph shift operator of each cell for a batch."""
        return [graphs.edges["shift"]] * len(self.cells)

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """Predict at the observed points; see :class:`Model`."""
        return self.predict_forced(x, graphs, None)

    def predict_forced(
        self, x: Tensor, graphs: Graphs, forcing: Tensor | None
    ) -> Tensor:
        """Predict with a forcing; see :class:`Model`."""
        matrices, problem = self.matrices(graphs), self.problem
        num = problem.out_components * problem.has_time
        fields, rest = x.tensor_split([num], dim=-1)
        if forcing is None:
            forcing = x.new_empty(len(x), problem.n_in + problem.n_out, 0)
        if self.settings.coordinates:
            # Like coefficients, positions are the same at all time steps.
            pos = graphs.pos.to(x.dtype)[:, None].expand(-1, x.size(1), -1)
            rest = torch.cat([rest, pos], dim=-1)
        hidden = [x.new_zeros(len(x), self.settings.width) for _ in self.cells]
        here, ahead = forcing.tensor_split([x.size(1)], dim=1)
        for step_input in torch.cat([fields, here, rest], dim=-1).unbind(1):
            hidden = self._step(step_input, hidden, matrices)
        last = torch.zeros_like(fields[:, -1])
        predicted = []
        for t in range(self.problem.n_out):
            step_input = torch.cat([last, ahead[:, t], rest[:, -1]], dim=-1)
            hidden = self._step(step_input, hidden, matrices)
            last = self.output(hidden[-1])
            if self.settings.residual and self.problem.has_time:
                last = fields[:, -1] + last
            predicted.append(last)
        return torch.stack(predicted, dim=1)

    def _step(
        self, x: Tensor, hidden: list[Tensor], matrices: Sequence[Any]
    ) -> list[Tensor]:
        states = []
        for cell, h, matrix in zip(self.cells, hidden, matrices, strict=True):
            x = cell(x, h, matrix)
            states.append(x)
        return states


class GraphOperator(RecurrentOperator):
    """Base class of recurrent models on a graph of the data, or a radius graph."""

    Settings = RecurrentSettings
    uses_graph = True

    @abstractmethod
    def shifts(
        self, graph: BipartiteGraph, dtype: torch.dtype, weight: Tensor | None
    ) -> dict[str, BipartiteGraph]:
        """Make the graph shift operators of the graph of one sample.

        Args:
            graph: edges from points to points.
            dtype: type of the entries.
            weight: weights ``[E]`` of the edges; ``None`` for 1, on a radius graph.
        """

    def edges(
        self,
        pos: Tensor,
        query_pos: Tensor,
        graph: tuple[Tensor, Tensor | None] | None = None,
    ) -> dict[str, BipartiteGraph]:
        """Make the graph shift operators of one sample, see the settings.

        Args:
            pos: normalised positions ``[n, d]``.
            query_pos: not used.
            graph: edges ``[2, E]`` and weights ``[E]`` that the data have, if any.

        Raises:
            UserError: when the settings ask for edges, and the data have none.
        """
        if graph is None and self.settings.graph == "given":
            given = f"{len(pos)} points without the edges of their graph"
            todo = "give edge_index, as in Data(x=, pos=, edge_index=, edge_weight=)"
            todo += "; points between those of a file (mesh off-grid) have none"
            raise UserError(given, "edges between them, as in training", todo)
        if graph is None or self.settings.graph == "radius":
            near = self.settings.builder(self.problem).points_to_points(pos)
            return self.shifts(near, pos.dtype, None)
        edge_index, weight = (None if t is None else t.to(pos.device) for t in graph)
        assert edge_index is not None
        ones = torch.ones_like(edge_index[0], dtype=torch.float64)
        weight = ones if weight is None else weight
        domain = self.problem.domain.normalised
        made = BipartiteGraph.from_edges(edge_index, (pos, pos), domain, weight)
        return self.shifts(made, pos.dtype, made.base_weight)


class GCGRU(GraphOperator):
    """Chebyshev gated recurrent units as encoder and decoder."""

    source = (
        "Structured Sequence Modeling with Graph Convolutional Recurrent Networks "
        "(Seo et al., 2018)"
    )
    Cell = ChebConvGRU

    def shifts(
        self, graph: BipartiteGraph, dtype: torch.dtype, weight: Tensor | None
    ) -> dict[str, BipartiteGraph]:
        """Make the scaled Laplacian."""
        return {"shift": scaled_laplacian(graph, dtype, weight)}


class DCRNN(GraphOperator):
    """Diffusion gated recurrent units as encoder and decoder."""

    source = "Diffusion Convolutional Recurrent Neural Network (Li et al., 2018)"
    Cell = DiffusionGRU

    def shifts(
        self, graph: BipartiteGraph, dtype: torch.dtype, weight: Tensor | None
    ) -> dict[str, BipartiteGraph]:
        """Make the random walks along and against the edges.

        A radius graph is symmetric, so that both coincide.
        """
        walks = transition_matrices(graph, dtype, weight)
        names = ["shift"] if weight is None else ["shift", "against"]
        return dict(zip(names, walks, strict=False))

    def matrices(self, graphs: Graphs) -> Sequence[tuple[BipartiteGraph, ...]]:
        """Return the walks along and against the edges for every cell."""
        along = graphs.edges["shift"]
        return [(along, graphs.edges.get("against", along))] * len(self.cells)


class AGCRNSettings(CellSettings):
    """Settings of `agcrn`, which has no radius.

    Attributes:
        embedding_size: length of the learned embedding of a point.
        max_gib: limit on the memory of the learned graphs, in GiB.
    """

    embedding_size: PositiveInt = 2
    max_gib: PositiveFloat = 4.0


class AGCRN(RecurrentOperator):
    """Adaptive gated recurrent units as encoder and decoder.

    Every cell learns its own graph on the mesh of training.

    Raises:
        TooLarge: when the learned graphs would not fit into memory.
    """

    Settings = AGCRNSettings
    source = "Adaptive Graph Convolutional Recurrent Network (Bai et al., 2020)"
    paper = {"residual": False}
    unseen_meshes = False
    mesh: Tensor

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        settings = self.settings
        needed = PAIR_GIB * settings.depth * problem.num_points**2
        if needed > settings.max_gib:
            raise TooLarge(
                f"agcrn at {problem.num_points} points, whose learned graphs need "
                f"{needed:.1f} GiB in a training step",
                f"at most max_gib = {settings.max_gib:g} GiB",
                "use fewer points or another model, or raise max_gib if there is room",
            )
        # Set by the first points, the only ones for which the weights are meaningful.
        mesh = torch.full((problem.num_points, problem.dim), torch.nan)
        self.register_buffer("mesh", mesh)
        self._filled = False

    def make_cell(self, channels: int) -> nn.Module:
        """Make a gated recurrent unit with its own graph."""
        settings = self.settings
        return AdaptiveGRU(
            self.problem.num_points,
            channels,
            settings.width,
            settings.order,
            settings.embedding_size,
        )

    def edges(self, pos: Tensor, query_pos: Tensor) -> dict[str, BipartiteGraph]:
        """Check the mesh, and return no edges, since the graph is learned.

        Raises:
            UserError: when a sample has other points than those of training.
        """
        mesh = self.mesh.to(pos)
        if len(pos) != len(mesh) or not (
            mesh.isnan().any() or torch.allclose(mesh, pos)
        ):
            raise UserError(
                "agcrn on another mesh",
                f"in every sample the {len(mesh)} points that it learned on, in their "
                "order",
                "observe all samples there, or train gcgru, dcrnn, mppde or nfs",
            )
        return {}

    def matrices(self, graphs: Graphs) -> Sequence[Tensor]:
        """Return the learned adjacency matrix of each cell."""
        if not self._filled:
            if self.mesh.isnan().any():
                self.mesh.copy_(graphs.pos[: len(self.mesh)])
            self._filled = True
        return [cell.adjacency() for cell in self.cells]  # type: ignore[operator]
