"""Params -> the joint distribution: constant, marginals, conditionals, moments, draws."""
