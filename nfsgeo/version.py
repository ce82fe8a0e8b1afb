"""The version of nfsgeo."""

__version__ = "0.1.0"
