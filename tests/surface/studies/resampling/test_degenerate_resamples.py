"""Resamples without a level, a column or a gap: they work, or are counted with their reason."""

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg

pytestmark = pytest.mark.filterwarnings("ignore::mixedgm.TableWarning")

N = 66
KINDS = ("continuous", "categorical", "ordinal", "count", "hurdle")


def values(kind: str, rng: np.random.Generator, common: np.ndarray) -> np.ndarray:
    noisy = common + rng.normal(size=N)
    if kind == "continuous":
        return noisy
    if kind == "categorical":
        return np.array(["a", "b"], dtype=object)[(noisy > 0.0).astype(int)]
    if kind == "ordinal":
        return np.clip(np.round(noisy + 1.5), 0, 3)
    if kind == "count":
        return rng.poisson(np.exp(0.3 * common)).astype(float)
    return np.where(rng.random(N) < 0.4, 0.0, 3.0 + noisy)


RARE = {"continuous": 5.0, "categorical": "rare", "ordinal": 4.0, "count": 9.0, "hurdle": 0.0}
COMMON = {"continuous": 1.0, "categorical": "a", "ordinal": 1.0, "count": 0.0}


def table(kind: str, odd: str, seed: int = 0) -> pd.DataFrame:
    """A table whose column `odd` loses a level, its variation or its gap in many resamples."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=N)
    x, y = (common + 0.7 * rng.normal(size=N) for _ in range(2))
    column = pd.Series(values(kind, rng, common), dtype=object)
    if "constant" in odd:
        column[:] = rng.normal(3.0, 1.0, N) if kind == "hurdle" else COMMON[kind]
    if odd != "gap":
        column[:2] = RARE[kind]
    if "gap" in odd:
        column[5] = None
        x[6] = np.nan if odd != "gap" else x[6]
    if kind != "categorical":
        column = column.astype(float)
    group = np.where(np.arange(N) % 2 == 0, "u", "v")
    return pd.DataFrame({"odd": column, "x": x, "y": y, "group": group})


def options(kind: str, odd: str) -> dict:
    missing = "model" if "gap" in odd else "drop"
    return {"types": {"odd": kind}, "missing": missing, "n_jobs": 1, "random_state": 0}


def check_bootstrap(model: mg.MixedGraphicalModel, rows: pd.DataFrame, **how: object) -> None:
    found = mg.bootstrap(model, rows, random_state=0, n_jobs=1, **how)
    assert len(found.replicates) + found.n_failed == found.n_boot
    assert all(failure.message for failure in found.failures)
    assert np.isfinite(found.replicates.norms).all()
    if found.pair_replicates is not None:
        sizes = found.parameters()
        assert np.isfinite(sizes["estimate"]).all()


def test_the_tables_are_degenerate_in_many_resamples() -> None:
    """Else the tests below would show nothing."""
    for kind in KINDS:
        rows = table(kind, "constant")["odd"]
        lost = [
            not set(range(2)) & set(np.random.default_rng(seed).integers(N, size=N).tolist())
            for seed in np.random.SeedSequence(0).spawn(6)
        ]
        assert any(lost)
        assert rows[2:].nunique() == (N - 2 if kind == "hurdle" else 1)


@pytest.mark.parametrize(
    ("kind", "odd"),
    [
        *((kind, odd) for kind in KINDS for odd in ("constant", "gap, constant")),
        *(("categorical", "rare"), ("ordinal", "rare"), ("hurdle", "gap")),
    ],
)
def test_a_bootstrap_goes_on_without_a_level_a_column_or_a_gap(kind: str, odd: str) -> None:
    rows = table(kind, odd)
    model = mg.MixedGraphicalModel(**options(kind, odd)).fit(rows)
    check_bootstrap(model, rows, n_boot=6)


@pytest.mark.parametrize("kind", KINDS)
def test_so_do_other_studies(kind: str) -> None:
    rows = table(kind, "gap, constant")
    given = options(kind, "gap, constant")
    model = mg.MixedGraphicalModel(lam=0.15, **given).fit(rows)
    check_bootstrap(model, rows, n_boot=4, kind="case-dropping", drop=[0.7])
    check_bootstrap(model, rows, n_boot=2, select="again")
    tests = mg.edge_tests(model, rows)
    assert len(tests.edges()) == 6
    drawn = model.impute(rows, n_draws=2, parameters="resampled", random_state=0)
    assert not any(each.isna().any(axis=None) for each in drawn)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("odd", ["constant", "gap, constant"])
def test_so_do_criteria_that_fit_subsets(kind: str, odd: str) -> None:
    rows, given = table(kind, odd), options(kind, odd)
    thirds = [np.arange(first, first + N // 3) for first in range(0, N, N // 3)]
    folds = [(np.setdiff1d(np.arange(N), test), test) for test in thirds]
    for select in (mg.CV(folds), mg.StARS(n_subsamples=4, ratio=0.4)):
        model = mg.MixedGraphicalModel(select=select, lam_min_ratio=0.3, n_lams=4, **given)
        model.fit(rows)
        assert any(
            "'odd' was constant or lacked levels" in note for note in model.fitted_.report.notes
        )


@pytest.mark.parametrize("kind", KINDS)
def test_groups_that_lack_something_are_compared_or_refused_by_name(kind: str) -> None:
    rows = table(kind, "constant")
    rows.loc[:1, "group"] = "u"  # so that the column is constant in the other group
    given = {"types": {"odd": kind}, "n_jobs": 1, "random_state": 0}
    found = mg.compare(rows, "group", lam=0.2, n_perm=3, **given)
    assert found.failures == ()
    assert np.isfinite(found.edges()["difference"]).all()
    with pytest.raises(mg.ParameterError, match="column 'odd' .* in group 'v'"):
        mg.compare(rows, "group", lam=0.2, test="differences", **given)


def chain(nearly_constant: bool) -> pd.DataFrame:
    """Each column follows the one before; x2 has gaps, and one row of `a` differs from all."""
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(60, 9))
    for j in range(1, 5):
        numbers[:, j] = 0.8 * numbers[:, j - 1] + 0.6 * numbers[:, j]
    table = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(9)])
    table.loc[rng.random(60) < 0.4, "x2"] = np.nan
    if nearly_constant:
        table.insert(0, "a", (np.arange(60) == 7).astype(float))
    return table


def test_a_nearly_constant_column_leaves_the_errors_of_others_alone() -> None:
    """It is constant in a third of the resamples, whose rows are completed by the same graph."""
    errors = []
    for nearly_constant in (False, True):
        rows = chain(nearly_constant)
        types = {"a": "continuous"} if nearly_constant else None
        model = mg.MixedGraphicalModel(
            select=mg.FDR(0.01), missing="model", types=types, transforms=None
        ).fit(rows)
        pairs = sorted(tuple(edge[:2]) for edge in model.edges_)
        assert pairs == [("x0", "x1"), ("x1", "x2"), ("x3", "x4")]
        found = mg.bootstrap(model, rows, n_boot=20, random_state=1, n_jobs=1)
        assert found.pair_replicates is not None
        assert found.pair_replicates.method == "graph"
        sizes = found.intervals().set_index(["source", "target"])["se"]
        errors.append([sizes["x1", "x2"], sizes["x2", "x3"]])
    np.testing.assert_allclose(errors[1], errors[0], rtol=0.1)


def test_a_declared_level_without_rows_has_no_parameters() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    codes = np.where(x + rng.normal(size=N) > 0.0, "a", "b")
    levels = pd.Categorical(codes, categories=["a", "b", "never"])
    rows = pd.DataFrame({"x": x, "y": rng.normal(size=N), "level": levels})
    model = mg.MixedGraphicalModel(lam=0.1).fit(rows)
    sizes = mg.bootstrap(model, rows, n_boot=8, random_state=0, n_jobs=1).parameters()
    assert np.isfinite(sizes[["estimate", "se", "lower", "upper"]]).all(axis=None)
    own = sizes[(sizes["source"] == "level") & (sizes["parameter"] == "bias")]
    assert own["source_level"].tolist() == ["a", "b"]


def test_a_column_without_any_value_in_a_resample_counts_as_a_failure_with_its_reason() -> None:
    rows = table("continuous", "gap")
    rows.loc[3:, "odd"] = np.nan
    model = mg.MixedGraphicalModel(lam=0.3, missing="model").fit(rows)
    how = {"kind": "case-dropping", "drop": [0.5], "n_boot": 20, "random_state": 0, "n_jobs": 1}
    found = mg.bootstrap(model, rows, **how)
    assert 0 < found.n_failed < 20
    assert {failure.message.split(".")[0] for failure in found.failures} == {
        "column 'odd': all 33 values are missing in this part of the table"
    }


@pytest.mark.parametrize("kind", ["hurdle", "continuous"])
def test_the_summary_says_that_missing_cells_are_drawn(kind: str) -> None:
    """A number that is missing beside a hurdle column has too many states; alone it has one."""
    rows = table(kind, "gap")
    model = mg.MixedGraphicalModel(lam=0.3, **options(kind, "gap")).fit(rows)
    told = mg.bootstrap(model, rows, n_boot=2, random_state=0, n_jobs=1).summary()
    drawn = "some missing cells are drawn in each resample; that adds to its error" in told
    assert drawn == (kind == "hurdle")


def test_a_column_that_is_constant_in_the_complete_rows_has_no_parameters() -> None:
    """The only zeros of the hurdle column are in rows that have gaps."""
    rows = table("hurdle", "constant")
    rows.loc[:1, "x"] = np.nan
    model = mg.MixedGraphicalModel(lam=0.1, **options("hurdle", "constant")).fit(rows)
    assert any("constant in these rows" in note for note in model.fitted_.report.notes)
    found = mg.bootstrap(model, rows, n_boot=4, random_state=0, n_jobs=1).parameters()
    assert set(found["source"]) == {"x", "y", "group"}
    assert np.isfinite(found[["estimate", "se", "lower", "upper"]].to_numpy()).all()


@pytest.mark.parametrize("kind", ["count", "continuous", "categorical", "hurdle"])
def test_amounts_beside_which_nothing_varies_have_no_interval(kind: str) -> None:
    """The other column is the same wherever there is an amount; a third one varies there."""
    rng = np.random.default_rng(0)
    spends = rng.random(N) < 0.5
    values = np.where(spends, 0, rng.integers(0, 6, N))
    other = {"categorical": np.where(values > 2, "b", "a"), "hurdle": values * rng.random(N)}
    columns = {
        "spent": np.where(spends, np.exp(rng.normal(size=N)), 0.0),
        "other": other.get(kind, values.astype(float) if kind == "continuous" else values),
        "third": rng.normal(size=N),
    }
    types = {"spent": "hurdle", "other": kind}
    model = mg.MixedGraphicalModel(types=types, lam=0.1, transforms=None).fit(pd.DataFrame(columns))
    found = mg.bootstrap(model, pd.DataFrame(columns), n_boot=8, random_state=0, n_jobs=1)
    sizes = found.intervals().set_index(["source", "target"])
    has = {frozenset(pair): sizes.loc[[pair], "se"].notna().all() for pair in sizes.index}
    assert not has[frozenset(("spent", "other"))]
    assert has[frozenset(("spent", "third"))]
    assert has[frozenset(("other", "third"))]
