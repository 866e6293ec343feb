"""Repaired models against a conic solver and by their properties."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.errors import DistributionError, ParameterError
from mixedgm.joint.repair import repaired
from mixedgm.joint.validity import smallest_eigenvalue
from mixedgm.model.params import Params


def indefinite(seed: int, p: int, density: float) -> Params:
    rng = np.random.default_rng(seed)
    off = np.triu(rng.uniform(-0.9, 0.9, (p, p)) * (rng.random((p, p)) < density), 1)
    scaled = np.eye(p) + off + off.T
    units = rng.uniform(0.01, 100.0, p)
    params = Params.independent(p, (2,))
    params.category_shift[:] = rng.normal(size=(p, 2))
    return replace(params, precision=scaled * np.outer(units, units))


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_nearest_against_a_conic_solver(seed):
    cp = pytest.importorskip("cvxpy")
    params = indefinite(seed, 5, 0.7)
    scale = np.sqrt(np.diagonal(params.precision))
    old = params.precision / np.outer(scale, scale)
    assert smallest_eigenvalue(old) < 0
    X = cp.Variable((5, 5), symmetric=True)
    rules = [X - 0.01 * np.eye(5) >> 0, cp.diag(X) == 1]
    rules += [X[s, t] == 0 for s, t in zip(*np.nonzero(old == 0), strict=True)]
    cp.Problem(cp.Minimize(cp.sum_squares(X - old)), rules).solve(solver=cp.CLARABEL)
    valid, report = repaired(params)
    new = valid.precision / np.outer(scale, scale)
    np.testing.assert_allclose(new, X.value, atol=2e-5)
    assert report.distance == pytest.approx(np.linalg.norm(new - old))
    assert report.after >= 0.01 - 1e-9
    np.testing.assert_array_equal(valid.precision == 0, params.precision == 0)
    np.testing.assert_array_equal(np.diagonal(valid.precision), np.diagonal(params.precision))
    assert valid.category_shift is params.category_shift


def test_the_report_says_what_changed():
    params = indefinite(1, 6, 0.5)
    valid, report = repaired(params)
    assert report.needed
    for (s, t), before, after in zip(
        report.changed, report.partial_before, report.partial_after, strict=True
    ):
        scale = np.sqrt(params.precision[s, s] * params.precision[t, t])
        assert before == pytest.approx(-params.precision[s, t] / scale)
        assert after == pytest.approx(-valid.precision[s, t] / scale)
    assert "partial correlations changed" in str(report)


def test_a_valid_model_comes_back_as_it_is():
    params = Params.independent(3, (2,))
    params.precision[0, 1] = params.precision[1, 0] = 0.9999
    same, report = repaired(params)
    assert same is params
    assert not report.needed
    assert "nothing was changed" in str(report)


def test_units_do_not_matter():
    params = indefinite(2, 5, 0.8)
    factor = np.array([1e3, 1.0, 1e-3, 7.0, 0.2])
    other = replace(params, precision=params.precision * np.outer(factor, factor))
    first, second = repaired(params)[0].precision, repaired(other)[0].precision
    np.testing.assert_allclose(first * np.outer(factor, factor), second, rtol=1e-6)


def test_large_models_are_repaired_in_time():
    params = indefinite(3, 60, 0.1)
    _, report = repaired(params)
    assert report.before < 0
    assert report.after == pytest.approx(0.01, abs=1e-6)


def test_wrong_input_is_refused():
    params = Params.independent(2, ())
    with pytest.raises(ParameterError, match=r"floor must be a float in \(0, 1\)"):
        repaired(params, floor=2.0)
    params.precision[1, 1] = -1.0
    with pytest.raises(DistributionError, match="diagonal .* columns 1"):
        repaired(params)
