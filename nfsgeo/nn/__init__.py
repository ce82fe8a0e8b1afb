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
GlobalFilter               a real weight for each frequency and channel
FourierTokens              full Fourier transform as token mixing
Attention                  multi-head attention over all tokens
TokenMLP                   a matrix over all tokens
PatchEmbedding             patches to tokens; PatchUnembedding: back
Trunk                      basis functions of position and time
UNet                       convolutions on ever coarser grids and back
FieldLayerNorm             Layer-Norm over grid, time and channels
MixerBlock                 mixing, normalisation, residual, activation
GridResampling             for data that lie on a grid already
Lift, Projector            into and out of the channels
Pointwise                  1×1 convolution
ModulusGELU                activation of complex fields
SplitComplex, RealPart     real layers for the parts of a complex field
=========================  =====================================================
"""

from nfsgeo.nn.attention import Attention
from nfsgeo.nn.fourier_tokens import (
    FourierTokens,
    ModulusGELU,
    RealPart,
    SplitComplex,
)
from nfsgeo.nn.global_filter import GlobalFilter
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
from nfsgeo.nn.patches import PatchEmbedding, PatchUnembedding
from nfsgeo.nn.pointwise import Lift, Pointwise, Projector
from nfsgeo.nn.resampling import Points, Resampling
from nfsgeo.nn.spectral import SpectralConv
from nfsgeo.nn.token_mlp import TokenMLP
from nfsgeo.nn.trunk import Trunk
from nfsgeo.nn.unet import UNet

__all__ = [
    "Attention",
    "ChannelKernel",
    "DenseKernel",
    "EdgeNetwork",
    "FieldLayerNorm",
    "FourierTokens",
    "GaussianKernel",
    "GlobalFilter",
    "GridResampling",
    "InterpolationKernel",
    "InterpolationResampling",
    "KernelInterpolation",
    "Lift",
    "MixerBlock",
    "ModulusGELU",
    "PatchEmbedding",
    "PatchUnembedding",
    "Points",
    "Pointwise",
    "Projector",
    "RealPart",
    "Resampling",
    "SpectralConv",
    "SplitComplex",
    "TokenMLP",
    "Trunk",
    "UNet",
    "grid_shape",
    "neighbour_sum",
    "neighbour_sum_reference",
]
