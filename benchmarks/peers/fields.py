"""A discrete field -> log Z and all pairwise marginals by peers outside this interpreter."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.external import UnavailableError
from benchmarks.peers.field_env import PACKAGES, python_of
from mixedgm.model.conditional_gaussian import ConditionalGaussian

HERE = Path(__file__).parent
PEERS = tuple(PACKAGES)
TIME_LIMIT = 900


@dataclass(frozen=True, eq=False)
class Answer:
    """What a peer found, and how long it took."""

    version: str
    seconds: dict[str, float]
    log_z: float
    pairs: NDArray[np.float64]


def field(
    graph: nx.Graph[Any], n_levels: int, seed: int = 0
) -> tuple[ConditionalGaussian, list[Any]]:
    """A random field on a graph, and its edges."""
    rng = np.random.default_rng(seed)
    at = {node: k for k, node in enumerate(graph)}
    params = ConditionalGaussian.independent(0, (n_levels,) * len(at))
    edges = sorted(tuple(sorted((at[u], at[v]))) for u, v in graph.edges)
    for r, j in edges:
        block = rng.normal(scale=0.7, size=(n_levels, n_levels))
        params.interaction[params.levels_of(r), params.levels_of(j)] = block
        params.interaction[params.levels_of(j), params.levels_of(r)] = block.T
    params.bias[:] = rng.normal(scale=0.5, size=len(params.bias))
    return params, edges


def ask(peer: str, params: ConditionalGaussian, edges: list[Any]) -> Answer:
    """Let a peer work on the field."""
    python = python_of(peer)
    if not python.exists():
        raise UnavailableError(
            f"{peer} has no environment yet: python benchmarks/peers/field_env.py"
        )
    with tempfile.TemporaryDirectory() as folder:
        problem, answer = Path(folder) / "problem.npz", Path(folder) / "answer.npz"
        np.savez(
            problem,
            levels=np.array(params.n_levels),
            unary=params.bias,
            edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
            pairs=params.interaction,
        )
        command = [str(python), str(HERE / f"{peer}_field.py"), str(problem), str(answer)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            raise UnavailableError(f"it was stopped after {TIME_LIMIT} s") from None
        if done.returncode != 0:
            raise UnavailableError(f"it failed: {done.stderr.strip().splitlines()[-1:]}")
        told = json.loads(done.stdout.strip().splitlines()[-1])
        found = dict(np.load(answer))
    return Answer(told.pop("version"), told, float(found["log_z"]), found["pairs"])
