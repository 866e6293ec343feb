"""Tables of two groups from known graphs -> how often `compare` finds what differs, and what not.

Populations of the published design of Haslbeck (2022) are drawn again from its seeds: 17 normal
columns, a fifth of the pairs joined by partial correlations U(-0.2, 0.4), and 20 of the 136 pairs
differ between the groups.  Rows are new.  A mixed design is built alike.  Other tables have groups
with the same edges, with the same or different means, shares and units, with rows that belong
together or with missing cells, where tests should reject in 5 %.

Tables come from `gibbs.py` and NumPy, which share no code with the package.  Run it when
`compare` or estimates of pairs change: ``python docs/studies/compare.py --jobs 16``.  It writes
docs/studies/compare.csv row by row, goes on where that ends, prints the tables of the guide and
draws docs/studies/compare.png.  ``--report`` only prints and draws; ``--tables``, ``--settings``
and ``--rows`` choose a part.  All settings have their first table before any has its second, so
that the file can be read at any time.
"""

import argparse
import csv
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gibbs
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

import mixedgm as mg

TABLES = 100
PERMUTATIONS = 99
LEVEL = 0.05
FILE = Path(__file__).with_suffix(".csv")
LIMITS = np.round(np.arange(0.025, 1.0, 0.025), 3)
"""Probabilities of a difference above which true and false pairs are counted."""
FIELDS = (
    *("setting", "rows", "seed", "test", "pairs", "different", "true", "false", "stated"),
    *("true_p", "false_p", "p", "strength_p", "true_fisher", "false_fisher", "true_at", "false_at"),
)
PUBLISHED = {  # Haslbeck (2022), differences of 0.1, 200 tables: sensitivity and precision
    431: {
        "NCT": (0.45, 0.59),
        "Fisher's z": (0.30, 0.51),
        "mgm, CV, AND": (0.51, 0.62),
        "FGL": (0.62, 0.38),
        "psychonetrics": (0.26, 0.77),
    },
    1467: {
        "NCT": (0.90, 0.73),
        "Fisher's z": (0.77, 0.74),
        "mgm, CV, AND": (0.92, 0.62),
        "FGL": (0.98, 0.36),
        "psychonetrics": (0.66, 0.95),
    },
}

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Counts = Ints | pd.Series
Generator = np.random.Generator
Pairs = set[tuple[int, int]]
N_COLUMNS, JOINED, N_DIFFERENT = 17, 0.2, 20
CLUSTER, GAPS = 5, 0.1
ROWS = tuple(int(round(n)) for n in np.exp(np.linspace(3.0, 8.5171, 10)))[2:]  # 68 to 5,000


@dataclass(frozen=True)
class Drawn:
    """Two groups of rows, the kinds of their columns and the pairs that differ."""

    groups: tuple[Floats, Floats]
    kinds: tuple[str, ...]
    different: Pairs = field(default_factory=set)
    options: dict[str, Any] = field(default_factory=dict)
    """What `compare` is told besides, such as which rows belong together."""


@dataclass(frozen=True)
class Setting:
    """How tables are drawn, and how they are compared."""

    draw: Callable[[int, int], Drawn]
    rows: tuple[int, ...]
    test: str = "differences"


# -- the published design --------------------------------------------------------------------------


def published(delta: float, *, apart: bool = False) -> Callable[[int, int], Drawn]:
    """Draw 17 normal columns; `apart` gives the second group other means and units."""

    def drawn(n: int, seed: int) -> Drawn:
        source = RandomNumbersOfR(seed + 1)
        upper = np.tril_indices(N_COLUMNS, -1)[::-1]  # of R: one column after the other
        while True:
            joined = source.uniform(len(upper[0])) > 1.0 - JOINED
            edges = np.where(joined, -0.2 + 0.6 * source.uniform(len(joined)), 0.0)
            differs = source.permutation(len(edges)) < N_DIFFERENT
            precisions = [
                partial_precision(upper, each) for each in (edges, edges + delta * differs)
            ]
            if all(np.linalg.eigvalsh(each)[0] > 0.0 for each in precisions):
                break
        rng = np.random.default_rng([seed, n, round(1000 * delta)])
        first, second = (normal_rows(each, n, rng) for each in precisions)
        if apart:
            second = second * rng.uniform(0.5, 2.0, N_COLUMNS) + rng.normal(size=N_COLUMNS)
        ends = np.transpose(upper)[differs].tolist() if delta else []
        pairs = {(u, v) for u, v in ends}
        return Drawn((first, second), ("continuous",) * N_COLUMNS, pairs)

    return drawn


