"""What is said about long fits before they begin."""

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.table import effort as module
from mixedgm.table.effort import duration, effort
from mixedgm.table.schema import Column


def categories(n, levels):
    return [Column(f"c{k}", "categorical", levels=tuple(range(levels))) for k in range(n)]


def numbers(n):
    return [Column(f"x{k}", "continuous") for k in range(n)]


# Default fits on one thread: rows, numbers, categories, levels of each, seconds.
MEASURED = [
    (100_000, 10, 10, 3, 4.4),
    (10_000, 50, 50, 3, 4.1),
    (10_000, 0, 50, 10, 6.8),
    (1_000, 500, 500, 3, 11.6),
    (2_000, 2_000, 0, 0, 9.0),
    (500, 300, 300, 5, 10.1),
    (200_000, 5, 20, 8, 28.5),
    (20_000, 0, 40, 20, 51.0),
    (1_000_000, 5, 5, 3, 18.7),
    (2_000, 0, 100, 20, 24.2),
]


@pytest.mark.parametrize(("n_rows", "n_gaussian", "n_discrete", "levels", "seconds"), MEASURED)
def test_an_estimate_is_right_within_a_factor_of_three(
    n_rows, n_gaussian, n_discrete, levels, seconds, monkeypatch
):
    monkeypatch.setattr(module, "_relative_speed", lambda: 1.0)
    expected = effort([*numbers(n_gaussian), *categories(n_discrete, levels)], n_rows).seconds
    assert seconds / 3.0 < expected < seconds * 3.0


def test_it_says_which_columns_make_it_long():
    wide = [
        *numbers(5),
        *categories(2, 3),
        Column("town", "categorical", levels=tuple(range(4000))),
    ]
    assert effort(wide, 50_000).because == "4,000 levels of 'town'"
    assert (
        effort(categories(30, 4), 1000).because == "1,000 rows, 30 columns with 120 levels in all"
    )


def test_more_threads_are_quicker_and_repeated_work_is_longer():
    columns, rows = categories(100, 50), 50_000
    once = effort(columns, rows).seconds
    assert (
        effort(columns, rows, n_threads=2).seconds < once < effort(columns, rows, times=12).seconds
    )


def test_check_and_fit_announce_a_long_fit_before_it_begins(monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.choice(list("abc"), (50, 4)), columns=list("stuv"))
    assert not any("a fit takes" in str(found) for found in mg.check_table(table).findings)
    monkeypatch.setattr(module, "LONG", 1e-9)
    said = [found for found in mg.check_table(table).findings if "a fit takes" in found.what]
    assert [found.severity for found in said] == ["note"]
    with pytest.warns(mg.LongFitWarning, match=r"about a minute .*50 rows.*verbose=1"):
        mg.MixedGraphicalModel(lam=0.1).fit(table)


def test_a_fit_without_enough_memory_says_what_needs_it(monkeypatch):
    from mixedgm import fitting

    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(fitting, "fit_design", full)
    with pytest.raises(mg.MixedGMError, match=r"not enough memory.*8 rows.*To fix") as raised:
        mg.MixedGraphicalModel().fit(np.random.default_rng(0).normal(size=(8, 2)))
    assert isinstance(raised.value, MemoryError)


def test_lengths_of_time_are_round():
    assert [duration(60.0 * m) for m in (0.1, 2.2, 11, 25, 60, 200, 3000)] == [
        "a minute",
        "2 minutes",
        "10 minutes",
        "20 minutes",
        "an hour",
        "3.5 hours",
        "2 days",
    ]
