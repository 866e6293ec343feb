"""Smooth functions of theta: value, gradient and curvature."""
