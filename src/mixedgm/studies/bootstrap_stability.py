"""Case-dropping replicates -> how long edges and centralities stay what they were, and CS."""

from __future__ import annotations

import numpy as np

from mixedgm.model.layout import Floats
from mixedgm.studies.bootstrap_tables import Material, has_influence
from mixedgm.studies.centrality import MEASURES
from mixedgm.table.assemble import Columns

__all__ = ["STATISTICS", "correlations", "cs_coefficients", "stability_columns"]

STATISTICS = ("edge_weights", *MEASURES)


def correlations(material: Material) -> dict[str, Floats]:
    """(B,) Pearson correlation of every resample with the whole table, by statistic.

    Edge weights are compared over all pairs of columns, those without an edge included, and with
    their signs where they have one.  A correlation that does not exist, because all values of a
    resample are equal, counts as 0; where the whole table has none, or fewer than three values, it
    is NaN.
    """
    estimate, samples = material.estimate, material.replicates
    n_pairs = estimate.layout.n_groups
    absent = np.zeros((len(samples), n_pairs - samples.signed.shape[1]))
    found = {
        "edge_weights": _correlation(
            np.append(estimate.signed[0], absent[0] if len(absent) else []),
            np.hstack([samples.signed, absent]),
        )
    }
    known = has_influence(estimate)
    for measure in MEASURES:
        nodes = known if measure == "expected_influence" else slice(None)
        found[measure] = _correlation(
            estimate.centrality[measure][0, nodes], samples.centrality[measure][:, nodes]
        )
    return found


def _correlation(here: Floats, samples: Floats) -> Floats:
    if len(here) < 3 or np.ptp(here) == 0.0:
        return np.full(len(samples), np.nan)
    x = here - here.mean()
    y = samples - samples.mean(axis=1, keepdims=True)
    scale = np.sqrt((x @ x) * (y**2).sum(axis=1))
    varies = np.ptp(samples, axis=1) > 0.0
    return np.where(varies, (y @ x) / np.where(varies, scale, 1.0), 0.0)


def stability_columns(material: Material, dropped: Floats, level: float) -> Columns:
    """One entry per statistic and share of dropped rows."""
    tail = (1.0 - level) / 2.0
    rows = []
    for name, values in correlations(material).items():
        for share in np.unique(dropped):
            here = values[dropped == share]
            low, high = np.quantile(here, [tail, 1.0 - tail])
            rows.append((name, float(share), len(here), float(here.mean()), low, high))
    statistic, share_, count, mean, low_, high_ = zip(*rows, strict=True) if rows else [()] * 6
    return {
        "statistic": list(statistic),
        "dropped": np.array(share_, dtype=np.float64),
        "n_resamples": np.array(count, dtype=np.int64),
        "mean": np.array(mean, dtype=np.float64),
        "lower": np.array(low_, dtype=np.float64),
        "upper": np.array(high_, dtype=np.float64),
    }


def cs_coefficients(
    material: Material, dropped: Floats, correlation: float, probability: float
) -> dict[str, float]:
    """Largest share of rows whose loss leaves the correlation high with this probability.

    NaN where the statistic does not vary over the whole table's nodes or pairs.
    """
    found = {}
    for name, values in correlations(material).items():
        shares = [
            float(share)
            for share in np.unique(dropped)
            if (values[dropped == share] >= correlation).mean() >= probability
        ]
        found[name] = max(shares, default=0.0)
        if np.isnan(values).any():
            found[name] = float("nan")
    return found
