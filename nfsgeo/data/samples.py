"""Reading of a sample at the points of a mesh."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from nfsgeo.data.checks import finite, not_infinite
from nfsgeo.data.conventions import Doubles, Floats, Indices
from nfsgeo.data.fields import Fields
from nfsgeo.data.meshes import Mesh
from nfsgeo.data.meshes.interpolation import TrigonometricInterpolation
from nfsgeo.data.times import time_text
from nfsgeo.errors import UserError, option

__all__ = ["Sample", "read_sample"]


class Sample(NamedTuple):
    """A sample at some time steps, at observed points and after them query points."""

    steps: Indices  # numbers of the time steps in the file
    u: Floats  # fields [n, T, C]
    a: Floats  # inputs that do not change in time [n, C_a]
    f: Floats  # forcings [num_observed, T, C_f]
    pos: Doubles  # positions [n, d]
    volume: Floats  # quadrature weights [n] where they are wanted, else ones
    num_observed: int
    has_queries: bool
    numbers: Indices | None  # of the points in the file [n]

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self[1:-3])


def read_sample(
    file: Fields, sample: int, observed: Mesh, steps: Indices, *, volumes: bool
) -> Sample:
    """Read a sample at the points of a mesh and its query points.

    Args:
        file: The fields.
        sample: Number of the sample.
        observed: The mesh.
        steps: Numbers of the time steps, increasing.
        volumes: Whether quadrature weights are computed.

    Raises:
        UserError: The sample is damaged or infinite, lacks a value of an input, or has
            missing values where it is to be interpolated.
    """
    mesh, num = observed.with_queries_joined(), len(observed)
    first, end = (int(steps[0]), int(steps[-1]) + 1) if len(steps) else (0, 1)
    apart = int(np.gcd.reduce(np.diff(steps))) or 1
    u = file.read_all(sample, slice(first, end, apart), mesh.index)
    u, a = u[:, (steps - first) // apart], file.read_inputs(sample, mesh.index)
    what = f"sample {sample} of {file.path}"
    if mesh.index is None:
        gaps = np.isnan(u)
        # Time steps at which nothing is observed are gaps everywhere.
        if gaps[:, ~gaps.all(axis=(0, 2))].any():
            expected = "a value at every grid point, to interpolate between them"
            todo = "choose points of the file, such as "
            todo += option("mesh", "random-subset")
            raise UserError(f"{what} with missing values", expected, todo)
        at = TrigonometricInterpolation(file, mesh.pos)
        u, a = at(u), at(a)
    u, f = u[..., : file.components], u[:num, :, file.components :]
    if (bad := ~np.isfinite(f)).any():
        _, step, component = np.argwhere(bad)[0]
        name, time = file.forcing_names[component], file.times[steps[step]]
        when = time_text(time, file.time_unit)
        given = f"{what} without a value of {name}, known ahead, at {when}"
        todo = "add it, or make a component of what is not known ahead"
        raise UserError(given, "one at every point and time step of a window", todo)
    not_infinite(u, what)
    finite(a, what, [f"input {name}" for name in file.input_names])
    pos = file.domain.wrap(torch.from_numpy(mesh.pos)).numpy()
    volume = np.ones(len(mesh), np.float32)
    if volumes:
        volume[:num] = observed.volumes(file.domain)
    about = num, mesh is not observed, mesh.index
    return Sample(steps, u, a, f, pos, volume, *about)
