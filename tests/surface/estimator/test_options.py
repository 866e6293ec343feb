"""One test per message about a parameter: what it must be, what was given, what works instead."""

import inspect
import re

import numpy as np
import pytest

import mixedgm as mg
from tests.support.people import people

TABLE = people(40)

BAD = [
    # parameter, value, the whole message
    ("lam", -1, "lam must be a float in [0, inf) or None. Got -1 instead."),
    ("lam", "a", "lam must be a float in [0, inf) or None. Got 'a' instead."),
    ("lam", np.nan, "lam must be a float in [0, inf) or None. Got nan instead."),
    ("lam", np.inf, "lam must be a float in [0, inf) or None. Got inf instead."),
    ("lam", True, "lam must be a float in [0, inf) or None. Got True instead."),
    ("lam", [0.1], "one lam per column is for regressions that share no parameters; give one"),
    ("lam", ["a"], "lam must be a float in [0, inf) or None. Got ['a'] instead."),
    ("lams", [], "lams must be a non-empty list of numbers in [0, inf). Got [] instead."),
    (
        "lams",
        [0.1, -0.2],
        "lams must be a non-empty list of numbers in [0, inf). Got [0.1, -0.2] instead.",
    ),
    (
        "lams",
        [0.1, np.inf],
        "lams must be a non-empty list of numbers in [0, inf). Got [0.1, inf] instead.",
    ),
    ("lams", ["a"], "lams must be a list of numbers in [0, inf). Got ['a'] instead."),
    ("n_lams", 0, "n_lams must be an integer of at least 1. Got 0 instead."),
    ("n_lams", 2.5, "n_lams must be an integer of at least 1. Got 2.5 instead."),
    ("n_lams", True, "n_lams must be an integer of at least 1. Got True instead."),
    ("lam_min_ratio", 2, "lam_min_ratio must be a number in (0, 1). Got 2 instead."),
    ("lam_min_ratio", 1.0, "lam_min_ratio must be a number in (0, 1). Got 1.0 instead."),
    ("lam_min_ratio", 0.0, "lam_min_ratio must be a number in (0, 1). Got 0.0 instead."),
    ("lam_min_ratio", "x", "lam_min_ratio must be a number in (0, 1). Got 'x' instead."),
    ("tol", 0, "tol must be a number in (0, inf). Got 0 instead."),
    ("tol", -1e-5, "tol must be a number in (0, inf). Got -1e-05 instead."),
    ("tol", np.nan, "tol must be a number in (0, inf). Got nan instead."),
    ("tol", None, "tol must be a number in (0, inf). Got None instead."),
    ("max_iter", 0, "max_iter must be an integer of at least 1. Got 0 instead."),
    ("max_iter", 1e3, "max_iter must be an integer of at least 1. Got 1000.0 instead."),
    ("n_jobs", 0, "n_jobs must be None, a positive integer, or -1 for all cores. Got 0 instead."),
    (
        "n_jobs",
        1.5,
        "n_jobs must be None, a positive integer, or -1 for all cores. Got 1.5 instead.",
    ),
    ("verbose", -1, "verbose must be 0 or a positive integer. Got -1 instead."),
    ("verbose", "loud", "verbose must be 0 or a positive integer. Got 'loud' instead."),
    ("refit", "yes", "refit must be 'auto', True or False. Got 'yes' instead."),
    ("refit", 1, "refit must be 'auto', True or False. Got 1 instead."),
    ("rule", "both", "rule must be 'and' or 'or'. Got 'both' instead."),
    (
        "penalty_weights",
        "x",
        "penalty_weights must be 'calibrated', 'uniform' or 'adaptive'. Got 'x' instead.",
    ),
    (
        "penalty_weights",
        None,
        "penalty_weights must be 'calibrated', 'uniform' or 'adaptive'. Got None instead.",
    ),
    ("missing", "x", "missing must be 'error', 'drop' or 'model'. Got 'x' instead."),
    (
        "select",
        "x",
        "select must be one of 'local-fdr', 'fdr', 'ebic', 'bic', 'aic', 'cv', 'holdout', 'stars', "
        "'stability' or a criterion such as "
        "mixedgm.EBIC(gamma=0.5). Got 'x' instead.",
    ),
    (
        "select",
        None,
        "select must be one of 'local-fdr', 'fdr', 'ebic', 'bic', 'aic', 'cv', 'holdout', 'stars', "
        "'stability' or a criterion such as "
        "mixedgm.EBIC(gamma=0.5). Got None instead.",
    ),
    (
        "loss",
        "hinge",
        "loss must be one of 'pseudolikelihood', 'likelihood', 'likelihood-mc', 'nodewise'. "
        "Got 'hinge' instead.",
    ),
    (
        "solver",
        "x",
        "solver must be one of 'auto', 'proximal-newton', 'proximal-gradient', a ProximalNewton "
        "or a ProximalGradient. Got 'x' instead.",
    ),
    (
        "penalty_factors",
        3,
        "penalty_factors must be a mapping from a pair of column names or an edge kind. "
        "Got 3 instead.",
    ),
    (
        "penalty_factors",
        {("height", "weight"): -1},
        "penalty_factors[('height', 'weight')] must be a number in [0, inf]. Got -1 instead.",
    ),
    (
        "penalty_factors",
        {"mixed": 2.0},
        "penalty_factors has the key 'mixed', which is neither a pair of column names nor an edge "
        "kind (continuous-continuous, continuous-hurdle, continuous-ordinal, continuous-count, "
        "continuous-categorical, hurdle-hurdle, hurdle-ordinal, hurdle-count, hurdle-categorical, "
        "ordinal-ordinal, ordinal-count, ordinal-categorical, count-count, count-categorical, "
        "categorical-categorical).",
    ),
    (
        "penalty_factors",
        {("height", "height"): 2.0},
        "a pair in penalty_factors must be two different column names. "
        "Got ('height', 'height') instead.",
    ),
    (
        "require",
        "height",
        'require must be a list of pairs such as [("age", "wage")]. Got \'height\' instead.',
    ),
    ("require", ["height"], "a pair in require must be two column names. Got 'height' instead."),
    ("penalize_covariates", "no", "penalize_covariates must be True or False. Got 'no' instead."),
    ("covariates", 5, "covariates must be a list of column names. Got 5 instead."),
    ("moderators", [["height"]], "moderators must be a list of different column names. Got"),
    ("forbid", 7, 'forbid must be a list of pairs such as [("age", "wage")]. Got 7 instead.'),
    ("forbid", [("height", "hight")], "there is no column 'hight'; did you mean 'height' or"),
]


