"""Neural operators on irregular points: NFS and the models it is compared with."""

from nfsgeo.version import __version__

__all__ = ["__version__"]
