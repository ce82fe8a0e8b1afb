"""The command line of nfsgeo: one file a verb."""

from nfsgeo_cli.main import main

__all__ = ["main"]
