"""A ridge on any loss: curvature in contrasts, noise in numbers."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.objective.ridge import Ridged
from mixedgm.solve.contrasts import Contrasts
from tests.support.problems import draw, random_theta

CASES = {
    "pseudolikelihood": ("pseudolikelihood", ()),
    "nodewise": ("nodewise", ()),
    "likelihood": ("likelihood", ()),
    "given a covariate": ("likelihood", (0,)),
}


@pytest.fixture(params=CASES)
def smooth(request):
    """Two numbers and three categories; edges and numbers with and without a ridge."""
    loss, covariates = CASES[request.param]
    smooth = replace(draw(7, 60, 2, (2, 3, 2)), covariates=covariates).task(loss=loss).smooth
    edges, numbers = np.linspace(0.0, 2.0, smooth.layout.n_groups), np.array([0.7, 0.0])
    numbers[list(covariates)] = 0.0
    return Ridged(smooth, edges, numbers)


def inside(smooth: Ridged, seed: int) -> np.ndarray:
    theta = random_theta(smooth.layout, seed, 0.2)
    theta[smooth.layout.diagonal] += 1.0
    return theta


def test_curvature_in_gaussianrasts_is_the_dense_one_turned(smooth):
    theta, contrasts = inside(smooth, 3), Contrasts(smooth.layout)
    size = contrasts.reduced.n_theta
    up = np.column_stack([contrasts.up(one) for one in np.eye(size)])
    expected = up.T @ smooth.curvature(theta).dense() @ up
    if smooth.by_nodes:
        found = assembled(contrasts, smooth, theta)
    else:
        found = contrasts.whole_curvature(smooth, theta, 1)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    plain = up.T @ smooth.smooth.curvature(theta).dense() @ up
    assert np.abs(found - plain).max() > 0.1, "no ridge in it"


def assembled(contrasts: Contrasts, smooth: Ridged, theta: np.ndarray) -> np.ndarray:
    """The matrices of all nodes in one, each in the order of its conditional."""
    widths, start, matrices = contrasts.curvature(smooth, theta, 1)
    begin, positions = contrasts.reduced.conditional
    out = np.zeros((contrasts.reduced.n_theta,) * 2)
    for v, width in enumerate(widths):
        index = positions[begin[v] : begin[v + 1]]
        out[np.ix_(index, index)] += matrices[start[v] : start[v + 1]].reshape(width, width)
    return out


def test_noise_in_numbers_adds_to_their_variance(smooth):
    theta, layout = smooth.null(), smooth.layout
    targets = layout.is_target[: layout.n_gaussian]
    np.testing.assert_allclose(
        theta[layout.diagonal][targets], 1.0 / (1.0 + smooth.numbers[targets]), rtol=1e-12
    )
