"""CAMLab's point clouds, the data sets of RIGNO and GAOT."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.fields import FieldFile
from nfsgeo.data.numbers import with_gaps
from nfsgeo.data.readers.clouds import LazyCloudFile, numbered
from nfsgeo.data.readers.reader import Reader
from nfsgeo.data.splits import published_split
from nfsgeo.errors import UserError
from nfsgeo.geometry import Domain

__all__ = ["CAMLAB"]

TRAIN, VALID, TEST = 1024, 128, 256


@dataclass(frozen=True)
class Published:
    """What the authors' table of metadata says of a data set.

    Attributes:
        components: The first components of ``u``, those that are predicted.
        coefficient: Name of ``c``; None where it is no input.
        end: Time of the last time step, the first being 0; None for steady problems.
        steps: Number of time steps; None where the documentation does not tell.
        periodic: Whether the domain is the periodic unit square.
    """

    components: tuple[str, ...]
    coefficient: str | None = None
    end: float | None = None
    steps: int | None = 21
    periodic: bool = False


VELOCITY = ("velocity_x", "velocity_y")
INCOMPRESSIBLE = Published(VELOCITY, end=1.0, periodic=True)
# A fifth component, the energy, is left out as by the authors.
COMPRESSIBLE = Published(("density", *VELOCITY, "pressure"), end=1.0, periodic=True)
AIRFOIL = Published(("density",), "distance")
# By the name of the file, in lower case and with hyphens.
KNOWN = {
    "ns-gauss": INCOMPRESSIBLE,
    "ns-pwc": INCOMPRESSIBLE,
    "ns-sl": INCOMPRESSIBLE,
    "ns-svs": INCOMPRESSIBLE,
    "ce-gauss": COMPRESSIBLE,
    "ce-rp": COMPRESSIBLE,
    "ace": Published(("u",), end=0.0002),
    "wave-layer": Published(("u",), "speed", end=1.0, steps=None),
    "wave-c-sines": Published(("u",), end=0.1),
    "wave-c-sines-uv": Published(("u", "u_t"), end=0.1),
    "heat-l-sines": Published(("u",), end=0.002),
    "poisson-c-sines": Published(("u",), "source"),
    "poisson-gauss": Published(("u",), "source"),
    "elasticity": Published(("stress",), "distance"),
    "airfoil-li": AIRFOIL,
    "airfoil-li-large": AIRFOIL,
}


def _is_camlab(path: Path) -> bool:
    with h5py.File(path, "r") as file:
        return [file[name].ndim for name in "ux"] == [4, 4]


def _camlab(path: Path) -> FieldFile:
    """``u`` (samples, time steps, points, components), ``x`` (samples or 1, 1, points,
    axes) and optionally ``c``, a coefficient, axes as ``u``.

    The file holds neither times nor names of components. Both are known by its name
    for the sets in ``KNOWN``, whose components that the authors do not predict are left
    out. Of other sets all components are read, and those of several time steps need
    ``nfsgeo convert --times``. ``c`` must not change in time.

    The first 1024 samples are for training, the next 128 for validation and the last
    256 for the test, as published, where there are as many.
    """
    file = h5py.File(path, "r")
    u, x, c = file["u"], file["x"], file.get("c")
    about = KNOWN.get(path.stem.lower().replace("_", "-"))
    samples, steps, num_points, width = u.shape
    if x.shape[:3] not in [(1, 1, num_points), (samples, 1, num_points)]:
        raise ValueError(f"x of shape {x.shape} and u of shape {u.shape}")
    if about is None:
        names = numbered("u", width)
        coefficient = "c" if c is not None else None
    else:
        names, coefficient = list(about.components), about.coefficient
    if width < len(names):
        raise ValueError(f"u of {width} components, expected {', '.join(names)}")
    if about is not None and (about.end is None) != (steps == 1):
        raise ValueError(f"u of {steps} time steps")
    static: list[str] = []
    if coefficient is not None:
        if c is None:
            raise ValueError(f"no c, the {coefficient}")
        if (*c.shape[:1], *c.shape[2:3]) != (samples, num_points) or c.ndim != 4:
            raise ValueError(f"c of shape {c.shape} and u of shape {u.shape}")
        static = numbered(coefficient, c.shape[3])
    times, known = np.arange(float(steps)), steps == 1
    if about is not None and about.end is not None:
        known = about.steps in (None, steps)
        times = np.linspace(0, about.end, steps) if known else times
    domain = None
    if about is not None and about.periodic:
        domain = Domain.unit(x.shape[3])
        if not ((x[0] >= 0) & (x[0] <= 1)).all():
            raise ValueError("points outside the periodic unit square of the set")

    def fields(sample: int, which: slice) -> NDArray:
        return with_gaps(u[sample, which, :, : len(names)], u).swapaxes(0, 1)

    def static_field(sample: int) -> NDArray:
        values = c[sample]
        if (values != values[:1]).any():
            raise UserError(
                f"{path} with a coefficient c that changes in time",
                "the same at every time step",
                "store it as components of u",
            )
        return with_gaps(values[0], c)

    return LazyCloudFile(
        path,
        num_samples=samples,
        num_points=num_points,
        points=lambda sample: with_gaps(x[sample % len(x), 0], x),
        shared=len(x) == 1,
        fields=fields,
        times=times,
        times_are_known=known,
        component_names=names,
        split=published_split(samples, TRAIN, VALID, TEST),
        coefficient=static_field,
        static_names=static,
        domain=domain,
        handle=file,
    )


CAMLAB = Reader(
    "CAMLab point clouds of RIGNO and GAOT (.nc)",
    _is_camlab,
    _camlab,
    "a set of CAMLab (.nc): u (samples, time steps, points, components), x (samples or "
    "1, 1, points, axes), optionally c",
)
