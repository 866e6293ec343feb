"""Settings that every test shares."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Pictures are drawn without a screen. Set before anything imports matplotlib.
os.environ.setdefault("MPLBACKEND", "Agg")

# An example may take as long as a busy machine needs for it.
settings.register_profile("any load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")


@pytest.fixture(scope="session", autouse=True)
def _speed_of_a_quiet_machine():
    """Estimate durations as for the machine of the measurements, however busy this one is."""
    from mixedgm.table import effort

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effort, "_relative_speed", lambda: 1.0)
        yield
