"""Strengths of edges against known ones: drawn tables of all kinds, noise, and real tables.

    python docs/studies/strengths.py                    -> strengths.csv beside this file
    python docs/studies/strengths.py --report           prints the tables of docs/mathematics.md

Drawn tables come from models whose strengths are known: the fits to large tables of all kinds with
2 to 9 levels.  Of noise all columns are independent.  Real tables have at least 10,000 rows; 1,000
of these are compared with all.  Their files are in the folder of the variable MIXEDGM_DATA.  Counts
are written row by row, and a second run goes on where the first one ended.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

import mixedgm as mg
from mixedgm.inference.strength import RestRows

FILE = Path(__file__).with_suffix(".csv")
WHOLE = FILE.with_name("strengths_whole.csv")
"""Strengths of all pairs in all rows of the real tables."""
RAREST = (0.01, 0.02, 0.05, 0.1, 0.2)
ROWS = (300, 1_000, 5_000)
MANY, SOME = 20_000, 1_000
KINDS = {
    "x": "number",
    "y": "number",
    "z": "number",
    "spent": "hurdle",
    "visits": "count",
    "pain": "ordinal 4",
    "grade": "ordinal 6",
    "two": "levels 2",
    "three": "levels 3",
    "four": "levels 4",
    "six": "levels 6",
    "nine": "levels 9",
}
TYPES = {"spent": "hurdle", "visits": "count", "pain": "ordinal", "grade": "ordinal"}
REAL = ("adult", "census_income_kdd", "atus_wage", "cps_taxunits")
NAMES = (
    *("study", "setting", "rows", "seed", "pairs", "strength_rank", "norm_rank"),
    *("mean_strength", "mean_truth", "strength_ratio", "norm_ratio", "top"),
)


def shares(n_levels: int, rarest: float, rng: np.random.Generator) -> np.ndarray:
    """Shares of levels: the last one is the rarest."""
    last = min(rarest, 0.8 / n_levels)
    others = rng.dirichlet(np.full(n_levels - 1, 12.0)) * (1.0 - last - (n_levels - 1) * last)
    return np.append(others + last, last)


def of_all_kinds(rarest: float, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw rows whose columns depend on one to three earlier ones, in a random order."""
    scores: dict[str, np.ndarray] = {}
    columns: dict[str, np.ndarray] = {}
    for name in rng.permutation(list(KINDS)).tolist():
        kind, _, count = KINDS[name].partition(" ")
        known = list(scores)
        parents = rng.choice(known, min(len(known), int(rng.integers(1, 4))), replace=False)
        pull = np.zeros(n)
        for parent in parents.tolist():
            pull += rng.uniform(0.2, 0.9) * rng.choice([-1.0, 1.0]) * scores[parent]
        if kind == "number":
            value = pull + rng.normal(size=n)
            score = value
        elif kind == "hurdle":
            there = rng.random(n) < 1.0 / (1.0 + np.exp(-pull))
            value = np.where(there, 4.0 + 0.7 * pull + rng.normal(size=n), 0.0)
            score = value
        elif kind == "count":
            value = rng.poisson(np.exp(0.4 + 0.4 * np.clip(pull, -3.0, 3.0)))
            score = np.sqrt(value)
        else:
            share = shares(int(count), rarest, rng)
            if kind == "ordinal":
                latent = pull + rng.logistic(size=n)
                code = np.digitize(latent, np.quantile(latent, np.cumsum(share)[:-1]))
                value, score = code, code.astype(float)
            else:
                logits = np.log(share) + np.outer(pull, rng.normal(size=len(share)))
                code = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
                value, score = np.array(list("abcdefghi"))[code], rng.normal(size=len(share))[code]
        columns[name] = value
        spread = score.std()
        scores[name] = (score - score.mean()) / spread if spread > 0.0 else score
    return pd.DataFrame({name: columns[name] for name in KINDS})


def pairs_of(frame: pd.DataFrame, name: str) -> dict[frozenset[str], float]:
    """A column of a frame of edges, by the two columns of each."""
    ends = zip(frame["source"], frame["target"], frame[name], strict=True)
    return {frozenset((a, b)): float(value) for a, b, value in ends}


