"""Real tables with cells taken out -> how well each method fills them in again, and how fast.

Cells are taken out completely at random, or at random given two columns that are always observed.
Compared are mixedgm, scikit-learn's `IterativeImputer` and `KNNImputer`, forests in the manner of
missForest, and means and modes, with the settings that their packages have by default.  Settings
that did better in the first samples of wage and taxunits are shown beside: one round of
`IterativeImputer`, 50 neighbours, and forests whose leaves have at least ten rows.

Counted are the root mean squared error of numbers, in standard deviations of their columns (NRMSE),
the share of levels that are right, and seconds of one processor.

Run it when imputation changes: ``python docs/studies/imputation.py``.  It takes about half an hour
on one core, writes docs/studies/imputation.csv row by row, goes on where that ends, and prints the
tables of docs/gaps.md.  Two surveys do not come with the package; they are read from the folder
shared/data beside the repository, and skipped where there is no such folder.  Names of methods or
tables as arguments restrict what is counted; ``--report`` counts nothing.
"""

import csv
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from tqdm import tqdm

import mixedgm as mg

FILE = Path(__file__).with_suffix(".csv")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
SLOPE = 1.5  # of the log odds of a gap, per standard deviation of the column it depends on
TREES, MOST_ROUNDS = 100, 10  # as in missForest
FIELDS = (
    *("table", "reason", "share", "seed", "method"),
    *("numbers", "levels", "nrmse", "accuracy", "seconds"),
)

Bools = NDArray[np.bool_]
Frame = pd.DataFrame

# -- tables and gaps -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """How to read a table, the columns that gaps at random depend on, rows of a sample, seeds."""

    read: Callable[[], Frame]
    observed: tuple[str, str]
    rows: int | None = None
    seeds: int = 2

    def sample(self, seed: int) -> Frame:
        """Some rows, with the levels that they have."""
        whole = self.read()
        rows = whole if self.rows is None else whole.sample(self.rows, random_state=seed)
        rows = rows.reset_index(drop=True)
        return rows.apply(lambda c: c.cat.remove_unused_categories() if is_level(c) else c)


TABLES = {
    "penguins": Table(
        lambda: mg.datasets.load_penguins(frame="pandas").drop(columns="year"),
        ("flipper_length_mm", "species"),
        seeds=6,
    ),
    "wage": Table(lambda: mg.datasets.load_wage(frame="pandas"), ("age", "education"), seeds=3),
    "taxunits": Table(
        lambda: mg.datasets.load_taxunits(frame="pandas"), ("age", "filing"), rows=3000
    ),
    "atus_wage": Table(
        lambda: pd.read_parquet(SHARED / "atus_wage.parquet").iloc[:, :11],
        ("age", "education"),
        rows=3000,
    ),
    "adult": Table(
        lambda: pd.read_parquet(SHARED / "adult.parquet").drop(columns="split"),
        ("age", "education"),
        rows=1000,
    ),
}
GAPS = (("completely at random", 0.1), ("completely at random", 0.3), ("at random", 0.3))


def is_level(column: pd.Series) -> bool:
    """Whether the column has levels rather than numbers."""
    return isinstance(column.dtype, pd.CategoricalDtype)


def codes(table: Frame) -> Frame:
    """Levels as whole numbers; gaps are NaN."""
    out = table.apply(lambda c: c.cat.codes.where(c.notna()) if is_level(c) else c)
    return out.astype(np.float64)


def gaps(table: Frame, observed: Sequence[str], share: float, rng: np.random.Generator) -> Bools:
    """Which cells to take out: this share of those of every column that is not always observed.

    The chance of a gap is a logistic function of one of the observed columns, of either sign, by
    turns.
    """
    scaled = codes(table)[list(observed)]
    scaled = ((scaled - scaled.mean()) / scaled.std()).fillna(0.0).to_numpy()
    out = np.zeros(table.shape, dtype=bool)
    others = [k for k, name in enumerate(table) if name not in observed]
    for turn, column in enumerate(others):
        slope = SLOPE * rng.choice([-1, 1]) * scaled[:, turn % len(observed)]
        low, high = -20.0, 20.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            mean = (1.0 / (1.0 + np.exp(-(middle + slope)))).mean()
            low, high = (middle, high) if mean < share else (low, middle)
        out[:, column] = rng.random(len(table)) < 1.0 / (1.0 + np.exp(-(low + slope)))
    return out


# -- methods ---------------------------------------------------------------------------------------


def mixed(table: Frame) -> Frame:
    """Conditional means and most probable levels of a model fitted to all rows."""
    return mg.MixedImputer(mg.MixedGraphicalModel(n_jobs=1)).fit_transform(table)


def mean_and_mode(table: Frame) -> Frame:
    """Means of numbers and most frequent levels."""
    return table.apply(lambda c: c.fillna(c.mode()[0] if is_level(c) else c.mean()))


