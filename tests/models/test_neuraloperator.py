"""SpectralConv and fno against neuraloperator's, with the same weights."""

import pytest
import torch
from neuralop.layers.spectral_convolution import SpectralConv as TheirSpectralConv
from neuralop.models import FNO
from torch import Tensor, nn
from torch.func import functional_call

from nfsgeo.geometry import Domain, equispaced_grid
from nfsgeo.models import Problem, build_model, num_parameters
from nfsgeo.nn import SpectralConv
from nfsgeo.testing import assert_same

CHANNELS, DEPTH, SAMPLES = 8, 3, 2
# Modes and sizes; even sizes, on which both agree what the centre of a spectrum is.
CASES = {
    "1d": ((5,), (16,)),
    "2d": ((3, 4), (12, 10)),
    "3d": ((2, 3, 4), (8, 6, 10)),
    "every mode": ((4, 5), (8, 8)),
}
PROBLEMS = {
    "1d with time": Problem(Domain.unit(1), 1, 1, 3, 6, 12, (12,), True),
    "2d with time": Problem(Domain.unit(2), 2, 3, 3, 6, 80, (8, 10), True),
    "2d without time": Problem(Domain.unit(2, False), 1, 1, 1, 1, 80, (8, 10), False),
}


def their_weight(layer: SpectralConv) -> Tensor:
    """Our frequencies are 0 .. m-1, -m .. -1 and lead; theirs -m .. m-1, at the end."""
    weight = torch.view_as_complex(layer.weight)
    if len(layer.modes) > 1:
        weight = torch.fft.fftshift(weight, dim=tuple(range(len(layer.modes) - 1)))
    return weight.movedim((-2, -1), (0, 1))


@pytest.mark.parametrize(("modes", "sizes"), CASES.values(), ids=CASES)
def test_convolution(modes, sizes):
    ours = SpectralConv(CHANNELS, CHANNELS, modes)
    # Theirs are counted with both signs, on the last axis too, though half are kept.
    total = (*(2 * m for m in modes[:-1]), 2 * (modes[-1] - 1))
    theirs = TheirSpectralConv(CHANNELS, CHANNELS, total, bias=False)

    def plain(x: Tensor) -> Tensor:
        return functional_call(theirs, {"weight.tensor": their_weight(ours)}, (x,))

    assert_same(ours, plain, (torch.randn(2, CHANNELS, *sizes),), ours.parameters())


@pytest.mark.parametrize("name", PROBLEMS)
def test_network(name):
    problem = PROBLEMS[name]
    settings = {"width": CHANNELS, "depth": DEPTH, "modes": 3, "time_modes": 3}
    ours = build_model("fno", problem, settings)
    for block in ours.blocks:
        # Theirs applies the activation twice, but not after the last block.
        block.activation = nn.Sequential(nn.GELU(), nn.GELU())
    ours.blocks[-1].activation = None
    axes = problem.domain.dim + problem.has_time
    theirs = FNO(
        n_modes=(*(6 for _ in range(axes - 1)), 4),
        in_channels=problem.num_features + axes,
        out_channels=problem.out_components,
        hidden_channels=CHANNELS,
        n_layers=DEPTH,
        lifting_channel_ratio=0,
        projection_channel_ratio=128 / CHANNELS,
        positional_embedding=None,
        use_channel_mlp=False,
    )
    weights = dict(theirs.named_parameters())
    assert sum(p.numel() for p in weights.values()) == num_parameters(ours)

    def copied() -> dict[str, Tensor]:
        lift, (first, _, second) = ours.lift, ours.projector
        weight = lift.space.weight
        if lift.time is not None:
            weight = torch.cat([weight, lift.time[:, None]], dim=1)
        found = {"lifting.fcs.0.weight": weight, "lifting.fcs.0.bias": lift.space.bias}
        for i, layer in enumerate((first, second)):
            found[f"projection.fcs.{i}.weight"] = layer.weight
            found[f"projection.fcs.{i}.bias"] = layer.bias
        for i, block in enumerate(ours.blocks):
            prefix = f"fno_blocks.convs.{i}"
            found[f"{prefix}.weight.tensor"] = their_weight(block.mix)
            found[f"{prefix}.bias"] = block.residual.bias.view(-1, *(1,) * axes)
            found[f"fno_blocks.fno_skips.{i}.conv.weight"] = block.residual.weight
        assert found.keys() == weights.keys()
        return {key: found[key].view(weight.shape) for key, weight in weights.items()}

    shape, num_steps = problem.grid_shape, problem.n_out
    pos = equispaced_grid(problem.domain, shape).repeat(SAMPLES, 1)
    batch = torch.arange(SAMPLES).repeat_interleave(problem.num_points)

    def plain(x: Tensor) -> Tensor:
        """Inputs and coordinates copied to every record, as theirs wants them."""
        inputs = torch.cat([x.flatten(1), pos], dim=1)
        inputs = inputs.view(SAMPLES, *shape, -1).movedim(-1, 1)
        if problem.has_time:
            inputs = inputs[..., None].expand(*inputs.shape, num_steps)
            times = torch.linspace(0, 1, num_steps).expand_as(inputs[:, :1])
            inputs = torch.cat([inputs, times], dim=1)
        out = functional_call(theirs, copied(), (inputs,)).movedim(1, -1)
        return out.reshape(len(pos), num_steps, -1)

    x = torch.randn(len(pos), problem.n_in, problem.in_components)
    assert_same(lambda x: ours(x, pos, batch), plain, (x,), ours.parameters())


@pytest.mark.parametrize("name", PROBLEMS)
def test_neuralop_fno_is_the_library_s(name):
    p = PROBLEMS[name]
    model = build_model("neuralop-fno", p, {"width": 8, "depth": 2, "modes": 2})
    theirs = FNO(
        n_modes=(4,) * p.domain.dim,
        in_channels=p.num_features,
        out_channels=p.n_out * p.out_components,
        hidden_channels=8,
        n_layers=2,
    )
    for name in ("lifting", "fno_blocks", "projection"):
        own = getattr(model, name.removeprefix("fno_"))
        getattr(theirs, name).load_state_dict(own.state_dict())
    pos = equispaced_grid(p.domain, p.grid_shape)
    x = torch.randn(2, p.num_points, p.n_in, p.in_components)
    batch = torch.arange(2).repeat_interleave(p.num_points)
    found = model(x.flatten(0, 1), pos.repeat(2, 1), batch)
    channels = x.flatten(2).transpose(1, 2).unflatten(2, p.grid_shape)
    expected = theirs(channels).flatten(2).transpose(1, 2).flatten(0, 1)
    torch.testing.assert_close(found.flatten(1), expected)
