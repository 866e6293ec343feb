"""Shuffled labels of groups: every row once, and within its block."""

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.fit.fitting import encode
from mixedgm.fit.options import Options
from mixedgm.studies.groups.compare import EqualGroups, Shuffle
from mixedgm.studies.resampling.bootstrap import plan_of
from mixedgm.table.labels import Groups
from tests.support.people import people


@pytest.mark.filterwarnings("ignore:sample_weight sums to:mixedgm.TableWarning")
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_move_within_blocks_only(weighted: bool) -> None:
    """Blocks of two rows, one of each group: after a shuffle the blocks are the same."""
    data = people(60)[["height", "weight"]]
    block = np.arange(60) // 2
    weight = 1 + np.arange(60) % 4 if weighted else np.ones(60, dtype=int)
    options = Options(lam=0.1)
    design = encode(data, options, weight if weighted else None)
    fitted = mg.MixedGraphicalModel(lam=0.1).fit(data).fitted_
    plan = plan_of(fitted, options, design, "fixed", "nonparametric", None)
    groups = Groups(("a", "b"), np.arange(60) % 2, block, paired=True)
    equal = EqualGroups.of(design, groups)
    shuffle = Shuffle(plan, equal, np.zeros(0, dtype=int))
    dealt = np.zeros((2, 60))
    for row, (rows, counts) in zip(dealt, shuffle.deal(np.random.default_rng(0)), strict=True):
        row[rows] = counts
    np.testing.assert_array_equal(dealt.sum(axis=0), weight)  # every row once
    before = np.array([np.where(np.arange(60) % 2 == g, weight, 0) for g in (0, 1)])
    for g in (0, 1):
        totals = [np.bincount(block, weights=each[g]) for each in (dealt, before)]
        np.testing.assert_array_equal(*totals)
        assert not np.array_equal(dealt[g], before[g])
