"""Tables that nobody should have: an answer with finite numbers, or an error of the family."""

from dataclasses import replace
from decimal import Decimal
from itertools import chain
from numbers import Real

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

import mixedgm as mg

N = 60
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, N))
GROUP = RNG.choice(["a", "b"], N).tolist()


def beside(values):
    return pd.DataFrame({"x": X, "g": GROUP, "k": values})


def in_units(unit):
    return pd.DataFrame({"x": X * unit, "k": (X + 0.3 * Y) * unit, "g": GROUP})


def arrow(values):
    pa = pytest.importorskip("pyarrow")
    return pa.table({"x": X, "g": GROUP, "k": pa.array(values)})


def named(names):
    return pd.DataFrame(np.c_[X, X + Y], columns=pd.Index(names, dtype=object))


def record_batch(names):
    pa = pytest.importorskip("pyarrow")
    return pa.RecordBatch.from_arrays([pa.array(X), pa.array(Y)], names=names)


def polars(values):
    pl = pytest.importorskip("polars")
    return pl.DataFrame({"x": X, "g": GROUP, "k": values})


TABLES = {
    "arrow-whole-numbers-beyond-doubles": lambda: arrow([2**53 + 3 * i for i in range(N)]),
    "arrow-with-a-gap": lambda: arrow([None, *(2**60 + 3 * i for i in range(N - 1))]),
    "arrow-decimals": lambda: arrow([Decimal("1.5") * i for i in range(N)]),
    "polars-whole-numbers-beyond-doubles": lambda: polars([2**62 + i for i in range(N)]),
    "polars-lists": lambda: polars([[1, 2]] * N),
    "polars-structs": lambda: polars([{"a": 1}] * N),
    "whole-numbers-beyond-all-doubles": lambda: beside([10**400 + i for i in range(N)]),
    "levels-beyond-all-doubles": lambda: beside(pd.Categorical([10**400, 10**401] * (N // 2))),
    "levels-beyond-integer-types": lambda: beside([2**70, 2**71] * (N // 2)),
    "pandas-arrow-whole-numbers": lambda: beside(
        pd.Series([2**60 + i for i in range(N)], dtype="int64[pyarrow]")
    ),
    "infinite-levels": lambda: beside(pd.Categorical([np.inf, 1.0] * (N // 2))),
    "half-of-a-character": lambda: beside(pd.Series(["\ud83d", "b"] * (N // 2), dtype=object)),
    "half-of-a-character-in-a-name": lambda: named(["\ud83d", "b"]),
    "masked-text": lambda: np.ma.MaskedArray(np.array([GROUP, GROUP], dtype=object).T, False),
    "masked-complex": lambda: np.ma.MaskedArray(np.c_[X, Y] * 1j, False),
    "record-batch-of-one-name": lambda: record_batch(["k", "k"]),
    "dictionaries": lambda: beside([{"a": 1}] * N),
    "lists": lambda: beside([[1, 2]] * N),
    "sets": lambda: beside([{1, 2}] * N),
    "bytes": lambda: beside([b"x", b"y"] * (N // 2)),
    "complex": lambda: beside(X + 1j * Y),
    "dates": lambda: beside(pd.date_range("2020", periods=N)),
    "durations": lambda: beside(pd.to_timedelta(np.arange(N), unit="D")),
    "periods": lambda: beside(pd.period_range("2020", periods=N, freq="M")),
    "intervals": lambda: beside(pd.cut(Y, 3)),
    "decimals": lambda: beside([Decimal("1.5") * i for i in range(N)]),
    "all-sorts": lambda: beside([1, "a", 2.5, None, True] * (N // 5)),
    "a-stray-word": lambda: beside([*map(str, Y[1:]), "n.a."]),
    "near-the-largest-double": lambda: beside(Y * 1e300),
    "largest-units": lambda: in_units(1e74),
    "smallest-units": lambda: in_units(1e-74),
    "units-that-are-too-large": lambda: in_units(1e76),
    "units-that-are-too-small": lambda: in_units(1e-76),
    "two-columns-of-one-name": lambda: pd.DataFrame(np.c_[X, Y], columns=["a", "a"]),
    "an-escape-in-a-name": lambda: pd.DataFrame({"\x1b[31mred": X, "b": X + Y}),
    "a-long-name": lambda: pd.DataFrame({"n" * 10_000: X, "b": X + Y}),
    "no-rows": lambda: pd.DataFrame({"a": [], "b": []}),
    "one-row": lambda: pd.DataFrame({"a": [1.0], "b": ["x"]}),
    "ragged-lists": lambda: [[1, 2], [3]],
    "three-dimensions": lambda: np.zeros((3, 2, 2)),
}


def fitted(table):
    """The model, or None and what the error says."""
    try:
        mg.check_table(table)
        return mg.MixedGraphicalModel().fit(table), ""
    except mg.MixedGMError as error:
        return None, str(error)


@pytest.mark.filterwarnings("ignore::mixedgm.TableWarning")
@pytest.mark.parametrize("name", TABLES)
def test_an_answer_or_an_error_of_the_family(name, tmp_path):
    table = TABLES[name]()
    model, message = fitted(table)
    assert len(message) < 2000
    if model is None:
        return
    assert np.isfinite(model.fitted_.edge_norms).all()
    assert np.isfinite(model.params_.precision).all()
    assert "\x1b" not in str(model.summary())
    assert np.isfinite(model.score(table))
    model.predict(table)
    model.sample(3, random_state=0)
    model.save(tmp_path / "model.mgm")
    again = mg.load(tmp_path / "model.mgm")
    np.testing.assert_array_equal(again.params_.precision, model.params_.precision)


def test_units_do_not_change_the_graph():
    """The weights of edges have no units."""
    plain, *others = (
        mg.MixedGraphicalModel().fit(in_units(unit)).fitted_.edge_norms
        for unit in (1.0, 1e40, 1e-40, 1e74, 1e-74)
    )
    assert plain.max() > 0.5
    for other in others:
        np.testing.assert_allclose(other, plain, rtol=1e-6)


@pytest.mark.parametrize("weight", [1e300, 1e17])
def test_weights_that_no_table_has(weight):
    with pytest.raises(mg.TableError, match="number of observations"):
        mg.MixedGraphicalModel().fit(in_units(1.0), sample_weight=np.full(N, weight))


def test_new_values_that_are_too_large_for_an_answer():
    model = mg.MixedGraphicalModel(lam=0.01).fit(in_units(1.0))
    rows = in_units(1.0).assign(x=1e300)
    for ask in (model.predict, model.score, model.impute):
        with pytest.raises(mg.TableError, match="column 'x'.*1e\\+300"):
            ask(rows)


class Broken:
    """A solver that finds what is not a number."""

    def init(self, problem, theta, here, tol, memory=None):
        state = mg.ProximalNewton().init(problem, theta, here, tol, memory)
        theta = theta.copy()
        theta[problem.smooth.layout.linear] = np.inf
        return replace(state, theta=theta, measure=0.0)

    step = init


def test_an_estimate_that_is_not_finite_is_an_error_that_names_its_column():
    """No table is known to get that far; the guard is for the one that does."""
    with pytest.raises(mg.TableError, match="column 'x': its estimate is not finite"):
        mg.MixedGraphicalModel(lam=0.1, solver=Broken()).fit(in_units(1.0))


FILLED = {
    "string-views": lambda: arrow_column(GROUP, "string_view"),
    "objects": lambda: polars_objects([*map(float, range(N - 1)), None]),
    "half-precision": lambda: arrow_column((np.clip(X, -2, 2) * 3e4).tolist(), "float16"),
    "largest-whole-numbers": lambda: arrow_column(
        [2**63 - 1 - 2**55 * i for i in range(N)], "int64"
    ),
    "text-that-is-left-out": lambda: [[x, float(i), f"id{i}"] for i, x in enumerate(X)],
    "objects-stay-objects": lambda: beside(pd.Series(GROUP, dtype=object)),
}


def arrow_column(values, kind):
    pa = pytest.importorskip("pyarrow")
    array = pa.array(values).cast(pa.type_for_alias(kind))
    gappy = pa.concat_arrays([pa.nulls(20, array.type), array[20:]])
    return pa.table({"x": X, "k": gappy, "y": X + Y})


def polars_objects(values):
    pl = pytest.importorskip("polars")
    return pl.DataFrame({"x": X, "y": X + Y, "k": pl.Series(values, dtype=pl.Object)})


@pytest.mark.filterwarnings("ignore::mixedgm.TableWarning")
@pytest.mark.parametrize("name", FILLED)
def test_every_gap_is_filled_with_a_finite_value(name):
    table = FILLED[name]()
    model = mg.MixedGraphicalModel(lam=0.05, missing="drop").fit(table)
    for filled in [model.impute(table), *model.impute(table, n_draws=5, random_state=0)]:
        found = check_gaps(filled)
        assert not found.any()
        if isinstance(table, pd.DataFrame):
            assert (filled.dtypes == table.dtypes).all()


def check_gaps(table):
    if isinstance(table, np.ndarray | list):
        cells = list(np.asarray(table, dtype=object).flat)
    else:
        cells = list(chain.from_iterable(nw.from_native(table, eager_only=True).iter_rows()))
    return np.array([x is None or (isinstance(x, Real) and not np.isfinite(x)) for x in cells])


def test_scores_of_values_as_far_away_as_doubles_go_are_finite():
    table = in_units(1e-74)
    model = mg.MixedGraphicalModel(lam=0.1).fit(table)
    far = table.assign(x=1e74, k=-1e74)
    assert np.isfinite(model.score(far))
    assert all(np.isfinite(score) for score in model.node_scores(far).values())


def test_truth_values_among_numbers_are_called_that():
    with pytest.raises(mg.TableError, match="column 'k': truth values among numbers"):
        mg.MixedGraphicalModel().fit(beside([1, True, 2.5] * (N // 3)))


def test_many_different_problems_are_whole_lines():
    kinds = ({1}, b"x", 1j, [1], (1, "a"), np.datetime64("2020-01-01"))
    table = pd.DataFrame({f"{k}{'n' * 300}": [kinds[k % 6]] * N for k in range(60)}, dtype=object)
    with pytest.raises(mg.TableError) as raised:
        mg.MixedGraphicalModel().fit(table)
    text = str(raised.value)
    assert len(text) < 4000
    assert all(line.startswith(("  - ", "60 problems")) for line in text.splitlines())
