"""`loss="likelihood"` and `loss="likelihood-mc"` through the estimator."""

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.reference import likelihood as reference
from tests.support.command_line import mixedgm
from tests.support.people import CONTINUOUS, LEVELS, assert_same_params, numbers, people

Model = partial(mg.MixedGraphicalModel, loss="likelihood", n_jobs=1)
N_LEVELS = tuple(len(levels) for levels in LEVELS.values())


@pytest.fixture(scope="module")
def table():
    return people(150)


@pytest.fixture(scope="module")
def chosen(table):
    return Model(select="ebic", refit=False).fit(table)


def standard(table, row_weights=None):
    return reference.rows_of(*numbers(table), N_LEVELS, row_weights)


def standard_params(model):
    return model.path_.units.to_standard(model.params_)


def kkt_of(model, table, factor=lambda u, v: 1.0, row_weights=None):
    """The KKT number by enumeration; `factor` multiplies the calibrated weight of a pair."""
    rows = standard(table, row_weights)
    scales = rows.scales
    weights = lambda u, v: factor(u, v) * scales[u] * scales[v]  # noqa: E731
    return reference.kkt(standard_params(model), rows, model.lam_, weights)


def nodes():
    return [*CONTINUOUS, *LEVELS]


# -- the estimate ----------------------------------------------------------------------------------


def test_every_point_of_the_default_path_is_certified(chosen):
    path = chosen.path_
    assert path.converged.all()
    assert (path.kkt <= 1e-5).all()
    assert path.loss == "likelihood"
    assert "likelihood" in repr(path)
    assert (path.passes == 0.0).all()


def test_lam_max_is_half_of_the_pseudolikelihoods(table, chosen):
    assert mg.fit_path(table, n_lams=1).lam_max == pytest.approx(2.0 * chosen.path_.lam_max)


def test_certificate_is_that_of_the_enumerated_states(table, chosen):
    assert kkt_of(chosen, table) == pytest.approx(chosen.kkt_, abs=1e-9)
    assert chosen.converged_


def test_objective_is_that_of_the_rows_in_their_own_units(table):
    model = Model(lam=0.05, tol=1e-9).fit(table)
    X, Y = numbers(table)
    hot = np.hstack([np.eye(m)[Y[:, j]] for j, m in enumerate(N_LEVELS)])
    own = reference.Rows(X, hot, np.full(len(X), 1 / len(X)), N_LEVELS)
    # The penalty has the same value in all units: edge weights are free of them.
    penalty = sum(edge.norm for edge in model.edges_)
    expected = reference.loss(model.params_, own) + 0.05 * penalty
    assert model.objective_ == pytest.approx(expected, abs=1e-9)
    constant = 0.5 * len(CONTINUOUS) * np.log(2 * np.pi)
    smooth = model.objective_ - 0.05 * penalty
    assert model.log_likelihood(table) == pytest.approx(-smooth - constant, abs=1e-9)


def test_a_row_twice_is_a_row_of_weight_two(table):
    weights = np.random.default_rng(0).integers(1, 3, len(table))
    twice = table.iloc[np.repeat(np.arange(len(table)), weights)]
    one = Model(lam=0.1, tol=1e-8).fit(twice)
    other = Model(lam=0.1, tol=1e-8).fit(table, sample_weight=weights)
    assert_same_params(one.params_, other.params_, atol=1e-7)
    assert kkt_of(other, table, row_weights=weights) <= 1e-8


def test_units_do_not_matter(table):
    one = Model(lam=0.1, tol=1e-8).fit(table)
    other = Model(lam=0.1, tol=1e-8).fit(table.assign(weight=1000 * table["weight"] + 5))
    assert one.objective_ + np.log(1000) == pytest.approx(other.objective_, abs=1e-8)
    weights = [[edge.norm for edge in model.edges_] for model in (one, other)]
    np.testing.assert_allclose(*weights, atol=1e-6)


def test_edges_can_be_required_forbidden_and_priced(table):
    model = Model(
        lam=0.1,
        tol=1e-8,
        require=[("weight", "colour")],
        forbid=[("height", "group")],
        penalty_factors={("group", "smoker"): 0.5},
    ).fit(table)
    names = {frozenset(edge[:2]) for edge in model.edges_}
    assert frozenset(("weight", "colour")) in names
    assert frozenset(("height", "group")) not in names
    factors = {("weight", "colour"): 0.0, ("height", "group"): np.inf, ("group", "smoker"): 0.5}

    def factor(u, v):
        a, b = nodes()[u], nodes()[v]
        return factors.get((a, b), factors.get((b, a), 1.0))

    assert kkt_of(model, table, factor) <= 1.1e-8


