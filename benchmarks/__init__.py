"""Measurements of mixedgm against stated goals: `python -m benchmarks`."""
