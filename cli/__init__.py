"""The command line of nfsgeo: a function for each command."""

from nfsgeo_cli.main import main

__all__ = ["main"]
