"""A fitted model in -> what can be learnt about it: truth, fit, uncertainty."""
