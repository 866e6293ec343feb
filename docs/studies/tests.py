"""Tables drawn from known graphs -> whether tests of edges keep what they promise.

Counted is how many pairs without an edge have p-values below 0.05 and 0.01, how many intervals of
pairs with one parameter cover it, which share of what Benjamini and Hochberg keep at 10 % is false,
and what verdicts say.  A second file counts pairs without an edge by the kinds of their columns.
Tables come from `gibbs.py`, which shares no code with the package; rows are drawn once for a seed
and cut into tables of different sizes.

Run it when estimates, their covariances or their tests change: ``python docs/studies/tests.py``.
It takes about an hour on one core, writes docs/studies/tests.csv and tests_kinds.csv row by row,
goes on where these end, and prints the tables of docs/selection.md.  Names of settings as arguments
restrict what is counted; ``--report`` counts nothing.
"""

import csv
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import default
import gibbs
import kinds
import numpy as np
import pandas as pd
from default import NUMBER, Column, Floats, Generator, Graph, Pair, levels
from tqdm import tqdm

import mixedgm as mg

REPLICATES, OF_OPTIONS = 200, 20  # tables of a setting; tables that other options are tried on
DEFAULT = ("graph", "rows")
OPTIONS = (DEFAULT, ("graph", "model"), ("free", "rows"), ("free", "model"))
"""Which pairs are adjusted for, and where variances come from."""
SMALLEST = 0.2  # eigenvalue of the precision matrix of numbers and amounts
LEVEL = 0.1  # of the false discovery rate
FILE = Path(__file__).with_suffix(".csv")
KINDS = Path(__file__).with_name("tests_kinds.csv")
FIELDS = (
    *("tables", "rows", "seed", "method", "covariance", "refused"),
    *("null", "null_05", "null_01", "many", "many_05", "many_01"),
    *("intervals", "covered", "edge_intervals", "edge_covered"),
    *("found", "false", "edges", "wrongly_present", "wrongly_absent"),
)
"""Pairs without an edge with p below 0.05 and 0.01, and of these those with many parameters;
intervals of one parameter, and of these those of edges; pairs that are kept, and verdicts."""
OF_KINDS = (
    *("tables", "rows", "seed", "kinds", "null", "null_05", "null_01", "intervals", "covered"),
)
"""By default, of pairs without an edge."""

MIXED: tuple[Column, ...] = (
    *(NUMBER,) * 3,
    *(("ordinal", column) for column in (kinds.SYMMETRIC, kinds.SKEWED)),
    *(("count", column) for column in (kinds.SMALL, kinds.MEDIUM)),
    ("hurdle", kinds.spiked(0.5)),
    *levels(2, 2, 3, 4),
)
LADDER = (NUMBER,) * 6 + levels(*(2,) * 6)


@dataclass(frozen=True)
class Setting:
    """Columns, their graph, sizes of its edges, and how many rows tables have."""

    columns: tuple[Column, ...]
    graph: Graph
    sizes: tuple[float, float] = (0.15, 0.4)
    rows: tuple[int, ...] = (300, 1000, 5000)
    margin: Callable[[Floats], Floats] | None = None
    replicates: int = REPLICATES


def ladder(n_columns: int, rng: Generator) -> list[Pair]:
    """Neighbours on both rails, and rungs between them."""
    half = n_columns // 2
    rails = [(k, k + 1) for k in range(n_columns - 1) if k + 1 != half]
    return [*rails, *((k, k + half) for k in range(half))]


SETTINGS = {
    "ladder 6 + 6": Setting(LADDER, ladder, (0.2, 0.35)),
    "scale-free, all kinds": Setting(MIXED, default.scale_free, replicates=400),
    "rarest level 3 %": Setting(
        (NUMBER,) * 4 + levels(2, 2, 3, 3, 4, 4, rarest=0.03), default.random(10)
    ),
    "heavy tails": Setting(
        (NUMBER,) * 6 + levels(2, 2, 3, 3),
        default.random(10),
        rows=(1000,),
        margin=default.heavy,
        replicates=100,
    ),
    "ladder 6 + 6, few rows": Setting(LADDER, ladder, (0.2, 0.35), rows=(100,)),
    "wide 15 + 15": Setting(
        (NUMBER,) * 15 + levels(*(2, 2, 3) * 5),
        default.random(30),
        rows=(200,),
        replicates=100,
    ),
}


