"""A precision matrix -> its triangular factor, or an error that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, eigh
from scipy.linalg.lapack import dtrtri

from mixedgm.errors import DistributionError
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
