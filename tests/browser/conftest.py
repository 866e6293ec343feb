"""One Chromium for all tests of the report, and the few reports that they look at."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.support.patients import TYPES, patients
from tests.support.report_browser import Page

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    service = shutil.which("chromedriver")
    if program is None or service is None:
        pytest.skip("no browser: needs Chromium and its driver (Debian: chromium chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    folder = tempfile.mkdtemp(prefix="mixedgm-browser-")
    for flag in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(service))
    yield made
    made.quit()
    shutil.rmtree(folder, ignore_errors=True)


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
    rng = np.random.default_rng(0)
    n, precision = 300, np.zeros((300, 300))
    pairs = rng.permutation(np.array(np.triu_indices(n, 1)).T)[:2000]
    precision[pairs[:, 0], pairs[:, 1]] = rng.choice([-1.0, 1.0], 2000) * rng.uniform(0.1, 1, 2000)
    precision += precision.T
    precision += np.diag(1.0 + np.abs(precision).sum(axis=1))
    columns = {f"column {k}": "continuous" for k in range(n)}
    model = mg.from_params(columns, {"precision": precision})
    assert len(model.edges_) == 2000
    file = folder / "wide.html"
    model.report(file)
    return file
