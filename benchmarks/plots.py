"""Figures of growth -> one picture with a panel per question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def growth(figures: dict[str, Any], path: Path) -> None:
    """Time and memory against rows and columns, time against edges; both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
    rows = figures["rows"]
    n = [one["n_rows"] for one in rows]
    _line(panels[0, 0], n, [one["seconds"] for one in rows], "path (dotted: slope 1)", power=1)
    _labels(panels[0, 0], "Survey, time", "rows", "seconds")
    used = [(one["peak"] - one["imports"]) / 1e6 for one in rows]
    _line(panels[0, 1], n, used, "beyond imports")
    allowed = [3 * one["encoded"] / 1e6 + 200 for one in rows]
    panels[0, 1].plot(n, allowed, "--", color="grey", label="3 x encoded table + 200 MB")
    _labels(panels[0, 1], "Survey, peak memory", "rows", "MB")
    dense = figures["dense pass"]
    _line(panels[1, 0], dense["d"], dense["seconds"], "dense: a pass (dotted: slope 2)", power=2)
    for kind in ("dense", "sparse"):
        found = figures[f"{kind} path"]
        d = [one["d"] for one in found]
        _line(panels[1, 0], d, [one["seconds"] for one in found], f"{kind}: a path", power=2)
    _labels(panels[1, 0], "Time against columns", "design columns d", "seconds")
    edges = figures["edges"]
    kept = np.array(edges["edges"]) > 0
    count, seconds = np.array(edges["edges"])[kept], np.array(edges["seconds"])[kept]
    panels[1, 1].plot(count, 1e3 * seconds, "o", label="one lam")
    gradient = 1e3 * edges["gradient seconds"]
    panels[1, 1].axhline(gradient, ls="--", color="grey", label="one full gradient")
    panels[1, 1].set(xscale="log", yscale="log")
    _labels(panels[1, 1], "Time of a lam against edges", "edges", "milliseconds")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _line(panel: Any, x: list[float], y: list[float], label: str, power: int | None = None) -> None:
    line = panel.loglog(x, y, "o-", label=label)[0]
    if power is not None:
        guide = y[-1] * (np.array(x) / x[-1]) ** power
        panel.loglog(x, guide, ":", color=line.get_color(), lw=1)


def _labels(panel: Any, title: str, x: str, y: str) -> None:
    panel.set(title=title, xlabel=x, ylabel=y)
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")
