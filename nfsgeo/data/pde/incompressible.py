"""Incompressible Navier-Stokes equations by Taylor-Hood elements, in two dimensions.

scikit-fem (``nfsgeo[fem]``) assembles the constant matrices.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import skfem
from scipy.sparse.linalg import splu
from skfem.helpers import dot, grad

from nfsgeo.data.conventions import Doubles, Indices

__all__ = ["Flow", "Stepper"]

# Degree of the quadrature, exact for convection on triangles with straight sides.
DEGREE = 5


class Flow:
    r"""Discrete operators of a flow on one mesh.

    .. math:: \partial_t u + (u\cdot\nabla) u - \nu\Delta u + \nabla p = f, \quad
        \nabla\cdot u = 0

    with quadratic velocities and linear pressures. Velocities are prescribed on some
    facets of the boundary; on the rest, :math:`\nu\,\partial_n u = p n`.

    Args:
        mesh: Triangles, with straight or curved sides.
        nu: Kinematic viscosity.
        facets: Facets of the boundary with prescribed velocities. If they are the whole
            boundary, the pressure is 0 at the first vertex.

    Attributes:
        pos: Positions of the nodes of velocities ``[2, n]``, first the vertices.
        dirichlet: Numbers of the nodes with prescribed velocities.
        mass: Mass matrix of one component of velocity ``[n, n]``.
        stiffness: Stiffness matrix of one component, without viscosity ``[n, n]``.
        divergence: Moments of its derivative along x and y, by vertices ``[m, n]``.
    """

    def __init__(self, mesh: skfem.MeshTri2, nu: float, facets: Indices) -> None:
        basis = skfem.Basis(mesh, skfem.ElementTriP2(), intorder=DEGREE)
        linear = basis.with_element(skfem.ElementTriP1())
        self.mesh, self.nu, self.basis = mesh, nu, basis
        self.pos, self.size = basis.doflocs, basis.N
        self.dirichlet = basis.get_dofs(facets=facets).all()
        self.free = np.setdiff1d(np.arange(self.size), self.dirichlet)
        self.enclosed = len(facets) == len(mesh.boundary_facets())
        self.mass = skfem.BilinearForm(lambda u, v, _: u * v).assemble(basis)
        laplace = skfem.BilinearForm(lambda u, v, _: dot(grad(u), grad(v)))
        self.stiffness = laplace.assemble(basis)
        self.divergence = [
            skfem.BilinearForm(lambda u, q, _, k=axis: grad(u)[k] * q).assemble(
                basis, linear
            )
            for axis in range(2)
        ]
        shapes = [basis.elem.lbasis(basis.X, number) for number in range(6)]
        self._values = np.stack([value for value, _ in shapes])  # [6, Q]
        self._slopes = np.stack([slope for _, slope in shapes])  # [6, 2, Q]
        inverse = np.asarray(basis.mapping.invDF(basis.X))
        if inverse.shape[2:] != basis.dx.shape:  # the same at all quadrature points
            inverse = np.broadcast_to(inverse, (2, 2, *basis.dx.shape))
        self._inverse = np.ascontiguousarray(inverse)
        self._weighted = self._inverse * basis.dx
        self._nodes = np.ascontiguousarray(basis.element_dofs.T)  # [elements, 6]
        rows = self._nodes.ravel()
        entries = (np.ones(len(rows)), (rows, np.arange(len(rows))))
        self._sum = sp.csr_matrix(entries, shape=(self.size, len(rows)))

    def convection(self, u: Doubles) -> Doubles:
        r"""Moments of :math:`(u\cdot\nabla) u` of a velocity ``[2, n]``, ``[2, n]``."""
        local = u[:, self._nodes]
        slope = (local @ self._slopes.reshape(6, -1)).reshape(*local.shape[:2], 2, -1)
        first, second = self._carried(u)
        moved = first * slope[:, :, 0] + second * slope[:, :, 1]
        moments = moved @ self._values.T
        return _apply(self._sum, moments.reshape(2, -1))

    def convection_matrix(self, carrier: Doubles) -> sp.csr_matrix:
        r"""Matrix ``[n, n]`` of :math:`w\cdot\nabla` for one component of velocity.

        The carrier w is a velocity ``[2, n]``.
        """
        products = np.einsum("iq,jaq->aqij", self._values, self._slopes)
        local = sum(
            weights @ product.reshape(len(product), -1)
            for weights, product in zip(self._carried(carrier), products, strict=True)
        )
        rows, columns = np.repeat(self._nodes, 6, axis=1), np.tile(self._nodes, 6)
        entries = (np.ravel(local), (rows.ravel(), columns.ravel()))
        return sp.csr_matrix(entries, shape=(self.size, self.size))

    def _carried(self, u: Doubles) -> tuple[Doubles, Doubles]:
        """Return both components of a velocity in the reference triangle.

        They are multiplied by the quadrature weights, ``[elements, Q]`` each.
        """
        x, y = u[:, self._nodes] @ self._values
        (xx, xy), (yx, yy) = self._weighted
        return xx * x + xy * y, yx * x + yy * y

    def convection_reference(self, u: Doubles) -> Doubles:
        """Reference for :meth:`convection`, assembled by scikit-fem."""
        x, y = (self.basis.interpolate(component) for component in u)

        def form(v: Doubles, w: skfem.assembly.form.form.FormExtraParams) -> Doubles:
            return (w["x"] * w["of"].grad[0] + w["y"] * w["of"].grad[1]) * v

        linear = skfem.LinearForm(form)
        return np.stack([linear.assemble(self.basis, x=x, y=y, of=u) for u in (x, y)])

    def crossing_rate(self, u: Doubles) -> float:
        """Return the largest number of triangles crossed per unit of time."""
        value = u[:, self._nodes] @ self._values
        along = np.einsum("ij...,j...->i...", self._inverse, value)
        return float(np.sqrt((along**2).sum(axis=0)).max())

    def divergence_of(self, u: Doubles) -> Doubles:
        """Return the moments of the divergence, by vertices ``[m]``."""
        return np.asarray(self.divergence[0] @ u[0] + self.divergence[1] @ u[1])

    def oseen(
        self, values: Doubles, carrier: Doubles | None = None
    ) -> tuple[Doubles, Doubles]:
        """Solve for steady velocity ``[2, n]`` and pressure ``[m]``.

        Args:
            values: Velocity with the prescribed values on the boundary ``[2, n]``.
            carrier: Velocity of the convection ``[2, n]``; None for Stokes flow.
        """
        matrix = self.nu * self.stiffness
        if carrier is not None:
            matrix = matrix + self.convection_matrix(carrier)
        return _Saddle(self, matrix.tocsr()).solve(values)


class _Saddle:
    """LU factors of the system of velocity and pressure.

    The matrix ``[n, n]`` is that of either component of velocity.
    """

    def __init__(self, flow: Flow, matrix: sp.csr_matrix) -> None:
        self.flow, self.matrix = flow, matrix
        free = flow.free
        start = 1 if flow.enclosed else 0
        block = matrix[free][:, free]
        x, y = (-divergence[start:][:, free] for divergence in flow.divergence)
        rows = [[block, None, x.T], [None, block, y.T], [x, y, None]]
        # The pattern is symmetric, and hardly any pivoting is needed.
        self.factors = splu(
            sp.bmat(rows, format="csc"),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=1e-3,
            options={"SymmetricMode": True},
        )

    def solve(self, u: Doubles, load: Doubles | None = None) -> tuple[Doubles, Doubles]:
        """Solve for velocity and pressure, with the boundary values of ``u``."""
        flow = self.flow
        velocity = np.zeros((2, flow.size))
        velocity[:, flow.dirichlet] = u[:, flow.dirichlet]
        right = -_apply(self.matrix, velocity)
        if load is not None:
            right += load
        start = 1 if flow.enclosed else 0
        inward = flow.divergence_of(velocity)[start:]
        solved = self.factors.solve(np.concatenate([*right[:, flow.free], inward]))
        parts = np.split(solved, [len(flow.free), 2 * len(flow.free)])
        velocity[:, flow.free] = parts[:2]
        return velocity, np.concatenate([np.zeros(start), parts[2]])


class Stepper:
    r"""Time steps of second order, with one matrix for all of them.

    .. math:: \frac{3 u^{n+1} - 4 u^n + u^{n-1}}{2 \Delta t}
        + (w\cdot\nabla) u^{n+1} - \nu\Delta u^{n+1} + \nabla p^{n+1}
        = f^{n+1} - 2 c^n + c^{n-1}, \quad c = ((u - w)\cdot\nabla) u

    Viscosity, pressure and the convection by a constant velocity, the ``carrier`` w,
    are implicit; the rest of the convection is extrapolated. With w = 0, steps are
    stable up to about a third of the inverse of :meth:`Flow.crossing_rate`. With w the
    mean flow, the rate of u - w takes the place of that of u.

    Source: SBDF of second order, Ascher, Ruuth and Wetton, "Implicit-Explicit Methods
    for Time-Dependent Partial Differential Equations".

    Attributes:
        now: The velocity ``[2, n]``.
        pressure: The pressure ``[m]`` after a step.
    """

    def __init__(self, flow: Flow, dt: float, carrier: Doubles | None = None) -> None:
        self.flow, self.dt = flow, dt
        matrix = 1.5 / dt * flow.mass + flow.nu * flow.stiffness
        self.carried: sp.csr_matrix | None = None
        if carrier is not None:
            self.carried = flow.convection_matrix(carrier)
            matrix = matrix + self.carried
        self.saddle = _Saddle(flow, matrix.tocsr())

    def start(self, now: Doubles, before: Doubles | None = None) -> None:
        """Start from a velocity ``[2, n]`` and that of the step before, or the same."""
        self.now, self.before = now, now if before is None else before
        self.explicit = self._explicit(self.before)

    def step(self, values: Doubles, load: Doubles | None = None) -> None:
        """Make a time step.

        Args:
            values: Velocity with the new values on the boundary ``[2, n]``.
            load: Load ``[2, n]``; None for none.
        """
        explicit, last = self._explicit(self.now), self.explicit
        past = (4 * self.now - self.before) / (2 * self.dt)
        right = _apply(self.flow.mass, past) - 2 * explicit + last
        if load is not None:
            right += load
        self.before, self.explicit, self._right = self.now, explicit, right
        self.now, self.pressure = self.saddle.solve(values, right)

    def _explicit(self, u: Doubles) -> Doubles:
        moments = self.flow.convection(u)
        return moments if self.carried is None else moments - _apply(self.carried, u)

    def force(self, nodes: Indices) -> Doubles:
        """Return the force of the flow on a part of the boundary, ``[2]``.

        It is the residual of the last step at the ``nodes`` of that part, which is more
        accurate than an integral of the stress.
        """
        residual = _apply(self.saddle.matrix, self.now) - self._right
        residual -= [
            divergence.T @ self.pressure for divergence in self.flow.divergence
        ]
        return np.asarray(-residual[:, nodes].sum(axis=1))


def _apply(matrix: sp.csr_matrix, u: Doubles) -> Doubles:
    return np.stack([matrix @ component for component in u])
