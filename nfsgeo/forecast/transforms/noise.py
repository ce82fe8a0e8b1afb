"""Noise on the inputs in training, after which a model corrects its own errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import torch

from nfsgeo.forecast.statistics import Statistics
from nfsgeo.forecast.transforms.transform import Given, Transform, Wanted

__all__ = ["TrainingNoise"]


class TrainingNoise(Transform):
    """Adds Gaussian noise to the fields of the input, in training alone.

    Args:
        std: standard deviation, in those of the training data.
        components: how many components of the input are fields; the static inputs
            behind them have no noise.
    """

    def __init__(self, *, std: float, components: int) -> None:
        super().__init__(std=std, components=components)
        self.std, self.components = std, components

    @classmethod
    def fit(cls, statistics: Statistics, wanted: Wanted) -> Self | None:
        if not wanted.training_noise:
            return None
        noisy = statistics.fields if statistics.n_in else statistics.inputs
        return cls(std=wanted.training_noise, components=len(noisy.mean))

    def inputs(self, given: Given) -> Given:
        if not self.training:
            return given
        fields, static = given.x.tensor_split([self.components], dim=-1)
        noisy = fields + self.std * torch.randn_like(fields)
        return replace(given, x=torch.cat([noisy, static], dim=-1))
