"""What is said about long fits before they begin."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.table.checks.effort import effort
from mixedgm.table.schema import Column


def categories(n, levels):
    return [Column(f"c{k}", "categorical", levels=tuple(range(levels))) for k in range(n)]


def numbers(n):
    return [Column(f"x{k}", "continuous") for k in range(n)]


FILE = Path(__file__).resolve().parents[4] / "docs" / "studies" / "effort.csv"
MEASURED = list(csv.DictReader(FILE.read_text().splitlines()))


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: "-".join(row.values()))
def test_an_estimate_is_as_near_to_every_measured_time_as_the_guide_says(row):
    """Default fits on one thread, of the machine that they were measured on."""
    columns = numbers(int(row["numbers"])) + categories(int(row["categories"]), int(row["levels"]))
    expected, seconds = effort(columns, int(row["rows"]), speed=1.0).seconds, float(row["seconds"])
    assert max(expected / seconds, seconds / expected) < (3.0 if seconds >= 10.0 else 7.5)


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


def test_check_and_fit_announce_a_long_fit_before_it_begins():
    """Warnings are errors here, so that the fit ends where it is announced."""
    codes = np.arange(60_000) % 4000
    table = pd.DataFrame({"s": codes, "t": codes[::-1] // 2})
    said = [found for found in mg.check_table(table).findings if "a fit takes" in found.what]
    assert said == []
    model = mg.MixedGraphicalModel(lam=0.1, types=["categorical"] * 2)
    with pytest.raises(mg.LongFitWarning, match=r"a fit takes about .*levels of.*verbose=1"):
        model.fit(table)
    columns = mg.check_table(table, types=["categorical"] * 2)
    said = [found for found in columns.findings if "a fit takes" in found.what]
    assert [found.severity for found in said] == ["note"]


def test_a_fit_without_enough_memory_says_what_needs_it():
    class Full:
        """A solver that asks for too much."""

        def init(self, *_):
            raise MemoryError

        step = init

    with pytest.raises(mg.MixedGMError, match=r"not enough memory.*8 rows.*To fix") as raised:
        mg.MixedGraphicalModel(solver=Full()).fit(np.random.default_rng(0).normal(size=(8, 2)))
    assert isinstance(raised.value, MemoryError)
