"""Tables drawn from known graphs, with cells taken out -> what a fit still finds, by method.

Cells are missing completely at random, at random given columns that are always observed, or by
their own values.  Compared are a fit of the whole table before cells were taken out, of its
complete rows, of rows completed by the model itself (``missing="model"``), of one completion by
forests, and of several completions by R's mice, whose fits are averaged.  Tables come from
`gibbs.py`, which shares no code with the package.

Counted are the error of the parameters of the true graph without shrinkage, true and false edges of
the default fit, and intervals of tests and of the bootstrap that cover.

Run it when fits with gaps change: ``python docs/studies/missing.py``.  It takes about two hours on
one core, writes docs/studies/missing.csv row by row, goes on where that ends, and prints the tables
of docs/gaps.md.  Names of methods as arguments restrict what is counted (mice needs R);
``--report`` counts nothing.
"""

import csv
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import default
import gibbs
import kinds
import numpy as np
import pandas as pd
from default import NUMBER, Column, Floats, Generator, Graph, Pair, levels
from tqdm import tqdm

import mixedgm as mg
from tests import ladder, true_value

FILE = Path(__file__).with_suffix(".csv")
REPLICATES = 20
SMALLEST = 0.2  # eigenvalue of the precision matrix of numbers
ALWAYS = 3  # columns that are always observed, on which gaps at random depend
N_BOOT = 60
FEWEST = 5  # tables of a line of the page
SHARES = (0.3, 0.1, 0.5)
OF_INTERVALS = 0.3  # share of missing cells in tables whose intervals are counted
REASONS = ("completely at random", "at random", "not at random")
FIELDS = (
    *("tables", "reason", "share", "seed", "method"),
    *("error", "true", "false", "edges", "intervals", "covered", "boot_intervals", "boot_covered"),
)


@dataclass(frozen=True)
class Setting:
    """Columns, their graph, sizes of its edges, and rows."""

    columns: tuple[Column, ...]
    graph: Graph
    rows: int
    sizes: tuple[float, float] = (0.2, 0.4)
    reasons: tuple[str, ...] = REASONS
    shares: tuple[float, ...] = SHARES


SETTINGS = {
    "ladder 5 + 5": Setting((NUMBER,) * 5 + levels(*(2,) * 5), ladder, 1000),
    "scale-free, mixed": Setting(
        (
            *(NUMBER,) * 4,
            *(("ordinal", column) for column in (kinds.SYMMETRIC, kinds.SKEWED)),
            ("count", kinds.SMALL),
            *levels(2, 3, 3, 4),
        ),
        default.scale_free,
        1000,
    ),
    "noise": Setting(
        (NUMBER,) * 5 + levels(2, 2, 3, 3, 4),
        lambda n, rng: [],
        500,
        shares=(0.3,),
        reasons=("completely at random", "at random"),
    ),
}


def table(setting: Setting, rng: Generator) -> tuple[Floats, dict[Pair, Floats]]:
    """Rows, and the blocks of the edges."""
    nodes = [column for _, column in setting.columns]
    numbers = [k for k, node in enumerate(nodes) if not isinstance(node, gibbs.Finite)]
    while True:
        pairs = setting.graph(len(nodes), rng)
        blocks = {
            (u, v): kinds.block(nodes[u], nodes[v], rng.choice([-1, 1]) * size, rng)
            for (u, v), size in zip(pairs, rng.uniform(*setting.sizes, len(pairs)), strict=True)
        }
        precision = np.eye(len(nodes))
        for (u, v), entries in blocks.items():
            precision[u, v] = precision[v, u] = -entries[-1, -1]
        if np.linalg.eigvalsh(precision[np.ix_(numbers, numbers)])[0] >= SMALLEST:
            return gibbs.rows(nodes, blocks, setting.rows, rng, sweeps=30), blocks


