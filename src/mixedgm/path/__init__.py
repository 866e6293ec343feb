"""Tuning: grids of lam, warm-started paths, and criteria that choose from them."""