@cache
def known(rarest: float, world: int) -> tuple[mg.MixedGraphicalModel, pd.DataFrame]:
    """Fit a model to a large table; strengths and norms of its edges as it is, without noise."""
    rng = np.random.default_rng([world, round(1000 * rarest)])
    table = of_all_kinds(rarest, MANY, rng)
    model = mg.MixedGraphicalModel(types=TYPES, lam=0.01, refit=True, n_jobs=1).fit(table)
    inside = model.fitted_
    rows = RestRows.of(read(model, model.sample(MANY, random_state=world)), MANY)
    u, v, norms = inside._pairs_with_norms
    nodes = inside.schema.nodes
    truth = pd.DataFrame(
        {
            "source": [nodes[at].name for at in u.tolist()],
            "target": [nodes[at].name for at in v.tolist()],
            "strength": inside.strengths_from(rows, np.inf),
            "norm": norms,
        }
    )
    return model, truth


def read(model: mg.MixedGraphicalModel, table: pd.DataFrame):
    """Rows of a table as numbers and codes."""
    from mixedgm.table.gaps import read_gaps
    from mixedgm.table.read import as_frame

    return read_gaps(as_frame(table), model.schema_).complete


def fitted(table: pd.DataFrame, **options: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The edges of the default fit, and tests of all pairs."""
    model = mg.MixedGraphicalModel(n_jobs=1, **options).fit(table)
    return model.edges(), mg.edge_tests(model, table, n_jobs=1).edges()


def saturated(table: pd.DataFrame) -> pd.DataFrame:
    """Tests of all pairs of a large table, each given all others."""
    model = mg.MixedGraphicalModel(lam=0.1, n_jobs=1).fit(table)
    return mg.edge_tests(model, table, method="free", n_jobs=1).edges()


def compared(
    found: pd.DataFrame, truth: pd.DataFrame, among: set[frozenset[str]]
) -> dict[str, float]:
    """How strengths and norms of some pairs are related to known ones."""
    pairs = sorted(among, key=sorted)
    values: dict[str, np.ndarray] = {}
    for name in ("strength", "norm"):
        for source, frame in (("found", found), ("true", truth)):
            of = pairs_of(frame, name)
            values[f"{source} {name}"] = np.array([of.get(pair, 0.0) for pair in pairs])
    out: dict[str, float] = {"pairs": len(pairs)}
    for name in ("strength", "norm"):
        here, there = values[f"found {name}"], values[f"true {name}"]
        enough = len(pairs) > 2 and np.ptp(here) > 0.0 and np.ptp(there) > 0.0
        out[f"{name}_rank"] = float(spearmanr(here, there)[0]) if enough else np.nan
        out[f"{name}_ratio"] = float(here.mean() / there.mean()) if there.mean() > 0.0 else np.nan
    here, there = values["found strength"], values["true strength"]
    out["mean_strength"], out["mean_truth"] = float(here.mean()), float(there.mean())
    out["top"] = 1.0 + float((there > there[here.argmax()]).sum())
    return out


def of_known(rarest: float, world: int, n: int, seed: int) -> Iterator[dict[str, object]]:
    """Compare a table of n rows of a known model with this model."""
    model, truth = known(rarest, world)
    table = model.sample(n, random_state=1_000 * seed + world)
    edges, tests = fitted(table, types={k: v for k, v in TYPES.items() if k in table})
    every = set(pairs_of(tests, "strength"))
    sets = {
        "edges found": (edges, set(pairs_of(edges, "strength"))),
        "true edges": (tests, every & set(pairs_of(truth, "strength"))),
        "all pairs": (tests, every),
    }
    for name, (frame, among) in sets.items():
        if among:
            yield {"setting": f"rarest {rarest:g}, {name}"} | compared(frame, truth, among)


NOISE = {
    "1": ("number", "number"),
    "2": ("number", "levels 3"),
    "4": ("levels 3", "levels 3"),
    "4 beside a number": ("number", "levels 5"),
    "12": ("levels 4", "levels 5"),
    "24": ("levels 5", "levels 7"),
}


def of_noise(name: str, n: int, seed: int) -> Iterator[dict[str, object]]:
    """Test pairs between six independent columns of two kinds: strengths, and those of edges."""
    rng, columns = np.random.default_rng([seed, n, list(NOISE).index(name)]), {}
    for side, kind in enumerate(NOISE[name]):
        for k in range(3):
            kind_name, _, count = kind.partition(" ")
            share = rng.dirichlet(np.full(int(count or 2), 8.0))
            columns[f"{'ab'[side]}{k}"] = (
                rng.normal(size=n)
                if kind_name == "number"
                else np.array(list("abcdefg"))[rng.choice(len(share), n, p=share)]
            )
    edges, tests = fitted(pd.DataFrame(columns))
    for what, frame in (("tests", tests), ("edges", edges)):
        across = pairs_of(frame, "strength")
        values = [
            across.get(frozenset((f"a{i}", f"b{j}")), 0.0) for i in range(3) for j in range(3)
        ]
        yield {"setting": f"{name} parameters, {what}", "pairs": 9} | {
            "mean_strength": float(np.mean(values)),
            "mean_truth": 0.0,
        }


@cache
def real(name: str) -> pd.DataFrame:
    """A real table, without columns that are bookkeeping."""
    table = pd.read_parquet(Path(os.environ["MIXEDGM_DATA"]) / f"{name}.parquet")
    return table.drop(columns=[c for c in ("calendar_year",) if c in table])


@cache
def of_whole(name: str) -> pd.DataFrame:
    """Strengths and norms of all pairs of a real table in all its rows."""
    stored = pd.read_csv(WHOLE) if WHOLE.exists() else pd.DataFrame({"table": []})
    if name in set(stored["table"]):
        return stored[stored["table"] == name]
    whole = saturated(real(name))[["source", "target", "strength", "lower", "upper", "norm"]].copy()
    whole.insert(0, "table", name)
    pd.concat([stored, whole.round(5)]).to_csv(WHOLE, index=False)
    return whole


def of_sample(name: str, seed: int) -> Iterator[dict[str, object]]:
    """Compare 1,000 rows of a real table with all."""
    table = real(name)
    at = np.random.default_rng(seed).choice(len(table), SOME, replace=False)
    edges, tests = fitted(table.iloc[np.sort(at)].reset_index(drop=True))
    truth = of_whole(name)
    in_both = set(pairs_of(tests, "strength")) & set(pairs_of(truth, "strength"))
    for what, frame in (("edges found", edges), ("all pairs", tests)):
        among = set(pairs_of(frame, "strength")) & in_both
        if among:
            yield {"setting": f"{name}, {what}"} | compared(frame, truth, among)


def tasks(n_tables: int) -> Iterator[tuple[str, str, int, int, tuple[object, ...]]]:
    """Study, setting, rows and seed of everything that is counted."""
    for seed in range(n_tables):
        for name in NOISE:
            yield "noise", name, SOME, seed, (name, SOME, seed)
        for name in REAL:
            yield "real", name, SOME, seed, (name, seed)
        for rarest in RAREST:
            for n in ROWS:
                yield "known", f"{rarest:g}", n, seed, (rarest, seed % 4, n, seed)


def run(n_tables: int, studies: list[str]) -> None:
    """Count what is not counted yet."""
    calls = {"noise": of_noise, "real": of_sample, "known": of_known}
    done = set()
    if FILE.exists():
        stored = pd.read_csv(FILE, dtype={"setting": str})
        starts = stored["setting"].str.split(",").str[0].str.replace("rarest ", "")
        starts = starts.str.replace(" parameters", "")
        done = set(zip(stored["study"], starts, stored["rows"], stored["seed"], strict=True))
    for study, setting, n, seed, arguments in tasks(n_tables):
        if study not in studies or (study, setting.split(",")[0], n, seed) in done:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = list(calls[study](*arguments))
        fresh = not FILE.exists()
        with FILE.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, NAMES, lineterminator="\n")
            if fresh:
                writer.writeheader()
            for row in rows:
                row |= {"study": study, "rows": n, "seed": seed}
                writer.writerow(
                    {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
                )


def report() -> None:
    """Print the means of all settings."""
    stored = pd.read_csv(FILE)
    means = stored.groupby(["study", "setting", "rows"]).agg(
        tables=("seed", "size"),
        pairs=("pairs", "mean"),
        strength_rank=("strength_rank", "mean"),
        norm_rank=("norm_rank", "mean"),
        mean_strength=("mean_strength", "mean"),
        mean_truth=("mean_truth", "mean"),
        strength_ratio=("strength_ratio", "mean"),
        norm_ratio=("norm_ratio", "mean"),
        top=("top", "median"),
    )
    sys.stdout.write(means.round(3).to_string() + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("studies", nargs="*", default=["noise", "real", "known"])
    given = parser.parse_args()
    if not given.report:
        run(given.tables, given.studies)
    report()
