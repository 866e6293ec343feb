"""The sampler of the studies against sums over states, and what fits and pages make of its rows."""

import importlib.util
import itertools
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "studies"


def study(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_moments_are_those_of_all_states() -> None:
    """Four standard errors for 44 means: wrong by chance in one of 400 seeds; the seed is fixed."""
    gibbs = study("gibbs")
    columns = [
        gibbs.ordinal([0.0, 0.4, -0.3], scores=[0, 1, 3]),
        gibbs.count(0.3, -0.2, largest=4, zero=0.7),
        gibbs.categorical([0.2, -0.5, 0.1]),
        gibbs.Gaussian(0.3, 1.5),
        gibbs.Hurdle(-0.6, 0.4, 2.0),
    ]
    rng = np.random.default_rng(0)
    widths = [1, 1, 3, 1, 2]
    blocks = {
        (u, v): 0.5 * rng.standard_normal((widths[u], widths[v]))
        for u, v in [(0, 1), (0, 3), (1, 2), (1, 4), (2, 3), (2, 4), (3, 4)]
    }
    n_rows = 200_000
    values = gibbs.rows(columns, blocks, n_rows, rng, sweeps=20)
    seen = np.hstack([column.seen(values[:, k]) for k, column in enumerate(columns)])
    expected_first, expected_second = integrated(blocks, centres(columns))
    error = np.sqrt(seen.var(axis=0) / n_rows)
    assert np.all(np.abs(seen.mean(axis=0) - expected_first) < 4 * error)
    second = seen.T @ seen / n_rows
    error = np.sqrt(((seen**2).T @ seen**2 / n_rows - second**2) / n_rows)
    assert np.all(np.abs(second - expected_second) <= 4 * error + 1e-12)


def centres(columns: list) -> np.ndarray:
    """The sampler takes T less its mean without edges; compared with sums elsewhere."""
    return np.concatenate([column.independent()[0] for column in columns])


def integrated(blocks: dict, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E[T] and E[TT'] by sums over levels and the trapezoidal rule over both numbers."""
    step = 0.05
    line = np.arange(-9, 9, step) + step / 2  # without zero
    x, h = np.meshgrid(line, np.append(line, 0.0), indexing="ij")
    there = h != 0
    measure = np.where(there, step, 1.0) * step
    own = 0.3 * x - 0.75 * x**2 + there * (-0.6 + 0.4 * h - h**2)
    spans = [slice(0, 1), slice(1, 2), slice(2, 5), slice(5, 6), slice(6, 8)]
    coef = np.zeros((8, 8))
    for (u, v), block in blocks.items():
        coef[spans[u], spans[v]] = block
    total, first, second = 0.0, np.zeros(8), np.zeros((8, 8))
    for level, c, category in itertools.product(range(3), range(5), range(3)):
        log_own = [0.0, 0.4, -0.3][level] + [0.2, -0.5, 0.1][category]
        log_own += 0.3 * c**0.5 - 0.2 * c - np.log([1, 1, 2, 6, 24][c]) + 0.7 * (c == 0)
        fixed = [[0, 1, 3][level], c**0.5, *(float(category == k) for k in range(3))]
        statistics = np.stack([*(np.full(x.shape, each) for each in fixed), x, there, h])
        centred = statistics - centre[:, None, None]
        pairs = np.einsum("aij,ab,bij->ij", centred, coef, centred)
        weight = measure * np.exp(log_own + own + pairs)
        total += weight.sum()
        first += np.einsum("aij,ij->a", statistics, weight)
        second += np.einsum("aij,bij,ij->ab", statistics, statistics, weight, optimize=True)
    return first / total, second / total


def test_the_page_shows_what_the_file_of_counts_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    study("kinds").report()
    page = (FOLDER.parent / "selection.md").read_text(encoding="utf-8").splitlines()
    assert set(capsys.readouterr().out.splitlines()) <= {*page, ""}


def test_independent_moments_are_sums() -> None:
    gibbs = study("gibbs")
    mean, scale = gibbs.count(0.0, np.log(3.0), largest=60).independent()
    poisson = np.exp(-3.0) * np.cumprod(np.concatenate([[1.0], 3.0 / np.arange(1, 61)]))
    roots = np.sqrt(np.arange(61))
    assert np.allclose(mean, poisson @ roots)
    assert np.isclose(scale**2, poisson @ roots**2 - (poisson @ roots) ** 2)
    rng = np.random.default_rng(1)
    hurdle = gibbs.Hurdle(-0.6, 0.4, 2.0)
    drawn = hurdle.seen(hurdle.drawn(np.zeros((200_000, 2)), rng))
    assert np.allclose(drawn.mean(axis=0), hurdle.independent()[0], atol=0.01)
    assert np.isclose(np.sqrt(drawn.var(axis=0).sum()), hurdle.independent()[1], atol=0.01)


def test_a_fit_finds_the_model_that_rows_were_drawn_from() -> None:
    """Graph, parameters and conditionals, from 20,000 rows with columns of all kinds."""
    gibbs = study("gibbs")
    columns = {
        "number": gibbs.Gaussian(0.5, 2.0),
        "score": gibbs.ordinal([0.0, 0.6, 0.2, -0.8], scores=[0, 1, 2, 4]),
        "smooth": gibbs.ordinal(0.4 * np.arange(6) - 0.2 * np.arange(6) ** 2),
        "visits": gibbs.count(0.5, 0.3, largest=30),
        "nights": gibbs.count(-1.0, 1.2, largest=30, zero=1.0),
        "name": gibbs.categorical([0.3, 0.0, -0.3]),
        "debt": gibbs.Hurdle(-4.0, 6.0, 4.0),
    }
    blocks = {
        (0, 1): [[0.25]],
        (1, 3): [[-0.35]],
        (2, 3): [[0.4]],
        (3, 4): [[0.8]],
        (2, 5): [[0.3, 0.1, -0.4]],
        (0, 5): [[-0.5, 0.0, 0.5]],
        (4, 5): [[0.0, -0.4, 0.4]],
        (0, 6): [[1.2, -0.8]],
        (3, 6): [[-0.3, 0.4]],
        (5, 6): [[0.5, 0.1], [0.0, 0.2], [-0.5, -0.3]],
    }
    values = gibbs.rows(list(columns.values()), blocks, 20_000, np.random.default_rng(3), sweeps=60)
    table = pd.DataFrame(values, columns=list(columns))
    table = table.astype(dict.fromkeys(table.columns[1:6], np.int64))
    types = {
        "score": mg.Ordinal(scores=[0, 1, 2, 4]),
        "smooth": mg.Ordinal(thresholds="quadratic"),
        "visits": "count",
        "nights": mg.Count(zero_term=True),
        "name": "categorical",
        "debt": "hurdle",
    }
    model = mg.MixedGraphicalModel(types=types, n_jobs=1).fit(table)
    names = list(columns)
    assert {frozenset(edge[:2]) for edge in model.edges_} == {
        frozenset((names[u], names[v])) for u, v in blocks
    }
    scales = [np.full(column.width, column.independent()[1]) for column in columns.values()]
    location, share = values[values[:, 6] != 0.0, 6].mean(), (values[:, 6] != 0.0).mean()
    scales[6] = np.sqrt([share * (1 - share), share / 4.0])
    counted_from = np.array([[1.0, 0.0], [location, 1.0]])  # how much, less the mean amount
    for (u, v), block in blocks.items():
        truth = np.array(block) @ counted_from if v == 6 else np.array(block)
        estimate = model.interaction(names[u], names[v]).to_numpy()
        error = 1 / np.outer(scales[u], scales[v]) / np.sqrt(len(table))
        assert (np.abs(estimate - truth) < 5 * error).all(), (names[u], names[v])
    for k, (name, column) in enumerate(columns.items()):
        if isinstance(column, gibbs.Finite):
            prob = model.predict_proba(table.head(500), name).to_numpy()
            truth = conditional(columns, blocks, values[:500], k)
            width = min(prob.shape[1], truth.shape[1])
            assert np.abs(prob[:, :width] - truth[:, :width]).max() < 0.05, name


def conditional(columns: dict, blocks: dict, values: np.ndarray, k: int) -> np.ndarray:
    """(n, values) probabilities of column k given all others, by the formula of the model."""
    parts = list(columns.values())
    logits = np.tile(parts[k].own, (len(values), 1))
    for (u, v), block in blocks.items():
        if k in (u, v):
            other, matrix = (v, np.array(block).T) if k == u else (u, np.array(block))
            seen = parts[other].seen(values[:, other]) - parts[other].independent()[0]
            logits += seen @ matrix @ parts[k].table.T
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
