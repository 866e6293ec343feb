"""Rows with gaps and a model -> completed rows with weights."""
