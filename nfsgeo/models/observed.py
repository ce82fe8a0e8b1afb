"""What a model is called with, checked."""

from __future__ import annotations

from torch import Tensor

from nfsgeo.models.problem import Problem
from nfsgeo.nn import Points

__all__ = ["observed"]


def observed(
    problem: Problem,
    x: Tensor,
    pos: Tensor,
    batch: Tensor | None,
    query_pos: Tensor | None,
    query_batch: Tensor | None,
) -> tuple[Points, Tensor, Tensor | None]:
    """The observed points, the positions of the queries, and their samples.

    Without queries these are the observed points themselves; arguments and shapes are
    those of every model.

    Raises:
        ValueError: when shapes do not fit the problem.
    """
    if x.shape[1:] != (problem.n_in, problem.in_components):
        raise ValueError(
            f"x has shape {tuple(x.shape)}; expected [N, {problem.n_in}, "
            f"{problem.in_components}]: points, input records, components"
        )
    if query_pos is None:
        query_pos, query_batch = pos, batch
    num_samples = 1 if batch is None else int(batch[-1]) + 1
    if num_samples > 1 and query_batch is None:
        raise ValueError(
            f"query_batch is None for a batch of {num_samples} samples; expected "
            "the sample of each query point"
        )
    return Points(x.flatten(1), pos, batch, num_samples), query_pos, query_batch
