"""Fixtures that all tests share."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(
    params=[
        "cpu",
        pytest.param(
            "cuda",
            marks=[
                pytest.mark.cuda,
                pytest.mark.skipif(
                    not torch.cuda.is_available(), reason="no CUDA device"
                ),
            ],
        ),
    ]
)
def device(request: pytest.FixtureRequest) -> torch.device:
    """Every device that this machine has."""
    return torch.device(request.param)
