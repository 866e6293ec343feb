"""A fitted model and what is known about it -> one HTML file that needs nothing else."""
