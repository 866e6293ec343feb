"""The page of the experiments shows what the committed results say."""

import re

import pandas as pd
import pytest

from experiments import page

TEXT = page.PAGE.read_text(encoding="utf-8")


def test_tables_on_the_page_are_those_of_the_results():
    assert page.written(TEXT) == TEXT, "run: python -m experiments.page"


def test_every_table_and_every_figure_has_its_place():
    assert set(re.findall(r"<!-- table: (\w+) -->", TEXT)) == set(page.TABLES)
    figures = {file.name for file in page.RESULTS.glob("*.png")}
    assert set(re.findall(r"\]\(experiments/(\w+\.png)\)", TEXT)) == figures
    vectors = {file.with_suffix(".svg").name for file in page.RESULTS.glob("*.png")}
    assert {file.name for file in page.RESULTS.glob("*.svg")} == vectors


@pytest.mark.parametrize("file", sorted(page.RESULTS.glob("*.*")), ids=lambda file: file.name)
def test_results_stay_small(file):
    assert file.stat().st_size < 200_000


def test_an_outdated_table_is_seen(monkeypatch):
    old = page.times()
    monkeypatch.setitem(page.TABLES, "times", lambda: old.assign(minutes=old.minutes + 1.0))
    assert page.written(TEXT) != TEXT


def test_cells():
    assert [page.cell(x) for x in (0.00652141, 1234.5, 10_000, "λ", float("nan"))] == [
        "0.006521",
        "1,234",
        "10,000",
        "λ",
        "–",
    ]
    assert page.markdown(pd.DataFrame({"n": [1000], "λ": [0.5]})) == (
        "| n | λ |\n| --- | --- |\n| 1,000 | 0.5 |\n"
    )
