"""The equations that data can be generated for, and the options of each."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import FiniteFloat, TypeAdapter, ValidationError

from nfsgeo.data.pde.burgers import Burgers
from nfsgeo.data.pde.darcy import COEFFICIENTS, Darcy
from nfsgeo.data.pde.kdv import HORIZONS, INITIAL, KdV
from nfsgeo.data.pde.navier_stokes import NavierStokes
from nfsgeo.data.pde.solution import Solver
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["EQUATIONS", "Equation", "Option", "find_equation"]


@dataclass(frozen=True)
class Option:
    """A parameter of an equation that a user can choose.

    Attributes:
        name: Its name.
        type: ``int``, ``float`` or ``str``.
        default: Its value when not given.
        help: What it means, one line.
        choices: The values there are, empty when any will do.
    """

    name: str
    type: type
    default: int | float | str
    help: str
    choices: tuple[str, ...] = ()

    def parse(self, value: Any) -> int | float | str:
        """The value in the option's type; text is converted.

        Raises:
            UserError: It cannot be.
        """
        kind: Any = FiniteFloat if self.type is float else self.type
        if self.choices:
            kind = Literal[self.choices]
        try:
            return TypeAdapter(kind).validate_python(value)
        except ValidationError as error:
            expected = error.errors()[0]["msg"].removeprefix("Input should be ")
            raise UserError(
                f"{self.name}={value!r}", expected, "change the value"
            ) from None


@dataclass(frozen=True)
class Equation:
    """An equation, what its file holds, and what makes it.

    Attributes:
        name: Its name on the command line.
        title: One line.
        dim: Spatial dimensions.
        component_names: Components of ``u``.
        static_names: Components of ``a``.
        static_role: ``"initial condition"`` or ``"coefficient"``.
        options: What can be chosen.
        solver_type: The class that solves it, its fields the options.
        method: How it is solved, for the file.
        units: Of the coordinates, the time and the fields, for the file.
        samples: Samples in a full set.
    """

    name: str
    title: str
    dim: int
    component_names: tuple[str, ...]
    static_names: tuple[str, ...]
    static_role: str
    options: tuple[Option, ...]
    solver_type: type
    method: Mapping[str, str]
    units: Mapping[str, str]
    samples: int = 1200

    @property
    def components(self) -> int:
        """Number of components of ``u``."""
        return len(self.component_names)

    @property
    def resolution(self) -> int:
        """Points on each axis, with the options' defaults."""
        return self.solver().default_resolution()

    @property
    def records(self) -> int:
        """Number of records, with the options' defaults."""
        return self.solver().default_records()

    @property
    def domain(self) -> Domain:
        """Box that holds the grid."""
        return self.solver().domain()

    def solver(self, options: Mapping[str, Any] | None = None) -> Solver:
        """A solver with the given options.

        Raises:
            UserError: An option does not exist or has a value that it cannot have.
        """
        known = {option.name: option for option in self.options}
        for name in options or {}:
            if name not in known:
                raise UserError(
                    f"option {name!r} of {self.name}",
                    f"one of {', '.join(known)}",
                    _nearest(name, known),
                )
        values = {k: known[k].parse(v) for k, v in (options or {}).items()}
        return self.solver_type(**values)


def _options(solver_type: type, **help_and_choices: Any) -> tuple[Option, ...]:
    """Options from a solver's fields, in their order; name=(help, choices)."""
    defaults = {field.name: field.default for field in dataclasses.fields(solver_type)}
    return tuple(
        Option(name, type(default), default, *help_and_choices[name])  # type: ignore
        for name, default in defaults.items()
    )


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else "choose one of these"


def find_equation(name: str) -> Equation:
    """The equation of this name.

    Raises:
        UserError: There is none.
    """
    if name not in EQUATIONS:
        raise UserError(
            f"equation {name!r}",
            f"one of {', '.join(EQUATIONS)}",
            _nearest(name, EQUATIONS),
        )
    return EQUATIONS[name]


_ETDRK4 = {
    "time": "ETDRK4 (Krogstad), contour-averaged phi functions",
    "space": "Fourier, strict 2/3 mask",
    "precision": "float64",
}

EQUATIONS: dict[str, Equation] = {
    equation.name: equation
    for equation in (
        Equation(
            name="burgers",
            title="u_t + (u^2/2)_x = nu u_xx, periodic on [0, 1]",
            dim=1,
            component_names=("u",),
            static_names=("u0",),
            static_role="initial condition",
            options=_options(
                Burgers,
                nu=("viscosity",),
                time_stride=("records are 0.005 * time_stride apart",),
            ),
            solver_type=Burgers,
            method=_ETDRK4,
            units={"x": "1", "t": "1", "u": "1"},
        ),
        Equation(
            name="kdv",
            title="u_t + 6 u u_x + u_xxx = 0, periodic, length 50 scaled to [0, 1]",
            dim=1,
            component_names=("u",),
            static_names=("u0",),
            static_role="initial condition",
            options=_options(
                KdV,
                ic=("initial condition: three cosines or two solitons", INITIAL),
                preset=("standard to t=1, long to t=10", tuple(HORIZONS)),
            ),
            solver_type=KdV,
            method=_ETDRK4,
            units={"x": "a period of 50", "t": "1", "u": "1"},
        ),
        Equation(
            name="darcy",
            title="-div(a grad u) = 1 on the unit square, u = 0 on the boundary",
            dim=2,
            component_names=("u",),
            static_names=("a",),
            static_role="coefficient",
            options=_options(
                Darcy, coefficient=("levels of a, or lognormal", COEFFICIENTS)
            ),
            solver_type=Darcy,
            method={
                "space": "cell-centred finite volumes, harmonic face values",
                "linear": "conjugate gradients, DST-II preconditioner, tolerance 1e-10",
                "precision": "float64",
            },
            units={"x": "1", "y": "1", "u": "1", "a": "1"},
        ),
        Equation(
            name="navier-stokes",
            title="w_t + u . grad w = nu lap w + f on the unit torus",
            dim=2,
            component_names=("w",),
            static_names=("w0",),
            static_role="initial condition",
            options=_options(
                NavierStokes,
                nu=("viscosity",),
                sigma2=("scale of the initial covariance",),
                forcing=("amplitude of f, 0 for none",),
            ),
            solver_type=NavierStokes,
            method=_ETDRK4 | {"advection": "Basdevant's form"},
            units={"x": "1", "y": "1", "t": "1", "w": "1"},
        ),
    )
}
