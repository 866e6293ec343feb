"""A precision -> its triangular factor, or why there is none; the nearest model that has one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, eigh
from scipy.linalg.lapack import dtrtri
from scipy.optimize import minimize

from mixedgm.base.errors import DistributionError, ParameterError
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats

# A column that the others explain up to this share of its conditional variance is taken for a
# linear function of them: what is left is rounding.
SMALLEST_PIVOT = 1e-10


@dataclass(frozen=True, eq=False)
class TriangularFactor:
    """A positive definite matrix B in the form that its uses need."""

    root: Floats
    """(p, p) inverse of the lower Cholesky factor: ``root.T @ root`` is the inverse of B, and
    ``z @ root`` has that covariance when z is standard normal."""
    log_det: float
    """The logarithm of the determinant of B."""

    @property
    def inverse(self) -> Floats:
        """The inverse of B; columns without a path between them keep an exact zero."""
        return np.asarray(self.root.T @ self.root)


def smallest_eigenvalue(precision: Floats) -> float:
    """Smallest eigenvalue of the precision matrix, scaled to a unit diagonal.

    The scaling makes the number free of units: a positive one means that the joint distribution
    exists, 1 that no two numbers are related.

    Examples
    --------
    >>> round(smallest_eigenvalue(np.array([[1.0, 30.0], [30.0, 100.0]])), 6)
    -2.0
    """
    return _smallest_pair(precision)[0]


def _smallest_pair(precision: Floats) -> tuple[float, Floats]:
    """Smallest eigenvalue of the scaled matrix and its eigenvector."""
    if not len(precision):
        return np.inf, np.zeros(0)
    diagonal = np.diagonal(precision)
    scale = np.sqrt(diagonal) if (diagonal > 0).all() else np.ones(len(diagonal))
    value, vector = eigh(precision / np.outer(scale, scale), subset_by_index=[0, 0])
    return float(value[0]), np.asarray(vector[:, 0])


def factor(precision: Floats) -> TriangularFactor:
    """Factor of a positive definite precision matrix.

    DistributionError when it is not positive definite; the error names the smallest eigenvalue and
    the columns with the largest part in its eigenvector.

    Examples
    --------
    >>> factor(np.array([[2.0, 1.0], [1.0, 2.0]])).inverse.round(3)
    array([[ 0.667, -0.333],
           [-0.333,  0.667]])
    """
    try:
        lower = cholesky(precision, lower=True)
    except np.linalg.LinAlgError:
        raise _no_distribution(precision) from None
    pivot = np.diagonal(lower) ** 2
    if (pivot <= SMALLEST_PIVOT * np.diagonal(precision)).any():
        raise _no_distribution(precision)
    # dtrtri inverts in one thread; a triangular solve would wake all of them for tiny matrices.
    root = dtrtri(lower, lower=1)[0] if len(lower) else lower
    return TriangularFactor(np.ascontiguousarray(root), float(np.log(pivot).sum()))


def _no_distribution(precision: Floats) -> DistributionError:
    value, vector = _smallest_pair(precision)
    share = np.abs(vector)
    involved = np.flatnonzero(share > 0.3 * share.max())
    return DistributionError(
        "the precision matrix is not positive definite, so there is no joint distribution: its "
        f"smallest eigenvalue is {value:.3g} (scaled to a unit diagonal), and its eigenvector is "
        "mostly about {columns}. Each column's conditional still works. To fix: "
        "model.repaired() gives the nearest valid model and says what it changed",
        tuple(int(s) for s in involved),
    )


def allowed_levels(params: ConditionalGaussian) -> list[np.ndarray]:
    """Codes of every state that have a chance: those without bias ``-inf``."""
    return [
        np.flatnonzero(~np.isneginf(params.bias[params.levels_of(j)]))
        for j in range(len(params.n_levels))
    ]


# -- the nearest valid precision -------------------------------------------------------------------

# At this smallest eigenvalue no combination of columns has more than a hundred times the
# variance that it would have without relations.
FLOOR = 0.01

_TOLERANCE = 1e-9
_MOST_STEPS = 2_000


@dataclass(frozen=True, eq=False)
class Repair:
    """Changes that `repaired` made, with eigenvalues before and after."""

    before: float
    after: float
    """Smallest eigenvalue of the precision, scaled to a unit diagonal."""
    changed: Floats
    """(m, 2) pairs of numbers whose relation was changed."""
    partial_before: Floats
    partial_after: Floats
    """(m,) partial correlations of these pairs, before and after."""
    distance: float
    """Frobenius norm of the change of the scaled precision."""

    @property
    def needed(self) -> bool:
        """False when the model was valid and came back as it was."""
        return len(self.changed) > 0

    def __str__(self) -> str:
        """Return what was done as a sentence."""
        if not self.needed:
            return f"valid as it is (smallest eigenvalue {self.before:.3g}): nothing was changed"
        largest = np.abs(self.partial_after - self.partial_before).max()
        return (
            f"partial correlations changed: {len(self.changed)}, by at most {largest:.3g}; "
            f"smallest eigenvalue: {self.before:.3g} before, {self.after:.3g} now"
        )


def repaired(precision: Floats, *, floor: float = FLOOR) -> tuple[Floats, Repair]:
    """Precision of the nearest model with a joint distribution.

    Nearest means: the precision matrix, scaled to a unit diagonal, is moved as little as possible
    in the Frobenius norm until its smallest eigenvalue is `floor`.  Absent edges stay absent and
    the diagonal, that is every column's variance given the others, stays as it is.  The
    scaled matrix holds partial correlations, so the result does not depend on the units.

    A valid precision comes back unchanged, whatever its smallest eigenvalue.

    Examples
    --------
    >>> valid, report = repaired(np.array([[1.0, 1.5], [1.5, 1.0]]))
    >>> valid.round(3)
    array([[1.  , 0.99],
           [0.99, 1.  ]])
    >>> print(report)
    partial correlations changed: 1, by at most 0.51; smallest eigenvalue: -0.5 before, 0.01 now
    """
    if not 0 < floor < 1:
        raise ParameterError.must_be("floor", "a float in (0, 1)", floor)
    diagonal = np.diagonal(precision)
    if not (diagonal > 0).all():
        raise DistributionError(
            "the diagonal of the precision matrix must be positive; it is not for {columns}",
            tuple(int(s) for s in np.flatnonzero(~(diagonal > 0))),
        )
    outer = np.sqrt(np.outer(diagonal, diagonal))
    old = precision / outer
    new = old if _is_valid(precision) else _nearest(old, floor)
    s, t = np.nonzero(np.triu(np.abs(new - old) > _TOLERANCE, 1))
    report = Repair(
        smallest_eigenvalue(old),
        smallest_eigenvalue(new),
        np.column_stack([s, t]),
        -old[s, t],
        -new[s, t],
        float(np.linalg.norm(new - old)),
    )
    if new is old:
        return precision, report
    valid = new * outer
    np.fill_diagonal(valid, diagonal)
    return valid, report


def _is_valid(precision: Floats) -> bool:
    try:
        factor(precision)
    except DistributionError:
        return False
    return True


def _nearest(matrix: Floats, floor: float) -> Floats:
    """Projection on the matrices with this pattern, unit diagonal and eigenvalues >= floor.

    With H = matrix - floor I, the multipliers Y of the fixed entries (diagonal and absent edges)
    minimise ``|(H + Y)+|^2 / 2 - <Y, D>``, where + keeps the positive eigenvalues and D holds what
    the fixed entries must be; it is smooth, and ``(H + Y)+ + floor I`` is the projection.
    """
    p = len(matrix)
    upper = np.triu_indices(p)
    fixed = (matrix[upper] == 0) | (upper[0] == upper[1])
    rows, columns = upper[0][fixed], upper[1][fixed]
    goal = np.where(rows == columns, 1.0 - floor, 0.0)
    # An entry off the diagonal stands twice in the matrix.
    weight = np.where(rows == columns, 1.0, np.sqrt(2.0))

    def positive_part(y: Floats) -> Floats:
        shifted = matrix - floor * np.eye(p)
        shifted[rows, columns] += y / weight
        shifted[columns, rows] = shifted[rows, columns]
        values, vectors = eigh(shifted)
        kept = vectors[:, values > 0]
        return np.asarray((kept * values[values > 0]) @ kept.T)

    def dual(y: Floats) -> tuple[float, Floats]:
        part = positive_part(y)
        gradient = weight * (part[rows, columns] - goal)
        return 0.5 * float((part**2).sum() - 2.0 * (weight * goal) @ y), gradient

    optimum = minimize(
        dual,
        np.zeros(len(rows)),
        jac=True,
        method="L-BFGS-B",
        options={"gtol": _TOLERANCE, "ftol": 0.0, "maxiter": _MOST_STEPS, "maxfun": _MOST_STEPS},
    )
    part = positive_part(optimum.x)
    new = np.where((matrix != 0) & ~np.eye(p, dtype=bool), 0.5 * (part + part.T), np.eye(p))
    # The projection lies on the border; rounding must not leave it on the wrong side.
    smallest = smallest_eigenvalue(new)
    if smallest < floor:
        new = np.where(np.eye(p, dtype=bool), new, new * (1.0 - floor) / (1.0 - smallest))
    return new
