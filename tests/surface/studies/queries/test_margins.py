"""The joint distribution of a fitted model has the table's margins, and says where pairs differ."""

import io
import json
import pickle
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.support.command_line import mixedgm
from tests.support.indefinite import with_precision
from tests.support.odd_table import LETTERS, odd_table
from tests.unit.joint import brute


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return odd_table()


@pytest.fixture(scope="module")
def model(table) -> mg.MixedGraphicalModel:
    return mg.MixedGraphicalModel(lam=0.02).fit(table)


def shares(params) -> np.ndarray:
    states = brute.enumerate_states(params)
    found = np.zeros(sum(params.n_levels))
    for codes, prob in zip(states.codes, states.prob, strict=True):
        found[params.level_start[:-1] + codes] += prob
    return found


def test_margins_of_a_table_that_the_model_fits_badly(model, table):
    table_shares = np.concatenate(
        [table[name].value_counts(normalize=True).sort_index() for name in LETTERS]
    )
    # What the fit itself says is far off: without node terms of its own this is what is asked.
    assert np.abs(shares(model.params_.joint) - table_shares).max() > 0.4
    np.testing.assert_allclose(shares(model.fitted_.joint_density), table_shares, atol=1e-8)
    for at, name in enumerate(LETTERS):
        found = model.marginal(name).frame().set_index(name)["probability"]
        np.testing.assert_allclose(found[["no", "yes"]], table_shares[2 * at : 2 * at + 2])
    assert model.mean()["x"] == pytest.approx(table["x"].mean(), abs=1e-8)
    spread = model.marginal("x").frame()["x_sd"][0]
    assert spread == pytest.approx(table["x"].std(ddof=0), abs=1e-7)


def test_the_fit_itself_stays_as_it_was(table):
    model = mg.MixedGraphicalModel(lam=0.02).fit(table)
    before = pickle.loads(pickle.dumps(model))
    assert "joint_terms" not in vars(model.fitted_)
    model.marginal("a")
    for name in ("precision", "cont_bias", "category_shift", "cat_interaction", "cat_bias"):
        assert np.array_equal(getattr(model.params_, name), getattr(before.params_, name))
    assert model.kkt_ == before.kkt_
    assert model.edges().equals(before.edges())
    assert model.predict_proba(table, "a").equals(before.predict_proba(table, "a"))
    joint, own = model.fitted_.joint_params, model.params_
    assert np.array_equal(joint.coef, own.coef)


def test_rows_and_densities_are_those_of_the_same_distribution(model, table):
    drawn = model.sample(40_000, random_state=0)
    for name in LETTERS:  # standard error at most 0.0025
        share = (drawn[name] == "yes").mean()
        assert abs(share - (table[name] == "yes").mean()) < 0.0125
    states = brute.enumerate_states(model.fitted_.joint_density)
    assert model.log_partition() == pytest.approx(states.log_z, abs=1e-8)
    row = table.head(1)
    codes = tuple(int(row[name].iloc[0] == "yes") for name in LETTERS)
    x = row["x"].to_numpy()
    expected = brute.exponent(model.fitted_.joint_density, x, codes) - states.log_z
    assert model.log_density(row)[0] == pytest.approx(expected, abs=1e-8)
    # More likely rows than by the node terms of the fit: that is what they maximise.
    assert model.log_likelihood(table) > mg.from_params(
        model.schema_, model.params_
    ).log_likelihood(table)
    density = model.marginal("a").density({"a": "yes"})
    assert density == pytest.approx((table["a"] == "yes").mean(), abs=1e-8)


def test_conditions_are_on_the_same_distribution(model):
    states = brute.enumerate_states(model.fitted_.joint_density)
    of_b = states.prob[states.codes[:, 1] == 1]
    both = states.prob[(states.codes[:, 1] == 1) & (states.codes[:, 0] == 1)]
    found = model.conditional("a", {"b": "yes"}).frame().set_index("a")["probability"]["yes"]
    assert found == pytest.approx(both.sum() / of_b.sum(), abs=1e-8)
    rest = model.condition({"b": "yes"})
    assert rest.fitted_.margins is None
    again = rest.marginal("a").frame().set_index("a")["probability"]["yes"]
    assert again == pytest.approx(found, abs=1e-12)


def test_weights_count_as_rows(table):
    weights = np.random.default_rng(1).integers(0, 4, len(table))
    weights[:40] = 1
    weighted = mg.MixedGraphicalModel(lam=0.05).fit(table, sample_weight=weights)
    found = weighted.marginal("c").frame().set_index("c")["probability"]["yes"]
    assert found == pytest.approx(np.average(table["c"] == "yes", weights=weights), abs=1e-8)


