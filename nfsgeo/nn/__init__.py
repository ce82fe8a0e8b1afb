"""Layers.

=========================  =====================================================
Interpolation
=========================  =====================================================
KernelInterpolation        learned interpolation between two sets of points
DenseKernel                a matrix for every edge, of full or low rank
ChannelKernel              a weight for every edge and channel
GaussianKernel             a Gaussian of learned centre and widths
EdgeNetwork                hidden layer of a learned kernel
neighbour_sum              weighted sums over neighbourhoods
InterpolationResampling    points to a fixed grid and back
=========================  =====================================================

=========================  =====================================================
Mixing on grids
=========================  =====================================================
SpectralConv               convolution in Fourier space
FieldLayerNorm             Layer-Norm over grid, time and channels
MixerBlock                 mixing, normalisation, residual, activation
GridResampling             for data that lie on a grid already
Lift, Projector            into and out of the channels
Pointwise                  1×1 convolution
=========================  =====================================================
"""

from nfsgeo.nn.grid_resampling import GridResampling, grid_shape
from nfsgeo.nn.interpolation import KernelInterpolation
from nfsgeo.nn.interpolation_resampling import InterpolationResampling
from nfsgeo.nn.kernels import (
    ChannelKernel,
    DenseKernel,
    EdgeNetwork,
    GaussianKernel,
    InterpolationKernel,
)
from nfsgeo.nn.mixer import MixerBlock
from nfsgeo.nn.neighbour_sum import neighbour_sum, neighbour_sum_reference
from nfsgeo.nn.normalisation import FieldLayerNorm
from nfsgeo.nn.pointwise import Lift, Pointwise, Projector
from nfsgeo.nn.resampling import Points, Resampling
from nfsgeo.nn.spectral import SpectralConv

__all__ = [
    "ChannelKernel",
    "DenseKernel",
    "EdgeNetwork",
    "FieldLayerNorm",
    "GaussianKernel",
    "GridResampling",
    "InterpolationKernel",
    "InterpolationResampling",
    "KernelInterpolation",
    "Lift",
    "MixerBlock",
    "Pointwise",
    "Points",
    "Projector",
    "Resampling",
    "SpectralConv",
    "grid_shape",
    "neighbour_sum",
    "neighbour_sum_reference",
]
