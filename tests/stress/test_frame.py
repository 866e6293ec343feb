"""Campaigns find what is wrong with a case, go on after it, and go on where they were left."""

import json

import pytest

from stress import record, running
from stress.campaign import Case, load

TRIAL = """
import os, time
from stress.campaign import Campaign, Found

def attempt(seed, folder):
    if seed == 1:
        time.sleep(60)
    if seed == 2:
        os._exit(3)
    if seed == 3:
        raise ValueError("broken")
    if seed == 4:
        return Found("wrong", ["not what it should be"])
    if seed == 5:
        b"x" * 40_000_000
    if seed == 7:
        until = time.process_time() + 0.7
        while time.process_time() < until:
            pass
    (folder / "file").write_text("in a folder of its own")
    return Found("right")

CAMPAIGN = Campaign("a trial", 8, 0.5, attempt, most_mb=30)
"""


@pytest.fixture
def trial(tmp_path, monkeypatch):
    (tmp_path / "the_trial.py").write_text(TRIAL)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{record.ROOT.parent}")
    return load("the_trial")


def test_every_way_to_fail_is_a_finding(trial):
    # The first case of a process may take longer, because kernels are compiled.
    cases = running.run("the_trial", trial, [0, 1, 0, 2, 3, 4, 5, 6], "code", jobs=1)
    found = {case.seed: (case.kind, " ".join(case.findings)) for case in cases}
    assert found[0] == found[6] == ("right", "")
    assert found[1] == ("no answer", "did not end in 5 s")
    assert found[2] == ("no answer", "its process died (3)")
    assert "ValueError: broken" in found[3][1]
    assert found[4] == ("wrong", "not what it should be")
    assert "MB of memory" in found[5][1]


def test_time_is_that_of_the_processor(trial):
    cases = list(running.run("the_trial", trial, [0, 7], "code", jobs=1, patience=1000.0))
    assert [case.findings for case in cases] == [[], [f"took {cases[1].seconds:.1f} s"]]


def test_results_grow_and_half_a_line_is_no_case(tmp_path):
    first = Case(0, "right", [], 0.1, 1.0, "old")
    record.keep("trial", first, tmp_path)
    record.keep("trial", Case(1, "wrong", ["first line\nlast line"], 2.0, 3.0, "old"), tmp_path)
    record.keep("trial", Case(0, "right", [], 0.2, 1.0, "new"), tmp_path)
    with (tmp_path / "trial.jsonl").open("a") as file:
        file.write('{"seed": 2, "ki')
    cases = record.results("trial", tmp_path)
    assert {seed: case.code for seed, case in cases.items()} == {0: "new", 1: "old"}


def test_the_record_counts_and_names_what_was_found(trial, tmp_path):
    cases = [Case(0, "right", [], 0.2, 1.0, "c"), Case(1, "wrong", ["a\nb"], 2.0, 3.0, "c")]
    record.write_record("tables", trial, cases, tmp_path)
    written = json.loads((tmp_path / "tables.json").read_text())
    assert (written["cases"], written["with_findings"]) == (2, 1)
    assert written["findings"] == [{"seed": 1, "findings": ["b"]}]
    assert (
        "| a trial (`tables`) | 2 of 8 | 1 | 2.0 s | 3 MB |" in (tmp_path / "table.md").read_text()
    )
