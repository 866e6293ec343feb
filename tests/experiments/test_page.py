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
    monkeypatch.setitem(page.TABLES, "times", lambda: old.assign(minutes="0.5"))
    assert page.written(TEXT) != TEXT


def test_cells():
    table = pd.DataFrame({"n": [10_000], "loss": [0.12345], "λ": ["5e-05"]})
    assert page.markdown(table) == (
        "| n | loss | λ |\n| --- | --- | --- |\n| 10,000 | 0.123 | 5e-05 |\n"
    )
