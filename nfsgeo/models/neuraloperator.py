"""Models of the library neuraloperator, which is optional."""

from __future__ import annotations

import warnings

from torch import nn

from nfsgeo.errors import UserError

__all__ = ["library_model"]


def library_model(name: str, needed_by: str) -> type[nn.Module]:
    """A class of ``neuralop.models``.

    Args:
        name: of the class.
        needed_by: model of nfsgeo that needs it, for the message.

    Raises:
        UserError: without the library.
    """
    try:
        with warnings.catch_warnings():
            # The library changes the warning filters of the whole process.
            from neuralop import models
    except ImportError:
        raise UserError(
            f"model {needed_by} without the library neuraloperator",
            "the library to be installed",
            "pip install nfsgeo[gino]",
        ) from None
    model: type[nn.Module] = getattr(models, name)
    return model