def test_the_likelihood_has_the_margins_already(table):
    model = mg.MixedGraphicalModel(lam=0.05, loss="likelihood", tol=1e-8).fit(table)
    own, joint = model.params_, model.fitted_.joint_params
    np.testing.assert_allclose(joint.cat_bias, own.cat_bias, atol=1e-5)
    np.testing.assert_allclose(joint.precision, own.precision, rtol=1e-5)
    np.testing.assert_allclose(joint.cont_bias, own.cont_bias, rtol=1e-5)


def test_a_level_without_rows_and_a_transform(table):
    declared = pd.CategoricalDtype(["maybe", "no", "yes"])
    frame = table.assign(a=table["a"].astype(declared), x=np.exp(table["x"] / 10))
    model = mg.MixedGraphicalModel(lam=0.05, transforms={"x": "nonparanormal"})
    with pytest.warns(mg.TableWarning, match="level without rows"):
        model.fit(frame)
    found = model.marginal("a").frame().set_index("a")["probability"]
    assert found["maybe"] == 0.0
    assert found["yes"] == pytest.approx((frame["a"] == "yes").mean(), abs=1e-8)
    margins = model.fitted_.margins
    assert margins.share[0] == 0.0
    assert model.fitted_.joint_terms.error < 1e-8


# -- computed once, kept with the model ------------------------------------------------------------


def kept(file):
    """Whether a model file has the node terms."""
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("model.json"))["joint"] is not None


def test_a_file_brings_them_along(table, tmp_path):
    fresh = mg.MixedGraphicalModel(lam=0.02).fit(table)
    fresh.save(tmp_path / "before.mgm")
    answer = fresh.marginal(["a", "x"]).frame()
    fresh.save(tmp_path / "after.mgm")
    assert not kept(tmp_path / "before.mgm")
    assert kept(tmp_path / "after.mgm")
    known = mg.load(tmp_path / "after.mgm")
    assert known.marginal(["a", "x"]).frame().equals(answer)
    assert known.joint_discrepancy().frame().equals(fresh.joint_discrepancy().frame())
    known.save(tmp_path / "again.mgm")
    assert (tmp_path / "again.mgm").read_bytes() == (tmp_path / "after.mgm").read_bytes()
    unknown = mg.load(tmp_path / "before.mgm")
    assert unknown.marginal(["a", "x"]).frame().equals(answer)


@pytest.mark.parametrize(
    ("part", "array"),
    [("table_mean", [np.nan] * 11), ("table_variance", [-1.0]), ("joint_diagonal", [0.0])],
)
def test_impossible_margins_in_a_file_are_refused(model, tmp_path, part, array):
    model.marginal("a")
    model.save(tmp_path / "good.mgm")
    with (
        zipfile.ZipFile(tmp_path / "good.mgm") as good,
        zipfile.ZipFile(tmp_path / "bad.mgm", "w") as bad,
    ):
        for name in good.namelist():
            content = good.read(name)
            if name == f"{part}.npy":
                buffer = io.BytesIO()
                np.save(buffer, np.array(array))
                content = buffer.getvalue()
            bad.writestr(name, content)
    with pytest.raises(mg.ModelFileError, match="impossible"):
        mg.load(tmp_path / "bad.mgm")


def test_many_questions_compute_them_once(table):
    model = mg.MixedGraphicalModel(lam=0.02).fit(table)
    terms = model.fitted_.joint_terms
    gappy = table.mask(np.random.default_rng(0).random(table.shape) < 0.2)
    model.impute(gappy)
    model.impute(gappy, 3, random_state=0)
    model.check_fit(table, refit=False, n_sim=50, random_state=0)
    model.entropy()
    model.conditional("a", {"b": "yes"})
    model.summary()
    assert model.fitted_.joint_terms is terms
    copy = pickle.loads(pickle.dumps(model))
    assert "joint_terms" in vars(copy.fitted_)
    assert copy.mean()["x"] == model.mean()["x"]


