"""Repaired models against a conic solver and by their properties."""

import numpy as np
import pytest

from mixedgm.base.errors import DistributionError, ParameterError
from mixedgm.joint.validity import repaired, smallest_eigenvalue


def indefinite(seed: int, p: int, density: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    off = np.triu(rng.uniform(-0.9, 0.9, (p, p)) * (rng.random((p, p)) < density), 1)
    scaled = np.eye(p) + off + off.T
    units = rng.uniform(0.01, 100.0, p)
    return scaled * np.outer(units, units)


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_nearest_against_a_conic_solver(seed):
    cp = pytest.importorskip("cvxpy")
    precision = indefinite(seed, 5, 0.7)
    scale = np.sqrt(np.diagonal(precision))
    old = precision / np.outer(scale, scale)
    assert smallest_eigenvalue(old) < 0
    X = cp.Variable((5, 5), symmetric=True)
    rules = [X - 0.01 * np.eye(5) >> 0, cp.diag(X) == 1]
    rules += [X[s, t] == 0 for s, t in zip(*np.nonzero(old == 0), strict=True)]
    cp.Problem(cp.Minimize(cp.sum_squares(X - old)), rules).solve(solver=cp.CLARABEL)
    valid, report = repaired(precision)
    new = valid / np.outer(scale, scale)
    np.testing.assert_allclose(new, X.value, atol=2e-5)
    assert report.distance == pytest.approx(np.linalg.norm(new - old))
    assert report.after >= 0.01 - 1e-9
    np.testing.assert_array_equal(valid == 0, precision == 0)
    np.testing.assert_array_equal(np.diagonal(valid), np.diagonal(precision))


def test_the_report_says_what_changed():
    precision = indefinite(1, 6, 0.5)
    valid, report = repaired(precision)
    assert report.needed
    for (s, t), before, after in zip(
        report.changed, report.partial_before, report.partial_after, strict=True
    ):
        scale = np.sqrt(precision[s, s] * precision[t, t])
        assert before == pytest.approx(-precision[s, t] / scale)
        assert after == pytest.approx(-valid[s, t] / scale)
    assert "partial correlations changed" in str(report)


def test_a_valid_model_comes_back_as_it_is():
    precision = np.eye(3)
    precision[0, 1] = precision[1, 0] = 0.9999
    same, report = repaired(precision)
    assert same is precision
    assert not report.needed
    assert "nothing was changed" in str(report)


def test_units_do_not_matter():
    precision = indefinite(2, 5, 0.8)
    factor = np.array([1e3, 1.0, 1e-3, 7.0, 0.2])
    other = precision * np.outer(factor, factor)
    first, second = repaired(precision)[0], repaired(other)[0]
    np.testing.assert_allclose(first * np.outer(factor, factor), second, rtol=1e-6)


def test_large_models_are_repaired_in_time():
    precision = indefinite(3, 60, 0.1)
    _, report = repaired(precision)
    assert report.before < 0
    assert report.after == pytest.approx(0.01, abs=1e-6)


def test_wrong_input_is_refused():
    precision = np.eye(2)
    with pytest.raises(ParameterError, match=r"floor must be a float in \(0, 1\)"):
        repaired(precision, floor=2.0)
    precision[1, 1] = -1.0
    with pytest.raises(DistributionError, match="diagonal .* columns 1"):
        repaired(precision)