def identify(value):
    return re.sub(r"\W+", "-", repr(value)) if not isinstance(value, str) else value[:24]


@pytest.mark.parametrize(("name", "value", "message"), BAD, ids=identify)
def test_a_bad_value_is_named_with_what_is_allowed(name, value, message):
    model = mg.MixedGraphicalModel(**{name: value})  # never in the constructor
    with pytest.raises(mg.ParameterError) as caught:
        model.fit(TABLE)
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, (mg.MixedGMError, ValueError))
    assert not hasattr(model, "fitted_")


@pytest.mark.parametrize(
    "name", ["n_lams", "lam_min_ratio", "tol", "max_iter", "penalty_weights", "solver"]
)
def test_fit_path_gives_the_same_messages(name):
    value, message = next((v, m) for n, v, m in BAD if n == name)
    with pytest.raises(mg.ParameterError) as caught:
        mg.fit_path(TABLE, **{name: value})
    assert str(caught.value) == message


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match="lamda"):
        mg.MixedGraphicalModel(lamda=0.1)
    with pytest.raises(TypeError, match="lamda"):
        mg.fit_path(TABLE, lamda=0.1)


def test_a_pair_that_is_required_and_forbidden_is_refused():
    model = mg.MixedGraphicalModel(
        require=[("height", "group")], forbid=[("group", "height"), ("weight", "group")]
    )
    with pytest.raises(mg.ParameterError, match=r"\('height', 'group'\) is in both require and"):
        model.fit(TABLE)


def test_lam_and_lams_together_are_refused():
    with pytest.raises(mg.ParameterError, match="lam and lams were both given"):
        mg.MixedGraphicalModel(lam=0.1, lams=[0.2, 0.1]).fit(TABLE)


MODERATORS = [
    ({"moderators": ["group", "group"]}, "moderators must be a list of different column names"),
    ({"moderators": 3}, "moderators must be a list of different column names. Got 3 instead"),
    ({"moderators": ["group"], "loss": "likelihood"}, "moderators need loss='pseudolikelihood'"),
    ({"moderators": ["group"], "loss": "likelihood-mc"}, "moderators need loss='pseudolikelihood'"),
    (
        {"moderators": [name for name in TABLE.columns if name != "weight"]},
        "'weight' is the only column that is modelled, so no edge can be moderated",
    ),
    (
        {"moderators": ["group"], "forbid": [("height", "group", "group")]},
        "a deviation in forbid must be two columns that are modelled and a moderator ('group')",
    ),
    (
        {"moderators": ["group"], "require": [("height", "weight", "weight")]},
        "a deviation in require must be two columns that are modelled and a moderator ('group')",
    ),
    (
        {"moderators": ["group"], "penalty_factors": {("height", "weight", "group"): -1}},
        "penalty_factors[('height', 'weight', 'group')] must be a number in [0, inf]",
    ),
    (
        {
            "moderators": ["group"],
            "penalty_factors": {("height", "weight", "group"): 2},
            "forbid": [("weight", "height", "group")],
        },
        "the deviation ('weight', 'height', 'group') is named twice, with the factors 2 and inf",
    ),
    (
        {"forbid": [("height", "weight", "group")]},
        "a pair in forbid must be two different column names",
    ),
]


@pytest.mark.parametrize(("options", "message"), MODERATORS)
def test_moderators_that_cannot_be(options, message):
    with pytest.raises(mg.ParameterError) as caught:
        mg.MixedGraphicalModel(**options).fit(TABLE)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["select", "solver", "penalty_weights"])
