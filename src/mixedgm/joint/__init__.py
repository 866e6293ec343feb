"""A model -> the joint distribution: constant, marginals, conditionals, moments, draws.

Everything here works on `ConditionalGaussian` with column positions and level codes; names, tables
and frames are the business of the rooms below.
"""
