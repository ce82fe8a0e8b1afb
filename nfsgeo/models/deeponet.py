"""`deeponet-u` and `deeponet-v`: a branch net on a grid, a trunk net at any point."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from nfsgeo.geometry import Graphs
from nfsgeo.models.base import Model
from nfsgeo.models.patch_mixers import AttentionSettings, attention_block
from nfsgeo.models.settings import ModelSettings
from nfsgeo.models.task import Problem
from nfsgeo.nn import GridResampling, PatchEmbedding, Pointwise, Trunk, UNet
from nfsgeo.nn.token_mixers import patches_of

__all__ = ["DeepONet", "DeepONetU", "DeepONetV"]


class DeepONetSettings(ModelSettings):
    """Settings of all DeepONets.

    Attributes:
        width: channels of the branch.
        basis: number of basis functions, ``K``.
        hidden: width of the trunk.
        trunk_depth: hidden layers of the trunk.
    """

    width: PositiveInt = 32
    basis: PositiveInt = 128
    hidden: PositiveInt = 128
    trunk_depth: PositiveInt = 4


class DeepONet(Model):
    r"""A solution operator with a learned basis.

    .. math:: G(a)(x, t) = b_0 + \sum_{k=1}^{K} b_k(a) \, t_k(x, t)

    "Learning nonlinear operators via DeepONet" (Lu et al., 2021), equation (2). The
    branch is a network on the grid of inputs and coordinates, averaged over the grid.
    The result is available at any point. Subclasses make the branch.
    """

    source = "Learning nonlinear operators via DeepONet (Lu et al., 2021)"
    points = False

    def __init__(self, problem: Problem, **keywords: Any) -> None:
        super().__init__(problem, **keywords)
        settings = self.settings
        self.resampling = GridResampling()
        self.branch = self.make_branch()
        self.coefficients = nn.Linear(
            settings.width, problem.out_components * settings.basis
        )
        self.trunk = Trunk(
            problem.domain.dim,
            settings.basis,
            hidden=settings.hidden,
            depth=settings.trunk_depth,
            time=problem.has_time,
        )
        self.bias = nn.Parameter(torch.zeros(problem.out_components))

    @abstractmethod
    def make_branch(self) -> nn.Module:
        """Make the network from ``[B, F + d, *grid]`` to ``[B, width, *n]``."""

    def predict(self, x: Tensor, graphs: Graphs) -> Tensor:
        """Predict at the query points; see :class:`Model`."""
        times = torch.linspace(0, 1, self.problem.n_out, dtype=x.dtype, device=x.device)
        place = self.in_unit_box(graphs.pos)
        inputs = torch.cat([x.flatten(1), place], dim=1)
        field = self.resampling(inputs, graphs, lambda values, _: (values, None), times)
        # The mean over the grid allows grids of any size.
        pooled = self.branch(field).flatten(2).mean(2)
        coefficients = self.coefficients(pooled).unflatten(1, (len(self.bias), -1))
        if graphs.query_pos is None:
            # All samples share one grid, and hence one basis.
            basis = self.trunk(place[: graphs.sizes[0]], times)
            result = torch.einsum("bfk,ntk->bntf", coefficients, basis).flatten(0, 1)
        else:
            basis = self.trunk(self.in_unit_box(graphs.query_pos), times)
            if (batch := graphs.query_batch) is not None:
                coefficients = coefficients[batch]
            coefficients = coefficients.expand(len(basis), -1, -1)
            result = torch.einsum("mfk,mtk->mtf", coefficients, basis)
        return result + self.bias


class DeepONetUSettings(DeepONetSettings):
    """Settings of `deeponet-u`.

    Attributes:
        levels: number of times that the U-Net halves the grid.
    """

    levels: PositiveInt = 3


class DeepONetU(DeepONet):
    """DeepONet whose branch is a U-Net.

    "Non-equispaced Fourier Neural Solvers for PDEs" (Lin et al., 2022) compares with
    this variant.
    """

    Settings = DeepONetUSettings

    def make_branch(self) -> nn.Module:
        """Make a U-Net, periodic if all axes of the domain are."""
        domain = self.problem.domain
        return UNet(
            self.problem.num_features + domain.dim,
            self.settings.width,
            domain.dim,
            levels=self.settings.levels,
            periodic=all(domain.periodic),
        )


class DeepONetVSettings(AttentionSettings, DeepONetSettings):
    """Settings of `deeponet-v`.

    Attributes:
        norm: Layer-Norm of the blocks, as for `vit`; ``element`` ties the branch to one
            grid.
        patch: nodes of a patch along each axis.
    """

    norm: Literal["element", "channel", "none"] = "channel"
    patch: PositiveInt = 4


class DeepONetV(DeepONet):
    """DeepONet whose branch consists of the blocks of `vit` over patches of space.

    "Non-equispaced Fourier Neural Solvers for PDEs" compares with this variant.
    """

    Settings = DeepONetVSettings

    def make_branch(self) -> nn.Module:
        """Make a lift, a patch embedding and attention blocks."""
        settings, dim = self.settings, self.problem.domain.dim
        patch = (settings.patch,) * dim
        tokens = patches_of(self.problem.grid_shape or (), patch)
        return nn.Sequential(
            Pointwise(self.problem.num_features + dim, settings.width),
            PatchEmbedding(settings.width, patch),
            *(attention_block(settings, tokens) for _ in range(settings.depth)),
        )
