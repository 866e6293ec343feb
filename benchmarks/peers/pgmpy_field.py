"""A discrete field in a file -> log Z and all pairwise marginals by pgmpy, with their seconds.

Runs in pgmpy's own environment: ``python pgmpy_field.py problem.npz answer.npz``.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")

import pgmpy  # noqa: E402
from pgmpy.factors.discrete import DiscreteFactor  # noqa: E402
from pgmpy.inference import BeliefPropagation, VariableElimination  # noqa: E402
from pgmpy.models import DiscreteMarkovNetwork  # noqa: E402


def network(problem):
    levels = problem["levels"].tolist()
    start = np.concatenate([[0], np.cumsum(levels)])
    made = DiscreteMarkovNetwork()
    made.add_nodes_from(map(str, range(len(levels))))
    factors = [
        DiscreteFactor([str(j)], [n], np.exp(problem["unary"][start[j] : start[j + 1]]))
        for j, n in enumerate(levels)
    ]
    for r, j in problem["edges"]:
        made.add_edge(str(r), str(j))
        table = np.exp(problem["pairs"][start[r] : start[r + 1], start[j] : start[j + 1]])
        factors.append(DiscreteFactor([str(r), str(j)], table.shape, table))
    made.add_factors(*factors)
    return made, start


def log_partition(problem):
    """Belief propagation on the junction tree: every clique then sums to Z."""
    made, _ = network(problem)
    engine = BeliefPropagation(made)
    engine.calibrate()
    return float(np.log(next(iter(engine.get_clique_beliefs().values())).values.sum()))


def all_pairs(problem):
    """Tables inside a clique from its belief, the others by elimination, which is faster here."""
    made, start = network(problem)
    engine = BeliefPropagation(made)
    engine.calibrate()
    beliefs = list(engine.get_clique_beliefs().items())
    elimination = VariableElimination(made)
    out = np.zeros((start[-1], start[-1]))
    q = len(start) - 1
    for r in range(q):
        for j in range(r + 1, q):
            pair = [str(r), str(j)]
            inside = [belief for clique, belief in beliefs if set(pair) <= set(clique)]
            if inside:
                others = [name for name in inside[0].variables if name not in pair]
                found = inside[0].marginalize(others, inplace=False) if others else inside[0]
            else:
                found = elimination.query(pair, show_progress=False)
            values = found.values if found.variables == pair else found.values.T
            values = values / values.sum()
            out[start[r] : start[r + 1], start[j] : start[j + 1]] = values
            out[start[j] : start[j + 1], start[r] : start[r + 1]] = values.T
    return out


def main():
    problem = dict(np.load(sys.argv[1]))
    log_partition(problem)
    clock = time.perf_counter()
    log_z = log_partition(problem)
    first = time.perf_counter()
    pairs = all_pairs(problem)
    seconds = {"log Z": first - clock, "all pairs": time.perf_counter() - first}
    np.savez(sys.argv[2], log_z=log_z, pairs=pairs)
    print(json.dumps({"version": pgmpy.__version__, **seconds}))


if __name__ == "__main__":
    main()
