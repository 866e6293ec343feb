"""What is said before long computations, and shown meanwhile."""

import warnings

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.base import progress
from mixedgm.base.parallel import run
from mixedgm.base.progress import announce, duration, quietly, track, with_bars


def test_lengths_of_time_are_round():
    assert [duration(60.0 * m) for m in (0.1, 0.5, 1, 2.2, 11, 25, 60, 200, 3000)] == [
        "10 seconds",
        "30 seconds",
        "a minute",
        "2 minutes",
        "10 minutes",
        "20 minutes",
        "an hour",
        "3.5 hours",
        "2 days",
    ]


def test_ten_seconds_are_announced():
    announce(9.0, "this", "that")
    with pytest.warns(mg.LongRunWarning, match="^this takes about 40 seconds. To shorten it: that"):
        announce(40.0, "this", "that")
    with pytest.warns(mg.LongRunWarning, match="takes up to about a minute") as told:
        announce(60.0, "this", "that", at_most=True)
    assert told[0].filename == __file__


def test_a_part_of_the_whole_is_not_announced_again():
    with quietly():
        announce(1e6, "this", "that")
    with pytest.raises(mg.LongRunWarning):
        announce(1e6, "this", "that")


def test_long_work_shows_a_bar_where_it_is_seen(capsys):
    for show, seconds, expected in [(True, 11.0, True), (True, 9.0, False), (False, 11.0, False)]:
        with with_bars(show):
            assert list(track(range(3), what="rows", seconds=seconds)) == [0, 1, 2]
        assert ("rows" in capsys.readouterr().err) is expected
    assert list(track(range(3), what="rows", seconds=11.0)) == [0, 1, 2]
    assert not capsys.readouterr().err  # neither a terminal nor a notebook


def test_work_of_unknown_length_shows_a_bar_after_a_while(monkeypatch):
    import tqdm

    bars = []

    def bar(items, *_, **options):
        bars.append(options)
        return items

    monkeypatch.setattr(tqdm, "tqdm", bar)
    with with_bars(False):
        assert list(track(range(3), what="rows", seconds=None)) == [0, 1, 2]
    assert not bars
    with with_bars(True):
        assert list(track(range(3), what="rows", seconds=None)) == [0, 1, 2]
        assert list(track(range(3), what="rows", show=True)) == [0, 1, 2]
    assert [bar["delay"] for bar in bars] == [progress._DELAY, 0.0]


def long_task(_):
    announce(1e6, "this", "that")
    list(track(range(3), what="part", seconds=1e6))
    return {"x": np.zeros(1)}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tasks_are_shown_together(capsys, n_jobs):
    with warnings.catch_warnings(), with_bars(True):
        warnings.simplefilter("error")
        outcomes = run(long_task, range(3), n_jobs=n_jobs, what="tasks")
    assert len(outcomes) == 3
    assert "part" not in capsys.readouterr().err
