"""Tables drawn from known graphs -> what every method finds in them, to choose the default by.

Each table has a graph of its own.  Tables are drawn by `gibbs.py`, which shares no code with the
package, or are normal numbers that are cut into levels.  A method is one function of a table in
`METHODS`; a new one is counted without counting the others again.

Run it when a criterion changes: ``python docs/studies/default.py``.  It writes
docs/studies/default.csv row by row, goes on where that ends, prints the tables and draws the
picture of docs/selection.md.  Counts of the rule of R mgm come from `mgm_rule.R` and are in
default_mgm.csv, so that R is needed for new tables only.  Names of methods or settings as arguments
restrict what is counted; ``--report`` counts nothing.
"""

import csv
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import gibbs
import kinds
import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm, t
from tqdm import tqdm

import mixedgm as mg

REPLICATES = 10
DECIMALS = 4  # of the numbers in a table, so that it is the same to all who read it
SEEN_AT_LEAST = 4  # rows with each level
HERE = Path(__file__).resolve()
FILE, MGM_FILE = HERE.with_suffix(".csv"), HERE.with_name("default_mgm.csv")
FIELDS = (
    "tables",
    "seed",
    "table",
    "rows",
    "method",
    "edges",
    "true",
    "false",
    "by_parameters",
    "seconds",
    "converged",
)

Floats = NDArray[np.float64]
Generator = np.random.Generator
Pair = tuple[int, int]
Edges = frozenset[Pair]
Column = tuple[str, gibbs.Column]

