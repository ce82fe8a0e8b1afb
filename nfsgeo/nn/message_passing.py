"""Message passing layers, and the decoder of MP-PDE."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch_geometric.nn import InstanceNorm, MessagePassing
from torch_geometric.utils import scatter

from nfsgeo.errors import check_shape

__all__ = ["InteractionLayer", "MPPDELayer", "TemporalDecoder", "perceptron"]

CHANNELS, FIRST_KERNEL, LAST_KERNEL = 8, 15, 10


class MPPDELayer(MessagePassing):
    r"""Message passing with relative fields and positions.

    .. math::
        m_{ij} &= \phi(h_i, h_j, u_i - u_j, x_i - x_j, \theta_i) \\
        h_i' &= \mathrm{Norm}\Big(h_i + \psi\Big(h_i, \frac{1}{|N(i)|}
        \sum_{j \in N(i)} m_{ij}, \theta_i\Big)\Big)

    "Message Passing Neural PDE Solvers" (Brandstetter et al., 2022), equations (8) and
    (9), with the mean of the authors' program. :math:`\phi` and :math:`\psi` have two
    linear maps, each followed by Swish, and Norm is the instance norm. The first map of
    :math:`\phi` is applied to nodes, of which there are fewer than edges.

    Args:
        channels: channels of :math:`h`.
        num_fields: length of :math:`u` at a node, time steps times components.
        dim: space dimensions.
        num_variables: length of :math:`\theta` at a node: time, coefficients.

    Shapes:
        ``h`` ``[N, channels]``, ``u`` ``[N, num_fields]``, ``displacement``
        :math:`x_i - x_j` ``[E, dim]``, ``variables`` ``[N, num_variables]``,
        ``edge_index`` ``[2, E]`` with :math:`j` in row 0; result ``[N, channels]``.
    """

    def __init__(
        self, channels: int, num_fields: int, dim: int, num_variables: int
    ) -> None:
        super().__init__(aggr="mean", flow="source_to_target")
        self.parts = [channels, channels, num_fields, dim, num_variables]
        self.message_in = nn.Linear(sum(self.parts), channels)
        self.message_out = nn.Linear(channels, channels)
        self.update_in = nn.Linear(2 * channels + num_variables, channels)
        self.update_out = nn.Linear(channels, channels)
        self.norm = InstanceNorm(channels)

    def reset_parameters(self) -> None:
        """Redraw all weights."""
        super().reset_parameters()
        for layer in self.linear_maps():
            layer.reset_parameters()

    def linear_maps(self) -> Sequence[nn.Linear]:
        """The four linear maps, in order."""
        return self.message_in, self.message_out, self.update_in, self.update_out

    def forward(
        self,
        h: Tensor,
        u: Tensor,
        displacement: Tensor,
        variables: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        num_samples: int | None = None,
    ) -> Tensor:
        """Return the next hidden state of all nodes.

        Args:
            h: hidden state.
            u: fields of the window.
            displacement: displacement of every edge, from source to target.
            variables: time, coefficients.
            edge_index: sources and targets.
            batch: sample of each node, sorted; ``None`` for one sample.
            num_samples: number of samples; ``None`` to count them.
        """
        check_shape("edge_index", edge_index, 2, "E")
        if batch is not None:
            check_shape("batch", batch, h.size(0))
        for name, tensor, num, size in (
            *(("h", h, "N", self.parts[0]), ("u", u, h.size(0), self.parts[2])),
            ("displacement", displacement, edge_index.size(1), self.parts[3]),
            ("variables", variables, h.size(0), self.parts[4]),
        ):
            check_shape(name, tensor, num, size)
        target_weight, other, field, place, rest = self.message_in.weight.split(
            self.parts, 1
        )
        difference = linear(u, field)
        target = linear(h, target_weight, self.message_in.bias) + difference
        message = self.propagate(
            edge_index,
            target=target + linear(variables, rest),
            source=linear(h, other) - difference,
            place=linear(displacement, place),
            size=(h.size(0), h.size(0)),
        )
        update = swish(self.update_in(torch.cat([h, message, variables], dim=-1)))
        h = h + swish(self.update_out(update))
        normalised: Tensor = self.norm(h, batch, num_samples)
        return normalised

    def message(self, target_i: Tensor, source_j: Tensor, place: Tensor) -> Tensor:
        """Return the message of each edge, ``[E, channels]``.

        Args:
            target_i: term of the target in the first linear map.
            source_j: term of the source.
            place: term of the displacement.
        """
        return swish(self.message_out(swish(target_i + source_j + place)))


swish = nn.functional.silu


class TemporalDecoder(nn.Sequential):
    """Two convolutions along the hidden channels, which turn them into time steps.

    The decoder of "Message Passing Neural PDE Solvers", equation (10): a convolution
    of size 15 to 8 channels, Swish, and a convolution to the components. The stride of
    the first is the largest for which the kernel of the last has size 10 or more. For
    128 hidden channels and 10 time steps the stride is 6 and the size 10.

    Args:
        hidden_channels: channels of the hidden state.
        window: time steps to decode.
        components: components of the field.

    Shapes:
        ``[N, hidden_channels]`` to ``[N, window, components]``.

    Raises:
        ValueError: when there are too few hidden channels for so many time steps.
    """

    def __init__(self, hidden_channels: int, window: int, components: int = 1) -> None:
        room = hidden_channels - FIRST_KERNEL
        stride = max(1, room // (window + LAST_KERNEL - 2))
        kernel = room // stride + 2 - window
        if kernel < 1:
            raise ValueError(
                f"{hidden_channels} hidden channels for a window of {window} time "
                f"steps; expected at least {window + FIRST_KERNEL - 1}"
            )
        super().__init__(
            nn.Conv1d(1, CHANNELS, FIRST_KERNEL, stride),
            nn.SiLU(),
            nn.Conv1d(CHANNELS, components, kernel),
        )
        self.hidden_channels = hidden_channels

    def forward(self, h: Tensor) -> Tensor:
        """Decode the time steps of every node."""
        check_shape("h", h, "N", self.hidden_channels)
        steps: Tensor = super().forward(h.unsqueeze(1))
        return steps.transpose(1, 2)


class InteractionLayer(nn.Module):
    r"""Message passing that updates the features of edges and targets.

    .. math::
        m_{ij} = \phi(s_j, h_i, e_{ij}), \quad
        e_{ij}' = e_{ij} + m_{ij}, \quad
        h_i' = h_i + \psi\Big(h_i, \sum_{j \in N(i)} m_{ij}\Big)

    "Learning Mesh-Based Simulation with Graph Networks" (Pfaff et al., 2021), section
    3.2; with a mean it is the layer of RIGNO. :math:`\phi` and :math:`\psi` are
    perceptrons that end in a Layer-Norm. The first map of :math:`\phi` is applied to
    nodes as far as possible, of which there are fewer than edges.

    Args:
        channels: channels of nodes, edges and hidden layers.
        hidden: number of hidden layers of each perceptron.
        aggregation: ``sum`` or ``mean`` of the messages, 0 if there are none.
        activation: activation of the perceptrons.

    Shapes:
        ``edges`` ``[E, channels]``, ``source`` and ``target`` ``[n, channels]`` and
        ``[m, channels]``, ``edge_index`` ``[2, E]`` with :math:`j` in row 0.
    """

    def __init__(
        self, channels: int, hidden: int, aggregation: str, activation: type[nn.Module]
    ) -> None:
        super().__init__()
        self.aggregation, sizes = aggregation, [channels] * (hidden + 1)
        self.message_in = nn.Linear(3 * channels, channels)
        self.message = nn.Sequential(activation(), perceptron(sizes, activation))
        self.update = perceptron([2 * channels, *sizes], activation)

    def forward(
        self, edges: Tensor, source: Tensor, target: Tensor, edge_index: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the next features of edges and targets."""
        channels = self.message_in.out_features
        check_shape("edge_index", edge_index, 2, "E")
        check_shape("edges", edges, edge_index.size(1), channels)
        for name, nodes in {"source": source, "target": target}.items():
            check_shape(name, nodes, "n", channels)
        sender, receiver = edge_index
        source_map, target_map, edge_map = self.message_in.weight.chunk(3, dim=1)
        sent, asked = linear(source, source_map), linear(target, target_map)
        hidden = linear(edges, edge_map, self.message_in.bias)
        message = self.message(hidden + sent[sender] + asked[receiver])
        received = scatter(message, receiver, 0, len(target), reduce=self.aggregation)
        change = self.update(torch.cat([target, received], dim=1))
        return edges + message, target + change


def perceptron(
    sizes: Sequence[int], activation: type[nn.Module], *, norm: bool = True
) -> nn.Sequential:
    """Make a perceptron with layers of these sizes, by default with a Layer-Norm."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1], *[nn.LayerNorm(outputs)] * norm)
