"""Points at which a model that knows its own points alone can predict."""

from __future__ import annotations

import torch
from torch import Tensor

from nfsgeo.errors import UserError

__all__ = ["check_queries"]


def check_queries(model: str, pos: Tensor, query_pos: Tensor | None) -> None:
    """Make sure that a prediction is wanted at the observed points.

    Args:
        model: its name.
        pos: the observed points.
        query_pos: where a prediction is wanted; ``None`` for the observed points.

    Raises:
        UserError: when it is wanted elsewhere.
    """
    if query_pos is None or query_pos is pos or torch.equal(query_pos, pos):
        return
    raise UserError(
        f"query points for the model {model}",
        "a prediction at the observed points, where alone it has values",
        "leave the query points out, or train nfs, which predicts anywhere",
    )
