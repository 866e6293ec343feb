"""Public names: what users import, and the old names that still work for one release."""

import warnings

import pytest

import mixedgm as mg
from tests.support.people import people


def test_every_public_name_loads():
    assert [name for name in mg.__all__ if not hasattr(mg, name)] == []


def test_what_models_hold_and_return_has_public_types():
    model = mg.MixedGraphicalModel(lam=0.2).fit(people())
    assert isinstance(model.edges_[0], mg.Edge)
    assert isinstance(model.path_, mg.Path)
    assert isinstance(model.marginal("group"), mg.Distribution)
    assert isinstance(model.conditional("group", {"smoker": True}), mg.Distribution)


@pytest.mark.parametrize("name", ["check a table", "check a fit"])
def test_an_old_name_answers_as_the_new_one_and_warns_where_it_is_used(name):
    frame = people()
    model = mg.MixedGraphicalModel(lam=0.2).fit(frame)
    old, new, said = {
        "check a table": (
            lambda: mg.check(frame, types={"smoker": "categorical"}).schema,
            lambda: mg.check_table(frame, types={"smoker": "categorical"}).schema,
            "mixedgm.check is now called mixedgm.check_table",
        ),
        "check a fit": (
            lambda: model.check(frame, n_sim=20, random_state=0).nodes().to_dict(),
            lambda: model.check_fit(frame, n_sim=20, random_state=0).nodes().to_dict(),
            "model.check is now called model.check_fit",
        ),
    }[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = old()
    assert [(str(w.message), w.category, w.filename) for w in caught] == [
        (f"{said}; the old name will go in the next release.", FutureWarning, __file__)
    ]
    assert str(answer) == str(new())
