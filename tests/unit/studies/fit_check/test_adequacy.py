"""Does the model fit: statistics against SciPy's, a missing edge is found, a right model passes."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats.contingency import association

import mixedgm as mg
from mixedgm.studies.fit_check.adequacy import simulate
from mixedgm.studies.fit_check.discrepancy import pair_orders, statistics
from mixedgm.table.encode import apply
from tests.support.indefinite import with_precision
from tests.support.odd_table import LETTERS, odd_table
from tests.support.people import CONTINUOUS, LEVELS, as_library, people

N_SIM = 40


@pytest.fixture(scope="module")
def frame():
    return people(150)


@pytest.fixture(scope="module")
def model(frame):
    return mg.MixedGraphicalModel(lam=0.1).fit(people(400, seed=3))


@pytest.fixture(scope="module")
def checked(model, frame):
    return model.check_fit(frame, refit=False, n_sim=N_SIM, random_state=0)


@pytest.fixture(scope="module")
def ladder():
    return mg.datasets.make_ladder(600, 3, n_levels=[2, 3, 2], random_state=0)


def test_strengths_of_pairs_are_those_of_textbooks(checked, frame):
    pairs = {(pair.source, pair.target): pair for pair in checked.pair_checks}
    assert len(pairs) == 10
    found = pairs["height", "weight"].observed
    assert found == pytest.approx(np.corrcoef(frame["height"], frame["weight"])[0, 1])
    for name in LEVELS:
        groups = frame.groupby(name, observed=True)["height"]
        between = (groups.size() * (groups.mean() - frame["height"].mean()) ** 2).sum()
        ratio = np.sqrt(between / ((frame["height"] - frame["height"].mean()) ** 2).sum())
        assert pairs["height", name].observed == pytest.approx(ratio)
    for a, b in combinations(LEVELS, 2):
        table = frame.groupby([a, b], observed=True).size().unstack(fill_value=0).to_numpy()
        assert pairs[a, b].observed == pytest.approx(association(table, method="cramer"))


def test_residuals_are_those_of_the_predictions(checked, model, frame):
    nodes = checked.nodes().set_index("column")
    for name in CONTINUOUS:
        at = model.schema_.node_index(name)
        residual = frame[name] - model.predict(frame, name)
        residual = (residual * np.sqrt(model.params_.precision[at, at])).to_numpy()
        own = nodes.loc[name]
        assert own["residual_mean"] == pytest.approx(residual.mean())
        assert own["residual_sd"] == pytest.approx(residual.std())
        assert own["skewness"] == pytest.approx(stats.skew(residual))
        assert own["kurtosis"] == pytest.approx(stats.kurtosis(residual))
        assert own["largest"] == pytest.approx(np.abs(residual).max())
        assert own["n_outliers"] == np.count_nonzero(np.abs(residual) > 4)
        assert np.isnan(own["dispersion"])


def test_counts_and_dispersion_are_those_of_the_probabilities(checked, model, frame):
    levels = checked.levels().set_index(["column", "level"])
    nodes = checked.nodes().set_index("column")
    for name, names in LEVELS.items():
        chance = model.predict_proba(frame, name)
        pearson = np.zeros(len(frame))
        for level in map(str, names):
            p, hit = chance[level].to_numpy(), (frame[name].astype(str) == level).to_numpy()
            own = levels.loc[(name, level)]
            assert own["observed"] == pytest.approx(hit.sum())
            assert own["expected"] == pytest.approx(p.sum())
            z = (hit.sum() - p.sum()) / np.sqrt((p * (1 - p)).sum())
            assert own["z"] == pytest.approx(z)
            pearson += (hit - p) ** 2 / p
        assert nodes.loc[name, "dispersion"] == pytest.approx(pearson.mean() / (len(names) - 1))


def test_a_weight_of_two_is_the_row_twice(model, frame):
    weights = np.where(np.arange(len(frame)) < 50, 2.0, 1.0)
    twice = pd.concat([frame, frame.head(50)])
    one = statistics(model.fitted_, apply(frame, model.schema_, sample_weight=weights))
    two = statistics(model.fitted_, apply(twice, model.schema_))
    for name in vars(one):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-10, err_msg=name)
    assert model.check_fit(frame, sample_weight=weights, n_sim=20).n_rows == len(twice)


def test_rows_in_blocks_are_rows_at_once(model, frame):
    """A million cells or so are one block; a row's weight is the number of times it is there."""
    times = 2**18 // len(frame)
    many = apply(pd.concat([frame] * times), model.schema_)
    parts = statistics(model.fitted_, many)
    weighted = apply(frame, model.schema_, sample_weight=np.full(len(frame), float(times)))
    whole = statistics(model.fitted_, weighted)
    for name in vars(whole):
        np.testing.assert_allclose(getattr(whole, name), getattr(parts, name), atol=1e-10)


