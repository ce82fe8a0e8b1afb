"""Memory of the parts of an interpolation."""

from typing import Any

import torch

from nfsgeo.evaluation import interpolation_memory
from nfsgeo.geometry import Domain
from nfsgeo.models import MODELS, Problem, build_model

EDGES = 8 + 8 + 2 * 4 + 4  # bytes of source and target, displacement, weight


def memory(num_points: int, name: str = "nfs", **settings: Any) -> dict[str, int]:
    torch.manual_seed(0)
    problem = Problem(Domain.unit(2), 1, 1, 3, 4, num_points, None, True)
    small: dict[str, Any] = {}
    if name == "nfs":
        small = {"width": 8, "modes": 2, "time": "tokens", "kernel": "channel"}
    model = build_model(name, problem, {**small, **settings})
    found = interpolation_memory(
        model, torch.randn(num_points, 3, 1), torch.rand(num_points, 2)
    )
    assert all(p.grad is None for p in model.parameters())
    return found


def test_grows_with_the_points() -> None:
    one, four = memory(256), memory(1024)
    assert set(one) == {"search", "kernel", "sum"}
    # Neighbours grow with the logarithm of the points.
    for part, size in one.items():
        assert 3.9 * size < four[part] < 5.5 * size


def test_graphs_hold_their_edges() -> None:
    """Two graphs of 16 points and as many nodes, all within reach of each other."""
    found = memory(16, base="mean", radius=2.0)["search"]
    assert found > 2 * 16 * 16 * EDGES


def test_matrices_of_edges_hold_more_than_their_weights() -> None:
    paper = {key: MODELS["nfs"].paper[key] for key in ("kernel", "base", "back_width")}
    dense, channel = memory(256, **paper), memory(256, **{**paper, "kernel": "channel"})
    assert dense["sum"] > 2 * channel["sum"]