# -- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table:
    """Values (rows, columns), the kinds of the columns, and the true edges."""

    values: Floats
    kinds: tuple[str, ...]
    truth: Edges

    @property
    def types(self) -> dict[str, str]:
        """As a fit takes them."""
        return {f"v{k:03d}": kind for k, kind in enumerate(self.kinds)}

    @property
    def frame(self) -> pd.DataFrame:
        """The table itself."""
        columns = {}
        for name, kind, column in zip(self.types, self.kinds, self.values.T, strict=True):
            is_number = kind in ("continuous", "hurdle")
            columns[name] = column if is_number else column.astype(np.int64)
        return pd.DataFrame(columns)

    @cached_property
    def parameters(self) -> dict[Pair, int]:
        """How many parameters an edge of each pair has."""
        free = {"categorical": lambda column: len(np.unique(column)) - 1, "hurdle": lambda _: 2}
        each = [
            free.get(kind, lambda _: 1)(column)
            for kind, column in zip(self.kinds, self.values.T, strict=True)
        ]
        return {(u, v): each[u] * each[v] for u, v in combinations(range(len(each)), 2)}

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the values."""
        return hashlib.sha256(np.round(self.values * 10**DECIMALS).tobytes()).hexdigest()[:12]


Draw = Callable[[Generator], Table]
Graph = Callable[[int, Generator], list[Pair]]

NUMBER: Column = ("continuous", gibbs.Gaussian())


def levels(*counts: int, rarest: float | None = None) -> tuple[Column, ...]:
    """Categories, equally frequent, or with a rarest level of this share; others grow evenly."""
    columns = []
    for count in counts:
        shares = np.ones(count)
        if rarest is not None:
            shares = np.arange(1.0, count)
            shares = np.concatenate([[rarest], (1 - rarest) * shares / shares.sum()])
        columns.append(("categorical", gibbs.categorical(np.log(shares))))
    return tuple(columns)


def random(n_edges: int) -> Graph:
    """So many edges, all graphs equally likely."""

    def graph(n_columns: int, rng: Generator) -> list[Pair]:
        pairs = list(combinations(range(n_columns), 2))
        return [pairs[k] for k in rng.choice(len(pairs), n_edges, replace=False)]

    return graph


def hubs(n_hubs: int) -> Graph:
    """Columns at random are hubs, in a chain; every other column has an edge with one of them."""

    def graph(n_columns: int, rng: Generator) -> list[Pair]:
        order = rng.permutation(n_columns)
        centres, others = order[:n_hubs], order[n_hubs:]
        pairs = list(zip(centres[:-1], centres[1:], strict=True))
        pairs += [(centres[k % n_hubs], other) for k, other in enumerate(others)]
        return [(int(min(pair)), int(max(pair))) for pair in pairs]

    return graph


def scale_free(n_columns: int, rng: Generator) -> list[Pair]:
    """A tree that grows by preferential attachment, on columns in random order."""
    order = rng.permutation(n_columns)
    tree = nx.barabasi_albert_graph(n_columns, 1, int(rng.integers(2**31)))
    return [(int(min(order[[u, v]])), int(max(order[[u, v]]))) for u, v in tree.edges]


def chain(n_columns: int, rng: Generator) -> list[Pair]:
    """Every column with the next, in random order."""
    order = rng.permutation(n_columns).tolist()
    return [(min(u, v), max(u, v)) for u, v in zip(order[:-1], order[1:], strict=True)]


def of_model(
    n_rows: int,
    columns: Sequence[Column],
    graph: Graph,
    sizes: tuple[float, float] = (0.0, 0.0),
    margin: Callable[[Floats], Floats] | None = None,
) -> Draw:
    """Tables of the model itself.

    Edges act in a random direction, whose size is that of a coefficient of standardised columns.
    Graphs are drawn until the precision matrix of numbers is far from singular and all levels are
    seen.  A `margin` takes standardised numbers to others, one by one.
    """
    types, nodes = tuple(kind for kind, _ in columns), [column for _, column in columns]
    numbers = [k for k, column in enumerate(nodes) if not isinstance(column, gibbs.Finite)]

    def draw(rng: Generator) -> Table:
        while True:
            pairs = graph(len(nodes), rng)
            blocks = {
                (u, v): kinds.block(nodes[u], nodes[v], rng.choice([-1, 1]) * size, rng)
                for (u, v), size in zip(pairs, rng.uniform(*sizes, len(pairs)), strict=True)
            }
            precision = np.eye(len(nodes))
            for (u, v), entries in blocks.items():
                precision[u, v] = precision[v, u] = -entries[-1, -1]
            if numbers and np.linalg.eigvalsh(precision[np.ix_(numbers, numbers)])[0] < 0.15:
                continue
            values = gibbs.rows(nodes, blocks, n_rows, rng, sweeps=100 if blocks else 0)
            if margin is not None:
                values[:, numbers] = margin(standardised(values[:, numbers]))
            if all_seen(values, types):
                return Table(values.round(DECIMALS), types, frozenset(pairs))

    return draw


def all_seen(values: Floats, types: Sequence[str]) -> bool:
    """Whether every level that any row has is in more than a few rows."""
    codes = [column for column, kind in zip(values.T, types, strict=True) if kind == "categorical"]
    return all(np.unique(each, return_counts=True)[1].min() >= SEEN_AT_LEAST for each in codes)


def standardised(values: Floats) -> Floats:
    """Columns of mean 0 and variance 1."""
    return (values - values.mean(axis=0)) / values.std(axis=0)


def heavy(values: Floats) -> Floats:
    """Numbers with the tails of Student's t with three degrees of freedom."""
    return t.ppf(norm.cdf(values), 3)


def drawn_normal(sigma: Floats, n_rows: int, rng: Generator) -> Floats:
    """(n_rows, columns) normal numbers with this covariance, the same on every machine."""
    return rng.standard_normal((n_rows, len(sigma))) @ np.linalg.cholesky(sigma).T


def of_items(n_rows: int, n_columns: int, n_edges: int, sizes: tuple[float, float]) -> Draw:
    """Normal numbers with partial correlations of these sizes, cut into five levels.

    Three in four are positive.  Shares of the levels differ from item to item.
    """

    def draw(rng: Generator) -> Table:
        while True:
            precision = np.eye(n_columns)
            pairs = random(n_edges)(n_columns, rng)
            for u, v in pairs:
                size = rng.uniform(*sizes) * rng.choice([-1, 1], p=[0.25, 0.75])
                precision[u, v] = precision[v, u] = -size
            if np.linalg.eigvalsh(precision)[0] > 0.15:
                break
        covariance = np.linalg.inv(precision)
        normal = drawn_normal(covariance, n_rows, rng)
        normal /= np.sqrt(np.diag(covariance))
        cuts = np.array([-1.2, -0.4, 0.4, 1.2]) + rng.uniform(-0.4, 0.4, (n_columns, 1))
        values = np.column_stack(
            [np.searchsorted(cut, column) for cut, column in zip(cuts, normal.T, strict=True)]
        )
        return Table(values.astype(np.float64), ("categorical",) * n_columns, frozenset(pairs))

    return draw