@pytest.mark.statistical
@pytest.mark.parametrize("pair", [("x1", "x2"), ("x2", "y2"), ("y2", "y3")])
def test_a_missing_edge_is_flagged_where_it_is_missing(ladder, pair):
    """The edges shift statistics by six standard deviations or more; the seeds are fixed."""
    table, truth = ladder
    edges = [(edge.source, edge.target) for edge in truth.edges_]
    others = [p for p in combinations(truth.schema_.names, 2) if p not in edges]
    wrong = mg.MixedGraphicalModel(lam=1e-4, forbid=[*others, pair]).fit(table)
    found = wrong.check_fit(table, n_sim=N_SIM, random_state=0)
    assert found.pair_checks[0][:2] == pair
    assert found.pair_checks[0].flagged
    assert not found.pair_checks[0].edge
    assert pair in found.flagged
    right = mg.MixedGraphicalModel(lam=1e-4, forbid=others).fit(table)
    assert right.check_fit(table, n_sim=N_SIM, random_state=0).flagged == ()


@pytest.mark.statistical
def test_a_true_model_is_flagged_as_seldom_as_it_says(ladder):
    """Twenty tables of the truth at alpha = 0.05: more than five alarms have a chance of 3e-4.

    A rule without adjustment for the 21 columns and pairs would give an alarm in two tables of
    three.
    """
    _, truth = ladder
    options = {"refit": False, "n_sim": 30, "n_jobs": 1}
    alarms = [
        truth.check_fit(truth.sample(300, random_state=seed), random_state=seed, **options).flagged
        for seed in range(20)
    ]
    assert sum(map(bool, alarms)) <= 5


@pytest.mark.statistical
def test_tails_that_are_not_normal_are_seen_at_their_column(ladder):
    table, truth = ladder
    heavy = table.assign(x1=table["x1"] * np.where(np.arange(len(table)) % 20 == 0, 5.0, 1.0))
    found = truth.check_fit(heavy, n_sim=N_SIM, random_state=0)
    nodes = {node.column: node for node in found.node_checks}
    assert nodes["x1"].flagged
    assert nodes["x1"].where.split()[0] in ("kurtosis", "sd", "residual")
    assert nodes["x1"].n_outliers > 0
    assert ("x1",) in found.flagged
    assert not nodes["x3"].flagged


def test_equal_seeds_give_equal_results_whatever_n_jobs(model, frame):
    one = model.check_fit(frame, n_sim=20, random_state=7)
    two = model.check_fit(frame, n_sim=20, random_state=7, n_jobs=2)
    other = model.check_fit(frame, n_sim=20, random_state=8)
    assert one.nodes().equals(two.nodes())
    assert one.pairs().equals(two.pairs())
    assert not one.pairs().equals(other.pairs())


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_are_of_the_library_of_the_training_table(library):
    table = as_library(people(80), library)
    found = mg.MixedGraphicalModel(lam=0.3).fit(table).check_fit(table, n_sim=20, random_state=0)
    for made in (found.nodes(), found.pairs(), found.levels()):
        assert type(made) is type(table)


def test_the_text_says_what_is_flagged(ladder):
    table, truth = ladder
    swapped = table.assign(x1=table["x3"], x3=table["x1"])
    text = repr(truth.check_fit(swapped, refit=False, n_sim=N_SIM, random_state=0))
    assert text.startswith("Model check: ")
    assert f"{N_SIM} simulated tables of 600 rows" in " ".join(text.split())
    assert "x1 - y1" in text
    assert "What the flags mean" in text
    assert max(map(len, text.splitlines())) <= 80
    quiet = repr(truth.check_fit(table, n_sim=N_SIM, random_state=0))
    assert "0 of 21 columns and pairs flagged" in quiet
    assert "Pairs" not in quiet
    assert "flags" not in quiet


def paragraph_of(text, name):
    """What the text says about a flagged column or pair."""
    said = text.partition("What the flags mean\n")[2]
    paragraphs = re.split(r"\n  (?=\S)", f"\n{said}")
    (own,) = [each for each in paragraphs if re.search(rf"(^|, ){name}(:|,| and)", each)]
    return " ".join(own.split())