def test_sampled_margins_are_told_and_kept(tmp_path):
    """With 26 columns that have nearly all edges, tables would be too large."""
    rng = np.random.default_rng(0)
    ticked = 0.3 * rng.normal(size=(300, 1)) + rng.normal(size=(300, 26)) > 0.0
    table = pd.DataFrame(np.where(ticked, "yes", "no"), columns=list("abcdefghijklmnopqrstuvwxyz"))
    model = mg.MixedGraphicalModel(lam=0.003).fit(table)
    answer = model.marginal("a", random_state=0)
    terms = model.fitted_.joint_terms
    assert terms.sampled
    assert 0.0 < terms.error < 0.05
    assert "the table's margins were sampled: off by up to 0.0" in " ".join(repr(answer).split())
    assert "sampled" in repr(model.joint_discrepancy())
    found = answer.frame().set_index("a").loc["yes"]
    off = abs(found["probability"] - (table["a"] == "yes").mean())
    assert off < terms.error + 4.0 * found["probability_error"]
    model.save(tmp_path / "model.mgm")
    loaded = mg.load(tmp_path / "model.mgm")
    assert repr(loaded.marginal("a", random_state=0)) == repr(answer)
    assert loaded.fitted_.joint_terms.sampled


# -- models without a table's margins --------------------------------------------------------------


def test_given_models_covariates_and_separate_regressions_are_left_alone(model, table):
    given = mg.from_params(model.schema_, model.params_)
    assert given.fitted_.margins is None
    assert given.fitted_.joint_params is given.params_
    with pytest.raises(mg.ParameterError, match="its parameters were given"):
        given.joint_discrepancy()
    known = mg.MixedGraphicalModel(lam=0.05, covariates=["a"]).fit(table)
    assert known.fitted_.joint_params is known.params_
    with pytest.raises(mg.ParameterError, match="with covariates"):
        known.joint_discrepancy()
    apart = mg.MixedGraphicalModel(lam=0.05, loss="nodewise").fit(table)
    assert apart.fitted_.margins is None
    with pytest.raises(mg.DistributionError, match="separate regressions"):
        apart.joint_discrepancy()
    varying = mg.MixedGraphicalModel(lam=0.1, moderators=["a"]).fit(table)
    at = varying.at({"a": "yes"})
    assert at.fitted_.joint_params is at.params_


def indefinite() -> mg.MixedGraphicalModel:
    """A model whose precision is not positive definite, with the margins of a table."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(200, 3)), columns=["u", "v", "w"])
    model = mg.MixedGraphicalModel(lam=0.01).fit(rows)
    precision = np.array([[1.0, 0.7, 0.7], [0.7, 1.0, -0.7], [0.7, -0.7, 1.0]])
    return with_precision(model, precision)


def test_an_indefinite_precision_is_not_repaired_silently():
    model = indefinite()
    for ask in (
        lambda: model.marginal("u"),
        lambda: model.sample(3),
        lambda: model.joint_discrepancy(),
    ):
        with pytest.raises(mg.DistributionError, match="not positive definite"):
            ask()
    assert "note" not in str(model.summary())
    # What is left given enough others is a distribution, as ever.
    assert model.conditional("u", {"v": 0.0}).frame()["u_mean"].notna().all()
    repaired = model.repaired()
    sd = repaired.marginal("u").frame()["u_sd"][0]
    assert sd**2 == pytest.approx(model.fitted_.margins.variance[0], rel=1e-8)
    joint = repaired.fitted_.joint_density.precision
    off = ~np.eye(3, dtype=bool)
    assert np.array_equal(joint[off], repaired.params_.precision[off])


def test_a_repaired_model_forgets_the_node_terms_of_another():
    assert indefinite().repaired().fitted_.known_terms is None


# -- discrepancy -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shrunken() -> mg.MixedGraphicalModel:
    """Too large a penalty, so that pairs are far from the table's."""
    return mg.MixedGraphicalModel(lam=0.2).fit(odd_table(19))


def test_pairs_are_compared_with_the_table(shrunken):
    table = odd_table(19)
    rows = shrunken.joint_discrepancy().frame()
    assert len(rows) == 15
    states = brute.enumerate_states(shrunken.fitted_.joint_density)
    for row in rows.to_dict("records"):
        second = LETTERS.index(row["target"])
        code = ["no", "yes"].index(row["target_level"])
        at = states.codes[:, second] == code
        inside = table[row["target"]] == row["target_level"]
        if row["source"] == "x":
            sd = table["x"].std(ddof=0)
            expected = (table.loc[inside, "x"].mean() - table["x"].mean()) / sd
            mean = states.prob[at] @ states.mean[at, 0] / states.prob[at].sum()
            joint = (mean - table["x"].mean()) / sd
            error = 1.0 / np.sqrt(inside.sum())
        else:
            first = LETTERS.index(row["source"])
            at &= states.codes[:, first] == ["no", "yes"].index(row["source_level"])
            expected = (inside & (table[row["source"]] == row["source_level"])).mean()
            joint = states.prob[at].sum()
            cell = max(expected, joint)
            error = np.sqrt(cell * (1.0 - cell) / len(table))
        assert row["table"] == pytest.approx(expected, abs=1e-8)
        assert row["joint"] == pytest.approx(joint, abs=1e-8)
        assert row["standard_error"] == pytest.approx(error, rel=1e-6)
        limit = 0.2 if row["source"] == "x" else 0.05
        gap = abs(row["difference"])
        assert row["notable"] == (gap > limit and gap > 3.0 * error)