def as_ordinal(draw: Draw) -> Draw:
    """The same tables, their categories taken in their order."""

    def ordered(rng: Generator) -> Table:
        table = draw(rng)
        return Table(table.values, ("ordinal",) * len(table.kinds), table.truth)

    return ordered


def ladder(n_rows: int, rungs: int) -> Draw:
    """The ladder of Lee and Hastie: two chains, of numbers and of two levels, and rungs between."""
    nodes = [gibbs.Gaussian()] * rungs + [gibbs.categorical([0.0, 0.0])] * rungs
    blocks: dict[Pair, Floats] = {}
    for k in range(rungs):
        blocks[k, rungs + k] = 0.5 * np.array([[1.0, -1.0]])
        if k + 1 < rungs:
            blocks[k, k + 1] = np.array([[-0.25]])
            blocks[rungs + k, rungs + k + 1] = 0.5 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    types = ("continuous",) * rungs + ("categorical",) * rungs

    def draw(rng: Generator) -> Table:
        values = gibbs.rows(nodes, blocks, n_rows, rng, sweeps=200)
        return Table(values.round(DECIMALS), types, frozenset(blocks))

    return draw


MIXED: tuple[Column, ...] = (
    *(NUMBER,) * 3,
    *(("ordinal", column) for column in (kinds.SYMMETRIC, kinds.SKEWED, kinds.SYMMETRIC)),
    *(("count", column) for column in (kinds.SMALL, kinds.SMALL, kinds.LARGE)),
    *(("hurdle", kinds.spiked(zeros)) for zeros in (0.4, 0.7)),
    *levels(2, 3, 4),
)
VARIOUS = tuple(range(2, 10))
NONE = random(0)

SETTINGS: dict[str, Draw] = {
    "weak binary items, n = 300": of_model(300, levels(*(2,) * 20), random(30), (0.09, 0.23)),
    "weak binary items, n = 1,000": of_model(1000, levels(*(2,) * 20), random(30), (0.09, 0.23)),
    "five-level items as categories, n = 600": of_items(600, 15, 20, (0.18, 0.35)),
    "five-level items as ordinal, n = 600": as_ordinal(of_items(600, 15, 20, (0.18, 0.35))),
    "dense 8 + 8, n = 1,000": of_model(
        1000, (NUMBER,) * 8 + levels(*(3,) * 8), random(36), (0.25, 0.4)
    ),
    "hubs, rare levels, 10 + 10, n = 1,000": of_model(
        1000, (NUMBER,) * 10 + levels(*(3,) * 10, rarest=0.025), hubs(4), (0.28, 0.45)
    ),
    "scale-free 15 + 15, n = 500": of_model(
        500, (NUMBER,) * 15 + levels(*(2, 2, 3, 4, 5) * 3), scale_free, (0.25, 0.45)
    ),
    "wide 60 + 60, n = 250": of_model(
        250, (NUMBER,) * 60 + levels(*(2, 3) * 30), random(80), (0.3, 0.5)
    ),
    "nine levels, 5 + 5, n = 2,000": of_model(
        2000, (NUMBER,) * 5 + levels(*(9,) * 5), random(12), (0.15, 0.5)
    ),
    "two to nine levels, 8 + 8, n = 1,000": of_model(
        1000, (NUMBER,) * 8 + levels(*VARIOUS), random(20), (0.15, 0.5)
    ),
    "chain of 20 numbers, n = 200": of_model(200, (NUMBER,) * 20, chain, (0.2, 0.45)),
    "heavy tails, 10 + 10, n = 500": of_model(
        500, (NUMBER,) * 10 + levels(*(3,) * 10), random(20), (0.2, 0.4), margin=heavy
    ),
    "random 10 + 10, n = 500": of_model(
        500, (NUMBER,) * 10 + levels(*(3,) * 10), random(20), (0.15, 0.4)
    ),
    "all kinds, n = 500": of_model(500, MIXED, random(16), (0.15, 0.4)),
    "all kinds, n = 1,000": of_model(1000, MIXED, random(16), (0.15, 0.4)),
    "ladder 10 + 10, n = 1,000": ladder(1000, 10),
    "strong and sparse, 10 + 10, n = 300": of_model(
        300, (NUMBER,) * 10 + levels(*(3,) * 10), random(8), (0.5, 0.8)
    ),
    "rare levels, 8 + 8, n = 500": of_model(
        500, (NUMBER,) * 8 + levels(*(4,) * 8, rarest=0.03), random(16), (0.2, 0.45)
    ),
    "noise 10 + 10, n = 100": of_model(100, (NUMBER,) * 10 + levels(*(3,) * 10), NONE),
    "noise, 20 binary items, n = 300": of_model(300, levels(*(2,) * 20), NONE),
    "noise 15 + 15, n = 200": of_model(200, (NUMBER,) * 15 + levels(*(3,) * 15), NONE),
    "noise 10 + 10, four levels, n = 1,000": of_model(
        1000, (NUMBER,) * 10 + levels(*(4,) * 10), NONE
    ),
    "noise, rare levels, 10 + 10, n = 500": of_model(
        500, (NUMBER,) * 10 + levels(*(3,) * 10, rarest=0.025), NONE
    ),
    "noise, all kinds, n = 300": of_model(300, MIXED, NONE),
    "noise, heavy tails, 10 + 10, n = 300": of_model(
        300, (NUMBER,) * 10 + levels(*(3,) * 10), NONE, margin=heavy
    ),
}