def table(setting: Setting, rng: Generator) -> tuple[Floats, dict[Pair, Floats]]:
    """Rows enough for all sizes, and the blocks of the edges."""
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
        if np.linalg.eigvalsh(precision[np.ix_(numbers, numbers)])[0] < SMALLEST:
            continue
        values = gibbs.rows(nodes, blocks, sum(setting.rows), rng, sweeps=30)
        if setting.margin is not None:
            values[:, numbers] = setting.margin(default.standardised(values[:, numbers]))
        return values, blocks


def true_value(u: Column, v: Column, block: Floats | None) -> float:
    """The last entry of a block that sums to zero over levels."""
    if block is None:
        return 0.0
    block = np.array(block)
    for axis, (kind, _) in enumerate((u, v)):
        if kind == "categorical":
            block -= block.mean(axis=axis, keepdims=True)
    return float(block[-1, -1])


Counts = dict[str, object]


def tested(
    setting: Setting, values: Floats, blocks: dict[Pair, Floats], options: list[tuple[str, str]]
) -> Iterator[tuple[Counts, list[Counts]]]:
    """Fit one table, test it in several ways, and compare with the truth, in all and by kinds."""
    kind = tuple(kind for kind, _ in setting.columns)
    drawn = default.Table(values.round(default.DECIMALS), kind, frozenset(blocks))
    model = mg.MixedGraphicalModel(types=drawn.types, n_jobs=1)
    for method, covariance in options:
        try:
            if not hasattr(model, "fitted_"):
                model.fit(drawn.frame)
            tests = mg.edge_tests(model, drawn.frame, method=method, covariance=covariance)
        except (mg.ParameterError, mg.TableError) as error:
            yield {"refused": str(error).splitlines()[0]}, []
            continue
        yield compared(setting, tests, blocks)


def compared(
    setting: Setting, tests: mg.EdgeTests, blocks: dict[Pair, Floats]
) -> tuple[Counts, list[Counts]]:
    """What the tests of one table say, and what is true."""
    edges, parameters = tests.edges(), tests.parameters().groupby(["source", "target"]).last()
    names = edges[["source", "target"]].to_numpy()
    at = [tuple(sorted(int(name[1:]) for name in ends)) for ends in names]
    is_edge, is_model = np.array([pair in blocks for pair in at]), setting.margin is None
    p, p_bh, verdict = (edges[tests.named(name)].to_numpy() for name in ("p", "p_bh", "verdict"))
    one, covered = (edges["df"] == 1).to_numpy(), []
    for (u, v), ends in zip(at, names, strict=True):
        row, columns = parameters.loc[tuple(ends)], setting.columns
        truth = true_value(columns[u], columns[v], blocks.get((u, v)))
        covered.append(row["lower"] <= truth <= row["upper"])
    covered = np.array(covered)
    counts = {
        "null": ~is_edge,
        "null_05": ~is_edge & (p < 0.05),
        "null_01": ~is_edge & (p < 0.01),
        "many": ~is_edge & ~one,
        "many_05": ~is_edge & ~one & (p < 0.05),
        "many_01": ~is_edge & ~one & (p < 0.01),
        "intervals": one & is_model,
        "covered": one & covered & is_model,
        "edge_intervals": one & is_edge & is_model,
        "edge_covered": one & is_edge & covered & is_model,
        "found": p_bh <= LEVEL,
        "false": ~is_edge & (p_bh <= LEVEL),
        "edges": is_edge,
        "wrongly_present": ~is_edge & (verdict == "present"),
        "wrongly_absent": is_edge & (verdict == "absent"),
    }
    ends = [" - ".join(sorted(setting.columns[k][0] for k in pair)) for pair in at]
    by_kinds: list[Counts] = []
    for which in sorted(set(ends)):
        here = np.array([each == which for each in ends]) & ~is_edge
        found = {name: int(counts[name][here].sum()) for name in ("null", "null_05", "null_01")}
        intervals = {"intervals": here & one & is_model, "covered": here & one & covered & is_model}
        found |= {name: int(each.sum()) for name, each in intervals.items()}
        by_kinds.append({"kinds": which, **found})
    return {name: int(np.sum(each)) for name, each in counts.items()}, by_kinds


