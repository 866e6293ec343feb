"""`check_fit`: the graph is judged without shrinkage, and advice that is followed helps."""

import re

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.support.patients import TYPES, patients
from tests.support.people import people

QUICK = {"n_sim": 60, "random_state": 0, "n_jobs": 1}


def proposed(text):
    """Arguments of a fit that stand in the advice, as Python reads them."""
    found = re.findall(r"\b(transforms|types|require)=(\{[^}]*\}|\[[^\]]*\])", text)
    return {name: eval(value, {"mg": mg}) for name, value in found}  # noqa: S307


# -- what is judged --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"lam": 0.1}, {"lam": 0.1, "loss": "nodewise"}, {}])
def test_the_graph_is_judged_however_it_was_estimated(options):
    """All of these find the same three edges, which are those of the rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=800)
    y = x + rng.normal(size=800)
    table = pd.DataFrame(
        {"x": x, "y": y, "z": y + rng.normal(size=800), "u": rng.random(800) < 0.4}
    )
    model = mg.MixedGraphicalModel(**options).fit(table)
    assert {frozenset((e.source, e.target)) for e in model.edges_} == {
        frozenset("xy"),
        frozenset("yz"),
    }
    checked = model.check_fit(table, **QUICK)
    assert checked.refit
    assert checked.flagged == ()
    other = mg.MixedGraphicalModel(lam=0.2, refit=True).fit(table).check_fit(table, **QUICK)
    one, two = checked.pairs(), other.pairs()
    pd.testing.assert_frame_equal(one, two, rtol=0.05)


def test_as_it_is_a_shrunken_model_is_flagged():
    table = people(800, seed=3)
    shrunken = mg.MixedGraphicalModel(lam=0.2).fit(table)
    checked = shrunken.check_fit(table, refit=False, **QUICK)
    assert not checked.refit
    assert "edge too weak" in set(checked.flags()["meaning"])
    assert "the model as it is" in str(checked)
    assert "the graph, refitted to these rows" in str(shrunken.check_fit(table, **QUICK))


def test_whole_weights_are_rows_that_are_there_so_often():
    table = people(300, seed=5)
    model = mg.MixedGraphicalModel(lam=0.1).fit(table)
    weights = np.where(np.arange(300) < 100, 2, 1)
    weighted = model.check_fit(table, sample_weight=weights, **QUICK)
    repeated = model.check_fit(table.loc[np.repeat(np.arange(300), weights)], **QUICK)
    assert weighted.n_rows == repeated.n_rows == 400
    assert weighted.flagged == repeated.flagged
    one, two = (each.pairs().sort_values(["source", "target"]) for each in (weighted, repeated))
    np.testing.assert_allclose(one["observed"], two["observed"], atol=1e-12)
    np.testing.assert_allclose(one["p"], two["p"], atol=0.05)


def test_new_rows_are_judged_by_the_graph_or_by_the_parameters():
    """New rows with the same graph and other parameters: only these are wrong."""
    rng = np.random.default_rng(2)
    x, e = rng.normal(size=(2, 600))
    old, new = pd.DataFrame({"x": x, "y": x + e}), pd.DataFrame({"x": x, "y": 3.0 * x + e + 1.0})
    model = mg.MixedGraphicalModel(refit=True).fit(old)
    assert model.check_fit(new, **QUICK).flagged == ()
    moved = model.check_fit(new, refit=False, **QUICK)
    assert ("y",) in moved.flagged
    assert ("x", "y") in moved.flagged


def test_results_do_not_depend_on_n_jobs():
    """Of a table with every kind of column, whose refits are prepared anew in every process."""
    table = patients(200, seed=3).drop(columns="debt")
    types = {name: kind for name, kind in TYPES.items() if name != "debt"}
    model = mg.MixedGraphicalModel(types=types, lam=0.1).fit(table)
    one, two = (
        model.check_fit(table, n_sim=30, random_state=4, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    for name in ("nodes", "pairs", "levels", "flags"):
        pd.testing.assert_frame_equal(getattr(one, name)(), getattr(two, name)(), check_exact=True)


def test_covariates_are_kept_and_edges_to_them_are_judged():
    """With a covariate that is far from normal, and a wrong guess about one of its edges."""
    rng = np.random.default_rng(7)
    given = rng.exponential(size=700)
    table = pd.DataFrame({"given": given, "y": given + rng.normal(size=700)})
    table["z"] = 0.5 * table["y"] + rng.normal(size=700)
    right = mg.MixedGraphicalModel(covariates=["given"], lam=0.05).fit(table)
    assert right.check_fit(table, **QUICK).flagged == ()
    wrong = mg.MixedGraphicalModel(covariates=["given"], forbid=[("given", "y")], lam=0.05)
    checked = wrong.fit(table).check_fit(table, **QUICK)
    (pair,) = [each for each in checked.pair_checks if {each[0], each[1]} == {"given", "y"}]
    assert pair.meaning == "missing edge"


# -- what is said ----------------------------------------------------------------------------------


def skewed(rng, n=600):
    x, e = rng.normal(size=(2, n))
    return pd.DataFrame({"x": x, "y": np.exp(0.6 * (x + e))}), {}, ("y",), "skewed"


def without_edge(rng, n=600):
    x, e, f = rng.normal(size=(3, n))
    table = pd.DataFrame({"x": x, "y": x + e, "z": x + f})
    return table, {"forbid": [("x", "y")]}, ("x", "y"), "missing edge"


def both_ends(rng, n=600):
    level = rng.integers(0, 5, n)
    table = pd.DataFrame({"y": (level - 2) ** 2 + rng.normal(size=n), "level": level})
    options = {"types": {"level": "ordinal"}, "require": [("y", "level")]}
    return table, options, ("y", "level"), "curved scores"


def idle(rng, n=600):
    falls = np.where(rng.random(n) < 0.15, 0, rng.poisson(7.0, size=n))
    table = pd.DataFrame({"falls": falls, "x": rng.normal(size=n)})
    return table, {"types": {"falls": "count"}}, ("falls",), "zeros"


def heaped(rng, n=600):
    visits = rng.poisson(8.0, size=n)
    visits = np.where(rng.random(n) < 0.3, 5 * np.round(visits / 5), visits).astype(int)
    table = pd.DataFrame({"visits": visits, "x": rng.normal(size=n)})
    return table, {"types": {"visits": "count"}}, ("visits",), "counts"


def two_humps(rng, n=600):
    level = rng.choice(5, p=[0.3, 0.1, 0.2, 0.1, 0.3], size=n)
    table = pd.DataFrame({"level": level, "x": rng.normal(size=n)})
    types = {"level": mg.Ordinal(thresholds="quadratic")}
    return table, {"types": types}, ("level",), "levels"


@pytest.mark.parametrize("spoiled", [skewed, without_edge, both_ends, idle, heaped, two_humps])
def test_advice_that_is_followed_helps(spoiled):
    """A right model would be flagged in one of twenty tables; the seed is fixed."""
    table, options, place, meaning = spoiled(np.random.default_rng(1))
    options = {"transforms": None, **options}
    before = mg.MixedGraphicalModel(lam=0.05, **options).fit(table).check_fit(table, **QUICK)
    flags = before.flags()
    where = [
        tuple(part for part in pair if isinstance(part, str))
        for pair in zip(flags["column"], flags["other"], strict=True)
    ]
    assert (place, meaning) in list(zip(where, flags["meaning"], strict=True))
    given = proposed(flags["advice"][where.index(place)])
    assert given
    options = {name: value for name, value in options.items() if name != "forbid"} | given
    after = mg.MixedGraphicalModel(lam=0.05, **options).fit(table).check_fit(table, **QUICK)
    assert place not in after.flagged


def test_flags_are_a_frame_of_what_is_flagged():
    table, options, *_ = without_edge(np.random.default_rng(3))
    table["y"] = np.exp(0.4 * table["y"])
    checked = mg.MixedGraphicalModel(lam=0.05, **options).fit(table).check_fit(table, **QUICK)
    flags = checked.flags()
    ends = zip(flags["column"], flags["other"], strict=True)
    assert tuple(tuple(e for e in pair if isinstance(e, str)) for pair in ends) == checked.flagged
    assert (flags["p_adjusted"] <= checked.alpha).all()
    assert checked.p == flags["p_adjusted"].min()
    assert flags["advice"].str.contains(" To do: ").all()
    html = checked._repr_html_()
    assert all(meaning in html for meaning in flags["meaning"])
    assert html.startswith('<div style="')
    assert "Model check: " in html


def test_nothing_is_said_where_nothing_is_wrong():
    table = people(300, seed=8)
    checked = mg.MixedGraphicalModel(lam=0.08).fit(table).check_fit(table, **QUICK)
    assert checked.flagged == ()
    assert len(checked.flags()) == 0
    assert len(str(checked).splitlines()) <= 3
    assert "<td" not in checked._repr_html_()


def test_names_of_columns_are_escaped_and_cut():
    rng = np.random.default_rng(0)
    name = "<b>x</b>\n" + "long" * 30
    table = pd.DataFrame({name: rng.exponential(size=500), "z": rng.normal(size=500)})
    model = mg.MixedGraphicalModel(lam=0.1, transforms=None).fit(table)
    checked = model.check_fit(table, **QUICK)
    assert (name,) in checked.flagged
    assert "<b>" not in checked._repr_html_()
    assert max(map(len, str(checked).splitlines())) <= 80


def test_progress_is_shown_when_asked(capsys):
    table = people(100)
    model = mg.MixedGraphicalModel(lam=0.2).fit(table)
    model.check_fit(table, n_sim=30, n_jobs=1, verbose=1)
    assert "batches of simulated tables" in capsys.readouterr().err
    model.check_fit(table, n_sim=30, n_jobs=1)
    assert capsys.readouterr().err == ""


# -- errors ----------------------------------------------------------------------------------------


def test_a_graph_that_is_too_dense_for_the_rows_is_refused():
    table = people(400)
    model = mg.MixedGraphicalModel(lam=0.001).fit(table)
    with pytest.raises(mg.ParameterError, match=r"cannot be refitted to these rows.*refit=False"):
        model.check_fit(table.head(9), **QUICK)


def test_a_long_check_is_announced_before_it_begins():
    """Warnings are errors here, so that the announcement ends the check."""
    x = np.random.default_rng(0).normal(size=(50, 2))
    model = mg.MixedGraphicalModel(lam=0.2).fit(x)
    with pytest.raises(mg.LongRunWarning, match=r"1,000 simulated tables of 50 rows.*n_sim="):
        model.check_fit(x, n_sim=1_000, n_jobs=1)


def test_flags_are_grouped_by_what_they_mean():
    table = people(800, seed=3)
    checked = mg.MixedGraphicalModel(lam=0.2).fit(table).check_fit(table, refit=False, **QUICK)
    remedies = checked.by_meaning()
    flags = checked.flags()
    assert [remedy.meaning for remedy in remedies] == list(dict.fromkeys(flags["meaning"]))
    for remedy in remedies:
        assert len(remedy.flags) == (flags["meaning"] == remedy.meaning).sum() > 0
        assert "To do: " in remedy.advice
