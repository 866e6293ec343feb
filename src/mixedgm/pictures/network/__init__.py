"""A fitted model in -> the picture of its network."""
