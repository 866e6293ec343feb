"""`compare` by permutation: graphs of groups, shuffled labels, odd groups, checkpoints."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.support.balance import balanced, centred
from tests.support.solvers import Faulty, nth, tables

PERMS = 39


def table(n: int = 240, seed: int = 0, planted: bool = True, n_groups: int = 2) -> pd.DataFrame:
    """x - y differs between the first site and the others where planted; y - c is everywhere."""
    rng = np.random.default_rng(seed)
    site = rng.permutation(np.arange(n) % n_groups)
    x, z = rng.normal(size=(2, n))
    y = rng.normal(size=n) + np.where(planted & (site == 0), 1.2, 0.0) * x
    c = (y + rng.normal(size=n) > 0).astype(int)
    d = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "x": x,
            "y": y,
            "z": z,
            "c": np.array(["no", "yes"])[c],
            "d": np.array(["p", "q", "r"])[d],
            "site": np.array(["north", "south", "west"])[site],
        }
    )


@pytest.fixture(scope="module")
def found() -> mg.GroupComparison:
    # A small tol, so that solutions reached on two ways agree to the digits compared below.
    return mg.compare(table(), "site", lam=0.15, tol=1e-7, n_perm=PERMS, random_state=0, n_jobs=1)


def test_a_planted_difference_is_found(found: mg.GroupComparison) -> None:
    edges = found.edges()
    first = edges.iloc[0]
    assert (first["source"], first["target"], first["present_in"]) == ("x", "y", "north")
    assert first["p"] == first["p_max"] == 1 / (1 + PERMS)
    assert edges["differs"].tolist() == [True] + [False] * (len(edges) - 1)
    p = found.tests().set_index("statistic")["p"]
    assert p["largest edge difference"] == p["variance among groups"] == 1 / (1 + PERMS)


def test_p_values_follow_from_the_stored_statistics(found: mg.GroupComparison) -> None:
    kept, here = found.permutations, found.observed
    single, largest = [], []
    for k, value in enumerate(here["edges"]):
        single.append((1 + sum(row[k] >= value for row in kept["edges"])) / (1 + PERMS))
        largest.append((1 + sum(row[0] >= value for row in kept["tests"])) / (1 + PERMS))
    order = sorted(range(len(single)), key=lambda k: -here["edges"][k])
    edges = found.edges()
    np.testing.assert_allclose(edges["p"], [single[k] for k in order])
    np.testing.assert_allclose(edges["p_max"], [largest[k] for k in order])
    # Holm over all ten pairs of the five columns; those without an edge have p = 1.
    every = sorted([*single, *[1.0] * (10 - len(single))])
    stepped = np.minimum(np.maximum.accumulate([p * (10 - k) for k, p in enumerate(every)]), 1.0)
    np.testing.assert_allclose(edges["p_holm"], [stepped[every.index(single[k])] for k in order])
    tests = [
        (1 + sum(row[k] >= here["tests"][k] for row in kept["tests"])) / (1 + PERMS)
        for k in range(4)
    ]
    np.testing.assert_allclose(found.tests()["p"], tests)
    assert (kept["edges"].max(axis=1) <= kept["tests"][:, 0]).all()


def balanced_groups() -> tuple[pd.DataFrame, np.ndarray]:
    """The table with centred numbers, and weights: both groups have the same margins."""
    data = table()
    plain, south = data.drop(columns="site"), (data["site"] == "south").to_numpy()
    masks, weights = (~south, south), np.empty(len(data))
    found = balanced([plain[mask] for mask in masks], [np.ones(mask.sum()) for mask in masks])
    for mask, each in zip(masks, found, strict=True):
        weights[mask] = each
        plain.loc[mask] = centred(plain[mask], each)
    return plain, weights


def fits(plain: pd.DataFrame, weights: np.ndarray, codes: np.ndarray) -> list:
    parts = [(plain[codes == g], weights[codes == g]) for g in (0, 1)]
    return [mg.MixedGraphicalModel(lam=0.15).fit(p, sample_weight=w) for p, w in parts]


@pytest.mark.parametrize("at", [0, 7])
def test_a_permutation_is_what_estimators_give(found: mg.GroupComparison, at: int) -> None:
    """Balance, shuffle and balance by hand, and fit each part with the estimator."""
    plain, weights = balanced_groups()
    rows = np.arange(len(plain))
    codes = (table()["site"] == "south").to_numpy().astype(int)
    codes = codes[
        np.random.default_rng(np.random.SeedSequence(0).spawn(PERMS + 1)[1 + at]).permutation(rows)
    ]
    before = [weights[codes == g] for g in (0, 1)]
    before = [each * len(each) / each.sum() for each in before]
    for g, each in enumerate(balanced([plain[codes == g] for g in (0, 1)], before)):
        weights[codes == g] = each
    _check_statistics(fits(plain, weights, codes), found.permutations["tests"][at])


def test_observed_statistics_are_those_of_groups_with_the_same_margins(
    found: mg.GroupComparison,
) -> None:
    codes = (table()["site"] == "south").to_numpy().astype(int)
    models = fits(*balanced_groups(), codes)
    _check_statistics(models, found.observed["tests"])
    side = found.edges().set_index(["source", "target"])
    for model, label in zip(models, found.groups, strict=True):
        for edge in model.edges_:
            value = edge.norm * (-1 if edge.sign == "-" else 1)
            estimate = side.loc[(edge.source, edge.target), f"estimate_{label}"]
            assert estimate == pytest.approx(value, abs=2e-4)


def test_models_are_those_of_the_groups_as_they_are(found: mg.GroupComparison) -> None:
    plain = table().drop(columns="site")
    site = table()["site"]
    for label, model in found.models.items():
        again = mg.MixedGraphicalModel(**model.get_params()).fit(plain[site == label])
        assert model.lam_ == 0.15
        assert model.schema_.names == tuple(plain.columns)
        weights = [each.fitted_.edge_norms for each in (again, model)]
        np.testing.assert_allclose(*weights, atol=1e-5)
    side = found.edges().set_index(["source", "target"])
    for label, model in found.models.items():
        own = {(e.source, e.target): (e.norm, e.sign) for e in model.edges_}
        for pair, row in side.iterrows():
            norm, sign = own.get(pair, (0.0, None))
            assert row[f"norm_{label}"] == pytest.approx(norm, rel=1e-12)
            assert (sign is None) == pd.isna(row[f"sign_{label}"])


def _check_statistics(models: list[mg.MixedGraphicalModel], tests: np.ndarray) -> None:
    """Differences, strengths and Hamming distance from single interactions of the models."""
    apart, spread = [], 0.0
    for a, b in combinations([node.name for node in models[0].schema_.nodes], 2):
        blocks = []
        for model in models:
            at = [model.schema_.node_index(name) for name in (a, b)]
            scale = model.fitted_.node_scales[at].prod()
            blocks.append(model.fitted_.interaction(a, b).values * scale)
        apart.append(np.linalg.norm(blocks[0] - blocks[1]))
        spread += ((blocks[0] - blocks[1]) ** 2).sum() / 4  # variance of two numbers
    strength = [sum(edge.norm for edge in model.edges_) for model in models]
    pairs = [{frozenset(edge[:2]) for edge in model.edges_} for model in models]
    expected = [max(apart), abs(strength[0] - strength[1]), spread, len(pairs[0] ^ pairs[1])]
    np.testing.assert_allclose(tests, expected, atol=2e-4)


def test_equal_groups_raise_few_alarms() -> None:
    """24 tables without a difference: at level 0.1, 2.4 alarms per test are expected.

    Seven or more have probability 0.009 in each; the mean p-value is 0.525 with standard error
    0.06.
    """
    p = []
    for seed in range(24):
        data = table(100, seed, planted=False)[["x", "y", "c", "site"]]
        found = mg.compare(data, "site", n_perm=19, random_state=seed, n_jobs=1)
        p.append(found.tests()["p"].to_numpy()[:3])
    assert ((np.array(p) <= 0.1).sum(axis=0) <= 6).all()
    assert (np.abs(np.mean(p, axis=0) - 0.525) < 0.2).all()


def test_jobs_and_checkpoints_change_nothing(tmp_path: Path, found: mg.GroupComparison) -> None:
    given = {"lam": 0.15, "tol": 1e-7, "n_perm": PERMS, "random_state": 0}
    two = mg.compare(table(), "site", n_jobs=2, checkpoint=tmp_path / "kept", **given)
    files = sorted((tmp_path / "kept").glob("*.npz"))
    assert len(files) == PERMS
    for file in files[:30]:
        file.unlink()
    resumed = mg.compare(table(), "site", n_jobs=1, checkpoint=tmp_path / "kept", **given)
    for other in (two, resumed):
        for name, values in found.permutations.items():
            np.testing.assert_array_equal(other.permutations[name], values)
    changed = table()
    changed.loc[0, "site"] = "south" if changed.loc[0, "site"] == "north" else "north"
    with pytest.raises(mg.ParameterError, match="other data, options or seed"):
        mg.compare(changed, "site", n_jobs=1, checkpoint=tmp_path / "kept", **given)
    with pytest.raises(mg.ParameterError, match="random_state"):
        mg.compare(table(), "site", checkpoint=tmp_path / "new")


def test_more_permutations_begin_with_the_same(found: mg.GroupComparison) -> None:
    few = mg.compare(table(), "site", lam=0.15, tol=1e-7, n_perm=5, random_state=0, n_jobs=1)
    np.testing.assert_array_equal(few.permutations["edges"], found.permutations["edges"][:5])


def test_three_groups() -> None:
    data = table(300, n_groups=3)
    found = mg.compare(data, "site", lam=0.15, n_perm=19, random_state=1, n_jobs=1)
    assert found.groups == ("north", "south", "west")
    first = found.edges().iloc[0]
    assert (first["source"], first["target"]) == ("x", "y")
    signed = [first[f"estimate_{g}"] for g in found.groups]  # all positive or absent
    assert first["difference"] == pytest.approx(max(signed) - min(signed))
    assert first["between"].startswith("north - ")
    assert first["p_max"] == 0.05
    strength = found.compared.norms.sum(axis=1)
    assert found.observed["tests"][1] == pytest.approx(strength.max() - strength.min())
    assert len(found.permutations["tests"]) == found.n_done == 19


def test_a_missing_level_and_a_constant_column_are_counted() -> None:
    data = table(200)
    south = data["site"] == "south"
    data.loc[south & (data["d"] == "r"), "d"] = "p"
    data.loc[south, "z"] = 1.5
    found = mg.compare(data, "site", lam=0.1, n_perm=9, random_state=0, n_jobs=1)
    odd = found.degenerate().set_index("column")
    assert odd.loc["d", "lacks_levels_in"] == "south"
    assert pd.isna(odd.loc["d", "constant_in"])
    assert odd.loc["z", "constant_in"] == "south"
    assert (found.n_done, found.n_failed) == (9, 0)
    edges = found.edges()
    of_z = (edges["source"] == "z") | (edges["target"] == "z")
    assert (edges.loc[of_z, "norm_south"] == 0.0).all()
    assert found.models["south"].schema_.nodes[-1].level_names == ("p", "q", "r")
    assert "constant in group south" in str(found)


def test_rare_levels_are_lost_in_some_permutations() -> None:
    data = table(120)
    data.loc[data["d"] == "r", "d"] = "p"
    data.loc[:1, "d"] = "r"
    data.loc[:1, "site"] = ["north", "south"]
    found = mg.compare(data, "site", lam=0.2, n_perm=19, random_state=0, n_jobs=1)
    lacking = found.degenerate().set_index("column").loc["d", "lacking"]
    assert 0 < lacking == found.n_degenerate < 19


def test_the_common_penalty_comes_from_the_whole_table() -> None:
    """Groups have the same margins there, and count as much as one of them."""
    found = mg.compare(table(), "site", n_perm=0)
    plain, weights = balanced_groups()
    whole = mg.MixedGraphicalModel().fit(plain, sample_weight=0.5 * weights)
    assert found.lam["north"] == found.lam["south"] == pytest.approx(whole.lam_, rel=1e-4)
    assert found.tests()["p"].isna().all()
    assert not found.edges()["differs"].any()
    assert "0 permutations" in str(found)


def test_graphs_without_edges_do_not_differ() -> None:
    found = mg.compare(table(80), "site", lam=9.0, n_perm=2, random_state=0, n_jobs=1)
    assert len(found.edges()) == 0
    assert found.tests()["value"].tolist() == [0.0] * 4
    assert found.tests()["p"].tolist() == [1.0] * 4
    assert "none in any group" in str(found)
    found.plot()
    assert len(found.plot_differences().get_yticks()) == 0
    plt.close("all")


def test_covariates_refits_and_transforms() -> None:
    found = mg.compare(
        table(160),
        "site",
        covariates=["x"],
        refit=True,
        transforms="nonparanormal",
        lam=0.2,
        n_perm=2,
        random_state=0,
        n_jobs=1,
    )
    first = found.edges().iloc[0]
    assert (first["source"], first["target"]) == ("x", "y")
    north = found.models["north"]
    assert north.schema_.continuous[0].transform is not None
    assert north.fitted_.report.refitted
    assert found.n_pairs == 10
    assert found.n_unconverged == 0


def test_failures_are_counted() -> None:
    """Before the permutations, tables are the whole one and the groups, plain and balanced."""
    solver = Faulty(nth(tables, 9), np.linalg.LinAlgError("not this time"))
    options = {"lam": 0.3, "n_perm": 4, "random_state": 0, "n_jobs": 1, "solver": solver}
    found = mg.compare(table(80), "site", **options)
    assert (found.n_done, found.n_failed, found.failures[0].resample) == (3, 1, 1)
    assert "3 of 4 permutations" in repr(found)
    assert "not this time" in str(found)
    p = found.tests()["p"].to_numpy() * 4
    np.testing.assert_allclose(p, np.rint(p))


def test_own_penalties_are_chosen_again() -> None:
    data = table()
    found = mg.compare(data, "site", penalty="own", n_perm=2, random_state=0, n_jobs=1, n_lams=10)
    plain, site = data.drop(columns="site"), data["site"]
    for label, lam in found.lam.items():
        alone = mg.MixedGraphicalModel(n_lams=10).fit(plain[site == label])
        assert lam == pytest.approx(alone.lam_)
        assert found.models[label].lam is None
    with pytest.raises(mg.ParameterError, match="leave lam out"):
        mg.compare(data, "site", penalty="own", lam=0.1)


@pytest.mark.filterwarnings("ignore:sample_weight sums to:mixedgm.TableWarning")
def test_whole_weights_are_repeated_rows() -> None:
    data = table(120)
    weight = np.random.default_rng(1).integers(1, 4, len(data))
    given = {"lam": 0.15, "n_perm": 1, "random_state": 0, "n_jobs": 1}
    weighted = mg.compare(data, "site", sample_weight=weight, **given)
    repeated = mg.compare(data.loc[data.index.repeat(weight)], "site", **given)
    np.testing.assert_allclose(weighted.observed["tests"], repeated.observed["tests"], atol=1e-4)


def test_an_array_of_labels_and_another_library() -> None:
    polars = pytest.importorskip("polars")
    data = table(120)
    found = mg.compare(data, "site", lam=0.15, n_perm=3, random_state=0, n_jobs=1)
    plain = polars.from_pandas(data.drop(columns="site"))
    other = mg.compare(plain, data["site"].to_numpy(), lam=0.15, n_perm=3, random_state=0, n_jobs=1)
    assert isinstance(other.edges(), polars.DataFrame)
    np.testing.assert_array_equal(other.permutations["edges"], found.permutations["edges"])


@pytest.mark.parametrize(
    ("groups", "options", "message"),
    [
        ("sites", {}, "did you mean 'site'"),
        (["a"] * 3, {}, "3 labels for 60 rows"),
        (["a"] * 60, {}, "at least two"),
        (["a"] * 59 + ["b"], {}, "'b' has 1 row"),
        (["a"] * 59 + [None], {}, "1 missing label"),
        ("site", {"paired": "d", "n_perm": -1}, "n_perm must be"),
        ("site", {"alpha": 0}, "alpha must be"),
        ("site", {"penalty": "none"}, "penalty must be"),
        ("site", {"test": "none"}, "test must be"),
        ("site", {"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_what_is_refused(groups: object, options: dict, message: str) -> None:
    with pytest.raises(mg.MixedGMError, match=message):
        mg.compare(table(60), groups, lam=0.2, **options)


def test_a_column_that_says_the_same_as_the_groups_is_refused() -> None:
    data = table(60)
    with pytest.raises(mg.ParameterError, match="give groups='site'"):
        mg.compare(data, data["site"].to_numpy(), lam=0.2)
    with pytest.raises(mg.ParameterError, match="nothing is paired"):
        mg.compare(data.assign(unit=data["site"]), "site", paired="unit", lam=0.2)
    with pytest.raises(mg.ParameterError, match="cannot be given together"):
        mg.compare(data, "site", paired="c", cluster="d", lam=0.2)


def test_pictures_share_places_and_widths(found: mg.GroupComparison) -> None:
    from matplotlib.collections import LineCollection

    drawn = found.plot()
    assert list(drawn) == ["north", "south"]
    assert drawn["north"].positions == drawn["south"].positions
    strongest = {label: model.edges_[0].strength for label, model in found.models.items()}
    for label, drawing in drawn.items():
        assert label in drawing.ax.get_title()
        lines = [c for c in drawing.ax.collections if isinstance(c, LineCollection)]
        most_solid = max(colour[3] for each in lines for colour in each.get_colors())
        assert (most_solid == 1.0) == (strongest[label] == max(strongest.values()))
    ax = found.plot_differences(max_edges=2)
    assert len(ax.get_yticks()) == 2
    plt.close("all")


def test_text(found: mg.GroupComparison) -> None:
    assert repr(found) == f"<GroupComparison: 2 groups, {PERMS} permutations, common penalty>"
    for word in ("north", "south", "largest edge difference", "p_max", "120"):
        assert word in str(found)


def test_unknown_options_of_pictures_are_errors_of_the_family():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    labels = np.repeat(["p", "q"], 30)
    found = mg.compare(table, labels, lam=0.1, n_perm=2, random_state=0, n_jobs=1)
    with pytest.raises(mg.ParameterError, match=r"plot has no option 'ax'. Its options are 'lay"):
        found.plot(ax=None)
    with pytest.raises(mg.ParameterError, match=r"'max_edge' \(did you mean 'max_edges'\?\)"):
        found.plot_differences(max_edge=3)
    boot = mg.bootstrap(found.models["p"], table[:30], 3, random_state=0, n_jobs=1)
    plots = boot.plot_intervals, boot.plot_selection, boot.plot_centrality, boot.plot_stability
    for draw in plots:
        with pytest.raises(mg.ParameterError, match=f"{draw.__name__} has no option 'unknown'"):
            draw(unknown=1)


def test_hostile_labels_are_shown_as_text():
    rng = np.random.default_rng(0)
    n = 120
    south = np.arange(n) % 2 == 1
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "c": np.where(rng.random(n) < np.where(south, 0.9, 0.1), "b", "a"),
            "d": np.where(rng.random(n) < np.where(south, 0.9, 0.5), "b", "a"),
        }
    )
    labels = np.where(south, "\x1b[31msouth", "north")
    compared = mg.compare(frame, labels, lam=0.1, n_perm=2, test="permutation", random_state=0)
    text = "\n".join([*compared.notes, compared.summary()])
    assert "group '\\x1b[31msouth' is unlike the others" in text
    assert "\x1b" not in text