def test_a_bad_name_is_refused_even_where_lam_makes_it_idle(name):
    with pytest.raises(mg.ParameterError, match=f"{name} must be"):
        mg.MixedGraphicalModel(lam=0.1, **{name: "x"}).fit(TABLE)


TABLE_OPTIONS = [
    ("types", {"hight": "categorical"}, r"types names 'hight', which is not a column.*'height'"),
    (
        "types",
        {"height": "number"},
        r"types\['height'\] must be 'continuous', 'hurdle', 'ordinal', 'count' or 'categorical'",
    ),
    ("types", "count", "types must be a dictionary by column, a schema, a list of 5 kinds, or"),
    ("types", ["continuous"], "types must be .* a list of 5 kinds, or .* Got 1 entries instead"),
    (
        "transforms",
        "log",
        "transforms must be 'auto', 'nonparanormal', None, or a dictionary by column",
    ),
    (
        "transforms",
        {"height": "log"},
        r"transforms\['height'\] must be 'auto', 'nonparanormal' or None",
    ),
    ("transforms", {"hight": "nonparanormal"}, "transforms names 'hight', which is not a column"),
]


@pytest.mark.parametrize(("name", "value", "message"), TABLE_OPTIONS, ids=identify)
def test_options_about_columns_are_findings_of_the_table(name, value, message):
    with pytest.raises(mg.TableError, match=message):
        mg.MixedGraphicalModel(lam=0.1, **{name: value}).fit(TABLE)


def test_findings_about_options_and_data_come_together():
    bad = TABLE.assign(height=1.0, weight=np.inf)
    model = mg.MixedGraphicalModel(lam=0.1, types={"colur": "categorical"}, transforms="log")
    with pytest.raises(mg.TableError) as caught:
        model.fit(bad)
    text = str(caught.value)
    for part in ("height", "constant", "weight", "infinite", "colur", "transforms must be"):
        assert part in text
    assert len(caught.value.findings) >= 4


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], "sample_weight has 2 entries, but the table has 40 rows"),
        (np.zeros(40), "every sample_weight is zero"),
        (-np.ones(40), "sample_weight has 40 negative entries"),
        (np.ones((40, 1)), "sample_weight must be a 1-D array"),
        (np.full(40, np.nan), "sample_weight has 40 entries that are missing or infinite"),
        (["a"] * 40, "sample_weight holds values that are not numbers"),
    ],
)
def test_bad_weights_are_findings(weights, message):
    with pytest.raises(mg.TableError, match=message):
        mg.MixedGraphicalModel(lam=0.1).fit(TABLE, sample_weight=weights)


def test_missing_drop_says_how_many_rows():
    frame = TABLE.copy()
    frame.loc[[3, 5], "height"] = np.nan
    with pytest.raises(mg.TableError, match='height.*2 missing values.*missing="drop"'):
        mg.MixedGraphicalModel(lam=0.1).fit(frame)
    with pytest.warns(mg.TableWarning, match="2 rows dropped because of missing values"):
        model = mg.MixedGraphicalModel(lam=0.1, missing="drop").fit(frame)
    twin = mg.MixedGraphicalModel(lam=0.1).fit(frame.drop(index=[3, 5]))
    np.testing.assert_array_equal(model.params_.precision, twin.params_.precision)
    assert model.fitted_.report.n_rows == 38


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lam", 0),
        ("lam", np.float32(0.5)),
        ("lam", np.int64(1)),
        ("n_lams", np.int64(3)),
        ("lams", np.array([0.5, 0.2])),
        ("lams", (0.5,)),
        ("tol", 1),
        ("n_jobs", -1),
        ("n_jobs", np.int32(2)),
        ("refit", np.True_),
        ("verbose", 0),
        ("random_state", 7),
        ("solver", mg.ProximalNewton(hessian="limited-memory")),
        ("solver", "proximal-gradient"),
        ("select", mg.AIC()),
    ],
    ids=identify,
)
def test_good_values_are_taken(name, value):
    model = mg.MixedGraphicalModel(**{"n_lams": 3, "lam_min_ratio": 0.3, name: value}).fit(TABLE)
    assert model.converged_


def test_verbose_shows_progress_and_silence_is_the_default(capfd):
    mg.MixedGraphicalModel(n_lams=3, lam_min_ratio=0.3).fit(TABLE)
    assert capfd.readouterr() == ("", "")
    mg.MixedGraphicalModel(select="ebic", n_lams=3, lam_min_ratio=0.3, verbose=1).fit(TABLE)
    out, err = capfd.readouterr()
    assert out == ""
    assert "lam:" in err
    assert "refit:" in err


@pytest.mark.parametrize(
    "function",
    [mg.MixedGraphicalModel, mg.MixedGraphicalModel.check_fit, mg.bootstrap, mg.compare],
    ids=lambda function: function.__name__,
)
def test_everything_that_takes_n_jobs_has_the_same_default(function):
    assert inspect.signature(function).parameters["n_jobs"].default is None