def gaps(values: Floats, reason: str, share: float, rng: Generator) -> Floats:
    """Which cells are missing; the first columns are always observed, but in the first case.

    Chances are a logistic function of a column, such that `share` of the other columns' cells go.
    """
    n, p = values.shape
    if reason == "completely at random":
        return rng.random((n, p)) < share
    scaled = default.standardised(values)
    out = np.zeros((n, p), dtype=bool)
    for column in range(ALWAYS, p):
        by = scaled[:, column % ALWAYS] if reason == "at random" else scaled[:, column]
        slope, low, high = 1.5, -20.0, 20.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            mean = (1.0 / (1.0 + np.exp(-(middle + slope * by)))).mean()
            low, high = (middle, high) if mean < share else (low, middle)
        out[:, column] = rng.random(n) < 1.0 / (1.0 + np.exp(-(low + slope * by)))
    return out


def frame(values: Floats, missing: Floats | None, types: Sequence[str]) -> pd.DataFrame:
    """As a data frame; levels and counts as whole numbers or categories."""
    out = {}
    for k, kind in enumerate(types):
        column = pd.Series(values[:, k].round(default.DECIMALS))
        if missing is not None:
            column = column.mask(missing[:, k])
        if kind == "categorical":
            column = column.map(lambda value: f"l{int(value)}", na_action="ignore").astype(
                "category"
            )
        out[f"x{k}"] = column
    return pd.DataFrame(out)


def fit(x: pd.DataFrame, types: dict[str, str], **options: object) -> mg.MixedGraphicalModel:
    """On one core."""
    return mg.MixedGraphicalModel(types=types, n_jobs=1, **options).fit(x)


def forests(x: pd.DataFrame, types: dict[str, str]) -> pd.DataFrame:
    """One completion by regressions on forests, column by column in turn."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    codes = x.apply(lambda c: c.cat.codes.where(c.notna()) if types[c.name] == "categorical" else c)
    lacking = codes.isna()
    filled = codes.copy()
    for name in codes:
        filled[name] = codes[name].fillna(
            codes[name].mode()[0] if types[name] == "categorical" else codes[name].mean()
        )
    for _ in range(3):
        for name in lacking.sum().sort_values().index:
            gap = lacking[name].to_numpy()
            if not gap.any():
                continue
            whole = types[name] == "categorical"
            forest = (RandomForestClassifier if whole else RandomForestRegressor)(
                50, min_samples_leaf=3, n_jobs=1, random_state=0
            )
            others = filled.drop(columns=name)
            forest.fit(others[~gap], codes.loc[~gap, name])
            filled.loc[gap, name] = forest.predict(others[gap])
    out = x.copy()
    for name in x:
        values = filled[name]
        if types[name] == "categorical":
            out[name] = pd.Categorical.from_codes(values.astype(int), x[name].cat.categories)
        elif types[name] in ("ordinal", "count"):
            out[name] = values.round().clip(codes[name].min(), codes[name].max())
        else:
            out[name] = values
    return out


def mice(x: pd.DataFrame, types: dict[str, str], n: int = 5) -> list[pd.DataFrame]:
    """Several completions by R's mice: predictive mean matching, and logistic regressions."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "table.csv")
        x.to_csv(source, index=False)
        factors = ",".join(name for name, kind in types.items() if kind == "categorical")
        script = Path(__file__).with_name("mice.R")
        subprocess.run(
            ["Rscript", script, source, folder, str(n), factors], check=True, capture_output=True
        )
        done = [pd.read_csv(Path(folder, f"{k + 1}.csv")) for k in range(n)]
    for each in done:
        for name, kind in types.items():
            if kind == "categorical":
                each[name] = pd.Categorical(each[name], x[name].cat.categories)
    return done


def found(model: mg.MixedGraphicalModel) -> set[Pair]:
    """The edges of a model."""
    ends = model.edges()[["source", "target"]].to_numpy()
    return {tuple(sorted(int(name[1:]) for name in pair)) for pair in ends}


def sizes(model: mg.MixedGraphicalModel, pairs: Sequence[Pair]) -> list[Floats]:
    """Blocks of the model's parameters that sum to zero over levels."""
    params, schema = model.params_, model.schema_
    out = []
    for u, v in pairs:
        block = np.array(params.block(schema.node_index(f"x{u}"), schema.node_index(f"x{v}")))
        out.append(centred(block))
    return out