def test_a_refit_is_the_optimum_of_its_graph(table):
    model = Model(lam=0.12, refit=True, tol=1e-8).fit(table)
    names = {frozenset(edge[:2]) for edge in model.edges_}
    assert 0 < len(names) < 10

    def factor(u, v):
        return 0.0 if frozenset((nodes()[u], nodes()[v])) in names else np.inf

    assert kkt_of(model, table, factor) <= 1.1e-8


def test_a_transform_is_a_change_of_the_columns(table):
    model = Model(lam=0.1, transforms="nonparanormal", tol=1e-8).fit(table)
    assert model.converged_
    moved = Model(lam=0.1, transforms="nonparanormal", tol=1e-8).fit(
        table.assign(weight=np.exp(table["weight"] / 10))
    )
    assert model.objective_ == pytest.approx(moved.objective_, abs=1e-8)


def test_a_level_without_rows_has_no_part(table):
    frame = table.assign(group=table["group"].cat.add_categories("d"))
    with pytest.warns(mg.TableWarning, match="'d'"):
        model = Model(lam=0.1, tol=1e-8).fit(frame)
    plain = Model(lam=0.1, tol=1e-8).fit(table)
    assert model.objective_ == pytest.approx(plain.objective_, abs=1e-10)
    assert np.isneginf(model.params_.cat_bias).sum() == 1


# -- the choice of lam -----------------------------------------------------------------------------


def test_an_edge_is_priced_once(table, chosen):
    scores, n = chosen.fitted_.scores, len(table)
    df = scores["degrees_of_freedom"]
    edges = chosen.path_.n_edges
    price = df * np.log(n) + 4 * 0.5 * edges * np.log(5)
    np.testing.assert_allclose(scores["ebic"], 2 * n * scores["refit_loss"] + price)
    # The loss at a refit is that of a model fitted to that graph alone, but for the ridge on pairs
    # of categories, which can cost no more than its value (see tests/unit/path/test_refits.py).
    k = int(np.flatnonzero(edges >= 3)[0])
    kept = {frozenset(pair) for pair in chosen.path_.edges(k)}
    pairs = [frozenset(pair) for pair in itertools.combinations(nodes(), 2)]
    alone = Model(
        lam=0.0, forbid=[tuple(pair) for pair in pairs if pair not in kept], tol=1e-7
    ).fit(table)
    assert alone.converged_
    free = {name: len(levels) - 1 for name, levels in LEVELS.items()}
    ridge = sum(
        edge.norm**2 / (free[edge.source] * free[edge.target]) / (2 * n)
        for edge in alone.edges_
        if edge.kind == "categorical-categorical"
    )
    assert -1e-5 <= scores["refit_loss"][k] - alone.objective_ <= ridge + 1e-5
    # Where there is no such pair, nothing is added.
    k = int(np.flatnonzero(edges >= 1)[0])
    ((a, b),) = chosen.path_.edges(k)
    others = [tuple(pair) for pair in pairs if pair != {a, b}]
    alone = Model(lam=0.0, forbid=others, tol=1e-7).fit(table)
    assert alone.edges_[0].kind == "continuous-continuous"
    assert scores["refit_loss"][k] == pytest.approx(alone.objective_, abs=1e-5)


