"""Two small tables -> coefficients and robust standard errors of regressions, by statsmodels.

`python tests/reference/regression_errors.py` writes ``regression_errors.json`` anew.  It needs
statsmodels 0.14 or later and nothing of this package; the tests read the file.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

STORED = Path(__file__).with_name("regression_errors.json")
LEVELS = ("a", "b", "c")


def table(n: int = 400) -> dict[str, np.ndarray]:
    """Numbers x and w, levels c, rows in clusters; y of two levels and t of three."""
    rng = np.random.default_rng(7)
    home = np.repeat(np.arange(n // 4), 4)
    shared = rng.normal(size=n // 4)[home]
    x, w, c = 0.6 * shared + rng.normal(size=n), rng.normal(size=n), rng.integers(3, size=n)
    slope = 0.7 * x - 0.3 * w + np.array([0.0, 0.5, -0.4])[c] + 0.8 * shared
    y = (slope + rng.logistic(size=n) > 0).astype(np.int64)
    t = np.argmax(np.outer(slope, [0.0, 0.6, -0.5]) + rng.gumbel(size=(n, 3)), axis=1)
    return {"x": x, "w": w, "c": c, "y": y, "t": t, "home": home}


def design(columns: dict[str, np.ndarray]) -> np.ndarray:
    """Constant, x, w, and two indicators of c."""
    c = columns["c"]
    return np.column_stack([np.ones(len(c)), columns["x"], columns["w"], c == 1, c == 2])


def main() -> None:
    """Write the file."""
    import statsmodels
    import statsmodels.api as sm

    columns = table()
    Z = design(columns).astype(np.float64)
    by_home = {
        "cov_type": "cluster",
        "cov_kwds": {"groups": columns["home"], "use_correction": False},
    }
    plain = {"cov_type": "HC0"}
    out: dict[str, object] = {"statsmodels": statsmodels.__version__}
    for name, model in (("y", sm.Logit(columns["y"], Z)), ("t", sm.MNLogit(columns["t"], Z))):
        fits = {
            key: model.fit(method="newton", disp=0, tol=1e-14, maxiter=100, **options)
            for key, options in (("rows", plain), ("clusters", by_home))
        }
        out[name] = {
            "coefficients": np.asarray(fits["rows"].params).tolist(),
            "rows": np.asarray(fits["rows"].cov_params()).tolist(),
            "clusters": np.asarray(fits["clusters"].cov_params()).tolist(),
        }
    STORED.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
