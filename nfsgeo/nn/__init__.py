"""Layers.

=========================  =====================================================
Interpolation
=========================  =====================================================
KernelInterpolation        learned interpolation between two sets of points
DenseKernel                a matrix for every edge
ChannelKernel              a weight for every edge and channel
GaussianKernel             a Gaussian of learned centre and widths
EdgeNetwork                default network of a learned kernel
BipartiteMessages          mean of learned messages from sources to targets
PointPath                  point features that bypass the grid
interpolate                local polyharmonic splines, without parameters
neighbour_sum              weighted sums over neighbourhoods
InterpolationResampling    points to a fixed grid and back
=========================  =====================================================

=========================  =====================================================
Mixing on grids
=========================  =====================================================
SpectralConv               convolution in Fourier space
FactorisedSpectralConv     convolution in Fourier space along each axis alone
SphericalConv              convolution with spherical harmonics
SphericalTransform         spherical-harmonic analysis and synthesis
GlobalFilter               real weights for every frequency and channel
FourierTokens              full Fourier transform as token mixing
Attention                  multi-head attention over all tokens
TokenMLP                   a matrix over all tokens
PatchEmbedding             patches to tokens; PatchUnembedding: tokens to patches
Trunk                      basis functions of position and time
UNet                       convolutions on a hierarchy of grids
FieldLayerNorm             Layer-Norm over grid, time and channels
MixerBlock                 mixing, normalisation, residual, activation
GridResampling             no resampling, for data on an equispaced grid
Lift, Projector            maps from inputs to channels and to the result
Pointwise                  1×1 convolution
ModulusGELU                activation of complex fields
SplitComplex, RealPart     layers on the parts of a complex field
=========================  =====================================================

=========================  =====================================================
Points without a grid
=========================  =====================================================
ChebConvGRU                recurrent cell with Chebyshev convolutions
DiffusionGRU               recurrent cell with diffusion convolutions
AdaptiveGRU                recurrent cell on a learned graph of one mesh
ChebyshevConv              polynomial of a graph's Laplacian
DiffusionConv              random walks along edges and against them
AdaptiveConv               convolution with separate weights for every node
scaled_laplacian           Laplacian of a graph
transition_matrices        random walks on a graph
node_graph                 graph from edges in PyTorch Geometric's format
MPPDELayer                 messages with relative fields and positions
InteractionLayer           messages that update edges and their targets
TemporalDecoder            several time steps at once from one hidden state
PointSpectralConv          convolution in Fourier space at irregular points
PhysicsAttention           attention among learned slices of a point set
PointWaves                 Fourier analysis and synthesis at irregular points
=========================  =====================================================
"""

from nfsgeo.nn.attention import Attention, PhysicsAttention
from nfsgeo.nn.base_interpolation import interpolate
from nfsgeo.nn.branch_and_trunk import Trunk, UNet
from nfsgeo.nn.edge_messages import BipartiteMessages
from nfsgeo.nn.factorised_spectral import FactorisedSpectralConv
from nfsgeo.nn.graph_cells import AdaptiveGRU, ChebConvGRU, DiffusionGRU
from nfsgeo.nn.graph_convolutions import AdaptiveConv, ChebyshevConv, DiffusionConv
from nfsgeo.nn.graph_shift import node_graph, scaled_laplacian, transition_matrices
from nfsgeo.nn.interpolation import KernelInterpolation
from nfsgeo.nn.kernels import (
    ChannelKernel,
    DenseKernel,
    EdgeNetwork,
    GaussianKernel,
    InterpolationKernel,
)
from nfsgeo.nn.message_passing import InteractionLayer, MPPDELayer, TemporalDecoder
from nfsgeo.nn.mixer_block import (
    FieldLayerNorm,
    Lift,
    MixerBlock,
    Pointwise,
    Projector,
)
from nfsgeo.nn.neighbour_sums import neighbour_sum
from nfsgeo.nn.point_path import PointPath
from nfsgeo.nn.point_spectral import PointSpectralConv, PointWaves
from nfsgeo.nn.resampling import GridResampling, InterpolationResampling, Resampling
from nfsgeo.nn.spectral import SpectralConv
from nfsgeo.nn.spherical import SphericalConv, SphericalTransform
from nfsgeo.nn.token_mixers import (
    FourierTokens,
    GlobalFilter,
    ModulusGELU,
    PatchEmbedding,
    PatchUnembedding,
    RealPart,
    SplitComplex,
    TokenMLP,
)

__all__ = [
    "AdaptiveConv",
    "AdaptiveGRU",
    "Attention",
    "BipartiteMessages",
    "ChannelKernel",
    "ChebConvGRU",
    "ChebyshevConv",
    "DenseKernel",
    "DiffusionConv",
    "DiffusionGRU",
    "EdgeNetwork",
    "FactorisedSpectralConv",
    "FieldLayerNorm",
    "FourierTokens",
    "GaussianKernel",
    "GlobalFilter",
    "GridResampling",
    "InteractionLayer",
    "InterpolationKernel",
    "InterpolationResampling",
    "KernelInterpolation",
    "Lift",
    "MPPDELayer",
    "MixerBlock",
    "ModulusGELU",
    "PatchEmbedding",
    "PatchUnembedding",
    "PhysicsAttention",
    "PointPath",
    "PointSpectralConv",
    "PointWaves",
    "Pointwise",
    "Projector",
    "RealPart",
    "Resampling",
    "SpectralConv",
    "SphericalConv",
    "SphericalTransform",
    "SplitComplex",
    "TemporalDecoder",
    "TokenMLP",
    "Trunk",
    "UNet",
    "interpolate",
    "neighbour_sum",
    "node_graph",
    "scaled_laplacian",
    "transition_matrices",
]
