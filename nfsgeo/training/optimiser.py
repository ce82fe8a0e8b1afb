"""Optimisers and learning-rate schedules from their settings."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn, optim
from torch.optim import lr_scheduler

from nfsgeo.training.config import OptimiserSection

__all__ = ["clip_gradient_norm", "make_optimiser", "make_schedule"]


def make_optimiser(
    parameters: Iterable[nn.Parameter], section: OptimiserSection
) -> optim.Optimizer:
    """Adam or AdamW.

    Raises:
        ValueError: The learning rate is still open; resolve the configuration first.
    """
    if section.lr is None:
        raise ValueError("optimiser.lr is None: expected a number; resolve the config")
    kind = {"adam": optim.Adam, "adamw": optim.AdamW}[section.name]
    parameters = list(parameters)
    # In one pass over the numbers, which PyTorch has for real ones alone.
    fused = all(parameter.is_floating_point() for parameter in parameters)
    return kind(
        parameters,
        lr=section.lr,
        betas=section.betas,
        eps=section.eps,
        weight_decay=section.weight_decay,
        fused=fused,
    )


def make_schedule(
    optimiser: optim.Optimizer,
    section: OptimiserSection,
    *,
    epochs: int,
    steps_per_epoch: int,
) -> lr_scheduler.LRScheduler:
    """The schedule, to be advanced after every step.

    Also the step schedule counts steps, not epochs: a checkpoint is taken at the end
    of an epoch, before a schedule that counts epochs would have moved.
    """
    if section.schedule == "one-cycle":
        return lr_scheduler.OneCycleLR(
            optimiser,
            max_lr=[group["lr"] for group in optimiser.param_groups],
            total_steps=epochs * steps_per_epoch,
            pct_start=section.one_cycle_rise,
            cycle_momentum=False,
        )
    every = section.step_epochs * steps_per_epoch
    factor = section.step_factor if section.schedule == "step" else 1.0
    return lr_scheduler.StepLR(optimiser, step_size=every, gamma=factor)


def clip_gradient_norm(parameters: Iterable[nn.Parameter], largest: float) -> None:
    """Scale all gradients down to a joint Euclidean norm of at most ``largest``.

    As :func:`torch.nn.utils.clip_grad_norm_`, which takes ten times as long over the
    norm of a complex gradient as over that of its two parts.
    """
    gradients = [
        torch.view_as_real(p.grad) if p.grad.is_complex() else p.grad
        for p in parameters
        if p.grad is not None
    ]
    norm = nn.utils.get_total_norm(gradients)
    factor = (largest / (norm + 1e-6)).clamp(max=1)
    for gradient in gradients:
        gradient.mul_(factor)