@pytest.mark.parametrize("select", ["bic", "aic", "stars", "stability"])
def test_other_criteria_choose(table, select):
    criterion = {"stability": mg.StabilitySelection(n_subsamples=10)}.get(select, select)
    model = Model(select=criterion, random_state=0, n_lams=10, lam_min_ratio=0.1).fit(table)
    assert model.converged_


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_rows_held_out_are_scored_by_their_likelihood(table):
    for name in ("smoker", "colour"):
        table = table.assign(**{name: pd.Categorical(table[name])})
    rows, lams = np.arange(0, 150, 5), [0.3, 0.1, 0.03]
    rest = np.setdiff1d(np.arange(150), rows)
    model = Model(select=mg.Holdout(rows=rows), lams=lams, tol=1e-8).fit(table)
    expected = [
        -Model(lam=lam, tol=1e-8).fit(table.iloc[rest]).log_likelihood(table.iloc[rows])
        for lam in lams
    ]
    np.testing.assert_allclose(model.fitted_.scores["holdout"], expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_a_level_that_only_rows_held_out_have_counts_half_a_row(table):
    frame = table.assign(group=table["group"].cat.add_categories("d"))
    frame.loc[frame.index[0], "group"] = "d"
    frame = frame.assign(group=frame["group"].cat.remove_unused_categories())
    model = Model(select=mg.Holdout(rows=[0, 1]), lams=[0.2, 0.1], tol=1e-8).fit(frame)
    alone = Model(lam=0.1, tol=1e-8).fit(
        frame.iloc[2:].assign(group=frame["group"].iloc[2:].cat.remove_unused_categories())
    )
    n = len(frame) - 2
    known = alone.log_density(
        frame.iloc[[1]].assign(group=frame["group"].iloc[[1]].cat.set_categories(["a", "b", "c"]))
    )[0] + np.log(n / (n + 0.5))
    per_level = [
        alone.log_density(frame.iloc[[0]].assign(group=pd.Categorical([level], ["a", "b", "c"])))[0]
        for level in "abc"
    ]
    unknown = np.logaddexp.reduce(per_level) + np.log(0.5 / (n + 0.5))
    assert model.fitted_.scores["holdout"][1] == pytest.approx(-(known + unknown) / 2, abs=1e-6)


# -- limits ----------------------------------------------------------------------------------------


def one_cause(n_columns=40):
    rng = np.random.default_rng(0)
    cause = rng.normal(size=400)
    flags = (cause[:, None] + rng.normal(size=(400, n_columns)) > 0).astype(int)
    frame = pd.DataFrame(flags, columns=[f"q{j}" for j in range(n_columns)]).astype("category")
    return frame.assign(cause=cause)


def test_a_graph_that_is_too_dense_is_an_error_that_names_columns_and_remedies():
    with pytest.raises(mg.TooLargeError, match=r"'q\d+', 'q\d+'.*loss='likelihood-mc'.*forbid"):
        Model(lam=0.1).fit(one_cause())


def test_a_path_ends_where_the_graph_becomes_too_dense():
    with pytest.warns(RuntimeWarning, match=r"path ends at lam = .* 1 of 2 values solved: .*'q1'"):
        path = mg.fit_path(one_cause(), lams=[1.0, 0.1], loss="likelihood")
    assert len(path) == 1


def test_sampled_likelihoods_with_covariates_are_still_to_come(table):
    with pytest.raises(mg.NotYetError, match="not available yet with loss='likelihood-mc'.*exact"):
        Model(loss="likelihood-mc", covariates=["group"]).fit(table)


# -- keeping ---------------------------------------------------------------------------------------


def test_a_saved_model_knows_its_loss(chosen, tmp_path):
    chosen.save(tmp_path / "model.mgm")
    loaded = mg.load(tmp_path / "model.mgm")
    assert loaded.loss == "likelihood"
    assert loaded.path_.loss == "likelihood"
    assert "loss         likelihood\n" in str(loaded.summary())
    assert str(loaded.summary()) == str(chosen.summary())
    assert "loss='likelihood'" in repr(loaded)
    assert "likelihood" in loaded._repr_html_()


def test_the_command_line_takes_a_loss(table, tmp_path):
    table.to_csv(tmp_path / "people.csv", index=False)
    words = ("fit", "people.csv", "-o", "m.mgm", "--loss", "likelihood", "--lam", "0.1")
    done = mixedgm(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert mg.load(tmp_path / "m.mgm").loss == "likelihood"


def test_the_bootstrap_fits_likelihoods(table):
    model = Model(lam=0.1).fit(table)
    found = mg.bootstrap(model, table, n_boot=5, random_state=0, n_jobs=1)
    assert found.n_failed == 0


# -- sampled likelihoods ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sampled(table):
    return Model(loss="likelihood-mc", lam=0.1, random_state=0).fit(table)


@pytest.mark.statistical
def test_a_sampled_estimate_is_the_exact_one_within_its_error(table, sampled):
    """Five standard errors, with a fixed seed; about one seed in 10,000 would fail."""
    exact = Model(lam=0.1).fit(table)
    report = sampled.fitted_.report
    assert 0.0 < report.kkt_error <= 0.005
    assert kkt_of(sampled, table) <= 5 * 0.005
    assert sampled.objective_ == pytest.approx(exact.objective_, abs=5 * report.objective_error)
    assert_same_params(sampled.params_, exact.params_, atol=0.1)
    assert sampled.converged_
    assert "within the Monte Carlo error" in report.message
    text = str(sampled.summary())
    assert "loss         likelihood-mc" in text
    assert "standard error" in text


def test_equal_random_states_give_equal_sampled_estimates(table, sampled):
    again = Model(loss="likelihood-mc", lam=0.1, random_state=0).fit(table)
    assert_same_params(again.params_, sampled.params_, atol=0.0)
    other = Model(loss="likelihood-mc", lam=0.1, random_state=1).fit(table)
    assert not np.array_equal(other.params_.category_shift, sampled.params_.category_shift)


def test_a_saved_sampled_model_knows_its_errors(sampled, tmp_path):
    sampled.save(tmp_path / "model.mgm")
    loaded = mg.load(tmp_path / "model.mgm")
    assert loaded.fitted_.report == sampled.fitted_.report
    assert loaded.path_.points[0].kkt_error == sampled.path_.points[0].kkt_error > 0.0
    assert loaded.path_.loss == "likelihood-mc"


def test_graphs_of_sampled_likelihoods_are_scored_by_the_pseudolikelihood(table):
    solver = mg.MonteCarlo(accuracy=0.02)
    options = {"select": "ebic", "n_lams": 8, "lam_min_ratio": 0.1, "random_state": 0}
    model = Model(loss="likelihood-mc", solver=solver, **options)
    model.fit(table)
    assert any("of the pseudolikelihood" in note for note in model.fitted_.report.notes)
    scores, n = model.fitted_.scores, len(table)
    price = scores["degrees_of_freedom"] * np.log(n) + 2 * model.path_.n_edges * np.log(5)
    np.testing.assert_allclose(scores["ebic"], 2 * n * scores["refit_loss"] + 2 * price)
    assert model.path_.converged.all()


def test_a_sampled_refit_is_near_the_exact_one(table):
    found = Model(loss="likelihood-mc", lam=0.15, refit=True, random_state=0).fit(table)
    exact = Model(lam=0.15, refit=True).fit(table)
    assert found.converged_
    assert found.objective_ == pytest.approx(exact.objective_, abs=0.02)


def test_the_bootstrap_fits_sampled_likelihoods(table):
    solver = mg.MonteCarlo(accuracy=0.05)
    model = Model(loss="likelihood-mc", solver=solver, lam=0.2, random_state=0).fit(table)
    found = mg.bootstrap(model, table, n_boot=3, random_state=0, n_jobs=1)
    assert found.n_failed == 0


def test_solvers_belong_to_their_losses(table):
    with pytest.raises(mg.ParameterError, match=r"'auto' or a MonteCarlo\(\.\.\.\) with loss="):
        Model(loss="likelihood-mc", solver="proximal-newton").fit(table)
    with pytest.raises(mg.ParameterError, match="other than MonteCarlo with loss='likelihood'"):
        Model(solver=mg.MonteCarlo()).fit(table)


# -- many rows -------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_both_losses_estimate_the_same_parameters_when_rows_are_many():
    """Refits of the true graph differ less and less; five times the rate would be a failure."""
    graph = [("a", "b"), ("a", "k"), ("b", "m"), ("k", "m"), ("c", "m")]
    types = {"a": "continuous", "b": "continuous", "c": "continuous", "k": 2, "m": 3}
    truth = mg.random_model(graph, types=types, random_state=4)
    distance = []
    for n in (1_000, 100_000):
        rows = truth.sample(n, random_state=1)
        fits = [
            mg.MixedGraphicalModel(lam=0.0, loss=loss).fit(rows).params_
            for loss in ("pseudolikelihood", "likelihood")
        ]
        both = [params.coef for params in fits]
        distance.append(
            (np.abs(both[0] - both[1]).max(), np.abs(both[1] - truth.params_.coef).max())
        )
    (apart_few, off_few), (apart_many, off_many) = distance
    assert apart_many < 0.3 * apart_few
    assert apart_many < 0.05
    assert off_many < 0.5 * off_few
