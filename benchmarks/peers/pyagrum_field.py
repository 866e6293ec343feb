"""A discrete field in a file -> log Z and all pairwise marginals by pyAgrum, with their seconds.

Runs in pyAgrum's own environment: ``python pyagrum_field.py problem.npz answer.npz``.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import pyagrum as gum


def network(problem):
    levels = problem["levels"].tolist()
    start = np.concatenate([[0], np.cumsum(levels)])
    made = gum.MarkovRandomField()
    nodes = [made.add(gum.LabelizedVariable(f"y{j}", "", n)) for j, n in enumerate(levels)]
    for j, node in enumerate(nodes):
        own = np.exp(problem["unary"][start[j] : start[j + 1]])
        made.addFactor(gum.Tensor().add(made.variable(node)).fillWith(own.tolist()))
    for r, j in problem["edges"]:
        table = np.exp(problem["pairs"][start[r] : start[r + 1], start[j] : start[j + 1]])
        empty = gum.Tensor().add(made.variable(nodes[r])).add(made.variable(nodes[j]))
        made.addFactor(empty.fillWith(table.T.ravel().tolist()))  # the first one runs fastest
    return made, nodes, start


def log_partition(problem):
    """It gives the probability of evidence, so that of one state: weight over probability is Z."""
    made, nodes, start = network(problem)
    engine = gum.ShaferShenoyMRFInference(made)
    engine.setEvidence(dict.fromkeys(nodes, 0))
    engine.makeInference()
    first = start[:-1]
    weight = problem["unary"][first].sum()
    weight += sum(problem["pairs"][first[r], first[j]] for r, j in problem["edges"])
    return float(weight - np.log(engine.evidenceProbability()))


def all_pairs(problem):
    """Every level of every column is set in turn, and all posteriors are read."""
    made, nodes, start = network(problem)
    engine = gum.ShaferShenoyMRFInference(made)
    engine.makeInference()
    alone = [engine.posterior(node).toarray() for node in nodes]
    out = np.zeros((start[-1], start[-1]))
    for r, node in enumerate(nodes[:-1]):
        for level in range(len(alone[r])):
            engine.setEvidence({node: level})
            engine.makeInference()
            row = start[r] + level
            for j in range(r + 1, len(nodes)):
                given = engine.posterior(nodes[j]).toarray()
                out[row, start[j] : start[j + 1]] = alone[r][level] * given
    return out + out.T


def main():
    problem = dict(np.load(sys.argv[1]))
    log_partition(problem)
    clock = time.perf_counter()
    log_z = log_partition(problem)
    first = time.perf_counter()
    pairs = all_pairs(problem)
    seconds = {"log Z": first - clock, "all pairs": time.perf_counter() - first}
    np.savez(sys.argv[2], log_z=log_z, pairs=pairs)
    print(json.dumps({"version": gum.__version__, **seconds}))


if __name__ == "__main__":
    main()
