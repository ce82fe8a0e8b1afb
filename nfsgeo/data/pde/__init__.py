"""Solvers that make the data, one equation a file, and the fields they start from.

What they have in common is a ``Solver``, what they return a ``Solution``, checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nfsgeo.config.errors import explained, unknown
from nfsgeo.data.pde.burgers import Burgers
from nfsgeo.data.pde.darcy import Darcy, Darcy3D
from nfsgeo.data.pde.elasticity import Elasticity
from nfsgeo.data.pde.ellipsoids import Ellipsoids
from nfsgeo.data.pde.euler import Euler
from nfsgeo.data.pde.heat import Heat
from nfsgeo.data.pde.kdv import KdV
from nfsgeo.data.pde.navier_stokes import NavierStokes
from nfsgeo.data.pde.solver import Solution, Solver
from nfsgeo.data.pde.sphere_waves import SphereWaves
from nfsgeo.data.pde.wake import Wake

__all__ = [
    "EQUATIONS",
    "Burgers",
    "Darcy",
    "Darcy3D",
    "Elasticity",
    "Ellipsoids",
    "Euler",
    "Heat",
    "KdV",
    "NavierStokes",
    "Solution",
    "Solver",
    "SphereWaves",
    "Wake",
    "find_equation",
]

# Each with the default values of its options.
EQUATIONS: dict[str, Solver] = {
    of.name: of
    for of in (
        *(Burgers(), KdV(), Darcy(), Darcy3D(), NavierStokes(), Euler()),
        *(Elasticity(), Heat(), Ellipsoids(), Wake(), SphereWaves()),
    )
}


def find_equation(name: str, options: Mapping[str, Any] | None = None) -> Solver:
    """The equation of a ``name`` of :data:`EQUATIONS`.

    Its ``options`` are given by their names; text is converted.

    Raises:
        UserError: There is none, or an option does not exist or cannot have its value.
    """
    if name not in EQUATIONS:
        names = ", ".join(EQUATIONS)
        raise unknown(f"equation {name!r}", f"one of {names}", name, EQUATIONS)
    kind = type(EQUATIONS[name])
    with explained(known=kind.model_fields):
        return kind.model_validate(options or {})
