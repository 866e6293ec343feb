"""How a fit varies between resamples of its rows."""