def test_correlations_are_compared_with_the_table():
    rng = np.random.default_rng(0)
    u = rng.normal(size=400)
    rows = pd.DataFrame({"u": u, "v": u + rng.normal(size=400), "w": rng.normal(size=400)})
    model = mg.MixedGraphicalModel(lam=0.5).fit(rows)
    worst = model.joint_discrepancy().largest
    assert (worst.source, worst.target, worst.notable) == ("u", "v", True)
    assert worst.table == pytest.approx(rows.corr().loc["u", "v"], abs=1e-8)
    covariance = np.linalg.inv(model.fitted_.joint_density.precision)
    assert worst.joint == pytest.approx(
        covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]), abs=1e-8
    )
    assert str(worst) == (
        f"the correlation of u and v is +{worst.joint:.2f} in the joint distribution, "
        f"+{worst.table:.2f} in the table"
    )
    assert str(worst) in " ".join(str(model.summary()).split())


def test_answers_repeat_what_is_notable(shrunken):
    gaps = [gap for gap in shrunken.joint_discrepancy().pairs if gap.notable]
    cell = next(gap for gap in gaps if gap.source != "x")
    sentence = (
        f"the joint distribution has {cell.source} = {cell.source_level} & {cell.target} = "
        f"{cell.target_level} in {100 * cell.joint:.1f} % of the rows, the table in "
        f"{100 * cell.table:.1f} %"
    )

    def told(answer) -> bool:
        html = " ".join(answer._repr_html_().replace("&amp;", "&").split())
        text = " ".join(repr(answer).split())
        assert (sentence in html) == (sentence in text)
        return sentence in text

    assert told(shrunken.marginal([cell.source, cell.target]))
    assert told(shrunken.conditional(cell.source, {cell.target: cell.target_level}))
    assert not told(shrunken.marginal(cell.source))
    assert "joint distribution" not in repr(shrunken.marginal(cell.source))
    assert "joint distribution" not in repr(shrunken.mean())
    given = [gap for gap in gaps if cell.target in (gap.source, gap.target)]
    assert str(given[0]) in " ".join(repr(shrunken.mean({cell.target: cell.target_level})).split())


def test_a_model_that_fits_says_nothing():
    rng = np.random.default_rng(3)
    truth = mg.random_model([("p", "q"), ("q", "r")], types={"r": 3}, random_state=0)
    rows = truth.sample(3000, random_state=rng)
    model = mg.MixedGraphicalModel(refit=True).fit(rows)
    found = model.joint_discrepancy()
    assert not any(gap.notable for gap in found.pairs)
    assert "0 of 3 pairs notable" in repr(found)
    assert "joint distribution" not in str(model.summary())


def test_many_columns_have_no_pairs():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(40, 201)), columns=[f"c{k}" for k in range(201)])
    model = mg.MixedGraphicalModel(lam=1.5).fit(rows)
    assert model.mean()["c7"] == pytest.approx(rows["c7"].mean(), abs=1e-9)
    with pytest.raises(mg.ParameterError, match="at most 200 design columns"):
        model.joint_discrepancy()


def test_the_command_line(shrunken, tmp_path):
    file = tmp_path / "model.mgm"
    shrunken.save(file)
    worst = shrunken.joint_discrepancy().largest
    done = mixedgm("query", file, "--discrepancy", cwd=tmp_path)
    assert done.returncode == 0
    assert "pairs furthest apart first" in done.stdout
    assert worst.source in done.stdout
    pair = f"{worst.source},{worst.target}"
    done = mixedgm("query", file, "--mutual-information", pair, cwd=tmp_path)
    assert str(worst) in " ".join(done.stderr.split())
    done = mixedgm("query", file, "--discrepancy", "--given", "a=yes", cwd=tmp_path)
    assert done.returncode == 2
    assert "leave out --given" in done.stderr


def test_no_warning_for_any_of_it(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in (16, 19, 23, 35, 59):
            model = mg.MixedGraphicalModel(lam=0.02).fit(odd_table(seed))
            assert model.fitted_.joint_terms.error < 1e-8