def centred(block: Floats) -> Floats:
    """Without what node terms say as well: sums over levels are zero."""
    for axis in (0, 1):
        if block.shape[axis] > 1:
            block = block - block.mean(axis=axis, keepdims=True)
    return block


class Trial:
    """One table with its gaps, and the truth."""

    def __init__(self, name: str, reason: str, share: float, seed: int) -> None:
        setting = SETTINGS[name]
        rng = np.random.default_rng([seed, *name.encode()])
        self.values, self.blocks = table(setting, rng)
        kind = [kind for kind, _ in setting.columns]
        self.types = {f"x{k}": each for k, each in enumerate(kind)}
        self.columns = setting.columns
        holes = gaps(self.values, reason, share, np.random.default_rng([seed, *reason.encode()]))
        self.whole, self.gappy = frame(self.values, None, kind), frame(self.values, holes, kind)
        names = [f"x{k}" for k in range(len(kind))]
        pairs = [(u, v) for u in range(len(kind)) for v in range(u + 1, len(kind))]
        self.forbid = [(names[u], names[v]) for u, v in pairs if (u, v) not in self.blocks]

    def error(self, models: Sequence[mg.MixedGraphicalModel]) -> float:
        """Mean absolute error of the parameters of the true graph."""
        pairs = list(self.blocks)
        if not pairs:
            return np.nan
        means = [
            np.mean(each, axis=0) for each in zip(*(sizes(m, pairs) for m in models), strict=True)
        ]
        off = [
            np.abs(mean - centred(np.array(self.blocks[pair]))).mean()
            for mean, pair in zip(means, pairs, strict=True)
        ]
        return float(np.mean(off))

    def scored(self, tables: Sequence[pd.DataFrame], **options: object) -> dict[str, object]:
        """Fit every completion; edges are those of at least half of them."""
        fits = [fit(x, self.types, **options) for x in tables]
        votes: dict[Pair, int] = {}
        for model in fits:
            for pair in found(model):
                votes[pair] = votes.get(pair, 0) + 1
        edges = {pair for pair, count in votes.items() if 2 * count >= len(fits)}
        true = len(edges & set(self.blocks))
        free = [
            fit(x, self.types, forbid=self.forbid, lam=0.05, refit=True, **options) for x in tables
        ]
        return {
            "error": self.error(free),
            "true": true,
            "false": len(edges) - true,
            "edges": len(self.blocks),
        }

    def covered(self, seed: int) -> dict[str, object]:
        """Intervals of tests and of the bootstrap, for pairs with one parameter."""
        model = fit(self.gappy, self.types, missing="model", lam=0.1)
        parameters = mg.edge_tests(model, self.gappy, n_jobs=1).parameters()
        boot = mg.bootstrap(model, self.gappy, N_BOOT, random_state=seed, n_jobs=1)
        counts = {}
        for name, rows in (("", parameters), ("boot_", boot.parameters())):
            hits, number = 0, 0
            for ends, part in rows.groupby(["source", "target"]):
                u, v = sorted(int(end[1:]) for end in ends)
                last = part.iloc[-1]
                kind = [self.columns[k][0] for k in (u, v)]
                width = [
                    len(node.table) if k == "categorical" else 2
                    for k, (_, node) in zip(kind, (self.columns[u], self.columns[v]), strict=True)
                ]
                if max(width) > 2:
                    continue
                truth = true_value(self.columns[u], self.columns[v], self.blocks.get((u, v)))
                number, hits = number + 1, hits + (last["lower"] <= truth <= last["upper"])
            counts |= {f"{name}intervals": number, f"{name}covered": int(hits)}
        return counts


METHODS: dict[str, Callable[[Trial, int], dict[str, object]]] = {
    "complete table": lambda trial, seed: trial.scored([trial.whole]),
    "complete rows": lambda trial, seed: trial.scored([trial.gappy], missing="drop"),
    "model": lambda trial, seed: trial.scored([trial.gappy], missing="model"),
    "forests": lambda trial, seed: trial.scored([forests(trial.gappy, trial.types)]),
    "mice": lambda trial, seed: trial.scored(mice(trial.gappy, trial.types)),
    "intervals": lambda trial, seed: trial.covered(seed),
}


