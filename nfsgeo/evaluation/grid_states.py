"""States of a network on its grid, and memory of its interpolations."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch_geometric.data import Batch, Data

from nfsgeo.errors import UserError
from nfsgeo.forecast import Forecaster
from nfsgeo.models import MixerOperator, Model
from nfsgeo.nn import InterpolationResampling, KernelInterpolation
from nfsgeo.training.artifacts import write_arrays
from nfsgeo.training.module import TrainingModule

__all__ = [
    "PARTS",
    "KeepStates",
    "relative_difference",
    "grid_states",
    "interpolation_memory",
]
__all__ += ["kept_states"]

Array = NDArray[np.float32]
PARTS = ("search", "kernel", "sum")


def relative_difference(one: Array, others: Sequence[Array]) -> float:
    r"""Relative difference of one network's states from others, between 0 and 1.

    .. math:: \frac{1}{K} \sum_{j=1}^{K} \operatorname{mean}
        \frac{|H - H_j|}{|H| + |H_j|}

    "Non-equispaced Fourier Neural Solvers for PDEs", appendix C: the mean of this over
    networks on different meshes is the paper's Diff. The inner mean is over channels,
    nodes and time steps, with 0 where both states are zero.

    Args:
        one: States :math:`H` of one network.
        others: States :math:`H_j` of :math:`K` other networks, for the same sample.
    """
    size = np.abs(one) + np.abs(others)
    return float(np.mean(np.abs(one - others) / np.where(size > 0, size, 1)))


@torch.no_grad()
def grid_states(forecaster: Forecaster, window: Data) -> dict[str, Any]:
    """Return the states of a network on its grid for one window, ``[C, *grid(, T)]``.

    Args:
        forecaster: The network between its transforms.
        window: A window of :class:`~nfsgeo.data.windows.WindowDataset`.

    Returns:
        The states before the first block, ``"begin"``, and after the last, ``"end"``.

    Raises:
        UserError: The model has no blocks on a grid, as ``nfs`` has them.
    """
    if not isinstance(forecaster.model, MixerOperator):
        raise UserError(
            f"model {forecaster.name}",
            "a mixer with states on a grid",
            "choose nfs, or another mixer",
        )
    states: dict[str, Any] = {}

    def keep(blocks: object, inputs: tuple[Tensor], output: Tensor) -> None:
        for name, state in (("begin", inputs[0]), ("end", output)):
            states[name] = state[0].float().cpu().numpy()

    training = forecaster.training
    with forecaster.model.blocks.register_forward_hook(keep):
        forecaster.eval()
        forecaster.predict_batch(Batch.from_data_list([window]).to(forecaster.device))
    forecaster.train(training)
    return states


class KeepStates(Callback):
    """Saves the states on the grid before training and after every few epochs.

    Args:
        folder: Where to write ``epoch-<epochs trained>.npz``.
        window: The sample whose states are saved.
        every: Epochs between two files; the last epoch always has one.
    """

    def __init__(self, folder: Path, window: Data, every: int) -> None:
        self.folder, self.window, self.every = folder, window, every

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.current_epoch == 0:
            self._keep(trainer, pl_module, 0)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        epochs = trainer.current_epoch + 1
        if epochs % self.every == 0 or epochs == trainer.max_epochs:
            self._keep(trainer, pl_module, epochs)

    def _keep(self, trainer: Trainer, module: LightningModule, epochs: int) -> None:
        assert isinstance(module, TrainingModule)
        if trainer.is_global_zero:
            states = grid_states(module.forecaster, self.window)
            self.folder.mkdir(exist_ok=True)
            write_arrays(self.folder / f"epoch-{epochs:05d}.npz", states)


def kept_states(folder: Path) -> dict[int, dict[str, Any]]:
    """Read the states that :class:`KeepStates` saved, by the number of epochs."""
    states = {}
    for path in sorted(folder.glob("epoch-*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            states[int(path.stem[6:])] = dict(arrays)
    return states


def interpolation_memory(model: Model, x: Tensor, pos: Tensor) -> dict[str, int]:
    """Measure the memory of interpolations in a training step of one sample.

    Args:
        model: The model, which stays as it is.
        x: Inputs ``[N, n_t, F]``, whose values do not matter.
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
        for part in (kernel, rest):
            part.pop(weight.untyped_storage().data_ptr(), None)
    search = sum(graph.nbytes for graph in graphs.edges.values())
    sizes = search, sum(kernel.values()), sum(rest.values())
    return dict(zip(PARTS, sizes, strict=True))


def _count(module: nn.Module, sizes: dict[int, int]) -> None:
    """Collect the tensors that a module saves for its backward pass."""
    forward = module.forward

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    def counted(*args: Any) -> Any:
        with saved_tensors_hooks(pack, lambda tensor: tensor):
            return forward(*args)

    module.forward = counted
