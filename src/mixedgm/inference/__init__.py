"""Rows and an estimate -> how certain an edge is, for every pair of columns."""
