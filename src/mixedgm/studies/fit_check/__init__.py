"""Whether a model fits its table."""
