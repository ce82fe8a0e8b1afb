"""The network of `mppde`: from a window of records to the next."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nfsgeo.geometry import Domain, Graphs
from nfsgeo.nn import MPPDELayer, TemporalDecoder

__all__ = ["WindowStep"]


class WindowStep(nn.Module):
    r"""Encoder, messages and decoder of "Message Passing Neural PDE Solvers".

    .. math:: h^0 = \epsilon(u, x, \theta), \qquad
        h^{l+1} = \mathrm{message}_l(h^l, u, \theta), \qquad
        d = \mathrm{decode}(h^L)

    Args:
        domain: the normalised one; the encoder sees positions in its lengths.
        radius: of the graph, the unit of displacements.
        window: records that go in, and come out.
        fields: components of a record that goes in.
        components: components of a record that comes out.
        variables: numbers in :math:`\theta`.
        width: hidden channels.
        depth: number of layers.

    Shapes:
        ``u`` ``[N, window, fields]``, ``variables`` ``[N, variables]``, ``graphs`` with
        the edges ``near``; result ``[N, window, components]``.
    """

    lengths: Tensor

    def __init__(
        self,
        domain: Domain,
        radius: float,
        *,
        window: int,
        fields: int,
        components: int,
        variables: int,
        width: int,
        depth: int,
    ) -> None:
        super().__init__()
        self.radius = radius
        inputs = window * fields
        self.embedding = nn.Sequential(
            nn.Linear(inputs + domain.dim + variables, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
        )
        self.layers = nn.ModuleList(
            MPPDELayer(width, inputs, domain.dim, variables) for _ in range(depth)
        )
        self.decoder = TemporalDecoder(width, window, components)
        lengths = torch.tensor(domain.lengths, dtype=torch.float32)
        self.register_buffer("lengths", lengths, persistent=False)

    def forward(self, u: Tensor, variables: Tensor, graphs: Graphs) -> Tensor:
        """What the decoder makes of a window."""
        u, near, batch = u.flatten(1), graphs.edges["near"], graphs.batch
        place = graphs.pos / self.lengths
        h = self.embedding(torch.cat([u, place, variables], dim=1))
        displacement = near.displacement.to(u.dtype) / self.radius
        for layer in self.layers:
            h = layer(
                h,
                u,
                displacement,
                variables,
                near.edge_index,
                batch,
                None if batch is None else graphs.num_samples,
            )
        decoded: Tensor = self.decoder(h)
        return decoded
