"""Lists of parts in this process: order, sums, files beyond a limit."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from mixedgm.base.parts.contract import Same, View, added
from mixedgm.base.parts.local import LocalParts

ARRAYS = [np.arange(3.0), np.arange(5.0), np.zeros(0), np.arange(2.0)]


@pytest.fixture(params=[None, 30, 0], ids=["memory", "mixed", "files"])
def parts(request):
    return LocalParts(ARRAYS, request.param)


def sums(part, *more):
    return part.sum(), len(part), *more


def test_parts_beyond_the_limit_are_in_files():
    assert [LocalParts(ARRAYS, limit).n_files for limit in (10**6, 30, 0)] == [0, 2, 3]


def test_functions_see_the_parts_in_order(parts):
    assert len(parts) == 4
    for part, array in zip(parts.map(np.copy), ARRAYS, strict=True):
        np.testing.assert_array_equal(part, array)
    assert list(parts.map(sums, 7, each="abcd"))[1] == (10.0, 5, 7, "b")


def test_totals_and_what_is_combined(parts):
    assert parts.total(sums) == (14.0, 10)
    assert parts.combined(sum, len) == 10
    assert parts.combined(list, len) == [3, 5, 0, 2]


def test_parts_that_replace_others(parts):
    squares = parts.replaced(np.square)
    assert len(parts) == 0
    assert squares.total(sums) == (5.0 + 30.0 + 1.0, 10)


def test_some_of_the_parts(parts):
    assert parts.only([1, 3]).total(sums) == (11.0, 7)


def test_small_neighbours_are_joined(parts):
    joined = parts.joined(np.concatenate, len, 5)
    assert list(joined.map(len)) == [3, 5, 2]
    assert joined.total(sums) == (14.0, 10)


def test_parts_that_are_large_stay_as_they_are():
    parts = LocalParts([np.zeros(4), np.zeros(3)])
    assert parts.joined(np.concatenate, len, 6) is parts


def test_files_go_with_the_list():
    parts = LocalParts(ARRAYS, 0)
    folder = Path(parts._folder.path)
    assert len(list(folder.iterdir())) == 3
    del parts
    assert not folder.exists()


def test_views_are_functions_of_parts(parts):
    doubled = View(parts, np.multiply, (2.0,))
    assert doubled.total(sums) == (28.0, 10)
    assert doubled.only([0, 1]).combined(sum, partial(np.sum)) == 26.0
    taken = View(parts, np.take, each=[[0], [1, 2], [], [1]])
    assert list(taken.map(sums, each=range(4))) == [
        (0.0, 1, 0),
        (3.0, 2, 1),
        (0.0, 0, 2),
        (1.0, 1, 3),
    ]
    assert list(View(taken, np.add, (1.0,)).map(np.sum)) == [1.0, 5.0, 0.0, 2.0]


def test_sums_of_nothing():
    assert added(None, None) == ()
    assert added(None, (1, None, Same("a")), (2, 3, Same("b")))[:2] == (3, 3)
    assert LocalParts([]).total(sums) == ()