class RandomNumbersOfR:
    """The random numbers of R 3.6 and later, from a seed.

    Examples
    --------
    >>> RandomNumbersOfR(1).uniform(3).round(7)
    array([0.2655087, 0.3721239, 0.5728534])
    >>> RandomNumbersOfR(42).permutation(10) + 1
    array([ 1,  5, 10,  8,  2,  4,  6,  9,  7,  3])
    """

    def __init__(self, seed: int) -> None:
        key = np.empty(625, dtype=np.uint32)
        for at in range(-50, 625):
            seed = (69069 * seed + 1) % 2**32
            key[max(at, 0)] = seed
        self.bits = np.random.MT19937()
        inner = {"key": key[1:], "pos": 624}
        self.bits.state = {"bit_generator": "MT19937", "state": inner}

    def uniform(self, count: int) -> Floats:
        """Numbers between 0 and 1."""
        return np.asarray(self.bits.random_raw(count) / 2.0**32)

    def permutation(self, count: int) -> Ints:
        """A permutation of 0, 1, ..., count - 1, drawn by rejection."""
        left, out = list(range(count)), []
        while left:
            bits = int(np.ceil(np.log2(len(left))))
            at = len(left)
            while at >= len(left):
                at = int(self.uniform(1)[0] * 65536) % 2**bits
            out.append(left[at])
            left[at] = left[-1]
            left.pop()
        return np.array(out)


def partial_precision(pairs: tuple[Ints, ...], edges: Floats) -> Floats:
    """Precision matrix of these partial correlations with a diagonal of ones."""
    matrix = np.eye(N_COLUMNS)
    matrix[pairs] = -edges
    return np.asarray(np.triu(matrix) + np.triu(matrix, 1).T)


def normal_rows(precision: Floats, n: int, rng: Generator) -> Floats:
    """Rows with this precision matrix, scaled so that every column has variance one."""
    covariance = np.linalg.inv(precision)
    spread = np.sqrt(np.diagonal(covariance))
    return rng.multivariate_normal(np.zeros(len(spread)), covariance / np.outer(spread, spread), n)


def dependent(option: str) -> Callable[[int, int], Drawn]:
    """Draw groups with the same edges, whose rows belong together as `option` says.

    Half of the variance of every column is shared: by the rows of both groups that are of the same
    unit (`paired`), or by five rows of one group (`cluster`).
    """

    def drawn(n: int, seed: int) -> Drawn:
        own, rng = published(0.0)(n, seed), np.random.default_rng([seed, n, 3])
        units = np.arange(2 * n) % n if option == "paired" else np.arange(2 * n) // CLUSTER
        shared = rng.permutation(published(0.0)(2 * n, seed).groups[0])[units]
        groups = np.sqrt(0.5) * (np.vstack(own.groups) + shared)
        return Drawn((groups[:n], groups[n:]), own.kinds, options={option: units})

    return drawn


def with_gaps(n: int, seed: int) -> Drawn:
    """Draw groups with the same edges in which a tenth of the cells is missing."""
    own, rng = published(0.0)(n, seed), np.random.default_rng([seed, n, 4])
    first, second = (np.where(rng.random(x.shape) < GAPS, np.nan, x) for x in own.groups)
    return Drawn((first, second), own.kinds, options={"missing": "model"})


# -- mixed designs ---------------------------------------------------------------------------------

