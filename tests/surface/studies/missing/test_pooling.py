"""pool: Rubin's rules against numbers computed by hand, in every form that results come in."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mixedgm as mg

ESTIMATES = np.array([[5.0, 1.0], [5.4, 1.0], [4.9, 1.0], [5.2, 1.0]])
ERRORS = np.array([[0.5, 0.1], [0.5, 0.2], [0.4, 0.1], [0.6, 0.2]])
NAMES = ["wage", "age"]


def by_hand(df_complete=np.inf):
    """The first parameter, number by number (Rubin 1987, Barnard and Rubin 1999)."""
    m, q, u = 4, [5.0, 5.4, 4.9, 5.2], [0.25, 0.25, 0.16, 0.36]
    mean, within = sum(q) / m, sum(u) / m
    between = sum((each - mean) ** 2 for each in q) / (m - 1)
    total = within + between + between / m
    share = (between + between / m) / total
    df = (m - 1) / share**2
    if df_complete < np.inf:
        observed = (df_complete + 1) / (df_complete + 3) * df_complete * (1 - share)
        df = df * observed / (df + observed)
    ratio = (between + between / m) / within
    information = (ratio + 2 / (df + 3)) / (ratio + 1)
    step = stats.t.ppf(0.975, df) * total**0.5
    p = 2 * stats.t.cdf(-mean / total**0.5, df)
    return mean, total**0.5, df, mean - step, mean + step, p, information


@pytest.mark.parametrize("df_complete", [None, 20.0])
def test_numbers_are_those_of_the_rules(df_complete):
    pooled = mg.pool(list(zip(ESTIMATES, ERRORS, strict=True)), df_complete=df_complete)
    fields = ("estimate", "se", "df", "lower", "upper", "p", "missing_information")
    found = [getattr(pooled, field)[0] for field in fields]
    assert found == pytest.approx(by_hand(df_complete or np.inf), rel=1e-12)
    # Where all tables agree, gaps take nothing.
    assert pooled.missing_information[1] == 0.0
    assert pooled.se[1] == pytest.approx(np.sqrt(0.025))
    assert pooled.df[1] == pytest.approx(np.inf if df_complete is None else 21 / 23 * 20)


def forms():
    series = [
        (pd.Series(q, NAMES), pd.Series(s, NAMES)) for q, s in zip(ESTIMATES, ERRORS, strict=True)
    ]
    return {
        "pairs": list(zip(ESTIMATES, ERRORS, strict=True)),
        "lists": [(q.tolist(), s.tolist()) for q, s in zip(ESTIMATES, ERRORS, strict=True)],
        "series": series,
        "any order": [(q[::-1], s) if k else (q, s) for k, (q, s) in enumerate(series)],
        "frames": [pd.DataFrame({"estimate": q, "se": s}) for q, s in series],
        "models": [SimpleNamespace(params=q, bse=s) for q, s in series],
        "covariances": [
            SimpleNamespace(
                params=q, cov_params=lambda s=s: pd.DataFrame(np.diag(s**2), s.index, s.index)
            )
            for q, s in series
        ],
        "an iterator": iter(series),
    }


@pytest.mark.parametrize("form", forms())
def test_all_forms_give_the_same(form):
    pooled = mg.pool(forms()[form])
    wanted = mg.pool(forms()["pairs"])
    np.testing.assert_allclose(pooled.estimate, wanted.estimate)
    np.testing.assert_allclose(pooled.se, wanted.se)
    assert pooled.names == ((0, 1) if form in ("pairs", "lists") else tuple(NAMES))


def test_variances_and_single_numbers():
    one = mg.pool([(5.0, 0.25), (5.4, 0.25)], errors="variance")
    np.testing.assert_allclose(one.se, mg.pool([(5.0, 0.5), (5.4, 0.5)]).se)
    many = mg.pool([(q, np.diag(s**2)) for q, s in forms()["pairs"]], errors="variance")
    np.testing.assert_allclose(many.se, mg.pool(forms()["pairs"]).se)


def test_frames_of_other_libraries_are_matched_by_name():
    import polars as pl

    frames = [
        pl.DataFrame({"term": NAMES, "estimate": q, "std_error": s})[:: 1 if k % 2 else -1]
        for k, (q, s) in enumerate(forms()["pairs"])
    ]
    pooled = mg.pool(frames, by="term")
    assert pooled.names == ("age", "wage")
    assert isinstance(pooled.frame(), pl.DataFrame)
    np.testing.assert_allclose(pooled.estimate, mg.pool(forms()["pairs"]).estimate[::-1])


def test_tests_of_edges_are_pooled_by_pair():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    table = pd.DataFrame({"x": x, "y": x + rng.normal(size=200), "z": rng.normal(size=200)})
    gappy = table.mask(rng.random(table.shape) < [0.0, 0.2, 0.2])
    model = mg.MixedGraphicalModel(lam=0.05, missing="model").fit(gappy)
    again = mg.MixedGraphicalModel(lam=0.05)
    found = [
        mg.edge_tests(again.fit(each), each, random_state=0).edges()
        for each in model.impute(gappy, 3, random_state=0)
    ]
    pooled = mg.pool(found)
    assert sorted(pooled.names) == [("x", "y"), ("x", "z"), ("y", "z")]
    at = pooled.names.index(("x", "y"))
    assert pooled.p[at] < 1e-6
    assert 0.0 < pooled.missing_information[at] < 0.8
    assert pooled.frame()["name"][at] == "x - y"


def test_text_and_html():
    pooled = mg.pool(forms()["series"], df_complete=50, level=0.9)
    text = str(pooled)
    assert text.startswith("2 estimates, pooled over 4 tables")
    assert "intervals of 90%; 50 degrees of freedom without gaps" in text
    assert "wage" in pooled._repr_html_()
    assert pooled.frame().columns.tolist()[:3] == ["name", "estimate", "se"]
    assert pooled.summary() == text


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        ([(1.0, 0.1)], {}, "at least two imputed tables"),
        ("ab", {}, "at least two imputed tables"),
        ([1.0, 2.0], {}, "result 0 must be a pair"),
        ([([1.0, 2.0], 0.1)] * 2, {}, "2 estimates and 1 errors"),
        ([("a", "b")] * 2, {}, "result 0 must be real numbers"),
        ([(1.0, 0.1 + 0.1j)] * 2, {}, "result 0 must be real numbers"),
        ([(pd.Series([1.0]), pd.Series([0.1j]))] * 2, {}, "result 0 must be real numbers"),
        ([(1.0, 0.1)] * 2, {"by": 7}, "by must be the name of a column, or a list of names"),
        (
            [(1.0, 0.1), (1.0, -0.1)],
            {"errors": "variance"},
            "error -0.1 of parameter 0 in result 1",
        ),
        ([(1.0, -0.1), (1.0, 0.1)], {}, "error -0.1 of parameter 0 in result 0"),
        ([(1.0, 0.0)] * 2, {}, "2 numbers cannot be pooled: error 0 of parameter 0 in result 0"),
        ([(1.0, 1e200), (1.0, 1e-200)], {}, r"error 1e\+200 .*, error 1e-200 of parameter 0"),
        ([(np.nan, 0.1), (np.inf, 0.1)], {}, "estimate nan of parameter 0 .*, estimate inf"),
        ([(1e200, 0.1), (1.0, 0.1)], {}, r"estimate 1e\+200 of parameter 0"),
        (
            [pd.DataFrame({"estimate": 1.0, "se": se}, index=list("ab")) for se in (np.nan, -1.0)],
            {},
            "4 numbers .* error nan of parameter a in result 0.* error -1 of parameter b in",
        ),
        (
            [SimpleNamespace(params=np.ones(2), cov_params=lambda: np.diag([1.0, -1.0]))] * 2,
            {},
            "2 numbers cannot be pooled: error -1 of parameter 1",
        ),
        ([(1.0, 0.1)] * 2, {"errors": "sd"}, "errors must be 'se' or 'variance'"),
        ([(1.0, 0.1)] * 2, {"level": 95}, "level must be a number in"),
        ([(1.0, 0.1)] * 2, {"df_complete": 0}, "df_complete must be a positive number"),
        ([pd.DataFrame({"estimate": [1.0]})] * 2, {}, "it needs 'estimate', and 'se'"),
        (
            [pd.DataFrame({"estimate": [1.0], "se": [0.1]})] * 2,
            {"by": "term"},
            "by names 'term', which result 0 does not have",
        ),
        (
            [(pd.Series({k: 1.0}), pd.Series({k: 0.1})) for k in "ab"],
            {},
            "result 1 does not have the parameters of the first one: 'a', 'b'",
        ),
        (
            [pd.DataFrame({"estimate": [1.0, 2.0], "se": 0.1, "t": "a"})] * 2,
            {"by": "t"},
            "two parameters of result 0 have the same name",
        ),
    ],
)
def test_errors_say_what_is_wrong(results, options, message):
    with pytest.raises(mg.ParameterError, match=message):
        mg.pool(results, **options)
