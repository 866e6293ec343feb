"""Public names: what users import."""

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
