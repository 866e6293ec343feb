"""Hold-out and cross-validation: losses recomputed from fits of sub-frames, folds by hand."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, ShuffleSplit

import mixedgm as mg
from tests.support.people import assert_same_params, people
from tests.support.solvers import Faulty

Model = partial(mg.MixedGraphicalModel, n_jobs=1)
LAMS = [0.6, 0.3, 0.15, 0.08]
TIGHT = {"lams": LAMS, "tol": 1e-8}


@pytest.fixture(scope="module")
def table():
    frame = people(120, seed=5)
    # Declared levels, so that a sub-frame has the same schema.
    for name in ("smoker", "colour"):
        frame[name] = pd.Categorical(frame[name])
    return frame


def loss_of_test_rows(frame, train, test, lam, **options):
    """Fit some rows as a table of its own, and score others."""
    model = Model(lam=lam, tol=1e-8, **options).fit(frame.iloc[train])
    return sum(model.node_scores(frame.iloc[test]).values())


def table_of_losses(frame, splits, **options):
    return np.array(
        [[loss_of_test_rows(frame, *split, lam, **options) for lam in LAMS] for split in splits]
    )


# -- hold-out --------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
@pytest.mark.parametrize("as_mask", [False, True])
def test_given_rows_are_held_out(table, as_mask):
    rows = np.arange(0, 120, 4)
    mask = np.isin(np.arange(120), rows)
    select = mg.Holdout(rows=mask if as_mask else rows)
    model = Model(select=select, **TIGHT).fit(table)
    expected = table_of_losses(table, [(np.flatnonzero(~mask), rows)])[0]
    np.testing.assert_allclose(model.fitted_.scores["holdout"], expected, atol=1e-6)
    assert model.lam_ == LAMS[int(np.argmin(expected))]
    assert model.fitted_.report.criterion == "hold-out (given rows)"


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
@pytest.mark.filterwarnings("ignore::mixedgm.TableWarning")
def test_a_level_that_only_rows_held_out_have_counts_half_a_row_of_the_fit():
    """Also where cells are missing; at this penalty columns are independent."""
    one = np.array(["a", "b"] * 15, dtype=object)
    other = np.array(["u", "v", "v"] * 10, dtype=object)
    one[29], other[0], other[29] = "rare", None, None
    select = mg.Holdout(rows=np.arange(20, 30))
    model = Model(select=select, lams=[9.0], tol=1e-8, missing="model")
    model.fit(pd.DataFrame({"one": one, "other": other}))
    shares = {"a": 10 / 20.5, "b": 10 / 20.5, "rare": 0.5 / 20.5, "u": 6 / 19, "v": 13 / 19}
    expected = -sum(np.log(shares[value]) for value in [*one[20:], *other[20:29]]) / 10
    # Parts are completed in two rounds only, so shares of the incomplete column are not exact.
    assert model.fitted_.scores["holdout"] == pytest.approx(expected, abs=1e-3)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_the_model_is_that_of_all_rows(table):
    model = Model(select=mg.Holdout(), random_state=1, **TIGHT).fit(table)
    alone = Model(lam=model.lam_, tol=1e-8).fit(table)
    assert_same_params(model.params_, alone.params_, atol=1e-5)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_a_fraction_is_drawn_by_the_random_state(table):
    def losses(seed):
        select = mg.Holdout(fraction=0.25)
        model = Model(select=select, random_state=seed, **TIGHT).fit(table)
        return model.fitted_.scores["holdout"].tolist()

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


def test_hold_out_needs_rows_on_both_sides(table):
    with pytest.raises(mg.ParameterError, match="0 of the 120 rows used are held out"):
        Model(select=mg.Holdout(rows=[500])).fit(table)
    with pytest.raises(mg.ParameterError, match="120 of the 120 rows used are held out"):
        Model(select=mg.Holdout(rows=np.ones(120, bool))).fit(table)


# -- cross-validation ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_hand(table):
    splits = list(KFold(4).split(table))
    return splits, table_of_losses(table, splits)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_mean_and_standard_error_over_folds(table, by_hand):
    _, losses = by_hand
    model = Model(select=mg.CV(KFold(4)), **TIGHT).fit(table)
    scores = model.fitted_.scores
    for fold in range(4):
        np.testing.assert_allclose(scores[f"cv_fold_{fold + 1}"], losses[fold], atol=1e-6)
    np.testing.assert_allclose(scores["cv"], losses.mean(axis=0), atol=1e-6)
    error = losses.std(axis=0, ddof=1) / np.sqrt(4)
    np.testing.assert_allclose(scores["cv_se"], error, atol=1e-6)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_the_rule_of_one_standard_error(table, by_hand):
    _, losses = by_hand
    mean, error = losses.mean(axis=0), losses.std(axis=0, ddof=1) / 2.0
    lowest = int(np.argmin(mean))
    within = [k for k in range(len(LAMS)) if mean[k] <= mean[lowest] + error[lowest]]
    assert within[0] < lowest  # else the test could not fail
    chosen = Model(select=mg.CV(KFold(4)), **TIGHT).fit(table)
    assert chosen.lam_ == LAMS[within[0]]
    best = Model(select=mg.CV(KFold(4), one_se=False), **TIGHT).fit(table)
    assert best.lam_ == LAMS[lowest]


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_splits_given_as_positions(table, by_hand):
    splits, losses = by_hand
    model = Model(select=mg.CV(splits), **TIGHT).fit(table)
    np.testing.assert_allclose(model.fitted_.scores["cv"], losses.mean(axis=0), atol=1e-6)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_unequal_folds_count_by_their_rows(table):
    fold = np.repeat([0, 1, 2], [20, 40, 60])
    model = Model(select=mg.CV(PredefinedSplit(fold)), **TIGHT).fit(table)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    losses = table_of_losses(table, splits)
    mean = np.average(losses, axis=0, weights=[20, 40, 60])
    np.testing.assert_allclose(model.fitted_.scores["cv"], mean, atol=1e-6)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_row_weights_count_in_the_mean_of_a_fold(table):
    weight = np.tile(np.random.default_rng(0).uniform(0.2, 3, 60), 2)
    weight *= 120 / weight.sum()
    rows = np.arange(60)
    select = mg.Holdout(rows=rows)
    model = Model(select=select, **TIGHT).fit(table, sample_weight=weight)
    lone = Model(lam=0.3, tol=1e-8)
    lone.fit(table.iloc[60:], sample_weight=weight[60:])
    expected = sum(lone.node_scores(table.iloc[:60], sample_weight=weight[:60]).values())
    assert model.fitted_.scores["holdout"][1] == pytest.approx(expected, abs=1e-6)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_penalties_by_name_hold_in_the_folds(table):
    options = {"forbid": [("height", "weight")], "require": [("smoker", "colour")]}
    rows = np.arange(40)
    select = mg.Holdout(rows=rows)
    model = Model(select=select, **TIGHT, **options).fit(table)
    expected = table_of_losses(table, [(np.arange(40, 120), rows)], **options)[0]
    np.testing.assert_allclose(model.fitted_.scores["holdout"], expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
@pytest.mark.parametrize("splitter", [ShuffleSplit(3, random_state=0), KFold(3, shuffle=True)])
def test_other_splitters(table, splitter):
    model = Model(select=mg.CV(splitter), lams=[0.5, 0.2]).fit(table)
    assert len([name for name in model.fitted_.scores if name.startswith("cv_fold")]) == 3
    assert type(splitter).__name__ in model.fitted_.report.criterion


def test_splits_are_drawn_once_even_when_the_grid_grows(table):
    """A splitter without a seed draws anew at every call; folds must not change half-way."""

    class Drawn:
        calls = 0

        def split(self, X, y=None, groups=None):
            Drawn.calls += 1
            return KFold(3, shuffle=True).split(X)

    select = mg.CV(Drawn(), one_se=False)
    model = Model(select=select, n_lams=3, lam_min_ratio=0.8).fit(table)
    assert len(model.path_) > 3
    assert Drawn.calls == 1
    assert {len(scores) for scores in model.fitted_.scores.values()} == {len(model.path_)}


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_a_number_of_folds_is_drawn_by_the_random_state(table):
    def losses(seed):
        model = Model(select="cv", random_state=seed, **TIGHT).fit(table)
        return model.fitted_.scores["cv"].tolist()

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


# -- clusters --------------------------------------------------------------------------------------


def repeated(n_groups, times, seed):
    """Every row several times over: rows of one group tell all about each other."""
    rng = np.random.default_rng(seed)
    once = pd.DataFrame({"x": rng.normal(size=n_groups), "y": rng.normal(size=n_groups)})
    once["z"] = pd.Categorical(rng.choice(["a", "b"], n_groups))
    frame = pd.concat([once] * times, ignore_index=True)
    return frame, np.tile(np.arange(n_groups), times)


@pytest.mark.parametrize("cv", [5, GroupKFold(5)], ids=["drawn", "splitter"])
@pytest.mark.parametrize("label", ["number", "text"])
def test_rows_of_a_group_stay_together(cv, label):
    """Every group is one row, four times over: a table has all of them or none."""
    frame, groups = repeated(20, 4, seed=0)
    seen = {}

    def note(problem):
        rows = problem.smooth.rows.numbers
        seen[rows.tobytes()] = rows

    given = groups if label == "number" else np.array([f"family {g}" for g in groups])
    select = mg.CV(cv, groups=given)
    options = {"lams": [0.5, 0.2], "random_state": 0, "n_jobs": 1}
    Model(select=select, solver=Faulty(note, None), **options).fit(frame)
    assert sorted(len(rows) for rows in seen.values()) == [64] * 5 + [80]
    for rows in seen.values():
        assert set(np.unique(rows, axis=0, return_counts=True)[1]) == {4}


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_clusters_by_the_name_of_a_column(table):
    by_name = mg.CV([], groups="group")
    splits = list(GroupKFold(3).split(table, groups=table["group"]))
    model = Model(select=mg.CV(GroupKFold(3), groups="group"), lams=[0.4, 0.2])
    twin = Model(select=mg.CV(splits), lams=[0.4, 0.2])
    found, expected = model.fit(table).fitted_, twin.fit(table).fitted_
    np.testing.assert_array_equal(found.scores["cv"], expected.scores["cv"])
    assert any("'group' was constant or lacked levels" in note for note in found.report.notes)
    with pytest.raises(mg.ParameterError, match="cv has no splits"):
        Model(select=by_name, lams=[0.4]).fit(table)


def test_copies_are_seen_through_only_with_groups():
    """Forty random rows, four times over: without groups, noise predicts its own copies."""
    frame, groups = repeated(40, 4, seed=1)
    options = {"random_state": 0, "n_lams": 15}
    naive = Model(select=mg.CV(5, one_se=False), **options).fit(frame)
    fair = Model(select=mg.CV(5, one_se=False, groups=groups), **options)
    fair.fit(frame)
    assert len(fair.edges_) < len(naive.edges_)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_dropped_rows_keep_their_group_and_their_place(table):
    """Positions, groups and predefined folds are those of the table that was given."""
    holes = table.copy()
    holes.loc[[3, 50, 119], "height"] = np.nan
    fold = np.arange(120) % 3
    kept = np.setdiff1d(np.arange(120), [3, 50, 119])
    options = {"lams": [0.4, 0.2], "missing": "drop"}
    for cv, groups in (
        (PredefinedSplit(fold), None),
        (GroupKFold(3), fold),
        ([(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)], None),
    ):
        with pytest.warns(mg.TableWarning):
            model = Model(select=mg.CV(cv, groups=groups), **options).fit(holes)
        splits = [
            (np.flatnonzero(fold[kept] != f), np.flatnonzero(fold[kept] == f)) for f in range(3)
        ]
        twin = Model(select=mg.CV(splits), lams=[0.4, 0.2]).fit(table.iloc[kept])
        found = {tuple(model.fitted_.scores[f"cv_fold_{f}"]) for f in (1, 2, 3)}
        assert found == {tuple(twin.fitted_.scores[f"cv_fold_{f}"]) for f in (1, 2, 3)}


# -- odd folds -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_a_fold_without_a_level_or_with_a_constant_column_is_counted():
    frame = people(60, seed=6)
    frame["rare"] = pd.Categorical(["yes"] * 2 + ["no"] * 58)
    frame["spike"] = np.r_[np.zeros(58), 1.0, 2.0]
    fold = np.r_[0, 0, np.arange(56) % 2 + 1, 3, 3]
    model = Model(select=mg.CV(PredefinedSplit(fold)), lams=[0.5, 0.2])
    with pytest.warns(mg.TableWarning):
        model.fit(frame)
    notes = model.fitted_.report.notes
    assert "in 1 of 4 folds column 'rare' was constant or lacked levels" in notes
    assert "in 1 of 4 folds column 'spike' was constant or lacked levels" in notes
    assert np.isfinite(model.fitted_.scores["cv"]).all()


# Four folds that are told apart by how many rows they are fitted to: 90 to 87.
FOUR = mg.CV([(rows[k:], test) for k, (rows, test) in enumerate(KFold(4).split(range(120)))])


def failing(*sizes, error=None):
    """A solver that fails on tables of so many rows."""
    error = error or np.linalg.LinAlgError("no luck")
    return Faulty(lambda problem: problem.smooth.n_rows in sizes, error)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_failed_folds_are_counted_and_left_out(table):
    model = Model(select=FOUR, solver=failing(90), **TIGHT).fit(table)
    scores, notes = model.fitted_.scores, model.fitted_.report.notes
    assert "1 of 4 folds failed; the first one: LinAlgError: no luck" in notes
    assert np.isnan(scores["cv_fold_1"]).all()
    rest = np.array([scores[f"cv_fold_{f}"] for f in (2, 3, 4)])
    np.testing.assert_allclose(scores["cv"], rest.mean(axis=0))
    np.testing.assert_allclose(scores["cv_se"], rest.std(axis=0, ddof=1) / np.sqrt(3))


def test_when_all_folds_fail_that_is_an_error(table):
    solver = failing(*range(120))
    with pytest.raises(mg.MixedGMError, match="all 4 folds failed; the first one: .*no luck"):
        Model(select=FOUR, solver=solver, **TIGHT).fit(table)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_ctrl_c_keeps_the_folds_that_are_done(table):
    whole = Model(select=FOUR, solver=failing(), **TIGHT).fit(table).fitted_
    model = Model(select=FOUR, solver=failing(87, error=KeyboardInterrupt), **TIGHT)
    with pytest.warns(RuntimeWarning, match="interrupted"):
        model.fit(table)
    assert "interrupted: 3 of 4 folds were used" in model.fitted_.report.notes
    expected = np.mean([whole.scores[f"cv_fold_{f}"] for f in (1, 2, 3)], axis=0)
    np.testing.assert_allclose(model.fitted_.scores["cv"], expected)


def test_ctrl_c_ends_the_growth_of_the_grid(table):
    model = Model(select=FOUR, n_lams=30, solver=failing(87, error=KeyboardInterrupt))
    with pytest.warns(RuntimeWarning, match="interrupted"):
        model.fit(table)
    assert len(model.path_) == 10  # the first part


CRITERIA = {
    "cv": lambda **more: mg.CV(4, **more),
    "stars": lambda **more: mg.StARS(beta=0.3, n_subsamples=4, **more),
    "stability": lambda **more: mg.StabilitySelection(max_false=6, n_subsamples=4, **more),
}


@pytest.mark.parametrize("name", CRITERIA)
def test_a_checkpoint_of_a_growing_grid_goes_on_and_ends_the_same(table, tmp_path, name):
    make, options = CRITERIA[name], {"random_state": 3, "n_lams": 30, "n_jobs": 1}
    plain = Model(select=make(), **options).fit(table)
    criterion = make(checkpoint=tmp_path / "kept")
    assert criterion == make()
    first = Model(select=criterion, **options).fit(table)
    files = sorted((tmp_path / "kept").rglob("*.npz"))
    assert len({file.parent for file in files}) > 1, "one folder for every part of the grid"
    kept = {file: file.stat().st_mtime_ns for file in files[1::2]}
    for file in files[::2]:
        file.unlink()
    second = Model(select=criterion, **options).fit(table)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept, "read, not done again"
    assert sorted((tmp_path / "kept").rglob("*.npz")) == files
    for model in (first, second):
        assert model.lam_ == plain.lam_
        for score, values in plain.fitted_.scores.items():
            np.testing.assert_array_equal(model.fitted_.scores[score], values)
    Model(select=criterion, **{**options, "random_state": 4}).fit(table)
    assert len(list((tmp_path / "kept").rglob("*.npz"))) > len(files), "other folds, other folders"
    first.save(tmp_path / "a.mgm")
    assert mg.load(tmp_path / "a.mgm").select.checkpoint is None
    with pytest.raises(mg.ParameterError, match="a checkpoint needs random_state"):
        Model(select=criterion).fit(table)
    with pytest.raises(mg.ParameterError, match="checkpoint must be the name of a folder"):
        make(checkpoint=3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mg.CV(1), "cv must be at least 2 folds. Got 1 instead."),
        (lambda: mg.CV("five"), "cv must be an integer of at least 2, a splitter"),
        (lambda: mg.CV(2.5), "cv must be an integer of at least 2, a splitter"),
        (lambda: mg.CV(True), "cv must be an integer of at least 2, a splitter"),
        (lambda: mg.CV(one_se="yes"), "one_se must be True or False. Got 'yes' instead."),
        (lambda: mg.Holdout(fraction=0), "fraction must be a number in (0, 1). Got 0 instead."),
        (lambda: mg.Holdout(fraction="x"), "fraction must be a number in (0, 1). Got 'x' instead."),
    ],
)
def test_impossible_options_are_named(make, message):
    with pytest.raises(mg.ParameterError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (mg.CV(200), "cv=200 folds need at least 200 rows; there are 120."),
        (mg.CV(4, groups="group"), "cv=4 folds need at least 4 groups; there are 3."),
        (mg.CV(GroupKFold(3)), "cannot split these 120 rows: "),
        (mg.CV(3, groups=[0, 1]), "groups must have one label per row of the table"),
        (mg.CV(3, groups="family"), "family"),
        (mg.CV([([0, 1], [1, 2])]), "split 0 of cv has 2 rows to fit, 2 to score and 1 in both"),
        (mg.CV([([0, 1],)]), "split 0 of cv must be a pair (train, test)"),
        (mg.Holdout(rows=[0.5]), "rows must be positions of rows or a boolean array"),
    ],
)
def test_what_does_not_fit_the_table_is_named(table, select, message):
    with pytest.raises(mg.ParameterError) as caught:
        Model(select=select, lams=[0.4]).fit(table)
    assert message in str(caught.value)
