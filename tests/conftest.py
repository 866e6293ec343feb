"""Settings that every test shares."""

import os

# Pictures are drawn without a screen. Set before anything imports matplotlib.
os.environ.setdefault("MPLBACKEND", "Agg")
