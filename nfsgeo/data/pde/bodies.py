"""Bodies in potential flow, by conformal maps of the exterior of the unit circle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nfsgeo.data.conventions import Doubles

__all__ = ["Aerofoil", "Body", "Complexes", "Ellipse", "Flow"]

Complexes = NDArray[np.complex128]
# Points of the wall from which the chord is measured.
WALL_POINTS = 4096


class Body(ABC):
    r"""A body of length 1: the image of the unit circle under a conformal map.

    Far away, the map from the plane of the circle is :math:`z = c \zeta + O(1/\zeta)`.
    """

    @property
    @abstractmethod
    def coefficient(self) -> complex:
        """The derivative c of the map at infinity."""

    @abstractmethod
    def position(self, zeta: Complexes) -> Complexes:
        """Return the image x + iy of points on or outside the unit circle."""

    @abstractmethod
    def derivative(self, zeta: Complexes) -> Complexes:
        """Return the derivative of the map."""


@dataclass(frozen=True)
class Ellipse(Body):
    """An ellipse whose major axis has length 1.

    Args:
        ratio: Minor axis over major axis.
        inclination: Angle of the major axis to the x axis, in radians.
    """

    ratio: float
    inclination: float

    @property
    def coefficient(self) -> complex:
        return complex(np.exp(1j * self.inclination) * (1 + self.ratio) / 4)

    def position(self, zeta: Complexes) -> Complexes:
        other = np.exp(1j * self.inclination) * (1 - self.ratio) / 4
        return self.coefficient * zeta + other / zeta

    def derivative(self, zeta: Complexes) -> Complexes:
        other = np.exp(1j * self.inclination) * (1 - self.ratio) / 4
        return self.coefficient - other / zeta**2


@dataclass(frozen=True)
class Aerofoil(Body):
    r"""A Karman-Trefftz aerofoil of chord 1, its trailing edge at :math:`\zeta = 1`.

    With the circle of centre :math:`\mu` = -``thickness`` + i ``camber`` through 1,

    .. math:: \zeta' = \mu + (1 - \mu) \zeta, \quad
        \frac{z' - n}{z' + n} = \left(\frac{\zeta' - 1}{\zeta' + 1}\right)^n, \quad
        n = 2 - \tau / \pi

    and z is :math:`z' - \mu` divided by the chord, the largest distance of the wall
    from the trailing edge. Zero ``edge_angle`` gives Joukowski's aerofoil, with a cusp.

    Args:
        thickness: Displacement of the centre against the flow.
        camber: Displacement of the centre across the flow.
        edge_angle: Angle tau between the two sides at the trailing edge, in radians.
    """

    thickness: float
    camber: float
    edge_angle: float

    @property
    def centre(self) -> complex:
        return complex(-self.thickness, self.camber)

    @property
    def exponent(self) -> float:
        return 2 - self.edge_angle / np.pi

    @cached_property
    def chord(self) -> float:
        angle = 2 * np.pi * np.arange(WALL_POINTS) / WALL_POINTS
        return float(np.abs(self._power(np.exp(1j * angle))[1] - self.exponent).max())

    @property
    def coefficient(self) -> complex:
        return (1 - self.centre) / self.chord

    def position(self, zeta: Complexes) -> Complexes:
        return (self._power(zeta)[1] - self.centre) / self.chord

    def derivative(self, zeta: Complexes) -> Complexes:
        power, _ = self._power(zeta)
        at = self.centre + (1 - self.centre) * zeta
        slope = 4 * self.exponent**2 * power / (1 - power) ** 2 / (at**2 - 1)
        return self.coefficient * slope

    def _power(self, zeta: Complexes) -> tuple[Complexes, Complexes]:
        """Return the right-hand side of the map's equation, and z'."""
        at = self.centre + (1 - self.centre) * zeta
        # The branch cut of the principal value, from -1 to 1, lies inside the circle.
        power = ((at - 1) / (at + 1)) ** self.exponent
        return power, self.exponent * (1 + power) / (1 - power)


@dataclass(frozen=True)
class Flow:
    r"""Potential flow around the unit circle, at :math:`\zeta = e^{s + i\theta}`.

    The complex potential, divided by the free-stream speed, is

    .. math:: F = e^{-i\alpha} \zeta + e^{i\alpha} / \zeta + 2i\kappa \log\zeta

    and the clockwise circulation is :math:`4\pi\kappa`. In the plane of a body these
    are multiplied by :math:`|c|`.

    Args:
        angle: Angle alpha of the free stream, in radians.
        lift: Kappa, between -1 and 1; the sine of alpha fulfils the Kutta condition
            of an aerofoil.
    """

    angle: float
    lift: float = 0.0

    def gradient(self, s: Doubles, theta: Doubles) -> tuple[Doubles, Doubles]:
        """Return the derivatives of the potential Re F by s and theta."""
        along = 2 * np.sinh(s) * np.cos(theta - self.angle)
        across = -2 * np.cosh(s) * np.sin(theta - self.angle) - 2 * self.lift
        return along, across

    def velocity(self, zeta: Complexes) -> Complexes:
        """Return the derivative of F, the conjugate of the velocity."""
        rotation = np.exp(1j * self.angle)
        return 1 / rotation - rotation / zeta**2 + 2j * self.lift / zeta

    def wake(self, s: Doubles) -> Doubles:
        """Return the angle of the streamline from the rear stagnation point."""
        ratio = np.divide(s, np.sinh(s), out=np.ones_like(s), where=s > 0)
        return self.angle - np.arcsin(self.lift * ratio)
