"""Packages that only some formats need."""

from __future__ import annotations

from importlib import import_module

from nfsgeo.errors import UserError

__all__ = ["require"]


def require(package: str, what: str) -> None:
    """Makes sure that a package of the extra ``nfsgeo[formats]`` is installed.

    Args:
        package: Name of its module.
        what: What needs it, for the message.

    Raises:
        UserError: It is not.
    """
    try:
        import_module(package)
    except ImportError as error:
        raise UserError(what, package, "pip install 'nfsgeo[formats]'") from error
