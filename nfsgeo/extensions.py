"""Packages that add to the registries of others when they are imported."""

from __future__ import annotations

from importlib import import_module

from nfsgeo.plugins import load_plugins

__all__ = ["EXTENSIONS", "load_extensions"]

EXTENSIONS = ("nfsgeo.stations", "nfsgeo.uncertainty")


def load_extensions() -> None:
    """Imports all extensions, before a registry is read that they add to."""
    for name in EXTENSIONS:
        import_module(name)
    load_plugins()