def test_the_text_explains_a_missing_edge_and_one_that_is_too_weak():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    table = pd.DataFrame({"x": x, "y": x + rng.normal(size=1000), "z": rng.normal(size=1000)})
    without = mg.MixedGraphicalModel(lam=0.05, forbid=[("x", "y")]).fit(table)
    said = repr(without.check_fit(table, n_sim=20, random_state=0, n_jobs=1))
    paragraph = paragraph_of(said, "x - y")
    assert 'the model has no edge for it. To do: fit with require=[("x", "y")]' in paragraph
    shrunken = mg.MixedGraphicalModel(lam=0.5).fit(table)
    options = {"n_sim": 40, "random_state": 0, "n_jobs": 1}
    assert shrunken.check_fit(table, **options).flagged == ()
    said = repr(shrunken.check_fit(table, refit=False, **options))
    assert "the rows show a stronger relation. To do:" in paragraph_of(said, "x - y")
    assert "fit with refit=True" in paragraph_of(said, "x - y")


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda rng: rng.exponential(size=1000), "lean to one side"),
        (lambda rng: rng.standard_t(3, size=1000), "farther out than in a normal"),
        (lambda rng: rng.uniform(size=1000), "closer together than in a normal"),
    ],
)
def test_the_text_explains_how_a_column_is_not_normal(draw, words):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"odd": draw(rng), "z": rng.normal(size=1000)})
    model = mg.MixedGraphicalModel(lam=0.05, transforms=None).fit(table)
    said = repr(model.check_fit(table, n_sim=100, random_state=0, n_jobs=1))
    assert words in paragraph_of(said, "odd")


def test_columns_of_one_kind_only():
    x = people(200)[list(CONTINUOUS)]
    found = mg.MixedGraphicalModel(lam=0.1).fit(x).check_fit(x, n_sim=20, random_state=0)
    assert len(found.pair_checks) == 1
    assert found.level_checks == ()
    y = people(200)[list(LEVELS)]
    found = mg.MixedGraphicalModel(lam=0.1).fit(y).check_fit(y, n_sim=20, random_state=0)
    assert len(found.pair_checks) == 3
    assert len(found.level_checks) == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_sim": 5}, "n_sim must be an integer from 20 to"),
        ({"n_sim": 50.0}, "n_sim must be"),
        ({"alpha": 0}, "alpha must be"),
        ({"alpha": 1.5}, "alpha must be"),
        ({"random_state": "a"}, "random_state must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"refit": "auto"}, "refit must be True or False"),
    ],
)
def test_bad_arguments(model, frame, options, message):
    with pytest.raises(mg.ParameterError, match=message):
        model.check_fit(frame, **options)


def test_rows_that_do_not_fit_the_schema_are_refused(model, frame):
    with pytest.raises(mg.TableError, match="'weight'"):
        model.check_fit(frame.drop(columns="weight"))


def test_simulated_tables_of_the_check_have_the_margins():
    table = odd_table()
    fitted = mg.MixedGraphicalModel(lam=0.02).fit(table).fitted_
    orders = pair_orders(fitted.schema)
    checked = simulate(fitted, None, len(table), 60, orders, random_state=0)
    observed = np.concatenate(
        [table[name].value_counts(normalize=True).sort_index() for name in LETTERS]
    )
    # 36,000 rows: standard error below 0.003.
    np.testing.assert_allclose(checked.shares.mean(axis=0), observed, atol=0.014)


def test_without_a_joint_distribution_the_columns_are_named(frame):
    model = mg.MixedGraphicalModel(lam=0.2).fit(frame)
    precision = np.array([[1.0, 2.0], [2.0, 1.0]])
    model = with_precision(model, precision)
    with pytest.raises(mg.DistributionError, match="'height', 'weight'"):
        model.check_fit(frame, refit=False)


def test_badly_mixed_chains_are_reported_once():
    """Thirty columns that nearly always agree: too large for tables, and no chain ever turns."""
    block = np.kron(np.ones((30, 30)) - np.eye(30), [[0.5, -0.5], [-0.5, 0.5]])
    model = mg.from_params({f"y{k}": ["no", "yes"] for k in range(30)}, {"cat_interaction": block})
    agreeing = np.repeat([["no"], ["yes"]], 50, axis=0).repeat(30, axis=1)
    frame = pd.DataFrame(agreeing, columns=model.schema_.names)
    with pytest.warns(mg.SamplingWarning, match="in 2 of 2 batches") as caught:
        model.check_fit(frame, refit=False, n_sim=30, random_state=0, n_jobs=1)
    assert len(caught) == 1
