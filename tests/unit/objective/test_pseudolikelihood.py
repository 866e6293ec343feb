"""Gaussian terms of sparse working sets, against the rows themselves."""

import numpy as np
import pytest

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.objective.pseudolikelihood import GaussianSums, GaussianTerms, SupportSums
from mixedgm.rows.memory import MemoryRows

N_NUMBERS, N_LEVELS = 40, (3, 2, 4)


def rows_of(*, weighted: bool) -> tuple[MemoryRows, np.ndarray]:
    """Rows, and their design columns written out."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(90, N_NUMBERS)) + rng.normal(size=(90, 1))
    codes = np.column_stack([rng.integers(0, k, size=90) for k in N_LEVELS])
    weights = rng.random(90) if weighted else None
    rows = MemoryRows(numbers, codes.astype(np.uint8), Nodes.mixed(N_NUMBERS, N_LEVELS), weights)
    return rows, np.hstack(
        [numbers, *(np.eye(k)[y] for k, y in zip(N_LEVELS, codes.T, strict=True))]
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"covariates": (1, 5, 41)}, {"nodewise": True}], ids=["plain", "given", "apart"]
)
def test_terms_and_slopes_are_those_of_the_rows(options, weighted):
    rows, columns = rows_of(weighted=weighted)
    share = np.full(90, 1 / 90) if rows.weights is None else rows.weights / rows.weights.sum()
    complete = Layout.complete(rows.nodes, **options)
    rng = np.random.default_rng(1)
    layout = complete.restrict(np.sort(rng.choice(complete.n_groups, 60, replace=False)))
    theta = 0.2 * rng.normal(size=layout.n_theta)
    theta[layout.diagonal] = rng.uniform(0.5, 2.0, N_NUMBERS)
    incidence = layout.incidence
    values = theta[incidence.theta_index]
    terms = GaussianTerms(rows.moments())
    own, every = (terms.at(layout, theta, values, own) for own in (True, False))
    assert isinstance(own, SupportSums)
    assert isinstance(every, GaussianSums)
    value, slopes, bias, diagonal = 0.0, np.zeros(len(own.slopes)), [], []
    for s, is_target in enumerate(layout.is_target[:N_NUMBERS]):
        entries = incidence.entries_of(s)
        a, b, x = theta[layout.linear][s], theta[layout.diagonal][s], columns[:, s]
        seen = columns[:, incidence.entry_column[entries]]
        residual = a + seen @ values[entries] - b * x  # b times mean less x
        if is_target:
            value += share @ (residual**2 / (2 * b)) - 0.5 * np.log(b)
            slopes[entries] = share @ (seen * residual[:, None]) / b
        bias.append(is_target * (share @ residual) / b)
        of_b = -0.5 / b - share @ (x * residual) / b - share @ residual**2 / (2 * b**2)
        diagonal.append(is_target * of_b)
    for sums in (own, every):
        assert sums.value == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(sums.node_slopes, [*bias, *diagonal], atol=1e-12)
    np.testing.assert_allclose(own.slopes, slopes, atol=1e-12)
    np.testing.assert_allclose(every.on(layout), slopes, atol=1e-12)
