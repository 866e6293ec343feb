"""Pictures are closed after every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """No figure of another test is open before, and none of this one after."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")
    yield
    plt.close("all")
