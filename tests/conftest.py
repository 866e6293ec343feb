"""Settings that every test shares."""

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# Pictures are drawn without a screen. Set before anything imports matplotlib.
os.environ.setdefault("MPLBACKEND", "Agg")

# An example may take as long as a busy machine needs for it.
settings.register_profile("any load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")


def pytest_configure(config: pytest.Config) -> None:
    """Compile kernels before there are several processes, all of which would compile them."""
    if not config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        return
    from mixedgm import MixedGraphicalModel
    from mixedgm.fit.precompile import has_kernels
    from tests.support.patients import TYPES, patients

    if not has_kernels():
        MixedGraphicalModel(types=TYPES).fit(patients())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay, so that looking for garbage among them only takes time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