NUMBER = gibbs.Gaussian()
MIXED = (
    *(NUMBER,) * 6,
    *(gibbs.categorical([0.0, shift]) for shift in (0.0, 0.0, 0.4, -0.4, 0.8, 0.0)),
    *(gibbs.categorical([0.0, a, -a]) for a in (0.0, 0.0, 0.3, -0.3, 0.5)),
)
MIXED_APART = (
    *(gibbs.Gaussian(shift, 1.0) for shift in (0.8, -0.5, 0.0, 0.3, 0.0, -0.8)),
    *(gibbs.categorical([0.0, shift]) for shift in (-0.8, 0.5, 1.0, 0.4, 0.0, 0.7)),
    *(gibbs.categorical([0.0, a, 0.2]) for a in (-0.6, 0.5, 0.0, 0.4, -0.3)),
)
MIXED_KINDS = ("continuous",) * 6 + ("categorical",) * 11
EVERY = (
    *(NUMBER, NUMBER, gibbs.categorical([0.0, 0.0]), gibbs.categorical([0.0, 0.0, 0.0])),
    gibbs.ordinal(-0.35 * (np.arange(5) - 2.0) ** 2),
    gibbs.count(0.0, np.log(2.5), largest=40),
    gibbs.Hurdle(-0.5 * (np.log(2 * np.pi) + 9.0), 3.0),  # half of it zero, else around 3
)
EVERY_APART = (
    *(gibbs.Gaussian(0.8, 1.0), gibbs.Gaussian(-0.5, 1.0)),
    *(gibbs.categorical([0, -1]), gibbs.categorical([0, -0.8, 0.5])),
    gibbs.ordinal(-0.35 * (np.arange(5) - 1.2) ** 2),
    gibbs.count(0.0, np.log(3.5), largest=40),
    gibbs.Hurdle(-0.5 * (np.log(2 * np.pi) + 9.0) + 0.8, 3.0),
)
EVERY_KINDS = (
    *("continuous", "continuous", "categorical", "categorical", "ordinal", "count", "hurdle"),
)
SWEEPS = 40


def mixed(
    first: tuple[gibbs.Column, ...],
    second: tuple[gibbs.Column, ...],
    kinds: tuple[str, ...],
    delta: float = 0.0,
    *,
    units: bool = False,
) -> Callable[[int, int], Drawn]:
    """Draw columns of several kinds, a fifth of whose pairs are joined.

    Edges have sizes U(0.15, 0.5) in units of the columns' standard deviations and any direction;
    in the second group 20 of them, or of pairs without an edge, are changed by `delta`.  `units`
    gives numbers other units there.
    """

    def drawn(n: int, seed: int) -> Drawn:
        rng = np.random.default_rng([seed, 2])
        pairs = list(combinations(range(len(first)), 2))
        joined = [pair for pair in pairs if rng.random() < JOINED]
        edges = {pair: rng.uniform(0.15, 0.5) * direction(first, pair, rng) for pair in joined}
        changed = rng.permutation(len(pairs))[:N_DIFFERENT] if delta else []
        other = dict(edges)
        for at in changed:
            pair = pairs[at]
            other[pair] = other.get(pair, 0.0) + delta * direction(first, pair, rng)
        rng = np.random.default_rng([seed, n, round(1000 * delta)])
        a = gibbs.rows(first, edges, n, rng, SWEEPS)
        b = gibbs.rows(second, other, n, rng, SWEEPS)
        if units:
            numbers = np.array(kinds) == "continuous"
            b[:, numbers] *= rng.uniform(0.5, 2.0, numbers.sum())
        return Drawn((a, b), kinds, {pairs[at] for at in changed})

    return drawn


def direction(columns: tuple[gibbs.Column, ...], pair: tuple[int, int], rng: Generator) -> Floats:
    """A block of length one in units of the columns, whose levels sum to zero."""
    ends = [columns[end] for end in pair]
    block = rng.standard_normal((ends[0].width, ends[1].width))
    for axis, end in enumerate(ends):
        if isinstance(end, gibbs.Finite) and end.width > 1:
            block -= block.mean(axis=axis, keepdims=True)
    units = [end.independent()[1] for end in ends]
    return block / np.linalg.norm(block) / np.prod(units)


SETTINGS = {
    "normal, 0.05": Setting(published(0.05), ROWS),
    "normal, 0.1": Setting(published(0.1), ROWS),
    "normal, 0.2": Setting(published(0.2), ROWS),
    "mixed, 0.3": Setting(mixed(MIXED, MIXED, MIXED_KINDS, 0.3), (431, 1467)),
    "normal, same": Setting(published(0.0), (68, 126, 233, 1467)),
    "normal, same, other means and units": Setting(published(0.0, apart=True), (68, 233, 1467)),
    "normal, same, paired": Setting(dependent("paired"), (233,)),
    "normal, same, clusters": Setting(dependent("cluster"), (233,)),
    "normal, same, gaps": Setting(with_gaps, (233,)),
    "mixed, same": Setting(mixed(MIXED, MIXED, MIXED_KINDS), (233, 1467)),
    "mixed, same, other margins": Setting(
        mixed(MIXED, MIXED_APART, MIXED_KINDS, units=True), (233, 1467)
    ),
    "every kind, same": Setting(mixed(EVERY, EVERY, EVERY_KINDS), (233, 1467)),
    "every kind, same, other margins": Setting(
        mixed(EVERY, EVERY_APART, EVERY_KINDS, units=True), (233, 1467)
    ),
    "permuted, every kind, same": Setting(mixed(EVERY, EVERY, EVERY_KINDS), (50,), "permutation"),
    "permuted, every kind, same, other margins": Setting(
        mixed(EVERY, EVERY_APART, EVERY_KINDS), (50, 200), "permutation"
    ),
}


