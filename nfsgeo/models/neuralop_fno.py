"""`neuralop-fno`: the FNO of the library neuraloperator, as a reference on grids."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import PositiveInt
from torch import Tensor

from nfsgeo.geometry import Graphs
from nfsgeo.models.base import Model, ModelSettings
from nfsgeo.models.fourier_blocks import modes_for
from nfsgeo.models.info import ModelInfo
from nfsgeo.models.neuraloperator import library_model
from nfsgeo.models.problem import Problem

__all__ = ["NEURALOP_FNO_INFO", "NeuralopFNO"]


class NeuralopFNOSettings(ModelSettings):
    """Settings of `neuralop-fno`; all others are the library's defaults.

    Attributes:
        width: channels.
        depth: number of Fourier layers.
        modes: non-negative frequencies kept on every axis; ``None`` for 64 in
            one dimension, half the points at most, and 8 in more.
    """

    width: PositiveInt = 32
    depth: PositiveInt = 4
    modes: PositiveInt | None = None


class NeuralopFNO(Model):
    """``neuralop.models.FNO``: time steps are channels, of the input and of the result.

    After "Fourier Neural Operator for Parametric Partial Differential Equations", with
    the library's positional embedding, channel mixing and skip connections.

    Raises:
        UserError: without the library.
    """

    Settings = NeuralopFNOSettings
    settings: NeuralopFNOSettings
    predicts_anywhere = False
    needs_grid = True

    def __init__(self, problem: Problem, settings: Any = None, **keywords: Any) -> None:
        super().__init__(problem, settings, **keywords)
        settings, dim = self.settings, problem.domain.dim
        theirs: Any = library_model("FNO", "neuralop-fno")(
            n_modes=(2 * modes_for(settings.modes, problem),) * dim,
            in_channels=problem.num_features,
            out_channels=problem.n_out * problem.out_components,
            hidden_channels=settings.width,
            n_layers=settings.depth,
        )
        # Only its parts: the whole would put more than weights into a checkpoint.
        self.lifting, self.blocks = theirs.lifting, theirs.fno_blocks
        self.projection = theirs.projection

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """The result at the nodes of the grid; see :class:`Model`."""
        assert graphs.grid_shape is not None, "graphs of points that were not checked"
        # The library's embedding keeps its grid on the device of the first call.
        axes = [torch.arange(n, device=x.device) / n for n in graphs.grid_shape]
        place = torch.stack(torch.meshgrid(*axes, indexing="ij")).to(x)
        field = x.flatten(1).view(graphs.num_samples, *graphs.grid_shape, -1)
        place = place.expand(graphs.num_samples, *place.shape)
        field = self.lifting(torch.cat([field.movedim(-1, 1), place], dim=1))
        for layer in range(self.blocks.n_layers):
            field = self.blocks(field, layer)
        result: Tensor = self.projection(field).movedim(1, -1).flatten(0, -2)
        return result.unflatten(1, (self.problem.n_out, -1))


NEURALOP_FNO_INFO = ModelInfo(
    name="neuralop-fno",
    model=NeuralopFNO,
    points=False,
    source="Fourier Neural Operator for Parametric PDEs (neuraloperator)",
)
