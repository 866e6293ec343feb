"""A fitted model or a result in -> pictures, computing nothing new."""
