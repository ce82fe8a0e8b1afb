"""Solvers that make the data, one equation a file, and the fields they start from.

============  =========================================================
Burgers       viscous Burgers equation, periodic interval
KdV           Korteweg-de Vries equation, periodic interval
Darcy         steady flow through a porous square
Elasticity    stress in a square with a random hole, a mesh for each sample
NavierStokes  vorticity of a forced flow on the torus
SphereWaves   waves on a sphere, in closed form
Solver        what they have in common
Solution      what they return, checked
ETDRK4        exponential Runge-Kutta steps that three of them share
============  =========================================================
"""

from nfsgeo.data.pde.burgers import Burgers
from nfsgeo.data.pde.darcy import Darcy
from nfsgeo.data.pde.elasticity import Elasticity
from nfsgeo.data.pde.etdrk4 import ETDRK4
from nfsgeo.data.pde.kdv import KdV
from nfsgeo.data.pde.navier_stokes import NavierStokes
from nfsgeo.data.pde.solver import Solution, Solver
from nfsgeo.data.pde.sphere_waves import SphereWaves

__all__ = [
    "ETDRK4",
    "Burgers",
    "Darcy",
    "Elasticity",
    "KdV",
    "NavierStokes",
    "Solution",
    "Solver",
    "SphereWaves",
]