def indicators(table: Frame) -> dict[str, Frame]:
    """Columns of every column: standardised numbers, and 0 or 1 for each level."""
    out = {}
    for name, column in table.items():
        if is_level(column):
            each = pd.get_dummies(column).astype(np.float64)
            out[name] = each.where(column.notna())
        else:
            out[name] = ((column - column.mean()) / column.std()).to_frame()
    return out


def from_indicators(table: Frame, filled: dict[str, NDArray[np.float64]]) -> Frame:
    """Numbers in their units, and the level with the largest score."""
    out = table.astype({name: np.float64 for name in table if not is_level(table[name])})
    for name, column in table.items():
        gap = column.isna().to_numpy()
        if is_level(column):
            level = column.cat.categories[filled[name].argmax(axis=1)]
            out.loc[gap, name] = level[gap]
        else:
            out.loc[gap, name] = (filled[name][:, 0] * column.std() + column.mean())[gap]
    return out


def iterative(table: Frame, **options: object) -> Frame:
    """Bayesian ridge regressions by turns, on indicators of all levels but the first.

    With all levels, every indicator would be one minus its siblings, which are missing with it, and
    no gap would ever move from where it starts.
    """
    parts = {
        name: each.iloc[:, 1:] if is_level(table[name]) else each
        for name, each in indicators(table).items()
    }
    imputer = IterativeImputer(random_state=0, **options)
    done = imputer.fit_transform(pd.concat(parts, axis=1).to_numpy())
    ends = np.cumsum([each.shape[1] for each in parts.values()])[:-1]
    filled = dict(zip(parts, np.split(done, ends, axis=1), strict=True))
    for name, each in filled.items():
        if is_level(table[name]):
            filled[name] = np.column_stack([1.0 - each.sum(axis=1), each])
    return from_indicators(table, filled)


def neighbours(table: Frame, **options: object) -> Frame:
    """Means of the nearest rows that have the cell, five by default.

    Squared distances of unequal levels are 2, as those of standardised numbers are on average.
    """
    parts = indicators(table)
    done = KNNImputer(**options).fit_transform(pd.concat(parts, axis=1).to_numpy())
    ends = np.cumsum([each.shape[1] for each in parts.values()])[:-1]
    return from_indicators(table, dict(zip(parts, np.split(done, ends, axis=1), strict=True)))


def forests(table: Frame, **options: object) -> Frame:
    """Forests column by column, with the settings and the stopping rule of missForest.

    Columns with few gaps come first.  It stops when both changes, of numbers and of levels, grow
    for the first time, and returns the round before that, or after ten rounds.  Levels are whole
    numbers to the trees, in the order of the table: in trials indicators were worse for wage, and
    no better for adult.
    """
    known = codes(table)
    lacking, whole = known.isna(), {name for name in table if is_level(table[name])}
    start = mean_and_mode(table)
    filled, before = codes(start), {True: np.inf, False: np.inf}
    present = {kind for kind in (True, False) if any((n in whole) is kind for n in table)}
    for _ in range(MOST_ROUNDS):
        last = filled.copy()
        for name in lacking.sum().sort_values(kind="stable").index:
            gap = lacking[name].to_numpy()
            if not gap.any():
                continue
            kind, smallest = (
                (RandomForestClassifier, 2) if name in whole else (RandomForestRegressor, 6)
            )
            forest = kind(
                TREES,
                max_features="sqrt",
                min_samples_split=smallest,
                n_jobs=1,
                random_state=0,
                **options,
            )
            others = filled.drop(columns=name)
            forest.fit(others[~gap], known.loc[~gap, name])
            filled.loc[gap, name] = forest.predict(others[gap])
        change = {}
        for kind in present:
            names = [name for name in table if (name in whole) is kind]
            new, old = filled[names].to_numpy(), last[names].to_numpy()
            if kind:
                change[kind] = (new != old).sum() / max(1, lacking[names].to_numpy().sum())
            else:
                change[kind] = ((new - old) ** 2).sum() / (new**2).sum()
        if all(change[kind] >= before[kind] for kind in present):
            filled = last
            break
        before = change
    out = table.astype({name: np.float64 for name in table if name not in whole})
    for name in table:
        gap = lacking[name].to_numpy()
        values = filled.loc[gap, name]
        out.loc[gap, name] = (
            table[name].cat.categories[values.astype(int)] if name in whole else values
        )
    return out


METHODS: dict[str, Callable[[Frame], Frame]] = {
    "mixedgm": mixed,
    "IterativeImputer": iterative,
    "IterativeImputer, one round": lambda table: iterative(table, max_iter=1),
    "KNNImputer": neighbours,
    "KNNImputer, 50 rows": lambda table: neighbours(table, n_neighbors=50),
    "forests": forests,
    "forests, large leaves": lambda table: forests(table, min_samples_leaf=10),
    "mean and mode": mean_and_mode,
}