def is_counted(name: str, reason: str, share: float, method: str) -> bool:
    """Whether a method is tried there: intervals take long, and have no meaning without truth."""
    if method != "intervals":
        return True
    return share == OF_INTERVALS and reason != "not at random" and name != "noise"


def run(wanted: Sequence[str]) -> None:
    """Count what the file does not have yet."""
    done = set()
    if FILE.exists():
        known = pd.read_csv(FILE)
        done = set(zip(*(known[name] for name in FIELDS[:5]), strict=True))
    every = [
        (name, reason, share, seed, method)
        for seed in range(REPLICATES)
        for name, setting in SETTINGS.items()
        for reason, share in product(setting.reasons, setting.shares)
        for method in METHODS
        if (not wanted or method in wanted) and is_counted(name, reason, share, method)
    ]
    every.sort(key=lambda key: (key[2] != OF_INTERVALS, key[4] == "intervals"))
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for key in tqdm([key for key in every if key not in done], unit="fit"):
            name, reason, share, seed, method = key
            try:
                counts = METHODS[method](Trial(name, reason, share, seed), seed)
            except (mg.MixedGMError, ValueError) as error:
                counts = {"error": np.nan}
                sys.stderr.write(f"{key}: {str(error).splitlines()[0]}\n")
            writer.writerow(dict(zip(FIELDS[:5], key, strict=True)) | counts)
            stream.flush()


def report() -> None:
    """Print the tables of the page."""
    counts = pd.read_csv(FILE)
    fits = counts[counts["method"] != "intervals"]
    methods = [name for name in METHODS if name != "intervals"]
    heading = f"| tables | missing | share | {' | '.join(methods)} | number |"
    ruler = "| --- " * (len(methods) + 4) + "|"
    errors, edges = [heading, ruler], [heading, ruler]
    settings = [
        (name, reason, share)
        for name, setting in SETTINGS.items()
        for reason, share in product(setting.reasons, sorted(setting.shares))
    ]
    for name, reason, share in settings:
        part = fits[
            (fits["tables"] == name) & (fits["reason"] == reason) & (fits["share"] == share)
        ]
        by_method = [part[part["method"] == method] for method in methods]
        number = min(len(here) for here in by_method)
        if number < FEWEST:
            continue
        begin = f"| {name} | {reason} | {share:.0%} | "
        if name != "noise":
            cells = [_error(here) for here in by_method]
            errors.append(f"{begin}{' | '.join(cells)} | {number} |")
        cells = [_edges(here) for here in by_method]
        edges.append(f"{begin}{' | '.join(cells)} | {number} |")
    lines = [*errors, "", *edges]
    lines += [
        "",
        "| tables | missing | share | tests cover | bootstrap covers |",
        "| --- | --- | --- | --- | --- |",
    ]
    for (name, reason, share), part in counts[counts["method"] == "intervals"].groupby(
        ["tables", "reason", "share"], sort=False
    ):
        total = part[["intervals", "covered", "boot_intervals", "boot_covered"]].sum()
        lines.append(
            f"| {name} | {reason} | {share:.0%} "
            f"| {100 * total['covered'] / total['intervals']:.1f} % "
            f"| {100 * total['boot_covered'] / total['boot_intervals']:.1f} % |"
        )
    sys.stdout.write("\n".join(lines) + "\n")


def _error(counts: pd.DataFrame) -> str:
    """Mean error and its standard error; how many fits were refused, if some were."""
    found = counts["error"].dropna()
    if len(found) < FEWEST:
        return "refused"
    text = f"{found.mean():.4f} ({found.sem():.4f})"
    refused = len(counts) - len(found)
    return f"{text}, {refused} refused" if refused else text


def _edges(counts: pd.DataFrame) -> str:
    """Share of the true edges that are found, and false ones in a table."""
    found = counts.dropna(subset=["true"])
    if len(found) < FEWEST:
        return "refused"
    n_edges, true, false = found["edges"].sum(), found["true"].sum(), found["false"].mean()
    return f"{100 * true / n_edges:.0f} %, {false:.2f}" if n_edges else f"{false:.2f}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    if "--report" not in arguments:
        run(arguments)
    report()
