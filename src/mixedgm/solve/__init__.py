"""Smooth + penalty -> certified minimiser."""
