"""Other solvers, each run in its own process or environment."""
