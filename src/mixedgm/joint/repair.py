"""Params without a joint distribution -> the nearest ones that have it, and what was changed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from mixedgm.errors import DistributionError, ParameterError
from mixedgm.joint.validity import factor, smallest_eigenvalue
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params

# At this smallest eigenvalue no combination of columns has more than a hundred times the
# variance that it would have without relations.
FLOOR = 0.01

_TOLERANCE = 1e-12
_MOST_STEPS = 10_000


@dataclass(frozen=True, eq=False)
class Repair:
    """What `repaired` did.

    Parameters
    ----------
    before, after : float
        Smallest eigenvalue of the precision, scaled to a unit diagonal.
    changed : ndarray (m, 2)
        Pairs of continuous columns whose relation was changed.
    partial_before, partial_after : ndarray (m,)
        Their partial correlations.
    distance : float
        Frobenius norm of the change of the scaled precision.
    """

    before: float
    after: float
    changed: Floats
    partial_before: Floats
    partial_after: Floats
    distance: float

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


def repaired(params: Params, *, floor: float = FLOOR) -> tuple[Params, Repair]:
    """Nearest model with a joint distribution.

    Nearest means: the precision matrix, scaled to a unit diagonal, is moved as little as possible
    in the Frobenius norm until its smallest eigenvalue is `floor`.  Absent edges stay absent and
    the diagonal, that is every column's variance given the others, stays as it is; so do all
    parameters of categorical columns.  The scaled matrix holds partial correlations, so the
    result does not depend on the units.

    Parameters
    ----------
    params : Params
        The model.  If it is valid it comes back unchanged, whatever its smallest eigenvalue.
    floor : float
        Smallest eigenvalue of a repaired model, in (0, 1).

    Returns
    -------
    Params
        The repaired model.
    Repair
        What was changed.

    Examples
    --------
    >>> params = Params.independent(n_cont=2, n_levels=())
    >>> params.precision[0, 1] = params.precision[1, 0] = 1.5
    >>> valid, report = repaired(params)
    >>> valid.precision.round(3)
    array([[1.  , 0.99],
           [0.99, 1.  ]])
    >>> print(report)
    partial correlations changed: 1, by at most 0.51; smallest eigenvalue: -0.5 before, 0.01 now
    """
    if not 0 < floor < 1:
        raise ParameterError.must_be("floor", "a float in (0, 1)", floor)
    diagonal = np.diagonal(params.precision)
    if not (diagonal > 0).all():
        raise DistributionError(
            "the diagonal of the precision matrix must be positive; it is not for {columns}",
            tuple(int(s) for s in np.flatnonzero(~(diagonal > 0))),
        )
    outer = np.sqrt(np.outer(diagonal, diagonal))
    old = params.precision / outer
    new = old if _is_valid(params.precision) else _nearest(old, floor)
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
        return params, report
    precision = new * outer
    np.fill_diagonal(precision, diagonal)
    return replace(params, precision=precision), report


def _is_valid(precision: Floats) -> bool:
    try:
        factor(precision)
    except DistributionError:
        return False
    return True


def _nearest(matrix: Floats, floor: float) -> Floats:
    """Projection on the matrices with this pattern, unit diagonal and eigenvalues >= floor.

    Dykstra's alternating projections: onto the cone of large eigenvalues, with the correction
    that makes the limit the nearest point, and onto the pattern, which is linear and needs none.
    """
    pattern = matrix != 0
    free = pattern & ~np.eye(len(matrix), dtype=bool)
    current, correction = matrix, np.zeros_like(matrix)
    for _ in range(_MOST_STEPS):
        shifted = current - correction
        values, vectors = eigh(shifted)
        lifted = (vectors * np.maximum(values, floor)) @ vectors.T
        correction = lifted - shifted
        moved = np.where(free, lifted, np.eye(len(matrix)))
        moved = 0.5 * (moved + moved.T)
        done = np.abs(moved - current).max() < _TOLERANCE
        current = moved
        if done:
            break
    # The limit lies on the border; the last step must not leave it on the wrong side.
    smallest = smallest_eigenvalue(current)
    if smallest < floor:
        shrink = (1.0 - floor) / (1.0 - smallest)
        current = np.where(free, current * shrink, current)
    return current
