"""Solvers that make the data, one equation a file, and the fields they start from.

=============  ========================================================
Burgers        viscous Burgers equation, periodic interval
KdV            Korteweg-de Vries equation, periodic interval
Darcy          steady flow through a porous square
NavierStokes   vorticity of a forced flow on the torus
ETDRK4         exponential Runge-Kutta steps that three of them share
=============  ========================================================
"""