def stored_sets() -> dict[str, Draw]:
    """Tables of known graphs in shared/data beside the checkout, where there are any."""

    def reading(path: Path) -> Draw:
        def read(_: Generator) -> Table:
            with np.load(path) as stored:
                values = np.column_stack([stored["X"], stored["Y"]]).astype(np.float64)
                types = ("continuous",) * stored["X"].shape[1]
                types += ("categorical",) * stored["Y"].shape[1]
                truth = frozenset((int(min(e)), int(max(e))) for e in stored["edges"])
            return Table(values, types, truth)

        return read

    folders = [parent / "shared" / "data" / "sim" for parent in HERE.parents]
    found = [path for folder in folders for path in sorted(folder.glob("*.npz"))]
    return {f"set {path.stem}": reading(path) for path in found}


def drawn(name: str, seed: int) -> Table:
    """The table of a setting and a seed."""
    return (SETTINGS | stored_sets())[name](np.random.default_rng([seed, *name.encode()]))


# -- methods ---------------------------------------------------------------------------------------

Method = Callable[[Table], tuple[Edges, bool]]


def fitted(table: Table, **options: object) -> mg.MixedGraphicalModel:
    """A default fit but for these options."""
    model = mg.MixedGraphicalModel(types=table.types, n_jobs=1, random_state=0, **options)
    return model.fit(table.frame)


def positions(edges: Iterable[tuple[str, str]]) -> Edges:
    """The same edges by the positions of their columns."""
    ends = (sorted(int(name[1:]) for name in edge) for edge in edges)
    return frozenset((u, v) for u, v in ends)


def by_fit(**options: object) -> Method:
    """The graph of a fit with these options."""

    def method(table: Table) -> tuple[Edges, bool]:
        model = fitted(table, **options)
        return positions((edge.source, edge.target) for edge in model.edges_), bool(
            model.converged_
        )

    return method


def best_on_path(**options: object) -> Method:
    """The graph with the highest F1 anywhere on the path: nobody knows it who has no truth."""

    def method(table: Table) -> tuple[Edges, bool]:
        path = fitted(table, select="aic", **options).path_
        graphs = [positions(path.edges(k)) for k in range(len(path))]
        counts = [(len(graph & table.truth), len(graph - table.truth)) for graph in graphs]
        scores = [f1(len(table.truth), *each) for each in counts]
        return graphs[int(np.argmax(scores))], bool(path.converged.all())

    return method


