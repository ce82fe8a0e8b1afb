"""Several time steps at once from one hidden state."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["TemporalDecoder"]

CHANNELS, FIRST_KERNEL, LAST_KERNEL = 8, 15, 10


class TemporalDecoder(nn.Sequential):
    """Two convolutions along the hidden channels, which become time steps.

    The decoder of "Message Passing Neural PDE Solvers", equation (10): convolution
    of 15 to 8 channels, Swish, convolution to the components. The stride of the first
    is the largest that leaves the last a kernel of 10 or more; 128 hidden channels and
    10 time steps give a stride of 6 and a kernel of 10.

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

    def forward(self, h: Tensor) -> Tensor:
        """Decode the time steps of every node."""
        steps: Tensor = super().forward(h.unsqueeze(1))
        return steps.transpose(1, 2)
