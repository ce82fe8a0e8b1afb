"""Solvers of the equations that data are generated from, one equation a file.

Each is a ``Solver`` and returns a checked ``Solution``.
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
from nfsgeo.plugins import load_plugins

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

# Equations with the default values of their options.
EQUATIONS: dict[str, Solver] = {
    equation.name: equation
    for equation in (
        *(Burgers(), KdV(), Darcy(), Darcy3D(), NavierStokes(), Euler()),
        *(Elasticity(), Heat(), Ellipsoids(), Wake(), SphereWaves()),
    )
}


def find_equation(name: str, options: Mapping[str, Any] | None = None) -> Solver:
    """Return the equation of a name in :data:`EQUATIONS`.

    Args:
        name: Name of the equation.
        options: Options by name; text is converted.

    Raises:
        UserError: There is no such equation or option, or a value does not fit.
    """
    load_plugins()
    if name not in EQUATIONS:
        names = ", ".join(EQUATIONS)
        raise unknown(f"equation {name!r}", f"one of {names}", name, EQUATIONS)
    kind = type(EQUATIONS[name])
    with explained(keys=kind.model_fields):
        return kind.model_validate(options or {})