def mgm_rule(table: Table) -> tuple[Edges, bool]:
    """The rule of R mgm: ordinal and hurdle columns are taken for numbers."""
    letters = {"categorical": "c", "count": "p"}
    types = ",".join(letters.get(kind, "g") for kind in table.kinds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        table.frame.to_csv(path, index=False)
        command = ["Rscript", str(HERE.with_name("mgm_rule.R")), str(path), types]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pairs = [tuple(map(int, line.split())) for line in lines.splitlines()]
    return frozenset((u, v) for u, v in pairs), True


MGM = "R mgm"
ORACLE = "best on path"
METHODS: dict[str, Method] = {
    "EBIC": by_fit(select="ebic"),
    "EBIC, adaptive": by_fit(select="ebic", penalty_weights="adaptive"),
    "BIC": by_fit(select="bic"),
    "FDR 0.1": by_fit(select=mg.FDR(0.1)),
    "default": by_fit(),
    "stability": by_fit(select="stability"),
    MGM: mgm_rule,
    ORACLE: best_on_path(),
    f"{ORACLE}, adaptive": best_on_path(penalty_weights="adaptive"),
}

# -- counts ----------------------------------------------------------------------------------------


def f1(n_edges: int, true: int, false: int) -> float:
    """Harmonic mean of the share of edges found and of the share that is true."""
    return 2 * true / (n_edges + true + false) if n_edges + false else 1.0


def counted(table: Table, method: Method) -> dict[str, object]:
    """Edges, true and false ones found, also by the number of parameters; processor time."""
    before = sum(os.times()[:4])
    graph, converged = method(table)
    seconds = sum(os.times()[:4]) - before
    by_parameters = []
    for df in sorted(set(table.parameters.values())):
        pairs = {pair for pair, each in table.parameters.items() if each == df}
        parts = (table.truth, graph & table.truth, graph - table.truth)
        by_parameters.append(f"{df}:" + "/".join(str(len(part & pairs)) for part in parts))
    return {
        "table": table.digest,
        "rows": len(table.values),
        "edges": len(table.truth),
        "true": len(graph & table.truth),
        "false": len(graph - table.truth),
        "by_parameters": " ".join(by_parameters),
        "seconds": f"{seconds:.2f}",
        "converged": int(converged),
    }


def stored() -> pd.DataFrame:
    """Everything counted so far."""
    parts = [pd.read_csv(path) for path in (FILE, MGM_FILE) if path.exists()]
    return pd.concat(parts) if parts else pd.DataFrame(columns=FIELDS)


def written(row: dict[str, object]) -> None:
    """Append a row to the file of its method."""
    path = MGM_FILE if row["method"] == MGM else FILE
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def tasks(wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Settings and seeds, seed by seed, so that all settings have about as many tables."""
    once = stored_sets()
    for seed in range(REPLICATES):
        for name in SETTINGS if seed else [*SETTINGS, *once]:
            if not wanted or name in wanted:
                yield name, seed


def run(wanted: Sequence[str]) -> None:
    """Count what the files do not have yet."""
    known = stored()
    digests = dict(
        zip(zip(known["tables"], known["seed"], strict=True), known["table"], strict=True)
    )
    done = set(zip(known["tables"], known["seed"], known["method"], strict=True))
    methods = [name for name in METHODS if name in wanted] or list(METHODS)
    if shutil.which("Rscript") is None:
        methods = [name for name in methods if name != MGM]
    settings = [name for name in wanted if name not in METHODS]
    for name, seed in tqdm(list(tasks(settings)), unit="table"):
        missing = [method for method in methods if (name, seed, method) not in done]
        if not missing:
            continue
        table = drawn(name, seed)
        if digests.get((name, seed), table.digest) != table.digest:
            raise SystemExit(
                f"{name}, seed {seed}: not the table that was counted; remove its rows"
            )
        for method in missing:
            counts = counted(table, METHODS[method])
            written({"tables": name, "seed": seed, "method": method, **counts})


# -- report ----------------------------------------------------------------------------------------


NOISE_LIMIT, RATE_LIMIT = 0.3, 0.15
CLOSE = 0.02
PARAMETERS = {"1": (1, 1), "2 to 4": (2, 4), "5 to 16": (5, 16), "more": (17, 10**6)}
FEW = 4  # parameters of the edges that are compared with the best graph on the path
ROWS_OF_PATH, SHARE_OF_PATH = 500, 0.95


def by_size(counts: pd.DataFrame, low: int, high: int) -> Floats:
    """(rows, 3) edges, true and false ones of edges with so many parameters."""
    sums = np.zeros((len(counts), 3), dtype=np.int64)
    for k, text in enumerate(counts["by_parameters"]):
        for part in text.split():
            df, numbers = part.split(":")
            if low <= int(df) <= high:
                sums[k] += [int(number) for number in numbers.split("/")]
    return sums


def measured() -> pd.DataFrame:
    """Everything counted, with F1 and the false discovery rate of every graph."""
    counts = stored()
    counts = counts[counts["method"].isin(METHODS)]
    each = counts[["edges", "true", "false"]].to_numpy()
    counts["f1"] = [f1(*row) for row in each]
    counts["rate"] = counts["false"] / np.maximum(counts["true"] + counts["false"], 1)
    counts["f1_few"] = [f1(*row) for row in by_size(counts, 1, FEW)]
    return counts


def printed(heading: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    rows = [heading, ["---"] * len(heading), *lines]
    sys.stdout.write("".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n")


def mean(values: pd.Series, digits: int = 2) -> str:
    """Mean and standard error; empty without values."""
    if values.empty:
        return ""
    error = f" ± {values.sem():.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{error}"


class Board:
    """Values by setting (rows), seed and method: what a report looks up."""

    def __init__(self, counts: pd.DataFrame) -> None:
        self.methods = [name for name in METHODS if name in set(counts["method"])]
        present = set(counts["tables"])
        self.noise = [name for name in SETTINGS if name in present and name.startswith("noise")]
        self.settings = [
            name for name in SETTINGS if name in present and not name.startswith("noise")
        ]
        self.sets = sorted(present - set(SETTINGS))
        self.rows = counts.groupby("tables")["rows"].first()
        self._counts = counts.set_index(["tables", "method", "seed"]).sort_index()

    def values(self, setting: str, method: str, what: str) -> pd.Series:
        """One value per seed."""
        if (setting, method) not in self._counts.index:
            return pd.Series(dtype=float)
        return self._counts.loc[(setting, method), what]

    def worst(self, method: str, settings: Sequence[str], what: str) -> float:
        """The largest mean over these settings, as far as they were counted."""
        means = [self.values(name, method, what).mean() for name in settings]
        return float(np.nanmax([0.0, *means]))

    def keeps(self, method: str) -> bool:
        """Whether few edges are false in noise, and few of those that are found elsewhere."""
        return bool(
            self.worst(method, self.noise, "false") <= NOISE_LIMIT
            and self.worst(method, self.settings, "rate") <= RATE_LIMIT
        )

    def behind(
        self, method: str, other: str, what: str = "f1", share: float = 1.0, close: float = 0.0
    ) -> list[str]:
        """Settings in which a method is behind another by more than two standard errors.

        Same tables are compared; the other counts by a share, and `close` is granted.
        """
        far = []
        for name in self.settings:
            gap = share * self.values(name, other, what) - self.values(name, method, what)
            gap = gap.dropna()
            if gap.mean() > close + 2 * gap.sem():
                far.append(name)
        return far


def report() -> None:
    """Print F1, false edges, recall by parameters, and which method meets which goal."""
    board = Board(measured())
    methods = board.methods
    marks = {name: " ✓" if board.keeps(name) else "" for name in methods}
    heading = [name + marks[name] for name in methods]
    sys.stdout.write(
        f"✓: at most {NOISE_LIMIT} false edges in every noise setting, and a mean false discovery "
        f"rate of at most {RATE_LIMIT} in every other one.\n\nF1:\n\n"
    )

    def lines(settings: Sequence[str], what: str, digits: int = 2) -> Iterator[list[str]]:
        for name in settings:
            yield [name, *(mean(board.values(name, each, what), digits) for each in methods)]

    printed(["tables", *heading], lines(board.settings, "f1"))
    sys.stdout.write("False discovery rate, and false edges in noise:\n\n")
    printed(["tables", *heading], [*lines(board.settings, "rate"), *lines(board.noise, "false")])
    recall(board, methods)
    goals(board, methods)
    sets(board, methods)
    sys.stdout.write("Seconds:\n\n")
    printed(["tables", *methods], lines([*board.settings, *board.sets], "seconds", 1))


def recall(board: Board, methods: Sequence[str]) -> None:
    """Print the share of true edges that are found, by their number of parameters."""
    counts = measured()
    counts = counts[counts["tables"].isin(board.settings)]
    sys.stdout.write("Recall by the number of an edge's parameters:\n\n")
    lines = []
    for label, (low, high) in PARAMETERS.items():
        cells = [label]
        for method in methods:
            edges, true, _ = by_size(counts[counts["method"] == method], low, high).sum(axis=0)
            cells.append(f"{true / edges:.2f}" if edges else "")
        lines.append(cells)
    printed(["parameters", *methods], lines)


def goals(board: Board, methods: Sequence[str]) -> None:
    """Print how many settings each method misses a goal in, and which."""
    keepers = [name for name in methods if board.keeps(name) and not name.startswith(ORACLE)]
    many = [name for name in board.settings if board.rows[name] >= ROWS_OF_PATH]
    lines, missed = [], []
    for method in methods:
        others = [name for name in keepers if name != method]
        behind_best = {
            name for other in others for name in board.behind(method, other, close=CLOSE)
        }
        behind_mgm = board.behind(method, MGM) if MGM in methods else []
        behind_path = board.behind(method, ORACLE, "f1_few", SHARE_OF_PATH)
        behind_path = [name for name in behind_path if name in many]
        f1s = [board.values(name, method, "f1").mean() for name in board.settings]
        lines.append(
            [
                method,
                "yes" if board.keeps(method) else "no",
                f"{board.worst(method, board.noise, 'false'):.2f}",
                f"{board.worst(method, board.settings, 'rate'):.2f}",
                f"{np.mean(f1s):.3f}",
                f"{len(behind_best)}",
                f"{len(behind_mgm)}",
                f"{len(behind_path)}",
            ]
        )
        if method in keepers:
            for what, names in (
                ("the best", sorted(behind_best)),
                (MGM, behind_mgm),
                (ORACLE, behind_path),
            ):
                missed += [f"- {method}, behind {what}: {'; '.join(names)}"] * bool(names)
    sys.stdout.write("Goals, and in how many settings a method is behind:\n\n")
    heading = ["method", "keeps to ✓", "false edges in noise, worst", "FDR, worst", "F1, mean"]
    printed([*heading, "behind the best ✓", f"behind {MGM}", f"behind {ORACLE}"], lines)
    sys.stdout.write("\n".join([*missed, "", ""]))


def sets(board: Board, methods: Sequence[str]) -> None:
    """Print true + false edges in the stored tables."""
    lines = []
    for name in board.sets:
        cells = [f"{name} ({int(board.values(name, methods[0], 'edges').iloc[0])} edges)"]
        for method in methods:
            true, false = (board.values(name, method, what) for what in ("true", "false"))
            cells.append(f"{int(true.iloc[0])} + {int(false.iloc[0])}" if len(true) else "")
        lines.append(cells)
    printed(["tables", *methods], lines)


SHOWN = {
    "EBIC": ("#7f7f7f", "s"),
    MGM: ("#d55e00", "v"),
    "stability": ("#cc79a7", "D"),
    "default": ("#0072b2", "o"),
    ORACLE: ("#009e73", "|"),
}
"""Methods of the picture: colour and marker."""


def picture(board: Board) -> None:
    """Draw F1 with two standard errors in every setting."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 6.5), layout="constrained")
    ax = figure.subplots()
    places = np.arange(len(board.settings))[::-1]
    for number, (method, (colour, marker)) in enumerate(SHOWN.items()):
        values = [board.values(name, method, "f1") for name in board.settings]
        means, errors = ([f(each) for each in values] for f in (pd.Series.mean, pd.Series.sem))
        shift = 0.12 * (len(SHOWN) // 2 - number)
        ax.errorbar(
            means,
            places + shift,
            xerr=2.0 * np.nan_to_num(errors),
            fmt=marker,
            color=colour,
            markersize=9 if marker == "|" else 5,
            markeredgewidth=2 if marker == "|" else 1,
            elinewidth=0.8,
            label=method,
        )
    for place in places[:-1]:
        ax.axhline(place - 0.5, color="#e5e5e5", linewidth=0.8, zorder=0)
    ax.set_yticks(places, board.settings)
    ax.set(xlabel="F1 (mean and two standard errors)", xlim=(0.0, 1.02))
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(SHOWN), frameon=False)
    figure.savefig(HERE.with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    warnings.simplefilter("ignore", mg.TableWarning)  # rare levels are the point of some tables
    warnings.simplefilter("ignore", mg.SelectionWarning)
    names = [name for name in sys.argv[1:] if name != "--report"]
    if "--report" not in sys.argv:
        run(names)
    report()
    picture(Board(measured()))
