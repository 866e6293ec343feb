"""A precision without a joint distribution -> the nearest one that has it, and what was changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

from mixedgm.errors import DistributionError, ParameterError
from mixedgm.joint.validity import factor, smallest_eigenvalue
from mixedgm.model.layout import Floats

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