def tasks(names: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Settings and seeds, seed by seed."""
    for seed in range(max(setting.replicates for setting in SETTINGS.values())):
        for name, setting in SETTINGS.items():
            if seed < setting.replicates and (not names or name in names):
                yield name, seed


def run(names: Sequence[str]) -> None:
    """Test every table that the file does not have yet."""
    done = set()
    if FILE.exists():
        known = pd.read_csv(FILE)
        done = set(zip(*(known[name] for name in FIELDS[:5]), strict=True))
    with appended(FILE, FIELDS) as whole, appended(KINDS, OF_KINDS) as by_kinds:
        for name, seed in tqdm(list(tasks(names)), unit="seed"):
            setting, options = SETTINGS[name], OPTIONS[: len(OPTIONS) if seed < OF_OPTIONS else 1]
            wanted = {(name, n, seed, *each) for n in setting.rows for each in options}
            if wanted <= done:
                continue
            values, blocks = table(setting, np.random.default_rng([seed, *name.encode()]))
            parts = np.split(values, np.cumsum(setting.rows)[:-1])
            for part, n in zip(parts, setting.rows, strict=True):
                missing = [each for each in options if (name, n, seed, *each) not in done]
                found = tested(setting, part, blocks, missing)
                key = {"tables": name, "rows": n, "seed": seed}
                for (method, covariance), (counts, of_kinds) in zip(missing, found, strict=True):
                    whole(key | {"method": method, "covariance": covariance} | counts)
                    if (method, covariance) == DEFAULT:
                        for each in of_kinds:
                            by_kinds(key | each)


@contextmanager
def appended(file: Path, fields: Sequence[str]) -> Iterator[Callable[[Counts], None]]:
    """What adds a row to a file, which gets its heading first."""
    is_new = not file.exists()
    with file.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fields, lineterminator="\n")
        if is_new:
            writer.writeheader()

        def add(row: Counts) -> None:
            writer.writerow(row)
            stream.flush()

        yield add


def report() -> None:
    """Print the table of the page, of what is counted so far."""
    counts = pd.read_csv(FILE)
    heads = (
        *("tables", "rows", "given", "variances", "number", "refused", "p < 0.05", "p < 0.01"),
        *("many parameters: p < 0.05", "cover", "edges cover", "false of found", "found of edges"),
        *("wrongly present", "wrongly absent"),
    )
    lines = ["| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
    for name, setting in SETTINGS.items():
        for n in setting.rows:
            for method, source in OPTIONS:
                here = (counts["tables"] == name) & (counts["rows"] == n)
                here &= (counts["method"] == method) & (counts["covariance"] == source)
                part = counts[here]
                kept = part[part["refused"].isna()]
                if kept.empty:
                    continue
                total = kept[list(FIELDS[6:])].sum()

                def share(a: str, b: str, total: "pd.Series[float]" = total) -> str:
                    return f"{100 * total[a] / total[b]:.1f}" if total[b] else ""

                wrong = (kept["false"] / kept["found"].clip(lower=1)).mean()
                cells = [name, f"{n:,}", method, source, str(len(part)), str(len(part) - len(kept))]
                cells += [share("null_05", "null"), share("null_01", "null")]
                cells += [share("many_05", "many"), share("covered", "intervals")]
                cells += [share("edge_covered", "edge_intervals"), f"{100 * wrong:.1f}"]
                true = kept["found"] - kept["false"]
                cells += [f"{100 * true.sum() / total['edges']:.0f}"]
                cells += [share("wrongly_present", "null"), share("wrongly_absent", "edges")]
                lines.append("| " + " | ".join(cells) + " |")
    sys.stdout.write("\n".join(lines) + "\n\n")
    report_kinds()


def report_kinds() -> None:
    """Print pairs without an edge by kinds: shares, with the standard errors of these tables."""
    counts = pd.read_csv(KINDS)
    heads = ("tables", "rows", "kinds", "pairs", "p < 0.05", "p < 0.01", "cover")
    lines = ["| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
    for (name, n, which), part in counts.groupby(["tables", "rows", "kinds"], sort=False):
        cells = [name, f"{n:,}", which, f"{part['null'].sum():,}"]
        for a, b in (("null_05", "null"), ("null_01", "null"), ("covered", "intervals")):
            total = part[b].sum()
            share = part[a].sum() / max(total, 1)
            error = np.sqrt(((part[a] - share * part[b]) ** 2).sum()) / max(total, 1)
            cells.append(f"{100 * share:.1f} ± {100 * error:.1f}" if total else "")
        lines.append("| " + " | ".join(cells) + " |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    if "--report" not in arguments:
        run(arguments)
    report()