# -- counts ----------------------------------------------------------------------------------------


def scored(table: Frame, holes: Bools, filled: Frame) -> dict[str, object]:
    """Errors of the cells that were taken out."""
    squares: list[float] = []
    hits: list[bool] = []
    for k, name in enumerate(table):
        gap = holes[:, k] & table[name].notna().to_numpy()
        truth, guess = table.loc[gap, name], filled.loc[gap, name]
        if is_level(table[name]):
            hits += (truth.astype(str) == guess.astype(str)).tolist()
        else:
            squares += (((guess - truth) / table[name].std()) ** 2).tolist()
    return {
        "numbers": len(squares),
        "levels": len(hits),
        "nrmse": round(float(np.sqrt(np.mean(squares))), 5),
        "accuracy": round(float(np.mean(hits)), 5),
    }


def trial(name: str, reason: str, share: float, seed: int) -> tuple[Frame, Bools]:
    """A table, and the cells to take out."""
    source = TABLES[name]
    table, rng = source.sample(seed), np.random.default_rng([seed, *f"{name} {reason}".encode()])
    if reason == "completely at random":
        return table, rng.random(table.shape) < share
    return table, gaps(table, source.observed, share, rng)


def run(wanted: Sequence[str]) -> None:
    """Count what the file does not have yet."""
    done = set()
    if FILE.exists():
        known = pd.read_csv(FILE)
        done = set(zip(*(known[name] for name in FIELDS[:5]), strict=True))
    names, methods = ([n for n in every if n in wanted] or every for every in (TABLES, METHODS))
    if not SHARED.exists():
        sys.stderr.write(f"{SHARED} does not exist: atus_wage and adult are skipped\n")
        names = [name for name in names if name not in ("atus_wage", "adult")]
    every = [
        (name, reason, share, seed, method)
        for seed in range(max(table.seeds for table in TABLES.values()))
        for name in names
        if seed < TABLES[name].seeds
        for reason, share in GAPS
        for method in methods
    ]
    mixed(mg.datasets.load_penguins(frame="pandas"))  # compiles
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for key in tqdm([key for key in every if key not in done], unit="table"):
            table, holes = trial(*key[:4])
            start = time.process_time()
            try:
                filled = METHODS[key[4]](table.mask(holes))
            except (mg.MixedGMError, ValueError) as error:
                sys.stderr.write(f"{key}: {str(error).splitlines()[0]}\n")
                continue
            seconds = {"seconds": round(time.process_time() - start, 2)}
            counts = scored(table, holes, filled) | seconds
            writer.writerow(dict(zip(FIELDS[:5], key, strict=True)) | counts)
            stream.flush()


def report() -> None:
    """Print means over seeds with their standard errors, and differences on the same tables."""
    counts = pd.read_csv(FILE)
    shown = [name for name in METHODS if name in set(counts["method"])]
    lines = []
    for measure, digits in (("accuracy", 1), ("nrmse", 3), ("seconds", 1)):
        lines += [
            f"**{measure}**",
            "",
            f"| table | missing | share | {' | '.join(shown)} |",
            "| --- | --- | ---: |" + " ---: |" * len(shown),
        ]
        scale = 100.0 if measure == "accuracy" else 1.0
        for (name, reason, share), part in counts.groupby(["table", "reason", "share"], sort=False):
            cells = []
            for method in shown:
                each = scale * part.loc[part["method"] == method, measure]
                error = "" if measure == "seconds" else f" ({each.sem():.{digits}f})"
                cells.append(f"{each.mean():.{digits}f}{error}" if len(each) else "")
            lines.append(f"| {name} | {reason} | {share:.0%} | {' | '.join(cells)} |")
        lines.append("")
    lines += [
        "**mixedgm less others, on the same tables**",
        "",
        "| table | missing | share | measure | " + " | ".join(shown[1:]) + " |",
        "| --- | --- | ---: | --- |" + " ---: |" * (len(shown) - 1),
    ]
    for (name, reason, share), part in counts.groupby(["table", "reason", "share"], sort=False):
        for measure, digits, scale in (("accuracy", 1, 100.0), ("nrmse", 3, 1.0)):
            wide = scale * part.pivot(index="seed", columns="method", values=measure)
            less = wide[["mixedgm"]].to_numpy() - wide[[m for m in shown[1:] if m in wide]]
            cells = [
                f"{less[m].mean():+.{digits}f} ({less[m].sem():.{digits}f})" if m in less else ""
                for m in shown[1:]
            ]
            lines.append(f"| {name} | {reason} | {share:.0%} | {measure} | {' | '.join(cells)} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    if "--report" not in arguments:
        run(arguments)
    report()
