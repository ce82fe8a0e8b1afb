"""The command line of nfsgeo: one file per command."""

from nfsgeo_cli.main import main

__all__ = ["main"]
