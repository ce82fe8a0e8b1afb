"""Whether inputs are those that a model was trained with."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nfsgeo.errors import UserError
from nfsgeo.models import Problem

__all__ = ["check_complete", "check_forcing", "check_inputs"]


def check_inputs(
    x: Tensor, inputs: int, components: int, description: dict[str, Any]
) -> None:
    """Makes sure that fields have the components and time steps of training.

    Args:
        x: As it came.
        inputs: Components of the input in training, the forcing left out.
        components: Components of the result.
        description: Of the forecaster.

    Raises:
        UserError: They have not.
    """
    problem = description.get("problem", {})
    num = problem.get("n_in", x.size(1) if x.ndim == 3 else 1)
    if x.ndim == 3 and tuple(x.shape[1:]) == (num, inputs):
        return
    fields = components if problem.get("has_time", True) else 0
    static = ", ".join(_named(description, "static") + _named(description, "scalars"))
    kinds = [f"{fields} of the field"] * (fields > 0)
    kinds += [
        f"{inputs - fields} of the static input" + (f" ({static})" if static else "")
    ] * (inputs > fields)
    todo = "give the inputs that the model was trained with"
    if fields and x.shape[-1] == fields < inputs:
        todo = "append the static input, repeated over the time steps"
    raise UserError(
        f"x of shape {list(x.shape)}",
        f"[points, {num}, {inputs}], whose components are {' and '.join(kinds)}",
        todo,
    )


def check_forcing(
    forcing: Tensor | None,
    x: Tensor,
    problem: Problem,
    description: dict[str, Any],
    times: Tensor | None = None,
) -> None:
    """Makes sure that a forcing comes if and only if the model was trained with one.

    Args:
        forcing: As it came.
        x: The fields, checked.
        problem: That the model was trained for.
        description: Of the forecaster.
        times: Of the inputs and of what is predicted, for a model of lead times.

    Raises:
        UserError: It does not, or has another shape.
    """
    components = problem.forcings - (times is not None)
    if forcing is None and not components:
        return
    names = ", ".join(_named(description, "forcings"))
    steps = problem.n_in + problem.n_out if times is None else times.size(-1)
    wanted = (len(x), steps, components)
    if not components or forcing is None or tuple(forcing.shape) != wanted:
        given = "no forcing"
        if forcing is not None:
            given = f"a forcing of shape {list(forcing.shape)}"
        raise UserError(
            given,
            f"{names} of shape {list(wanted)}: points, time steps of input and result, "
            "components"
            if components
            else "none, as in training",
            "give it as forcing=" if components else "leave it out",
        )


def check_complete(forcing: Tensor, description: dict[str, Any]) -> None:
    """Makes sure that a forcing has a value everywhere.

    Args:
        forcing: As it came.
        description: Of the forecaster.

    Raises:
        UserError: It has not.
    """
    if not bool(forcing.isfinite().all()):
        raise UserError(
            f"a forcing ({', '.join(_named(description, 'forcings'))}) with missing "
            "values",
            "a value at every point and time step",
            "give them all",
        )


def _named(description: dict[str, Any], kind: str) -> list[str]:
    return list(description.get("inputs", {}).get(kind, []))
