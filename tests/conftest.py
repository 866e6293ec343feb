"""Settings that every test shares."""

import os

from hypothesis import HealthCheck, settings

# Pictures are drawn without a screen. Set before anything imports matplotlib.
os.environ.setdefault("MPLBACKEND", "Agg")

# An example may take as long as a busy machine needs for it.
settings.register_profile("any load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")