# -- one table -------------------------------------------------------------------------------------


def fisher(groups: tuple[Floats, Floats]) -> Floats:
    """(columns, columns) p-values of Fisher's test of two partial correlations."""
    z = []
    for rows in groups:
        inverse = np.linalg.inv(np.cov(rows.T))
        unit = np.sqrt(np.diagonal(inverse))
        partial = np.clip(-inverse / np.outer(unit, unit), -0.999999, 0.999999)
        z.append(np.arctanh(partial) * np.sqrt((len(rows) - rows.shape[1] - 1) / 2.0))
    return np.asarray(2.0 * norm.sf(np.abs(z[0] - z[1])))


def compared(title: str, n_rows: int, seed: int) -> dict[str, object]:
    """Draw one table and compare its groups."""
    warnings.simplefilter("ignore")  # whole numbers taken as continuous, and rare levels
    setting = SETTINGS[title]
    drawn = setting.draw(n_rows, seed)
    names = [f"v{k}" for k in range(len(drawn.kinds))]
    table = pd.DataFrame(np.vstack(drawn.groups), columns=names)
    for name, kind in zip(names, drawn.kinds, strict=True):
        if kind in ("categorical", "ordinal", "count"):
            table[name] = table[name].astype(np.int64)
    permuted = setting.test == "permutation"
    row = {"setting": title, "rows": n_rows, "seed": seed, "test": setting.test}
    try:
        found = mg.compare(
            table,
            np.repeat(["a", "b"], n_rows),
            types=dict(zip(names, drawn.kinds, strict=True)),
            test=setting.test,
            n_perm=PERMUTATIONS if permuted else None,
            lam=None if permuted else 0.5,  # tests of differences do not depend on it
            random_state=seed,
            n_jobs=1,
            **drawn.options,
        )
    except mg.ParameterError:  # a group lacks a level
        return row
    edges, tests = found.edges(), found.tests().set_index("statistic")["p"]
    ends = zip(edges["source"], edges["target"], strict=True)
    pairs = [tuple(sorted((int(a[1:]), int(b[1:])))) for a, b in ends]
    different = np.array([pair in drawn.different for pair in pairs], dtype=bool)
    row |= {"pairs": found.n_pairs, "different": len(drawn.different)}
    row |= counted("", edges["differs"].to_numpy(), different)
    row |= counted("_p", edges["p"].to_numpy() < LEVEL, different)
    row |= {"p": round(found.p, 6), "strength_p": round(tests["strength difference"], 6)}
    if not permuted:
        row["stated"] = round(found.expected_false, 3)
        probability = np.nan_to_num(edges["probability_differs"].to_numpy())
        at = [counted("_at", probability >= limit, different) for limit in LIMITS]
        row |= {name: " ".join(str(each[name]) for each in at) for name in at[0]}
    if {*drawn.kinds} == {"continuous"} and not drawn.options and n_rows > len(names) + 1:
        p = fisher(drawn.groups)
        row |= counted("_fisher", np.array([p[pair] < LEVEL for pair in pairs]), different)
    return row


def counted(what: str, found: NDArray[np.bool_], different: NDArray[np.bool_]) -> dict[str, int]:
    """Number of true and of false differences that were found."""
    return {
        f"true{what}": int((found & different).sum()),
        f"false{what}": int((found & ~different).sum()),
    }


def run(settings: list[str], rows: list[int], tables: int, file: Path, jobs: int) -> None:
    """Compare every table that the file does not have yet."""
    done = set()
    if file.exists():
        known = pd.read_csv(file)
        done = set(zip(known["setting"], known["rows"], known["seed"], strict=True))
    kept = [(t, n) for t in settings for n in SETTINGS[t].rows if not rows or n in rows]
    tasks = [(*each, seed) for seed in range(tables) for each in kept]
    tasks = [task for task in tasks if task not in done]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # processes share the cores
    fresh = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    with file.open("a", newline="", encoding="utf-8") as stream, fresh as pool:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        futures = [pool.submit(compared, *task) for task in tasks]
        for number, future in enumerate(as_completed(futures), 1):
            writer.writerow(future.result())
            stream.flush()
            if number % 100 == 0:
                sys.stderr.write(f"{number} of {len(tasks)} tables\n")


