"""Frames of groups -> weights with which they have the same means, variances and shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import logsumexp


def centred(part: pd.DataFrame, weight: np.ndarray) -> pd.DataFrame:
    """Numbers less their weighted means."""
    out = part.copy()
    for name in part.select_dtypes("number"):
        out[name] -= np.average(part[name], weights=weight)
    return out


def balanced(parts: Sequence[pd.DataFrame], weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Weights of two groups by entropy balancing, with SciPy's general minimiser.

    Numbers are compared about their own means.
    """
    features = []
    for part, weight in zip(parts, weights, strict=True):
        numbers = centred(part, weight).select_dtypes("number")
        words = part.select_dtypes(exclude="number")
        dummies = pd.get_dummies(words, drop_first=True, dtype=float)
        features.append(np.hstack([numbers, numbers**2, dummies]))
    total = [weight.sum() for weight in weights]

    def dual(a: np.ndarray) -> float:
        tilts = (a / total[0], -a / total[1])
        return sum(
            n * logsumexp(f @ tilt, b=weight / n)
            for n, f, tilt, weight in zip(total, features, tilts, weights, strict=True)
        )

    best = minimize(dual, np.zeros(features[0].shape[1]), method="BFGS", options={"gtol": 1e-5})
    out = []
    for f, tilt, weight in zip(
        features, (best.x / total[0], -best.x / total[1]), weights, strict=True
    ):
        new = weight * np.exp(f @ tilt - (f @ tilt).max())
        out.append(new * weight.sum() / new.sum())
    return out
