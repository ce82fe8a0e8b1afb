"""Memory of the parts of an interpolation in a training step."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from nfsgeo.models import MixerOperator, Model
from nfsgeo.nn import InterpolationResampling, KernelInterpolation

__all__ = ["PARTS", "interpolation_memory"]

PARTS = ("search", "kernel", "sum")


def interpolation_memory(model: Model, x: Tensor, pos: Tensor) -> dict[str, int]:
    """Memory that the interpolations of a model hold in a training step of one sample.

    Args:
        model: The network.
        x: Inputs of the sample ``[N, n_t, F]``; their values do not matter.
        pos: Positions ``[N, d]``.

    Returns:
        Bytes of the graphs with everything cached in them (``search``), and bytes saved
        for the backward pass by the kernels' networks (``kernel``) and by the sums over
        neighbours, edge weights included (``sum``); empty for a model without such
        interpolations.
    """
    model = copy.deepcopy(model)
    resampling = model.resampling if isinstance(model, MixerOperator) else None
    if not isinstance(resampling, InterpolationResampling):
        return {}
    # Bytes of the storages by address: several tensors may share one.
    kernel, rest = dict[int, int](), dict[int, int]()
    for layer in (resampling.to_grid, resampling.from_grid):
        if isinstance(layer, KernelInterpolation):
            _count(layer.kernel, rest)
            if isinstance(network := getattr(layer.kernel, "network", None), nn.Module):
                _count(network, kernel)
    with torch.enable_grad():
        graphs = model.connect(pos)
        model(x, pos, graphs=graphs).sum().backward()
    for weight in model.parameters():
        for sizes in (kernel, rest):
            sizes.pop(weight.untyped_storage().data_ptr(), None)
    search = sum(graph.nbytes for graph in graphs.edges.values())
    held = search, sum(kernel.values()), sum(rest.values())
    return dict(zip(PARTS, held, strict=True))


def _count(module: nn.Module, sizes: dict[int, int]) -> None:
    """Collects what a module saves for its backward pass."""
    forward = module.forward

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    def counted(*args: Any) -> Any:
        with saved_tensors_hooks(pack, lambda tensor: tensor):
            return forward(*args)

    module.forward = counted
