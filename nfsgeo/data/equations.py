"""The equations that data can be generated for, by name."""

from __future__ import annotations

from nfsgeo.data import pde
from nfsgeo.data.pde.solver import Solver
from nfsgeo.setting_errors import unknown

__all__ = ["EQUATIONS", "find_equation"]

KINDS = (
    pde.Burgers,
    pde.KdV,
    pde.Darcy,
    pde.NavierStokes,
    pde.Elasticity,
    pde.SphereWaves,
)
# Each with the default values of its options.
EQUATIONS: dict[str, Solver] = {kind.name: kind() for kind in KINDS}


def find_equation(name: str) -> Solver:
    """The equation of this name, with the default values of its options.

    Raises:
        UserError: There is none.
    """
    if name not in EQUATIONS:
        names = ", ".join(EQUATIONS)
        raise unknown(f"equation {name!r}", f"one of {names}", name, EQUATIONS)
    return EQUATIONS[name]
