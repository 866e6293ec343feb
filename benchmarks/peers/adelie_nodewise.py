"""A table and a grid (npz) -> seconds of nodewise group-lasso regressions by adelie (JSON).

Runs inside the environment that `adelie_env.py` makes, so nothing of this project is imported.
Every column is regressed on all others: a Gaussian column by least squares, a categorical one by
multinomial regression, with one group per pair of columns (all levels of the predictor by all
levels of the response) and the weights of the joint problem.  Both directions of an edge are
penalised, so the joint lam corresponds to lam / 2 here.

    python adelie_nodewise.py PROBLEM.npz
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from typing import Any

# Left alone, adelie ties the process and all its children to one core.
os.environ["OMP_PROC_BIND"] = "FALSE"

import adelie as ad  # noqa: E402
import numpy as np  # noqa: E402

Table = dict[str, Any]
TABLE: Table = {}


def solve(node: int) -> Any:
    """One node's path."""
    cont, codes, levels = TABLE["cont"], TABLE["codes"], TABLE["levels"]
    n_cont = cont.shape[1]
    width = np.r_[np.zeros(n_cont, dtype=np.int64), levels]
    keep = np.arange(len(width)) != node
    base = np.asfortranarray(np.hstack([cont, codes])[:, keep], dtype=np.float64)
    factor = 1.0
    if node < n_cont:
        glm = ad.glm.gaussian(np.ascontiguousarray(cont[:, node]))
    else:
        response = np.eye(levels[node - n_cont])[codes[:, node - n_cont]]
        glm = ad.glm.multinomial(np.asfortranarray(response))
        # adelie divides the multinomial loss by the number of classes.
        factor = 1.0 / response.shape[1]
    return ad.grpnet(
        X=ad.matrix.one_hot(base, width[keep]),
        glm=glm,
        groups=np.r_[0, np.cumsum(np.maximum(width[keep], 1))[:-1]],
        penalty=TABLE["scale"][keep] * TABLE["scale"][node],
        lmda_path=TABLE["lams"] / 2.0 * factor,
        early_exit=False,
        progress_bar=False,
        n_threads=1,
    )


def kkt(node: int, state: Any) -> float:
    """The worst violation over the path, on the scale of the joint certificate."""
    cont, codes, levels, scale = (TABLE[key] for key in ("cont", "codes", "levels", "scale"))
    n_cont = cont.shape[1]
    blocks = [cont[:, [s]] for s in range(n_cont)]
    blocks += [np.eye(m)[codes[:, j]] for j, m in enumerate(levels)]
    others = [u for u in range(len(blocks)) if u != node]
    Z, response = np.hstack([blocks[u] for u in others]), blocks[node]
    ends = np.cumsum([blocks[u].shape[1] for u in others])
    worst = 0.0
    for k, lam in enumerate(TABLE["lams"] / 2.0):
        coef = np.asarray(state.betas[k].todense()).reshape(Z.shape[1], -1)
        eta = Z @ coef + state.intercepts[k]
        if node >= n_cont:
            eta = np.exp(eta - eta.max(axis=1, keepdims=True))
            eta /= eta.sum(axis=1, keepdims=True)
        grad = Z.T @ (eta - response) / len(Z)
        parts = np.split(coef, ends[:-1]), np.split(grad, ends[:-1])
        for u, b, g in zip(others, *parts, strict=True):
            weight, size = scale[u] * scale[node], np.linalg.norm(b)
            distance = (
                np.linalg.norm(g + lam * weight * b / size)
                if size
                else (max(0.0, np.linalg.norm(g) - lam * weight))
            )
            worst = max(worst, float(distance) / weight)
    return worst


def seconds_and_kkt(node: int) -> tuple[float, float]:
    clock = time.perf_counter()
    state = solve(node)
    seconds = time.perf_counter() - clock
    return seconds, kkt(node, state)


def main() -> None:
    problem = np.load(sys.argv[1])
    TABLE.update({key: problem[key] for key in problem.files})
    nodes = range(TABLE["cont"].shape[1] + TABLE["codes"].shape[1])
    alone = [seconds_and_kkt(node) for node in nodes]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(abs, range(2))  # both processes are up
        clock = time.perf_counter()
        pool.map(solve_only, nodes, chunksize=1)
        two = time.perf_counter() - clock
    out = {
        "version": ad.__version__,
        "one process": sum(seconds for seconds, _ in alone),
        "two processes": two,
        "kkt": max(found for _, found in alone),
    }
    print(json.dumps(out))


def solve_only(node: int) -> int:
    """Solve and return next to nothing, so that no result has to travel between processes."""
    return len(solve(node).lmdas)


if __name__ == "__main__":
    main()
