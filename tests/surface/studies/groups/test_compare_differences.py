"""`compare` by tests of differences: known tests, invariances, which test is made and why."""

from __future__ import annotations

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm

import mixedgm as mg
from tests.support.solvers import Faulty, nth, tables

GIVEN = {"lam": 0.15, "random_state": 0, "n_jobs": 1}


def numbers(n: int, seed: int = 0, apart: bool = True) -> tuple[pd.DataFrame, np.ndarray]:
    """Four numbers in two groups: x - y differs, and so do means and variances, if wanted.

    Else all numbers have mean 0 and variance 1 in both groups.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for edge, shift, scale in ((0.3, 0.0, 1.0), (0.0, 2.0, 1.3)):
        matrix = scale * np.eye(4) if apart else np.eye(4)
        for (u, v), value in {(0, 1): edge, (1, 2): 0.3, (2, 3): 0.4}.items():
            matrix[u, v] = matrix[v, u] = -value
        covariance = np.linalg.inv(matrix)
        if not apart:
            spread = np.sqrt(np.diagonal(covariance))
            covariance /= np.outer(spread, spread)
        parts.append(rng.multivariate_normal(np.full(4, shift * apart), covariance, n))
    table = pd.DataFrame(np.vstack(parts), columns=list("xyzw"))
    return table, np.repeat(["a", "b"], n)


def mixed(n: int = 300, seed: int = 0, n_groups: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    site = np.arange(n * n_groups) % n_groups
    x = rng.normal(size=len(site))
    y = rng.normal(size=len(site)) + np.where(site == 0, 0.8, 0.0) * x
    c = (y + rng.normal(size=len(site)) > 0).astype(int)
    d = (rng.random(len(site)) * 3).astype(int)
    return pd.DataFrame(
        {"x": x, "y": y, "c": c, "d": np.array(list("pqr"))[d], "site": np.array(list("stu"))[site]}
    ).astype({"c": str})


def side(found: mg.GroupComparison) -> pd.DataFrame:
    edges = found.edges()
    ends = zip(edges["source"], edges["target"], strict=True)
    return edges.assign(pair=["".join(sorted(pair)) for pair in ends]).set_index("pair")


def fisher(rows: pd.DataFrame) -> tuple[np.ndarray, float]:
    """Fisher's z of all partial correlations, and its standard error."""
    inverse = np.linalg.inv(np.cov(rows.T))
    unit = np.sqrt(np.diagonal(inverse))
    partial = -inverse / np.outer(unit, unit)
    return np.arctanh(partial - np.diag(np.diagonal(partial))), (
        (len(rows) - len(unit) - 1) ** -0.5
    )


def joined(n: int, seed: int, edges: tuple[float, float] = (0.3, 0.2)) -> pd.DataFrame:
    """Four numbers, all joined in both groups, so that the union of the graphs has all pairs."""
    rng = np.random.default_rng(seed)
    parts = []
    for group, edge in zip("ab", edges, strict=True):
        matrix = np.full((4, 4), -0.25)
        np.fill_diagonal(matrix, 1.0)
        matrix[0, 1] = matrix[1, 0] = -edge
        rows = rng.multivariate_normal(np.zeros(4), np.linalg.inv(matrix), n)
        parts.append(pd.DataFrame(rows, columns=list("xyzw")).assign(group=group))
    return pd.concat(parts, ignore_index=True)


def test_saturated_numbers_have_fishers_test_of_partial_correlations() -> None:
    """Estimates are those of the pseudolikelihood with all pairs, and so are errors."""
    table = joined(2000, 0)
    found = mg.compare(table, "group", **GIVEN)
    assert found.tested.graphs.any(axis=0).all()
    found = side(found)
    (a, error), (b, _) = (fisher(table.loc[table["group"] == g, list("xyzw")]) for g in "ab")
    for u, v in combinations(range(4), 2):
        row = found.loc["".join(sorted("xyzw"[u] + "xyzw"[v]))]
        for group, z in (("a", a), ("b", b)):
            r = np.tanh(z[u, v])
            assert row[f"estimate_{group}"] == pytest.approx(r, abs=0.004)
            assert row[f"se_{group}"] == pytest.approx(error * (1 - r**2), rel=0.08)
            assert row[f"strength_{group}"] == pytest.approx(abs(r), abs=0.006)
            ends = np.tanh(z[u, v] + norm.ppf([0.025, 0.975]) * error)
            shown = [row[f"{end}_{group}"] for end in ("lower", "upper")]
            np.testing.assert_allclose(shown, ends, atol=0.01)
        z = (a - b)[u, v] / (np.sqrt(2) * error)
        assert np.sqrt(row["statistic"]) == pytest.approx(abs(z), abs=0.2)
        assert row["p"] == pytest.approx(chi2.sf(row["statistic"], 1))