# -- report ----------------------------------------------------------------------------------------


def line(cells: Iterable[object]) -> str:
    """One row of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def head(*cells: str) -> list[str]:
    """The first two lines of a table."""
    return [line(cells), "| --- " * len(cells) + "|"]


def scores(true: Counts, false: Counts, different: Counts) -> tuple[float, float, float]:
    """Means of sensitivity and precision over tables, as they were published, and their F1.

    Tables in which nothing is found have no precision.
    """
    true, found = np.asarray(true, dtype=float), np.add(true, false)
    sensitivity = float(np.mean(true / different))
    precision = float(np.mean((true / np.maximum(found, 1))[found > 0])) if found.any() else 0.0
    return sensitivity, precision, harmonic(sensitivity, precision)


def harmonic(sensitivity: float, precision: float) -> float:
    """F1."""
    return 2 * sensitivity * precision / max(sensitivity + precision, 1e-9)


def at_precision(part: pd.DataFrame, precision: float) -> str:
    """The sensitivity where the limit on probabilities is moved to this precision."""
    true, false = (
        np.array([list(map(int, text.split())) for text in part[name]]).T
        for name in ("true_at", "false_at")
    )
    curve = [scores(*counts, part["different"]) for counts in zip(true, false, strict=True)]
    best = max((each[0] for each in curve if each[1] >= precision), default=0.0)
    return f"{best:.2f} / {precision:.2f}"


def nct_written_anew(n: int) -> tuple[float, ...]:
    """Sensitivity, precision and F1 of `nct.py`; nothing if it was not run with so many rows."""
    file = FILE.with_name("nct.csv")
    known = pd.read_csv(file).query("rows == @n") if file.exists() else pd.DataFrame()
    if known.empty:
        return ()
    return scores(known["true"], known["false"], known["different"])


def precision_of_nct(n: int) -> float | None:
    """As published, else that of `nct.py`, if it was run."""
    if n in PUBLISHED:
        return PUBLISHED[n]["NCT"][1]
    found = nct_written_anew(n)
    return found[1] if found else None


def differing(counts: pd.DataFrame) -> list[str]:
    """Groups that differ: what the verdicts find, and tests of single pairs."""
    lines = head(
        *("design", "rows a group", "tables", "graphs differ, p < 0.05"),
        *("verdicts: sensitivity / precision (F1)", "false: stated / actual"),
        *("p < 0.05: sensitivity / precision", "level", "Fisher's z", "at NCT's precision"),
    )
    for (title, n), part in counts[counts["different"] > 0].groupby(
        ["setting", "rows"], sort=False
    ):
        different = part["different"]
        same = (part["pairs"] - different).sum()
        verdict = scores(part["true"], part["false"], different)
        single = scores(part["true_p"], part["false_p"], different)
        fishers = scores(part["true_fisher"], part["false_fisher"], different)
        nct = precision_of_nct(n) if title == "normal, 0.1" else None
        lines.append(
            line(
                (
                    *(title, f"{n:,}", len(part), f"{(part['p'] < LEVEL).mean():.2f}"),
                    f"{verdict[0]:.2f} / {verdict[1]:.2f} ({verdict[2]:.2f})",
                    f"{part['stated'].mean():.1f} / {part['false'].mean():.1f}",
                    f"{single[0]:.2f} / {single[1]:.2f}",
                    f"{part['false_p'].sum() / same:.3f}",
                    f"{fishers[0]:.2f} / {fishers[1]:.2f}" if "normal" in title else "",
                    at_precision(part, nct) if nct else "",
                )
            )
        )
    return lines


def same(counts: pd.DataFrame) -> list[str]:
    """Groups with the same edges: how often tests reject, and what verdicts find."""
    lines = head(
        *("design", "rows a group", "tables", "a pair, p < 0.05"),
        *("any difference, p < 0.05", "strength, p < 0.05", "verdicts: stated / actual"),
    )
    for (title, n), part in counts[counts["different"] == 0].groupby(
        ["setting", "rows"], sort=False
    ):
        pairs = part["false_p"].sum() / part["pairs"].sum()
        shares = [f"{(part[name] < LEVEL).mean():.3f}" for name in ("p", "strength_p")]
        stated = "" if part["stated"].isna().all() else f"{part['stated'].mean():.2f}"
        found = f"{stated} / {part['false'].mean():.2f}"
        lines.append(line((title, f"{n:,}", len(part), f"{pairs:.3f}", *shares, found)))
    return lines


def measured(file: Path) -> pd.DataFrame:
    """What is done so far, in order."""
    order = {title: at for at, title in enumerate(SETTINGS)}
    return pd.read_csv(file).sort_values(
        ["setting", "rows", "seed"], key=lambda c: c.map(order) if c.name == "setting" else c
    )


def report(file: Path) -> None:
    """Print the tables of the page."""
    counts = measured(file)
    failed = counts["pairs"].isna()
    counts = counts[~failed]
    lines = [*differing(counts), "", *same(counts), ""]
    lines += head(
        *("published, differences of 0.1", "rows a group", "sensitivity / precision", "F1"),
        "compare at this precision",
    )
    for n, methods in PUBLISHED.items():
        part = counts.query("setting == 'normal, 0.1' and rows == @n")
        for name, (sensitivity, precision) in methods.items():
            f1 = harmonic(sensitivity, precision)
            cells = (name, f"{n:,}", f"{sensitivity:.2f} / {precision:.2f}", f"{f1:.2f}")
            lines.append(line((*cells, at_precision(part, precision) if len(part) else "")))
    lines += ["", f"{failed.sum()} tables could not be compared, as a group lacked a level."]
    sys.stdout.write("\n".join(lines) + "\n")


COLOURS = {
    "verdicts of compare": "#0072B2",
    "NCT": "#D55E00",
    "Fisher's z": "#888888",
    "mgm, CV, AND": "#009E73",
    "FGL": "#CC79A7",
    "psychonetrics": "#E69F00",
}


def picture(file: Path) -> None:
    """Draw sensitivity and precision against rows for every size of a difference."""
    from matplotlib.figure import Figure

    counts = measured(file)
    sizes = [size for size in ("0.05", "0.1", "0.2") if f"normal, {size}" in set(counts["setting"])]
    figure = Figure(figsize=(2.5 + 2.0 * len(sizes), 5.2), layout="constrained")
    panels = figure.subplots(2, len(sizes), sharex=True, sharey=True, squeeze=False)
    for column, size in enumerate(sizes):
        part = counts[counts["setting"] == f"normal, {size}"]
        panels[0, column].set_title(f"partial correlations differ by {size}", fontsize=10)
        for label, what in (("verdicts of compare", ""), ("Fisher's z", "_fisher")):
            points = {
                n: scores(rows[f"true{what}"], rows[f"false{what}"], rows["different"])
                for n, rows in part.groupby("rows")
            }
            for row in (0, 1):
                values = [point[row] for point in points.values()]
                panels[row, column].plot(
                    list(points), values, color=COLOURS[label], marker=".", label=label
                )
    middle = sizes.index("0.1")
    for n in ROWS:
        for row, value in enumerate(nct_written_anew(n)[:2]):
            look = {"color": COLOURS["NCT"], "markersize": 5, "markerfacecolor": "none"}
            panels[row, middle].plot(n, value, "o", label="NCT, written anew", **look)
    for n, methods in PUBLISHED.items():
        for label, values in methods.items():
            look = {"color": COLOURS[label], "markersize": 5, "label": f"{label}, published"}
            for row, value in enumerate(values):
                panels[row, middle].plot(n, value, "D", **look)
    for panel in panels.flat:
        panel.set(xscale="log", ylim=(0.0, 1.02))
        panel.grid(color="#eeeeee")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_xticks(ROWS[::2], [f"{n:,}" for n in ROWS[::2]])
    panels[0, 0].set_xticks([], minor=True)
    panels[0, 0].set_ylabel("sensitivity")
    panels[1, 0].set_ylabel("precision")
    figure.supxlabel("rows in each group", fontsize=10)
    handles, labels = panels[0, middle].get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    figure.legend(
        shown.values(), shown, loc="outside upper center", ncols=4, frameon=False, fontsize=9
    )
    figure.savefig(file.with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--rows", nargs="+", type=int, default=[], help="rows a group")
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="only print what is done so far")
    given = parser.parse_args()
    if not given.report:
        run(given.settings, given.rows, given.tables, given.file, given.jobs)
    report(given.file)
    picture(given.file)
