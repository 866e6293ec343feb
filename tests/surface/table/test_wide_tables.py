"""A table with so many columns that not all of their pairs are laid out, by public names."""

import numpy as np
import pytest

import mixedgm as mg

pd = pytest.importorskip("pandas")

N_ROWS, N_COLUMNS = 60, 2860
"""More than four million pairs."""
EDGES = [(f"x{k}", f"x{k + 1}") for k in range(0, 12, 2)]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_ROWS, N_COLUMNS))
    x[:, 1:13:2] = 2.5 * x[:, 0:12:2] + 0.5 * x[:, 1:13:2]
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(N_COLUMNS)])
    frame["y"] = np.where(x[:, 20] + 0.2 * rng.normal(size=N_ROWS) > 0.0, "u", "v")
    return frame


@pytest.fixture(scope="module")
def model(table):
    return mg.MixedGraphicalModel(lam=1.4, n_jobs=2).fit(table)


def test_strong_edges_are_found_and_certified(model):
    found = {tuple(sorted((e.source, e.target))) for e in model.fitted_.edges}
    assert found == {tuple(sorted(pair)) for pair in [*EDGES, ("x20", "y")]}
    assert model.converged_
    assert model.kkt_ <= model.tol


def test_ebic_chooses_and_refits(table):
    with pytest.warns(mg.SelectionWarning, match="near the end of the path"):
        model = mg.MixedGraphicalModel(n_jobs=2, lams=[1.8, 1.6, 1.4]).fit(table)
    found = {tuple(sorted((e.source, e.target))) for e in model.fitted_.edges}
    assert found >= {tuple(sorted(pair)) for pair in EDGES}
    assert len(found) <= len(EDGES) + 4
    assert any("chosen by EBIC" in note for note in model.fitted_.report.notes)


def test_a_model_is_saved_and_comes_back(model, tmp_path):
    model.save(tmp_path / "wide.mgm")
    again = mg.load(tmp_path / "wide.mgm")
    assert again.fitted_.edges == model.fitted_.edges
    assert (tmp_path / "wide.mgm").stat().st_size < 5e6


def test_edges_are_found_again_in_resamples(model, table):
    found = mg.bootstrap(model, table, n_boot=2, random_state=0, n_jobs=1)
    assert "so wide" in found.no_intervals
    shown = found.selection()
    inclusion = dict(
        zip(zip(shown["source"], shown["target"], strict=True), shown["inclusion"], strict=True)
    )
    assert all(inclusion.get(pair, inclusion.get(pair[::-1])) == 1.0 for pair in EDGES)


def test_tests_of_all_pairs_say_why_they_are_not_made(model, table):
    with pytest.raises(mg.ParameterError, match="so wide that sums for all pairs"):
        mg.edge_tests(model, table)
