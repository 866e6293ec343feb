"""Node terms of models with hurdle columns: the margins that they are made for, summed exactly."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.base.errors import SamplingWarning
from mixedgm.joint.margins import Margins, matched, matched_by_chains
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params
from tests.support.spiked_world import LOCATION, SCORES, Enumerated, spiked_model


def moments(params: Params) -> tuple[Floats, Floats, Floats]:
    """Means of the design columns, variances of those that are numbers, shares of values."""
    truth = Enumerated(params)
    table = truth.table()
    shares = [table.sum(axis=tuple({0, 1, 2, 3} - {k})) for k in range(4)]
    (b1, b2), (x, h1, h2), square = (
        (shares[0][1], shares[1][1]),
        truth.mean,
        np.diagonal(truth.second),
    )
    y, y_square = h1 - LOCATION * b1, square[1] - 2 * LOCATION * h1 + LOCATION**2 * b1
    score, score_square = shares[2] @ SCORES, shares[2] @ np.square(SCORES)
    mean = np.array([x, b1, y, b2, h2, score])
    second = np.array([square[0], b1, y_square, b2, square[2], score_square])
    return np.concatenate([mean, shares[3]]), second - mean**2, np.concatenate(shares)


def test_margins_are_reached_up_to_the_error_that_is_stated() -> None:
    params = spiked_model()
    wanted = replace(
        params,
        bias=params.bias + [0.5, 0.8, -0.5, 0.4, -0.7, 0.3, 0.5, 0.0, 0.5, -0.4, 0.6, 0.0, -0.3],
        diagonal=params.diagonal * 1.5,
    )
    mean, variance, shares = moments(wanted)
    terms = matched(params, Margins(mean, variance, None, shares))
    assert terms is not None
    assert terms.sampled
    assert terms.error < 0.05
    before = np.abs(moments(params)[0] - mean).max()
    reached = moments(terms.put_into(params))
    scale = np.sqrt(np.concatenate([variance, mean[6:] * (1 - mean[6:])]))
    assert before > 0.1
    assert (np.abs(reached[0] - mean) / scale < 0.02).all()
    assert (np.abs(np.sqrt(reached[1] / variance) - 1.0) < 0.02).all()
    assert (np.abs(reached[0] - mean) / scale).max() <= terms.error


def test_levels_without_rows_stay_impossible() -> None:
    params = spiked_model()
    params.bias[-1] = -np.inf
    params.coef[-1] = params.coef[:, -1] = 0.0
    mean, variance, shares = moments(params)
    terms = matched(params, Margins(mean, variance, None, shares))
    assert terms is not None
    assert np.isneginf(terms.bias[-1])
    assert np.isfinite(terms.bias[:-1]).all()
    np.testing.assert_allclose(terms.put_into(params).diagonal, params.diagonal, rtol=0.1)


def test_margins_out_of_reach_are_said_to_be() -> None:
    params = spiked_model()
    mean, variance, shares = moments(params)
    far = Margins(mean + 40.0 * np.eye(9)[0], variance, None, shares)
    with pytest.warns(SamplingWarning, match=r"could not be given the margins.*To change it"):
        terms = matched(params, far)
    assert terms is None or terms.error > 0.1


def test_many_terms_stay_those_of_the_fit() -> None:
    params = spiked_model()
    mean, variance, shares = moments(params)
    margins = Margins(mean, variance, None, shares)
    assert matched_by_chains(params, margins, limit=5) is None
    assert matched_by_chains(params, margins) is not None
