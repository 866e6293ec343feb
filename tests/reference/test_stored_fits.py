"""Fits of every kind find what they found before: objectives, edges, choices, criteria."""

import json

import numpy as np
import pytest

from tests.reference import stored_fits

STORED = json.loads(stored_fits.STORED.read_text()) if stored_fits.STORED.exists() else {}


@pytest.mark.parametrize(("name", "weighted"), stored_fits.cases())
def test_a_fit_finds_what_it_found(name, weighted):
    before = STORED[f"{name}{', weighted' if weighted else ''}"]
    now = stored_fits.found(stored_fits.fitted(name, weighted))
    assert now["edges"] == before["edges"]
    np.testing.assert_allclose(now["objective"], before["objective"], rtol=1e-10)
    np.testing.assert_allclose(now["lam"], before["lam"], rtol=1e-10)
    np.testing.assert_allclose(now["weights"], before["weights"], rtol=1e-5, atol=1e-7)
    shared = min(len(now["lams"]), len(before["lams"]))
    np.testing.assert_allclose(now["lams"][:shared], before["lams"][:shared], rtol=1e-10)
    np.testing.assert_allclose(
        now["objectives"][:shared], before["objectives"][:shared], rtol=1e-10
    )
    assert now["scores"].keys() == before["scores"].keys()
    for key, scores in now["scores"].items():
        length = min(len(scores), len(before["scores"][key]))
        np.testing.assert_allclose(scores[:length], before["scores"][key][:length], rtol=1e-6)
