"""Notes about skew, tails, spikes, bounds and rounding; what a fit mentions of them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mixedgm.base.errors import TableWarning
from mixedgm.table.checks.check import check_table
from mixedgm.table.checks.columns import shape_of
from mixedgm.table.encode import learn

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=2000)


def notes(transforms=None, **columns):
    checked = check_table(pd.DataFrame({"n": NORMAL} | columns), transforms=transforms)
    return [f for f in checked.findings if f.severity == "note"]


def test_moments_are_those_of_scipy():
    x = RNG.lognormal(size=3000) * 1e6 + 1e8
    shape = shape_of("x", x)
    assert shape.skewness == pytest.approx(stats.skew(x), rel=1e-9)
    assert shape.excess_kurtosis == pytest.approx(stats.kurtosis(x), rel=1e-9)


def test_shares_are_those_of_pandas():
    x = np.r_[np.zeros(30_000), RNG.exponential(size=70_000)]
    shape = shape_of("x", RNG.permutation(x))
    counts = pd.Series(x).value_counts(normalize=True)
    assert (shape.common, shape.share) == (counts.index[0], counts.iloc[0])
    assert shape.at_bound == "smallest"


def test_normal_and_uniform_columns_give_no_note():
    assert notes(uniform=RNG.uniform(size=2000), other=RNG.normal(size=2000)) == []


def test_a_skewed_column_with_the_line_that_helps():
    (note,) = notes(wage=RNG.lognormal(0, 0.5, size=2000))
    assert note.column == "wage"
    assert note.what.startswith("skewed, not normal (skewness ")
    assert note.remedy == 'transforms={"wage": "nonparanormal"}'
    skewed = {f"w{k}": RNG.lognormal(0, 0.5 + k / 10, size=2000) for k in range(7)}
    note = notes(**skewed)[0]
    assert note.what.startswith("7 columns are skewed, not normal: 'w")
    assert note.what.endswith(" and 2 more")
    assert note.remedy == 'transforms="nonparanormal", for all columns'


def test_columns_that_get_normal_scores_by_their_values():
    wage = RNG.lognormal(0, 0.5, size=2000)
    (note,) = notes("auto", wage=wage)
    assert note.column == "wage"
    assert note.what == (
        "far from normal, so normal scores of its ranks take its place "
        f"(skewness {stats.skew(wage):.1f})"
    )
    assert note.remedy == 'transforms={"wage": None} keeps the numbers as they are'
    (note,) = notes("auto", wage=wage, share=RNG.uniform(size=2000))
    assert note.what.startswith("2 columns are far from normal, so normal scores of their ranks ")
    assert note.what.endswith("'share' (kurtosis 1.8; 3 is normal)")
    assert notes({"wage": None}, wage=wage) == []


def test_a_transform_ends_the_note():
    frame = pd.DataFrame({"n": NORMAL, "wage": RNG.lognormal(0, 0.5, size=2000)})
    assert check_table(frame, transforms={"wage": "nonparanormal"}).findings == ()


def test_heavy_tails():
    (note,) = notes(x=stats.t(4).ppf((np.arange(2000) + 0.5) / 2000))
    assert "has heavy tails (kurtosis " in note.what


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (np.where(RNG.random(2000) < 0.2, 0.5, NORMAL), "0.5 in "),
        (np.maximum(NORMAL, -1.3), "-1.3, its smallest value, in "),
        (np.minimum(NORMAL, 1.3), "1.3, its largest value, in "),
    ],
)
def test_spikes_and_bounds(column, text):
    (note,) = notes(x=column)
    assert note.what.startswith(f"has one common value ({text}")
    share = pd.Series(column).value_counts(normalize=True).iloc[0]
    assert f"in {share:.0%} of the rows" in note.what


def test_few_distinct_values():
    (note,) = notes(x=np.round(RNG.uniform(0, 1.5, size=2000), 1))
    assert note.what == "has few distinct values for a number (16 in 2,000 rows)"
    assert note.remedy == 'types={"x": "ordinal"}, or "categorical" if they are codes'
    declared = check_table(
        pd.DataFrame({"n": NORMAL, "x": np.round(NORMAL)}), types={"x": "continuous"}
    )
    assert declared.findings == ()


ZEROS = RNG.random(2000) < 0.6
AMOUNT = RNG.integers(1, 2000, 2000)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (np.where(RNG.random(2000) < 0.83, 0, 15 * AMOUNT), "hurdle"),  # money, up to 30,000
        (np.where(RNG.random(2000) < 0.4, 0, AMOUNT), "hurdle"),  # square feet
        (np.where(ZEROS, 0, RNG.poisson(3.0, 2000)), "hurdle"),  # counts with too many zeros
        (np.where(ZEROS, 0, 1 + RNG.integers(0, 6, 2000)), "hurdle"),
        (AMOUNT, None),
        (RNG.poisson(3.0, 2000), "count"),
        (RNG.negative_binomial(2, 0.2, 2000), "count"),
        (np.clip(RNG.poisson(4.0, 2000) + 2, 2, 14), "ordinal"),  # rooms
        (RNG.choice([0.0, 0.5, 1.0], 2000), "ordinal"),
        (RNG.poisson(0.3, 2000), "ordinal"),  # as many zeros as a Poisson variable has
        (np.round(40 + 12 * NORMAL), None),
    ],
)
def test_the_kind_that_the_values_suggest(column, kind):
    checked = check_table(pd.DataFrame({"n": RNG.normal(size=2000), "x": column}))
    lines = [f.remedy for f in checked.findings if f.column == "x" and "types=" in f.remedy]
    assert len(lines) == (kind is not None)
    assert all(line.startswith(f'types={{"x": "{kind}"}}') for line in lines)


def test_a_fit_is_silent_about_notes_but_mentions_strong_ones_in_one_line():
    mild = pd.DataFrame({"n": NORMAL, "wage": RNG.lognormal(0, 0.5, size=2000)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(mild)
    strong = mild.assign(gain=np.where(NORMAL < 1.5, 0.0, np.exp(3 * NORMAL)))
    with pytest.warns(TableWarning) as caught:
        learn(strong)
    (warning,) = caught
    assert "\n" not in str(warning.message)
    assert "column 'gain': has a spike at zero (9" in str(warning.message)
    assert str(warning.message).endswith("transforms={column: None} silences this warning")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(strong, transforms={"gain": None})


def test_short_tables_give_no_note():
    short = pd.DataFrame({"x": np.exp(NORMAL[:19] * 2), "y": NORMAL[:19]})
    assert check_table(short).findings == ()
