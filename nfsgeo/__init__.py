"""Neural operators on irregular points: NFS and the models it is compared with.

All functions are those of :mod:`nfsgeo.api`, imported at their first use:
``import nfsgeo`` is fast.
"""

# ruff: noqa: F403, F405

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nfsgeo.version import __version__

if TYPE_CHECKING:
    from nfsgeo.api import *

__all__ = [
    "Fields",
    "__version__",
    "evaluate",
    "export",
    "fit",
    "from_arrays",
    "from_pyg",
    "from_xarray",
    "load",
    "open",
    "plot",
    "predict",
    "prepare",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("nfsgeo.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
