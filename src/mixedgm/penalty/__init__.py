"""The group-lasso penalty and its weights."""
