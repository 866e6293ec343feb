"""Public names: what users import, and the old names that still work for one release."""

import json
import warnings
import zipfile

import numpy as np
import pytest

import mixedgm as mg
from tests.support.people import assert_same_params, people


def test_every_public_name_loads():
    assert [name for name in mg.__all__ if not hasattr(mg, name)] == []


def test_what_models_hold_and_return_has_public_types():
    model = mg.MixedGraphicalModel(lam=0.2).fit(people())
    assert isinstance(model.edges_[0], mg.Edge)
    assert isinstance(model.path_, mg.Path)
    assert isinstance(model.marginal("group"), mg.Distribution)
    assert isinstance(model.conditional("group", {"smoker": True}), mg.Distribution)


RENAMED = [
    ("transform", "transforms", "nonparanormal"),
    ("weights", "penalty_weights", "uniform"),
]
"""Old and new name of a parameter, and a value that changes the fit."""


def warned(call):
    """What a call returns, and its FutureWarnings, each of which must point at this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = call()
    assert {(w.category, w.filename) for w in caught} <= {(FutureWarning, __file__)}
    return answer, [str(w.message) for w in caught]


def renamed(old, new):
    return [f"{old} is now called {new}; the old name will be removed in the next release."]


def test_old_names_of_checks_answer_as_the_new_ones():
    frame = people()
    answer, said = warned(lambda: mg.check(frame, types={"smoker": "categorical"}))
    assert said == renamed("mixedgm.check", "mixedgm.check_table")
    assert answer.schema == mg.check_table(frame, types={"smoker": "categorical"}).schema
    model = mg.MixedGraphicalModel(lam=0.2).fit(frame)
    answer, said = warned(lambda: model.check(frame, n_sim=20, random_state=0))
    assert said == renamed("model.check", "model.check_fit")
    assert answer.nodes().equals(model.check_fit(frame, n_sim=20, random_state=0).nodes())


@pytest.mark.parametrize(("old", "new", "value"), RENAMED)
def test_old_names_of_parameters(old, new, value):
    frame, one = people(), {new: value}
    wanted = mg.MixedGraphicalModel(0.1, **one)
    calls = [
        lambda: mg.MixedGraphicalModel(0.1, **{old: value}),
        lambda: mg.MixedGraphicalModel(0.1).set_params(**{old: value}),
    ]
    for call in calls:
        model, said = warned(call)
        assert said == renamed(old, new)
        assert model.get_params() == wanted.get_params()
    assert_same_params(model.fit(frame).params_, wanted.fit(frame).params_)
    plain = mg.MixedGraphicalModel(0.1).fit(frame)
    assert not np.allclose(plain.params_.coef, model.params_.coef)
    path, said = warned(lambda: mg.fit_path(frame, [0.1], **{old: value}))
    assert said == renamed(old, new)
    np.testing.assert_array_equal(path.kkt, mg.fit_path(frame, [0.1], **one).kkt)
    options = {"n_perm": 1, "lam": 0.2, "random_state": 0, "n_jobs": 1}
    groups = np.arange(len(frame)) % 2
    found, said = warned(lambda: mg.compare(frame, groups, **options, **{old: value}))
    assert said == renamed(old, new)
    assert {each.get_params()[new] for each in found.models.values()} == {value}
    with pytest.raises(mg.ParameterError, match=f"{old} is the old name of {new}"):
        mg.MixedGraphicalModel(**{old: value, new: value})


def test_old_names_as_attributes():
    """scikit-learn would take a model with an attribute `transform` for a transformer."""
    model = mg.MixedGraphicalModel(penalty_weights="uniform")
    assert warned(lambda: model.weights) == ("uniform", renamed("weights", "penalty_weights"))
    assert not hasattr(model, "transform")


def test_consistency_takes_the_old_name_of_penalty_weights():
    model, consistency = mg.random_model([("a", "b")], random_state=0), mg.diagnostics.consistency
    found, said = warned(lambda: consistency(model, weights="uniform"))
    assert said == renamed("weights", "penalty_weights")
    assert found.upper == consistency(model, penalty_weights="uniform").upper


def test_check_table_takes_the_old_name_of_transforms():
    found, said = warned(lambda: mg.check_table(people(), transform={"height": "log"}).findings)
    assert said == renamed("transform", "transforms")
    assert found == mg.check_table(people(), transforms={"height": "log"}).findings


@pytest.mark.parametrize(("old", "new", "value"), RENAMED)
def test_a_model_file_with_an_old_name_loads_quietly(old, new, value, tmp_path):
    model = mg.MixedGraphicalModel(0.1, **{new: value}).fit(people())
    model.save(tmp_path / "new.mgm")
    with (
        zipfile.ZipFile(tmp_path / "new.mgm") as source,
        zipfile.ZipFile(tmp_path / "old.mgm", "w") as target,
    ):
        for name in source.namelist():
            data = source.read(name)
            if name == "model.json":
                document = json.loads(data)
                document["settings"][old] = document["settings"].pop(new)
                data = json.dumps(document).encode()
            if name != "checksums.json":
                target.writestr(name, data)
    loaded, said = warned(lambda: mg.load(tmp_path / "old.mgm"))
    assert said == []
    assert loaded.get_params() == model.get_params()
    assert_same_params(loaded.params_, model.params_)
