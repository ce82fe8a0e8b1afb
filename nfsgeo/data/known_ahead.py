"""Which fields and parameters of a file are inputs that are known ahead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfsgeo.errors import UserError

__all__ = ["FORCING", "KnownAhead"]

FORCING = "forcing_"  # how names of forcings begin in formats that hold no roles


class KnownAhead:
    """Roles of the fields and parameters of a file.

    Attributes:
        path: The file, for messages.
        component_names: One name for each of the ``C`` components of ``u``.
        forcing_names: Names of the ``C_f`` fields that are known ahead of time, such as
            the height of the sun: inputs of a model at all time steps of a window,
            those that it predicts included.
        scalar_names: Names of the parameters that are inputs of a model.
        series_names: Names of the fields that vary in time alone, whatever their role.
        static_names: One name for each of the ``C_a`` components of the static field.
        static_role: ``"coefficient"`` (a model input), ``"initial condition"`` or None.
        parameters: Scalars or small arrays that belong to each sample, ``[N, ...]``.
    """

    path: Path
    times: NDArray[np.float64]
    component_names: list[str]
    forcing_names: Sequence[str] = ()
    scalar_names: Sequence[str] = ()
    series_names: Sequence[str] = ()
    static_names: list[str]
    static_role: str | None
    parameters: dict[str, NDArray[Any]]
    # Names of what slabs hold, where these are others or in another order.
    _stored: Sequence[str] = ()
    _stored_static: Sequence[str] = ()

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs that do not change in time.

        The components of a coefficient, then the scalars.
        """
        static = self.static_names if self.static_role == "coefficient" else ()
        return [*static, *self.scalar_names]

    def name_fields(self, names: Sequence[str]) -> None:
        """Names what a slab holds; ``forcing_NAME`` is the forcing ``NAME``.

        Args:
            names: One for each field, all different where there are forcings.

        Raises:
            UserError: All of them are forcings.
        """
        bare = [name.removeprefix(FORCING) for name in names]
        twice = {name for name in bare if bare.count(name) > 1}
        pairs = list(zip(names, bare, strict=True))
        self._stored = [full if short in twice else short for full, short in pairs]
        self.component_names = list(self._stored)
        self.know(
            stored
            for full, stored in zip(names, self._stored, strict=True)
            if full.startswith(FORCING)
        )

    def check_forcings(self) -> None:
        """Makes sure that there is a time along which forcings are known ahead.

        Raises:
            UserError: There is a single time step.
        """
        if self.forcing_names and len(self.times) == 1:
            names = self.forcing_names
            raise UserError(
                f"{self.path} with one time step and {', '.join(names)} known ahead",
                "time, or the inputs of a problem without time as coefficients",
                f"name them {', '.join('a_' + name for name in names)} in the source",
            )

    def check_series(self) -> None:
        """Makes sure that what varies in time alone is an input, not to be predicted.

        Raises:
            UserError: It may be either; nobody has said that it is known ahead.
        """
        if left := [n for n in self.series_names if n in self.component_names]:
            raise UserError(
                f"{self.path} with {', '.join(left)} along time alone",
                "fields in space, or inputs that are known ahead",
                f"say so, convert --known {','.join(left)} or train --set data.known="
                f"[{','.join(left)}], in Python known={left}, or leave them out",
            )

    def choose(self, fields: Sequence[str], static: Sequence[str]) -> None:
        """Keeps some fields and static inputs of the file.

        Args:
            fields: Names of the components to keep, in the order that is wanted.
            static: Names of the static inputs, likewise.
        """
        self._stored = self._stored or list(self.component_names)
        self._stored_static = self._stored_static or list(self.static_names)
        self.component_names, self.static_names = list(fields), list(static)

    def know(self, names: Iterable[str]) -> None:
        """Takes fields and parameters as inputs that are known ahead.

        Args:
            names: Of components, which become forcings, and of parameters, which become
                scalars. What is an input already stays one.

        Raises:
            UserError: There is nothing of that name, or nothing is left to predict.
        """
        for name in names:
            if name not in self.component_names:
                name = name.removeprefix(FORCING)
            if name in self.component_names:
                self._stored = self._stored or list(self.component_names)
                self.component_names = [n for n in self.component_names if n != name]
                self.forcing_names = [*self.forcing_names, name]
            elif name in self.parameters and self.parameters[name].ndim == 1:
                self.scalar_names = list(dict.fromkeys([*self.scalar_names, name]))
            elif name not in (*self.forcing_names, *self.input_names):
                there = [*self.component_names, *self.forcing_names, *self.parameters]
                raise UserError(
                    f"{name}, to be known ahead, of {self.path}",
                    f"one of {', '.join(there)}",
                    "change the name, or add it to the file",
                )
        if not self.component_names:
            raise UserError(
                f"{self.path}, all fields of which are known ahead",
                "a field to predict",
                "leave one out of the forcings",
            )
