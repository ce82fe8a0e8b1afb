"""Packages that only some formats and equations need."""

from __future__ import annotations

from importlib import import_module

from nfsgeo.errors import UserError

__all__ = ["require"]


def require(package: str, what: str, extra: str = "formats") -> None:
    """Makes sure that a package of an extra, ``nfsgeo[EXTRA]``, is installed.

    Args:
        package: Name of its module.
        what: What needs it, for the message.
        extra: Name of the extra.

    Raises:
        UserError: It is not.
    """
    try:
        import_module(package)
    except ImportError as error:
        raise UserError(what, package, f"pip install 'nfsgeo[{extra}]'") from error
