"""The default network of learned kernels: from the features of an edge to weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, pad

__all__ = ["EdgeNetwork"]


class EdgeNetwork(nn.Module):
    r"""Hidden layer of a learned kernel: GELU of a linear map of an edge's features.

    The features are those of equation (7) in "Non-equispaced Fourier Neural Solvers
    for PDEs", :math:`(x_j - x_i, x_i, a(x_i))`, and the distance. What depends on
    the source alone is computed per source, not per edge; all of it in full precision,
    under mixed precision too.

    Args:
        dim: space dimensions, :math:`d`.
        num_features: length of :math:`a(x_i)`; 0 for a kernel that sees no input.
        hidden: width of the result, :math:`h`.
        scale: length by which relative positions are divided, in the units of the
            positions; the radius of the graph is the natural choice.
        absolute_position: whether :math:`x_i` is a feature. Without it, the kernel
            commutes with translations.
        directions: whether the relative position is a feature, beside the distance.
            Without both, the kernel commutes with rotations, too.

    Shapes:
        ``offset`` ``[E, d + 1]``, ``pos`` ``[n, d]``, ``features`` ``[n, F]``,
        ``source`` ``[E]``; result ``[E, h]``.

    Raises:
        ValueError: for ``features`` of another length.
    """

    def __init__(
        self,
        dim: int,
        num_features: int,
        hidden: int,
        *,
        scale: float = 1.0,
        absolute_position: bool = True,
        directions: bool = True,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.num_features = num_features
        self.hidden = hidden
        self.scale = scale
        self.absolute_position = absolute_position
        self.directions = directions
        self.edge = nn.Linear(dim + 1 if directions else 1, hidden)
        num_source = num_features + (dim if absolute_position else 0)
        self.node = nn.Linear(num_source, hidden, bias=False) if num_source else None

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        self.edge.reset_parameters()
        if self.node is not None:
            self.node.reset_parameters()

    def forward(
        self, offset: Tensor, pos: Tensor, features: Tensor | None, source: Tensor
    ) -> Tensor:
        """Hidden layer of every edge; see the class for shapes.

        Args:
            offset: :math:`x_j - x_i` of the edges, and its length; see
                :meth:`nfsgeo.geometry.BipartiteGraph.offset`.
            pos: positions :math:`x_i` of the sources.
            features: inputs :math:`a(x_i)` at the sources.
            source: source of each edge.
        """
        parts = [pos] if self.absolute_position else []
        if self.num_features:
            if features is None or features.size(-1) != self.num_features:
                came = None if features is None else tuple(features.shape)
                raise ValueError(
                    f"features are {came}; expected [n, {self.num_features}], the "
                    "inputs at the sources on which the kernel depends"
                )
            parts.append(features)
        # Fewer numbers to scale than the offsets are.
        weight = self.edge.weight / self.scale
        weight = weight if self.directions else pad(weight, (self.dim, 0))
        with torch.autocast(offset.device.type, enabled=False):
            relative, bias = offset.to(weight.dtype), self.edge.bias
            if self.node is None:
                return gelu(linear(relative, weight, bias)).to(offset.dtype)
            # There are fewer points than edges.
            known = torch.cat(parts, dim=-1).to(weight.dtype)
            of_edge = linear(known, self.node.weight, bias).index_select(0, source)
            return gelu(torch.addmm(of_edge, relative, weight.t())).to(offset.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale:.4g}, absolute_position={self.absolute_position}"
