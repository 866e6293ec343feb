"""`compare` by tests of differences: known tests, invariances, which test is made and why."""

from __future__ import annotations

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm

import mixedgm as mg

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


def test_gaussian_groups_have_wald_tests_of_the_precision_matrix() -> None:
    """Estimates are those of the pseudolikelihood, which hardly differ with many rows."""
    table, site = numbers(20_000)
    found = side(mg.compare(table, site, test="differences", **GIVEN))
    unit = table.std(ddof=0).to_numpy()
    inverses = [np.linalg.inv(np.cov(table[site == g].T)) for g in "ab"]
    for u, v in combinations(range(4), 2):
        row = found.loc["".join(sorted("xyzw"[u] + "xyzw"[v]))]
        values = [-inverse[u, v] for inverse in inverses]
        errors = [np.sqrt((i[u, u] * i[v, v] + i[u, v] ** 2) / 20_000) for i in inverses]
        for g, value, error in zip("ab", values, errors, strict=True):
            own = row[f"estimate_{g}"] / row[f"se_{g}"]
            assert own == pytest.approx(value / error, rel=0.03, abs=0.15)
            assert row[f"estimate_{g}"] == pytest.approx(value * unit[u] * unit[v], abs=0.004)
        z = (values[0] - values[1]) / np.hypot(*errors)
        assert np.sqrt(row["statistic"]) == pytest.approx(abs(z), rel=0.03, abs=0.15)
        assert row["p"] == pytest.approx(chi2.sf(row["statistic"], 1))


def test_power_is_that_of_fishers_test() -> None:
    """The z of one edge that differs, over 60 tables of 200 rows a group, on average."""
    ours, fishers = [], []
    for seed in range(60):
        table, site = numbers(200, seed, apart=False)
        found = side(mg.compare(table, site, test="differences", **GIVEN))
        z = []
        for g in "ab":
            inverse = np.linalg.inv(np.cov(table[site == g].T))
            partial = -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])
            z.append(np.arctanh(partial) * np.sqrt((200 - 5) / 2))
        fishers.append(abs(z[0] - z[1]))
        ours.append(norm.isf(found.loc["xy", "p"] / 2))
    assert np.mean(ours) > 0.98 * np.mean(fishers)
    assert np.corrcoef(ours, fishers)[0, 1] > 0.9


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
    assert edges["significant"].tolist() == [True] + [False] * 5
    p, m = edges["p"], len(edges)
    assert (edges["p_max"] >= p).all()
    assert (edges["p_max"] <= np.minimum(m * p, 1.0) + 1e-12).all()
    assert (edges["p_bh"] <= edges["p_holm"] + 1e-12).all()
    tests = found.tests().set_index("statistic")
    assert tests.index.tolist() == [
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
    assert found.n_perm == found.n_done == 0


def test_means_and_units_change_no_test() -> None:
    table, site = numbers(150)
    moved = table + np.where(site == "b", 7.0, 0.0)[:, None]
    scaled = 3.0 * table
    found = [mg.compare(each, site, test="differences", **GIVEN) for each in (table, moved, scaled)]
    p = [side(each)["p"].sort_index() for each in found]
    np.testing.assert_allclose(p[1], p[0], rtol=1e-4)
    np.testing.assert_allclose(p[2], p[0], rtol=1e-4)
    tests = [each.tests()["p"] for each in found]
    np.testing.assert_allclose(tests[2], tests[0], atol=2e-3)


def test_selection_by_one_column_changes_no_edge() -> None:
    """Rows kept by the value of x alone: its variance halves, and no coefficient changes."""
    rng = np.random.default_rng(4)
    rows = numbers(12_000, seed=4)[0].iloc[:12_000]
    kept = rows[rng.random(len(rows)) < np.exp(-0.5 * rows["x"] ** 2)]
    table = pd.concat([rows, kept], ignore_index=True)
    site = np.repeat(["all", "some"], [len(rows), len(kept)])
    found = side(mg.compare(table, site, test="differences", **GIVEN))
    correlation = [table[site == g].corr().loc["x", "y"] for g in ("all", "some")]
    assert correlation[1] < 0.8 * correlation[0]
    row = found.loc["xy"]
    assert row["estimate_some"] == pytest.approx(row["estimate_all"], abs=4 * row["se_some"])
    assert row["estimate_all"] > 20 * row["se_all"]


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
        (300, {}, "differences", "at least 10 rows for each of the 4 predictors"),
        (35, {}, "permutation", "35 rows, fewer than 10 for each of the 4 predictors"),
        (20, {}, "permutation", "20 rows, and estimates without shrinkage need at least 30"),
        (300, {"n_perm": 1}, "permutation", "n_perm was given"),
        (40, {"blocks": np.arange(80) // 2}, "permutation", "rows of a block belong together"),
        (300, {"test": "permutation", "n_perm": 1}, "permutation", "it was asked for"),
    ],
)
def test_which_test_is_made_and_why(n: int, options: dict, test: str, why: str) -> None:
    if test == "permutation":
        options = {"n_perm": None, **options}
    found = mg.compare(mixed(n), "site", **(GIVEN | {"lam": 0.6} | options))
    assert found.test == test
    assert why in found.reason
    assert found.reason[:30] in " ".join(found.summary().split())


def test_a_level_that_a_group_lacks_is_in_the_way() -> None:
    data = mixed()
    data.loc[(data["site"] == "t") & (data["d"] == "r"), "d"] = "p"
    with pytest.raises(mg.ParameterError, match="'d' lacks a level in group 't'.*permutation"):
        mg.compare(data, "site", test="differences", **GIVEN)
    data = mixed()
    data.loc[data["site"] == "t", "x"] = 1.0
    with pytest.raises(mg.ParameterError, match="'x' does not vary in group 't'"):
        mg.compare(data, "site", test="differences", **GIVEN)
    with pytest.raises(mg.ParameterError, match="n_perm and checkpoint are for permutations"):
        mg.compare(mixed(), "site", test="differences", n_perm=9, **GIVEN)


def test_few_rows_hold_the_edges_that_pass() -> None:
    found = mg.compare(mixed(35), "site", test="differences", **GIVEN)
    assert found.tested is not None
    assert not found.tested.free
    assert "edges that pass a test in some group" in found.summary().replace("\n    ", " ")
    assert side(found)["p"].idxmin() == "xy"


def test_text_and_picture() -> None:
    found = mg.compare(mixed(), "site", **GIVEN)
    assert repr(found) == "<GroupComparison: 2 groups, tests of differences, common penalty>"
    for word in ("tested by differences", "estimate_s", "Pairs, the most different first", "p_max"):
        assert word in str(found)
    ax = found.plot_differences()
    assert len(ax.get_yticks()) == 6
    assert found.plot()["s"].positions == found.plot()["t"].positions
    plt.close("all")
