"""Questions to a model with covariates: always given their values, whatever their own terms."""

from dataclasses import replace

import numpy as np
import pytest

import mixedgm as mg
from tests.support.enumerated import COLUMNS, known_model
from tests.support.indefinite import with_strong_edge
from tests.support.people import people

COVARIATES = ("age", "smoker")
KNOWN = {"age": 0.4, "smoker": True}


@pytest.fixture
def asked():
    """A model with covariates whose own terms are nonsense, and the world where they are known."""
    model, world = known_model(3)
    fitted = model.fitted_
    columns = [
        replace(c, role="covariate") if c.name in COVARIATES else c for c in fitted.schema.columns
    ]
    bias, diagonal = fitted.params.bias.copy(), fitted.params.diagonal.copy()
    bias[0] += 7.0
    bias[-1] -= 5.0
    diagonal[0] *= 0.01  # with it there would be no joint distribution of all columns
    params = replace(fitted.params, bias=bias, diagonal=diagonal)
    model._adopt(replace(fitted, schema=mg.Schema(tuple(columns)), params=params))
    return model, world.given(**KNOWN)


def test_answers_given_the_covariates(asked):
    model, world = asked
    found = model.conditional(["city", "wage"], KNOWN).frame()
    expected = [world.chance(city=city) for city in COLUMNS["city"]]
    np.testing.assert_allclose(found["probability"], expected, rtol=1e-9)
    assert model.mean(KNOWN)["height"] == pytest.approx(world.moments("height")[0][0], rel=1e-9)
    rest = model.condition({"age": 0.4})
    assert rest.schema_.covariates == (4,)  # smoker is still one
    assert rest.mean({"smoker": True})["height"] == pytest.approx(model.mean(KNOWN)["height"])
    assert model.entropy("sex", KNOWN).exact
    assert len(model.sample(3, KNOWN, random_state=0)) == 3


def test_densities_are_given_the_covariates(asked):
    model, world = asked
    rows = model.sample(3, KNOWN, random_state=0)
    expected = [
        np.log(
            world.density(
                {"wage": row["wage"], "height": row["height"]}, sex=row["sex"], city=row["city"]
            )
        )
        for _, row in rows.iterrows()
    ]
    np.testing.assert_allclose(model.log_density(rows), expected, rtol=1e-9)
    assert model.log_likelihood(rows) == pytest.approx(np.mean(expected))


def test_without_their_values_there_is_no_answer(asked):
    model, _ = asked
    for ask in (
        lambda: model.marginal("city"),
        lambda: model.mean(),
        lambda: model.mean({"sex": "Male"}),
        lambda: model.entropy(),
        lambda: model.log_partition(),
        lambda: model.sample(2),
    ):
        with pytest.raises(mg.ParameterError, match="covariates; give values of 'age', 'smoker'"):
            ask()
    with pytest.raises(mg.ParameterError, match="give values of 'smoker', too: given="):
        model.mean({"age": 0.4})
    with pytest.raises(mg.ParameterError, match="no distribution of its covariates"):
        model.fitted_.draw(3, np.random.default_rng(0))


def test_targets_are_imputed_and_covariates_are_not(asked):
    model, world = asked
    rows = model.sample(2, KNOWN, random_state=0)
    done = model.impute(rows.assign(city=None, wage=np.nan))
    for at in range(2):
        rest = world.given(sex=rows["sex"][at], height=rows["height"][at])
        assert done["wage"][at] == pytest.approx(rest.moments("wage")[0][0], rel=1e-9)
    with pytest.raises(mg.TableError, match="'age': it is a covariate, and 1 value is missing"):
        model.impute(rows.assign(age=[np.nan, 1.0]))


def test_only_targets_are_repaired(asked):
    model, _ = asked
    assert model.repaired().fitted_ is model.fitted_  # the covariate's nonsense does not matter
    fit = mg.MixedGraphicalModel(lam=0.1, covariates=["smoker"]).fit(people())
    repaired = with_strong_edge(fit, 1.3).repaired()
    assert "height - weight from 1.3 to 0.99" in repaired.summary().values.notes[-1]
    assert repaired.mean({"smoker": True})["height"]
