"""Advice about gaps: which columns cost most rows, and what follows from dropping rows."""

import itertools
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mixedgm.base.errors import TableWarning
from mixedgm.table.checks.check import check_table
from mixedgm.table.encode import learn

RNG = np.random.default_rng(0)
N = 400


def gappy():
    """Ten columns; two are nearly empty, one lacks every twentieth value."""
    table = pd.DataFrame({f"x{k}": RNG.normal(size=N) for k in range(6)})
    table["zone"] = np.where(np.arange(N) < 40, "dense", "loose")
    table["alley"] = np.where(np.arange(N) % 10 == 9, np.where(RNG.random(N) < 0.5, "a", "b"), None)
    table["pool"] = np.where(np.arange(N) < 385, np.nan, RNG.normal(size=N))
    table.loc[::20, "x3"] = np.nan
    return table


def the_finding(checked, part):
    (found,) = [f for f in checked.findings if part in f.what]
    return found


def test_one_finding_ranks_columns_and_proposes_those_to_leave_out():
    table = gappy()
    gaps = table.isna().sum().sort_values(ascending=False)
    checked = check_table(table)
    found = the_finding(checked, "missing values")
    listed = re.findall(r"'(\w+)' \((\d+)\)", found.what)
    assert listed == [(name, str(count)) for name, count in gaps.items() if count]
    assert checked.leave_out == ("pool", "alley")
    then = len(table.drop(columns=["pool", "alley"]).dropna())
    n_complete = len(table.dropna())
    assert found.remedy == (
        f'missing="model" uses all {N} rows, missing="drop" the {n_complete} complete ones; or '
        f"leave columns 'pool', 'alley' out: {then} of {N} rows are then complete, "
        f"instead of {n_complete}; or fill them in"
    )
    assert not [f for f in checked.findings if "constant" in f.what]


def test_the_proposal_keeps_as_many_cells_as_any_set_of_columns():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(rng.normal(size=(60, 6)), columns=list("abcdef"))
        share = rng.choice([0.0, 0.02, 0.5, 0.9], size=6)
        table = table.mask(rng.random(table.shape) < share)
        if not table.isna().any().any() or table.isna().all().any():
            continue

        def cells(names, table=table):
            rest = table.drop(columns=list(names))
            return len(rest.dropna()) * rest.shape[1]

        best = max(
            cells(names) for k in range(6) for names in itertools.combinations(table.columns, k)
        )
        proposed = check_table(table).leave_out
        assert cells(proposed) >= 0.9 * best  # greedy: near the best of all 64 sets
        assert all(
            len(table.drop(columns=[n for n in proposed if n != name]).dropna())
            < len(table.drop(columns=list(proposed)).dropna())
            for name in proposed
        )


def test_nothing_is_proposed_when_few_rows_are_lost():
    table = pd.DataFrame({f"x{k}": RNG.normal(size=N) for k in range(6)})
    table.loc[:10, "x0"] = np.nan
    checked = check_table(table)
    assert checked.leave_out == ()
    assert the_finding(checked, "missing").remedy == (
        'missing="model" uses all 400 rows, missing="drop" the 389 complete ones; or fill them in'
    )


def test_kinds_and_levels_do_not_depend_on_which_rows_are_complete():
    table = gappy()
    table["stage"] = np.where(np.arange(N) < 350, np.arange(N) % 5 + 1, np.arange(N) // 10 % 2 + 1)
    whole = check_table(table[["stage", "zone"]]).schema
    with_gaps = check_table(table, missing="drop").schema
    assert (with_gaps.columns[-1].kind, whole.columns[0].kind) == ("continuous", "continuous")
    assert table.dropna()["stage"].nunique() == 2  # as few as would make it categorical
    zone = next(c for c in with_gaps.columns if c.name == "zone")
    assert zone.levels == whole.columns[1].levels == ("dense", "loose")


def test_constant_in_complete_rows_only_names_the_gaps_that_cause_it():
    table = gappy()
    table["flag"] = np.where(np.arange(N) < 100, 1.5, 2.5)
    assert table.dropna()[["zone", "flag"]].nunique().tolist() == [1, 1]
    found = the_finding(check_table(table, missing="drop"), "constant")
    n_complete = len(table.dropna())
    assert found.what.startswith(
        f"2 columns are constant in the {n_complete} complete rows, though not in the table: "
        "'zone', 'flag'; the other values are in rows with gaps in 'pool' (100 rows), 'alley' (90"
    )
    assert found.remedy == "leave columns 'pool', 'alley' out, or fill in the gaps"
    assert found.severity == "error"
    fewer = check_table(table.drop(columns=["pool", "alley"]), missing="drop")
    assert not [f for f in fewer.findings if f.severity == "error"]


def test_levels_in_dropped_rows_only_stay_declared():
    table = pd.DataFrame(
        {"v": ["a", "b", "c"] * 20, "w": ["k", "l"] * 30, "x": RNG.normal(size=60)}
    )
    table.loc[table["v"] == "c", "x"] = np.nan
    with pytest.warns(TableWarning, match=r"levels without complete rows: 'v' \('c'\)"):
        design, _ = learn(table, missing="drop")
    assert design.schema.columns[0].levels == ("a", "b", "c")
    assert sorted(set(design.codes[:, 0].tolist())) == [0, 1]


def test_infinite_values_are_counted_in_all_rows():
    table = pl.DataFrame({"a": [1.0, float("inf"), float("-inf"), 2.0], "b": [1.5, None, 2.5, 3.5]})
    assert the_finding(check_table(table, missing="drop"), "infinite").what.startswith("2 infinite")


def test_a_column_that_is_left_out_costs_no_rows():
    table = pd.DataFrame({"x": RNG.normal(size=N), "y": RNG.normal(size=N)})
    table["comment"] = [f"text {k}" if k % 2 else None for k in range(N)]
    checked = check_table(table)
    assert [f.severity for f in checked.findings] == ["warning"]
    assert checked.keep is None


def test_many_columns_are_not_all_named():
    table = pd.DataFrame(RNG.normal(size=(30, 300))).mask(RNG.random((30, 300)) < 0.5)
    for finding in check_table(table).findings:
        assert len(str(finding)) < 1500
