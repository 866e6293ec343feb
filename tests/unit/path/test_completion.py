"""Completions of few rows: the same levels and columns in all of them, whatever completes them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.path.completion import _discrete_terms, with_constants_filled
from mixedgm.path.recipe import Recipe
from mixedgm.path.rounds import Incomplete
from mixedgm.path.task import Reference
from mixedgm.table.gaps import Gaps, learn_gaps
from tests.support.problems import SCORED, draw, random_theta

pytestmark = pytest.mark.filterwarnings("ignore::mixedgm.TableWarning")
N = 60
TYPES = {"o": "ordinal", "k": "count", "h": "hurdle"}


def table() -> pd.DataFrame:
    """Every kind once; in the first half of the rows only `y` varies."""
    rng = np.random.default_rng(0)
    late = np.arange(N) >= N // 2
    return pd.DataFrame(
        {
            "y": rng.normal(size=N),
            "x": np.where(late, rng.normal(size=N), 2.0),
            "c": np.where(late & (rng.random(N) < 0.7), "b", "a"),
            "o": np.where(late, rng.integers(0, 4, N), 1),
            "k": np.where(late, rng.poisson(2.0, N), 1),
            "h": np.where(late, (rng.random(N) < 0.6) * rng.normal(3.0, 1.0, N), 0.0),
        }
    )


def first_half(column: str, **types: str) -> tuple[Gaps, mg.MixedGraphicalModel, Reference]:
    """Rows in which the column is constant and has gaps, and a model of all rows."""
    rows = table()[["y", "x", column] if column != "x" else ["y", "x"]]
    model = mg.MixedGraphicalModel(lam=0.1, types=types or None).fit(rows)
    rows = rows.astype({column: object})
    rows.loc[[3, 4, 7], column] = None
    rows.loc[5, "y"] = np.nan
    gaps, _ = learn_gaps(rows, types=types or None)
    reference = Reference.of(Incomplete.of(gaps, Recipe()).at(None)[0])
    return gaps.take(np.arange(N // 2)), model, reference


@pytest.mark.parametrize("column", ["x", "c", "o", "k", "h"])
def test_a_column_that_does_not_vary_does_not_in_any_completion(column: str) -> None:
    types = {column: TYPES[column]} if column in TYPES else {}
    gaps, model, reference = first_half(column, **types)
    incomplete = Incomplete.of(gaps, Recipe(), reference)
    plain, other = incomplete.at(None)[1], incomplete.at(model.params_)[1]
    assert column in plain.degenerate
    assert plain.layout.same(other.layout)
    at = gaps.schema.node_index(column)
    assert at not in other.layout.pairs


def test_levels_that_rows_lack_are_drawn_by_no_model() -> None:
    """A hurdle column asks for chains, which draw from the model as it is."""
    rows = table()[["y", "c", "h"]]
    rows.loc[: N // 2, "h"] = np.where(np.arange(N // 2 + 1) % 3, 2.0 + rows["y"][: N // 2 + 1], 0)
    model = mg.MixedGraphicalModel(lam=0.1, types={"h": "hurdle"}).fit(rows)
    assert model.params_.levels_possible.all()
    gappy = rows.assign(c=rows["c"].where(np.arange(N) % 5 > 0))
    gaps, _ = learn_gaps(gappy, types={"h": "hurdle"})
    design, _ = Incomplete.of(gaps.take(np.arange(N // 2)), Recipe()).at(model.params_)
    place = gaps.schema.spans.place(gaps.schema.node_index("c"))
    assert set(design.codes[:, place].tolist()) == {0}


def test_rows_without_gaps_stand_for_themselves() -> None:
    rows = table()[["y", "h"]]
    model = mg.MixedGraphicalModel(lam=0.1, types={"h": "hurdle"}).fit(rows)
    gappy = rows.assign(h=rows["h"].where(np.arange(N) != N - 1))
    gaps, _ = learn_gaps(gappy, types={"h": "hurdle"})
    some = gaps.take(np.arange(N - 1))
    design, _ = Incomplete.of(some, Recipe()).at(model.params_)
    np.testing.assert_array_equal(design.numbers, some.numbers)
    np.testing.assert_array_equal(design.weights, np.ones(N - 1))


def test_a_column_without_values_is_named() -> None:
    gaps, _ = learn_gaps(table()[["y", "x"]].assign(x=lambda t: t["x"].where(t.index > 9)))
    with pytest.raises(mg.TableError, match="column 'x': all 10 values are missing"):
        with_constants_filled(gaps.take(np.arange(10)))


def test_rows_held_out_may_have_levels_that_the_model_does_not_know() -> None:
    """The level counts as half a row among those of the model; the rest is as without its edges."""
    rows = table()[["y", "x", "c"]]
    rows.loc[0, "x"] = np.nan
    gaps, _ = learn_gaps(rows)
    incomplete = Incomplete.of(gaps, Recipe())
    model = mg.MixedGraphicalModel(lam=0.1).fit(table()[["y", "x", "c"]])
    bias = model.params_.bias.copy()
    bias[-2:] = 0.0, -np.inf
    coef = model.params_.coef.copy()
    coef[-2:], coef[:, -2:] = 0.0, 0.0
    params = replace(model.params_, bias=bias, coef=coef)
    known, unknown = (np.flatnonzero(gaps.codes[:, 0] == code) for code in (0, 1))
    seen, unseen = (
        np.array([incomplete.held_out_loss(np.array([row]), params, 30.0) for row in some])
        for some in (known, unknown)
    )
    # The rows' numbers, by the Gaussian conditionals of a model without the category.
    alone = replace(params, bias=np.append(bias[:-2], [0.0, 0.0]))
    half = np.log(2.0)
    for rows_of, losses, own in (
        (known, seen, -np.log(30.0 / 30.5)),
        (unknown, unseen, -np.log(0.5 / 30.5)),
    ):
        numbers = [incomplete.held_out_loss(np.array([row]), alone, np.inf) for row in rows_of]
        np.testing.assert_allclose(losses, np.array(numbers) - half + own, rtol=1e-9)


def test_long_counts_weigh_as_if_every_pair_of_values_had_a_term():
    table = draw(0, 40, 1, (4, 5, 6, 7, 3), False, SCORED)
    task = table.task()
    params = task.params(random_theta(task.layout, 1))
    codes = np.ascontiguousarray(table.Y, dtype=np.int64)
    by_pairs = params.joint
    assert by_pairs.seen is None
    discrete = params.nodes.take(range(1, len(params.nodes)))
    by_scores = replace(by_pairs, coupling=params.coef[1:, 1:], seen=discrete)
    one, other = (_discrete_terms(density, codes) for density in (by_pairs, by_scores))
    np.testing.assert_allclose(one, other, atol=1e-12)