def test_power_is_at_least_that_of_fishers_test() -> None:
    """The z of one edge that differs, over 24 tables of 200 rows a group, on average.

    With sparse graphs it is larger, since fewer edges are adjusted for.
    """
    ours, fishers = [], []
    for seed in range(24):
        table, site = numbers(200, seed, apart=False)
        found = side(mg.compare(table, site, test="differences", **GIVEN))
        z = []
        for g in "ab":
            inverse = np.linalg.inv(np.cov(table[site == g].T))
            partial = -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])
            z.append(np.arctanh(partial) * np.sqrt((200 - 5) / 2))
        fishers.append(abs(z[0] - z[1]))
        ours.append(norm.isf(found.loc["xy", "p"] / 2))
    assert np.mean(ours) > np.mean(fishers)
    assert np.corrcoef(ours, fishers)[0, 1] > 0.8


def test_two_categories_have_the_test_of_the_three_way_interaction() -> None:
    """W of the log odds ratios of all cells, from counts; both conditionals are saturated."""
    rng = np.random.default_rng(3)
    shares = {"g": [[0.2, 0.1, 0.2], [0.1, 0.25, 0.15]], "h": [[0.1, 0.3, 0.1], [0.2, 0.2, 0.1]]}
    parts, d, covariance = [], np.zeros(2), np.zeros((2, 2))
    for sign, (label, share) in zip((1, -1), shares.items(), strict=True):
        cells = rng.multinomial(1500, np.ravel(share))
        codes = np.repeat(np.arange(6), cells)
        a, b = np.array(["no", "yes"])[codes // 3], np.array(list("pqr"))[codes % 3]
        parts.append(pd.DataFrame({"a": a, "b": b, "group": label}))
        # log odds ratios of the second and the third column against the first
        contrasts = np.array([[1, -1, 0, -1, 1, 0], [1, 0, -1, -1, 0, 1]])
        d += sign * contrasts @ np.log(cells)
        covariance += contrasts @ np.diag(1 / cells) @ contrasts.T
    expected = d @ np.linalg.solve(covariance, d)
    found = mg.compare(pd.concat(parts, ignore_index=True), "group", **GIVEN)
    row = found.edges().iloc[0]
    assert (found.test, row["df"]) == ("differences", 2)
    assert row["statistic"] == pytest.approx(expected, rel=0.005)
    # W on two degrees of freedom is combined with a test along the order of levels
    assert 0.0 < row["p"] < 2.2 * chi2.sf(row["statistic"], 2)


def test_three_groups_have_the_variance_between_them() -> None:
    found = side(mg.compare(mixed(n_groups=3), "site", **GIVEN))
    for pair in ("xy", "cx", "cy"):
        row = found.loc[pair]
        values = np.array([row[f"estimate_{g}"] for g in "stu"])
        weights = np.array([row[f"se_{g}"] for g in "stu"]) ** -2.0
        between = weights @ (values - np.average(values, weights=weights)) ** 2
        assert row["df"] == 2
        assert row["statistic"] == pytest.approx(between)
        assert row["p"] == pytest.approx(chi2.sf(between, 2))
        assert row["difference"] == pytest.approx(np.ptp(values))
    assert found.loc["cd", "df"] == 4
    assert found["p"].idxmin() == "xy"
    assert found.loc["xy", "between"].startswith("s - ")


def test_a_planted_difference_is_found() -> None:
    found = mg.compare(mixed(), "site", **GIVEN)
    edges = found.edges()
    assert len(edges) == found.n_pairs == 6
    assert edges["differs"].tolist() == [True] + [False] * 5
    assert edges["probability_differs"].is_monotonic_decreasing
    assert found.expected_false == pytest.approx(1.0 - edges["probability_differs"][0])
    p, m = edges["p"], len(edges)
    assert (edges["p_max"] >= p).all()
    assert (edges["p_max"] <= np.minimum(m * p, 1.0) + 1e-12).all()
    assert (edges["p_bh"] <= edges["p_holm"] + 1e-12).all()
    tests = found.tests().set_index("statistic")
    assert tests.index.tolist() == [
        "any difference",
        "largest edge difference",
        "strength difference",
        "variance among groups",
    ]
    assert (tests["p"] < 0.01).all()
    assert tests.loc["largest edge difference", "p"] == edges["p_max"].min()
    z = norm.isf(p.min() / 2)
    assert tests.loc["largest edge difference", "value"] == pytest.approx(z, rel=1e-6)
    mean = edges["statistic"].sum() / edges["df"].sum()
    assert tests.loc["variance among groups", "value"] == pytest.approx(mean)
    assert found.p == tests.loc["any difference", "p"]
    assert found.sentence.startswith("The graphs differ (p = 0.0005): 1 pair, of which 0.0 is exp")
    assert found.sentence.endswith("most: x - y.")
    assert found.untested().empty


@pytest.mark.parametrize("graph", ["sparse", "all"])
def test_means_and_units_of_a_group_change_nothing(graph: str) -> None:
    table, site = numbers(150)
    if graph == "all":
        table = joined(300, 1)
        site, table = table["group"].to_numpy(), table.drop(columns="group")
    second = (site == "b")[:, None]
    scaled = table * np.where(second, [2.0, 0.5, 3.0, 1.0], 1.0) + np.where(second, 7.0, 0.0)
    found = [mg.compare(each, site, test="differences", **GIVEN) for each in (table, scaled)]
    p, estimates = (
        [side(each)[name].sort_index() for each in found] for name in ("p", "estimate_b")
    )
    np.testing.assert_allclose(p[1], p[0], rtol=2e-4)
    np.testing.assert_allclose(estimates[1], estimates[0], atol=2e-5)
    tests = [each.tests()["p"] for each in found]
    np.testing.assert_allclose(tests[1], tests[0], atol=2e-3)


def test_order_of_columns_and_groups_changes_nothing() -> None:
    data = mixed()
    turned = data[["d", "c", "site", "y", "x"]].assign(
        site=data["site"].map({"s": "v", "t": "u"})  # the first group is now the last
    )
    here, there = (side(mg.compare(each, "site", **GIVEN)).sort_index() for each in (data, turned))
    for name in ("statistic", "p", "difference"):
        np.testing.assert_allclose(there[name], here[name], rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(there["probability_differs"], here["probability_differs"], atol=1e-3)
    np.testing.assert_allclose(there["estimate_v"].abs(), here["estimate_s"].abs(), atol=1e-5)


def test_paired_rows_have_the_variance_of_their_differences() -> None:
    """Persons are measured twice: two numbers whose correlation differs a little.

    The partial correlation of two numbers is their correlation r; its error is the mean of
    x y - r (x^2 + y^2) / 2 over rows, standardised, and that of the difference the mean over
    persons of differences of these.
    """
    rng = np.random.default_rng(2)
    n, covariance = 4000, np.array([[1, 0.5, 0.8, 0.4], [0.5, 1, 0.4, 0.8]])
    covariance = np.vstack([covariance, covariance[:, [2, 3, 0, 1]]])
    rows = rng.multivariate_normal(np.zeros(4), covariance, n)
    table = pd.DataFrame(np.vstack([rows[:, :2], rows[:, 2:]]), columns=["x", "y"])
    table = table.assign(wave=np.repeat(["one", "two"], n), person=np.tile(np.arange(n), 2))
    found = mg.compare(table, "wave", paired="person", **GIVEN)
    assert "groups are paired: 4,000 units, whose rows may depend on each other" in found.notes
    row = found.edges().iloc[0]
    alone = mg.compare(table.drop(columns="person"), "wave", **GIVEN).edges().iloc[0]
    influence, r = [], []
    for wave in (rows[:, :2], rows[:, 2:]):
        x, y = ((wave - wave.mean(axis=0)) / wave.std(axis=0)).T
        r.append((x * y).mean())
        influence.append(x * y - r[-1] * (x**2 + y**2) / 2)
    expected = (r[0] - r[1]) ** 2 / ((influence[0] - influence[1]).var() / n)
    assert row["statistic"] == pytest.approx(expected, rel=0.15)  # covariances are drawn
    assert row["statistic"] > 1.2 * alone["statistic"]
    assert row["se_one"] == pytest.approx(alone["se_one"], rel=0.01)


def test_paired_rows_may_have_gaps() -> None:
    """One missing cell changes next to nothing: the rows are nearly those of complete persons."""
    rng = np.random.default_rng(3)
    persons = rng.normal(size=(300, 2))
    table = pd.DataFrame(
        np.vstack([persons + 0.4 * rng.normal(size=(300, 2)) for _ in range(2)]), columns=["x", "y"]
    ).assign(wave=np.repeat(["one", "two"], 300), person=np.tile(np.arange(300), 2))
    table["y"] += np.where(table["wave"] == "one", 0.6, 0.2) * table["x"]
    gap = table.assign(x=table["x"].where(table.index != 7))
    whole, missing, apart = (
        mg.compare(each, "wave", missing="model", **options, **GIVEN).edges().iloc[0]
        for each, options in (
            (table, {"paired": "person"}),
            (gap, {"paired": "person"}),
            (gap.drop(columns="person"), {}),
        )
    )
    assert missing["statistic"] == pytest.approx(whole["statistic"], rel=0.1)
    assert missing["se_one"] == pytest.approx(whole["se_one"], rel=0.03)
    assert missing["statistic"] > 1.5 * apart["statistic"]


def test_clusters_of_repeated_rows_are_the_rows() -> None:
    data = mixed(150, seed=6)  # the search takes rows for independent, and finds the same graphs
    twice = data.loc[data.index.repeat(2)].assign(unit=np.repeat(np.arange(len(data)), 2))
    once = mg.compare(data, "site", **GIVEN)
    again = mg.compare(twice, "site", cluster="unit", **GIVEN)
    assert any("the same cluster" in note for note in again.notes)
    assert not once.dependence
    np.testing.assert_array_equal(once.tested.graphs, again.tested.graphs)
    here, there = side(once).sort_index(), side(again).sort_index()
    single = here["se_s"].notna()
    np.testing.assert_allclose(there["se_s"][single], here["se_s"][single], rtol=0.05)


def test_shuffles_agree_with_tests_of_differences() -> None:
    """P-values of single pairs of equal groups, on the same 12 tables, have a high correlation."""
    p = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(
            rng.normal(size=(160, 3)) + rng.normal(size=(160, 1)), columns=list("xyz")
        )
        site = np.repeat(["a", "b"], 80)
        given = {"lam": 0.01, "random_state": 0, "n_jobs": 1}
        tested = side(mg.compare(table, site, test="differences", **given))["p"].sort_index()
        shuffled = side(mg.compare(table, site, n_perm=49, **given))["p"].sort_index()
        p.append(np.array([tested, shuffled]))
    both = np.hstack(p)
    assert np.corrcoef(both)[0, 1] > 0.7
    assert abs(both[0].mean() - both[1].mean()) < 0.1


@pytest.mark.statistical
def test_equal_groups_are_seldom_told_apart() -> None:
    """40 tables of 2 x 120 rows: of 240 pairs 12 +- 3.4 are expected to have p < 0.05.

    24 or more have probability 0.001.  Of whole graphs 2 are expected, and more than 7 have
    probability 0.001.  With six pairs a table has a false verdict in up to a third of the cases.
    """
    pairs, whole, verdicts = 0, 0, 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 5])
        data = mixed(120, seed)
        y = rng.normal(size=len(data)) + 0.6 * data["x"]
        c = np.where(y + rng.normal(size=len(data)) > 0, "1", "0")
        found = mg.compare(data.assign(y=y, c=c), "site", **(GIVEN | {"lam": 0.5}))
        pairs += int((found.edges()["p"] < 0.05).sum())
        whole += int(found.p < 0.05)
        verdicts += int(found.edges()["differs"].sum())
    assert pairs < 24
    assert whole <= 7
    assert verdicts <= 20


