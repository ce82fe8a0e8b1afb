"""The equations that data can be generated for, by name."""

from __future__ import annotations

from nfsgeo.data.pde import (
    Burgers,
    Darcy,
    Elasticity,
    KdV,
    NavierStokes,
    SphereWaves,
)
from nfsgeo.data.pde.solver import Solver
from nfsgeo.setting_errors import unknown

__all__ = ["EQUATIONS", "find_equation"]

# Each with the default values of its options.
EQUATIONS: dict[str, Solver] = {
    equation.name: equation
    for equation in (
        Burgers(),
        KdV(),
        Darcy(),
        NavierStokes(),
        Elasticity(),
        SphereWaves(),
    )
}


def find_equation(name: str) -> Solver:
    """The equation of this name, with the default values of its options.

    Raises:
        UserError: There is none.
    """
    if name not in EQUATIONS:
        names = ", ".join(EQUATIONS)
        raise unknown(f"equation {name!r}", f"one of {names}", name, EQUATIONS)
    return EQUATIONS[name]
