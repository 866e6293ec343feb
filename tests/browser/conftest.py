"""One Chromium for all tests of the report, and the few reports that they look at."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mixedgm as mg
from tests.support.patients import TYPES, patients
from tests.support.report_browser import Page, browser_programs, started_browser
from tests.support.wide_report import write_wide_report


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    if browser_programs() is None:
        pytest.skip("no browser: needs Chromium and its driver (Debian: chromium chromium-driver)")
    pytest.importorskip("selenium.webdriver", reason="needs selenium")
    with started_browser() as made:
        yield made


@pytest.fixture
def page(driver: Any) -> Iterator[Page]:
    page = Page(driver)
    page.resize(1400, 1000)
    yield page
    page.expect_no_trouble()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="session")
def rows() -> pd.DataFrame:
    return patients(300)


@pytest.fixture(scope="session")
def model(rows: pd.DataFrame) -> mg.MixedGraphicalModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.TableWarning)
        return mg.MixedGraphicalModel(types=TYPES).fit(rows)


@pytest.fixture(scope="session")
def patients_report(model: mg.MixedGraphicalModel, rows: pd.DataFrame, folder: Path) -> Path:
    """Every kind of column, with tests, a bootstrap, groups and a check."""
    file = folder / "patients.html"
    tests = mg.edge_tests(model, rows, random_state=0)
    boot = mg.bootstrap(model, rows, n_boot=10, random_state=0, n_jobs=1)
    groups = mg.compare(rows, "smoker", types=TYPES, lam=0.2, n_jobs=1)
    check = model.check_fit(rows, n_sim=40, random_state=0, n_jobs=1)
    model.report(file, rows, boot, tests, groups, check=check, title="Patients")
    return file


@pytest.fixture(scope="session")
def wide_report(folder: Path) -> Path:
    """300 columns and 2,000 edges."""
    file = folder / "wide.html"
    write_wide_report(file)
    return file
