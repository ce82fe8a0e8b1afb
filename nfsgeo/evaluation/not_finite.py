"""Predictions that are not finite, which files hold as missing values."""

from __future__ import annotations

import logging

from torch import Tensor

__all__ = ["NotFinite"]

logger = logging.getLogger(__name__)


class NotFinite:
    """The first time step, from 1, at which predictions of a sample are not finite."""

    def __init__(self) -> None:
        self._first: dict[int, int] = {}

    def add(self, sample: int, u: Tensor) -> None:
        """Look through some predictions ``[m, T, C]`` of a sample."""
        if not bool((finite := u.isfinite()).all()):
            step = int((~finite).any(-1).any(0).float().argmax()) + 1
            self._first[sample] = min(step, self._first.get(sample, step))

    def report(self, what: str) -> list[dict[str, int]]:
        """Warn of ``what`` they are; return ``sample`` and ``time_step`` of each."""
        samples = [
            {"sample": s, "time_step": t} for s, t in sorted(self._first.items())
        ]
        if samples:
            first, more = samples[0], len(samples) - 1
            line = "%s: not finite in sample %d from time step %d on"
            line += f", and in {more} other samples" * bool(more)
            logger.warning(line, what, first["sample"], first["time_step"])
        return samples
