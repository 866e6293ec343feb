"""Cells of rows with gaps: sampled where tables are too large, with one warning."""

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.studies.missing.cells import JointCells
from mixedgm.table.gaps import read_gaps
from mixedgm.table.read import as_frame
from tests.support.enumerated import known_model


def answers(cells):
    """Log probabilities, means and log densities, in this order."""
    nodes = range(len(cells.fitted.schema.nodes))
    discrete = [k for k in nodes if not cells.fitted.schema.spans.is_real(k)]
    return (
        np.concatenate([x.ravel() for _, _, x in cells.log_probs(discrete)]),
        np.concatenate([x for _, _, x in cells.means(nodes)]),
        np.concatenate([x for _, _, x in cells.log_densities(nodes)]),
    )


@pytest.mark.statistical
def test_large_tables_are_sampled_with_one_warning():
    """Chains of 1,600 states: an average over 300 cells is within 0.02 of the exact one.

    Its standard error is below 0.003, so that a false alarm has probability below 1e-10; the seed
    is fixed.
    """
    model, _ = known_model(1, density=1.0)
    rows = model.sample(50, random_state=0).astype({"smoker": object, "city": object})
    gaps = np.random.default_rng(0).random(rows.shape) < 0.3
    gaps[0], gaps[1] = True, False  # nothing known, and nothing missing
    table = read_gaps(as_frame(rows.mask(gaps)), model.schema_)
    with JointCells(model.fitted_, table) as cells:
        log_prob, mean, log_density = answers(cells)
    cells = JointCells(model.fitted_, table, limit=1)
    with pytest.warns(mg.SamplingWarning, match="answered from Gibbs chains") as said, cells:
        sampled = answers(cells)
    assert len(said) == 1
    assert np.abs(np.exp(sampled[0]) - np.exp(log_prob)).max() < 0.1
    for found, exact in zip(sampled, (log_prob, mean, log_density), strict=True):
        assert not np.array_equal(found, exact)
    assert sampled[1].mean() == pytest.approx(mean.mean(), abs=0.02)
    assert sampled[2].mean() == pytest.approx(log_density.mean(), abs=0.02)