@pytest.mark.filterwarnings("ignore:sample_weight sums to:mixedgm.TableWarning")
def test_whole_weights_are_repeated_rows() -> None:
    data = mixed(120)
    weight = np.random.default_rng(1).integers(1, 4, len(data))
    weighted = side(mg.compare(data, "site", sample_weight=weight, **GIVEN))
    repeated = side(mg.compare(data.loc[data.index.repeat(weight)], "site", **GIVEN))
    for name in ("statistic", "estimate_s", "se_t"):
        expected = repeated[name].reindex(weighted.index)
        np.testing.assert_allclose(weighted[name], expected, rtol=1e-4)


def test_covariates_have_edges_and_no_conditionals() -> None:
    found = mg.compare(mixed(), "site", covariates=["x", "d"], **GIVEN)
    assert found.test == "differences"
    assert found.n_pairs == len(found.edges()) == 5
    assert side(found)["p"].idxmin() == "xy"


def test_the_same_seed_gives_the_same_result_on_any_number_of_cores() -> None:
    first, second = (
        mg.compare(mixed(), "site", lam=0.15, random_state=3, n_jobs=jobs) for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(first.tests(), second.tests())
    pd.testing.assert_frame_equal(first.edges(), second.edges())


@pytest.mark.parametrize(
    ("n", "options", "test", "why"),
    [
        (300, {}, "differences", "every group has at least 60 rows"),
        (35, {}, "permutation", "35 rows, fewer than 60"),
        (20, {}, "permutation", "20 rows, and estimates without shrinkage need at least 30"),
        (300, {"n_perm": 1}, "permutation", "n_perm was given"),
        (300, {"paired": np.arange(600) // 2}, "differences", "every group has at least 60"),
        (100, {"paired": np.arange(200) // 8}, "permutation", "25 independent units"),
        (300, {"test": "permutation", "n_perm": 1}, "permutation", "it was asked for"),
    ],
)
def test_which_test_is_made_and_why(n: int, options: dict, test: str, why: str) -> None:
    given = GIVEN | {"lam": 0.6} | options
    if test == "permutation" and "n_perm" not in options:  # two of the 500 are enough
        given["solver"] = Faulty(nth(tables, 12), KeyboardInterrupt)
        with pytest.warns(RuntimeWarning, match="interrupted: 2 of 500"):
            found = mg.compare(mixed(n), "site", **given)
    else:
        found = mg.compare(mixed(n), "site", **given)
    assert found.test == test
    assert why in found.reason
    assert found.reason[:30] in " ".join(found.summary().split())


def test_pairs_of_a_column_that_lacks_a_level_in_a_group_are_not_tested() -> None:
    """Other pairs are: they have the estimates and errors of the groups by themselves."""
    data = mixed()
    data.loc[(data["site"] == "t") & (data["d"] == "r"), "d"] = "p"
    found = mg.compare(data, "site", **GIVEN)
    assert found.test == "differences"
    assert found.untested()["reason"].tolist() == ["d lacks a level in t"] * 3
    assert "not tested, because a group lacks a level" in " ".join(found.summary().split())
    edges = side(found)
    concerned = edges.index.str.contains("d")
    unknown = ["p", "probability_differs", "statistic", "difference", "between"]
    assert edges.loc[concerned, unknown].isna().all(axis=None)
    assert not edges.loc[concerned, "differs"].any()
    assert edges.loc[concerned, ["strength_s", "strength_t"]].notna().all(axis=None)
    whole = side(mg.compare(data.drop(columns="d"), "site", **GIVEN))
    for name in ("estimate_s", "estimate_t", "se_s", "se_t", "statistic", "difference"):
        np.testing.assert_allclose(edges.loc[whole.index, name], whole[name], rtol=0.02, atol=0.02)
    assert edges.loc["xy", "differs"]
    assert found.plot_differences() is not None
    plt.close("all")


def test_groups_that_cannot_be_compared_are_refused() -> None:
    two = mixed()[["c", "d", "site"]]
    two.loc[(two["site"] == "t") & (two["d"] == "r"), "d"] = "p"
    with pytest.raises(mg.ParameterError, match="of every pair, a column lacks a level"):
        mg.compare(two, "site", test="differences", **GIVEN)
    data = mixed()
    data.loc[data["site"] == "t", "x"] = 1.0
    with pytest.raises(mg.ParameterError, match="'x' does not vary in group 't'"):
        mg.compare(data, "site", test="differences", **GIVEN)
    with pytest.raises(mg.ParameterError, match="n_perm and checkpoint are for permutations"):
        mg.compare(mixed(), "site", test="differences", n_perm=9, **GIVEN)


def test_edges_of_all_graphs_are_held_in_all_groups() -> None:
    found = mg.compare(mixed(100), "site", **GIVEN)
    named = found.edges().set_index(["source", "target"])
    assert named.loc[("x", "y"), "present_in"] == "s"
    count = int(found.tested.graphs.any(axis=0).sum())
    assert count == (named["present_in"] != "").sum()
    assert f"given the {count} edges found in some group" in " ".join(found.summary().split())


def test_cells_without_rows_are_named() -> None:
    data = mixed()
    rng = np.random.default_rng(0)
    data["e"] = np.where(data["d"] == "r", "no", np.where(rng.random(len(data)) < 0.5, "no", "yes"))
    found = mg.compare(data, "site", **GIVEN)
    untested = found.untested()
    assert untested[["source", "target"]].to_numpy().tolist() == [["d", "e"]]
    row = side(found).loc["de"]
    assert np.isnan(row["p"])
    assert np.isnan(row["probability_differs"])
    assert not row["differs"]
    assert "not tested" in found.summary()
    data.loc[(data["site"] == "s") & (data["d"] == "r"), "e"] = np.tile(["no", "yes"], 300)[
        : ((data["site"] == "s") & (data["d"] == "r")).sum()
    ]
    reason = mg.compare(data, "site", **GIVEN).untested()["reason"]
    assert reason.tolist() == ["some cells have too few rows in t"]


def test_pairs_with_many_parameters_have_strengths_with_intervals() -> None:
    """Two columns only: the strength is that of their mutual information, from counts."""
    rng = np.random.default_rng(5)
    a = rng.integers(0, 3, 4000)
    group = np.repeat(["g", "h"], 2000)
    b = np.where(rng.random(4000) < np.where(group == "g", 0.5, 0.2), a, rng.integers(0, 3, 4000))
    table = pd.DataFrame({"a": np.array(list("uvw"))[a], "b": np.array(list("xyz"))[b]})
    found = mg.compare(table, group, **GIVEN)
    row = found.edges().iloc[0]
    assert bool(row["differs"])
    for name in "gh":
        share = pd.crosstab(table["a"][group == name], table["b"][group == name], normalize=True)
        share = share.to_numpy()
        alone = np.outer(share.sum(axis=1), share.sum(axis=0))
        nats = (share * np.log(share / alone)).sum() - 4 / (2 * 2000)
        assert row[f"strength_{name}"] == pytest.approx(np.sqrt(1 - np.exp(-2 * nats)), abs=0.005)
        assert row[f"lower_{name}"] < row[f"strength_{name}"] < row[f"upper_{name}"]
        assert np.isnan(row[f"estimate_{name}"])
    assert row["lower_g"] > row["upper_h"]
    sums = found.group_table()["strength"]
    assert sums.tolist() == [row["strength_g"], row["strength_h"]]


def test_the_default_limit_is_half_where_nothing_is_likely_to_differ() -> None:
    found = mg.compare(mixed(), "site", **GIVEN)
    same = 1.0 - found.edges()["probability_differs"]
    assert found.limit > 0.5
    assert found.edges()["differs"].tolist() == (same <= found.limit).tolist()
    assert "are expected to balance best" in " ".join(found.summary().split())
    assert mg.compare(mixed(), "site", limit=0.2, **GIVEN).limit == 0.2
    noise = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 4)), columns=list("xyzw"))
    equal = mg.compare(noise, np.arange(400) % 2, **GIVEN)
    assert equal.edges()["probability_differs"].max() < 0.5
    assert equal.limit == 0.5
    assert not equal.edges()["differs"].any()


def test_text_and_picture() -> None:
    found = mg.compare(mixed(), "site", **GIVEN)
    assert repr(found) == "<GroupComparison: 2 groups, tests of differences>"
    for word in (
        "tested by differences",
        "strength_s",
        "Pairs, the most different first",
        "p_max",
        "stronger: 1 in s, 0 in t",
        "The graphs differ",
    ):
        assert word in str(found)
    ax = found.plot_differences()
    assert len(ax.get_yticks()) == 6
    row = found.edges().iloc[0]
    drawn = [dots.get_offsets()[0, 0] for dots in ax.collections if len(dots.get_offsets()) == 6]
    signs = np.sign([row["estimate_s"], row["estimate_t"]])
    np.testing.assert_allclose(drawn, signs * [row["strength_s"], row["strength_t"]])
    assert found.plot()["s"].positions == found.plot()["t"].positions
    plt.close("all")
