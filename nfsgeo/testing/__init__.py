"""Assertions and tolerances for those who write layers of their own.

=============  ===================================================================
TOLERANCES     how closely two computations of one thing agree, by dtype
assert_same    outputs, input gradients and parameter gradients of two functions
without_zeros  a module whose parameters that begin at zero are drawn
=============  ===================================================================
"""

from nfsgeo.testing.parity import TOLERANCES, assert_same, without_zeros

__all__ = ["TOLERANCES", "assert_same", "without_zeros"]
