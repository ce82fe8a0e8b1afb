"""`fno-spline`: a Fourier operator between two splines."""

from __future__ import annotations

from nfsgeo.models.nfs import NFS, NFSSettings
from nfsgeo.models.point_mixer import KernelName

__all__ = ["FNOSpline", "FNOSplineSettings"]


class FNOSplineSettings(NFSSettings):
    """Settings of `nfs`, without a learned kernel.

    Attributes:
        kernel: see :class:`~nfsgeo.models.point_mixer.InterpolationSettings`.
    """

    kernel: KernelName = "none"


class FNOSpline(NFS):
    """`nfs` without a learned kernel: local splines to the grid and back.

    What reaches a prediction has passed the grid. In two dimensions it is as good where
    the fields are smooth and without noise.
    """

    Settings = FNOSplineSettings
