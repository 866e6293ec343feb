"""A seed -> a damaged model file: an error of the family, or the model that was saved."""

from __future__ import annotations

import functools
import io
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mixedgm as mg
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.options import ObjectText, Options
from stress.campaign import Campaign, Found
from stress.model_file_damage import DAMAGES, Members

_LONGEST_MESSAGE = 800


@dataclass(frozen=True)
class Base:
    """A model, its table, and its file."""

    kind: str
    rows: Any
    content: bytes

    @property
    def members(self) -> Members:
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


def _table(n: int = 90) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    a = rng.normal(size=n)
    site = rng.integers(0, 3, n)
    return {
        "id": [f"row {k}" for k in range(n)],
        "a": a,
        "skewed": np.exp(a + rng.normal(size=n)),
        "site": [("north", "south", "east")[k] for k in site],
        "flag": (a + site + rng.normal(size=n)) > 1.0,
        "count": rng.poisson(3.0, n),
    }


def _many_columns(n: int = 60, columns: int = 400) -> Any:
    """So many that a file holds only what is not zero."""
    import pandas as pd

    values = np.random.default_rng(2).normal(size=(n, columns))
    values[:, 1:9] += 3.0 * values[:, :8]
    table = pd.DataFrame(values, columns=[f"g{k}" for k in range(columns)])
    return table.assign(site=["ab"[k % 2] for k in range(n)])


def _models() -> dict[str, tuple[Any, Any]]:
    """Models of every kind, with the table each can predict."""
    import pandas as pd
    import polars as pl

    columns = _table()
    own = {name: values for name, values in columns.items() if name != "id"}
    frame, plain = pd.DataFrame(columns), pd.DataFrame(own)
    numbers = pd.DataFrame({k: plain[name] for k, name in enumerate(("a", "skewed", "flag"))})
    few: dict[str, Any] = {"n_lams": 4, "lam_min_ratio": 0.2, "n_jobs": 1, "random_state": 0}
    fits: dict[str, tuple[dict[str, Any], Any]] = {
        "mixed": ({"transforms": {"skewed": "nonparanormal"}, **few}, frame),
        "nodewise": (
            {"loss": "nodewise", "select": mg.AIC(per_node=True), "covariates": ["site"], **few},
            pl.DataFrame(own),
        ),
        "moderated": ({"moderators": ["a", "site"], "lam": 0.05}, plain),
        "likelihood": (
            {
                "loss": "likelihood",
                "lam": 0.1,
                "penalty_factors": {("a", "skewed"): 0.5, "continuous-categorical": 2.0},
                "forbid": [("site", "flag")],
                "types": {"count": "continuous"},
            },
            plain,
        ),
        "scored": (
            {
                "types": {
                    "site": mg.Ordinal(levels=["north", "south", "east"], thresholds="quadratic"),
                    "count": mg.Count(zero_term=True),
                },
                **few,
            },
            plain,
        ),
        "numbers for names": ({"lams": [0.3, 0.1], "solver": mg.ProximalNewton("exact")}, numbers),
        "array": ({"lam": 0.1, "types": ["continuous", None, "categorical"]}, numbers.to_numpy()),
        "wide": ({"lams": [0.8, 0.5], "select": "ebic", "n_jobs": 1}, _many_columns()),
        "subsamples": ({"select": mg.StARS(n_subsamples=3), **few}, plain[["a", "skewed", "flag"]]),
    }
    found: dict[str, tuple[Any, Any]] = {
        kind: (mg.MixedGraphicalModel(**options).fit(rows), rows)
        for kind, (options, rows) in fits.items()
    }
    given = mg.from_params(
        {"height": "continuous", "sex": ["f", "m"]}, {"category_shift": [[-1, 1]]}
    )
    return found | {"given": (given, given.sample(5, random_state=0))}


@functools.cache
def bases() -> tuple[Base, ...]:
    """The files to damage; loading and saving one again gives the same bytes."""
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(folder) / "model.mgm"
        for kind, (model, rows) in _models().items():
            if kind == "mixed":
                model.summary()  # its node terms are then in the file
            model.save(file)
            base = Base(kind, rows, file.read_bytes())
            assert _saved(mg.load(file), file) == base.content, kind
            found.append(base)
    return tuple(found)


def _saved(model: mg.MixedGraphicalModel, file: Path) -> bytes:
    model.save(file)
    return file.read_bytes()


def attempt(seed: int, folder: Path) -> Found:
    """Damage a file, and load what is left."""
    rng = np.random.default_rng([seed, 16])
    base = bases()[rng.integers(len(bases()))]
    chances = np.array([chance for chance, _ in DAMAGES])
    damage = DAMAGES[rng.choice(len(DAMAGES), p=chances / chances.sum())][1]
    damaged = damage(base.members, rng, folder)
    file = folder / "damaged.mgm"
    if damaged.made is None:
        file.write_bytes(damaged.content)
    else:
        damaged.made(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = mg.load(file)
    except mg.ModelFileError as error:
        found = Found(f"{damaged.kind}: refused", _faults_of(str(error), file))
    else:
        again = _saved(model, folder / "again.mgm")
        same = again == base.content
        found = Found(f"{damaged.kind}: {'the same model' if same else 'another model'}")
        if not same:
            found.findings += ["loads as another model"] if damaged.same else []
            found.findings += _faults_in(model, base, again, folder / "again.mgm")
    if (folder / "executed").exists():
        found.findings.append("the file was executed")
    return found


def _faults_of(message: str, file: Path) -> list[str]:
    """What is wrong with a message."""
    faults = [] if repr(str(file)) in message else ["the message does not name the file"]
    if "\n" in message or len(message) > _LONGEST_MESSAGE or not message.isprintable():
        faults.append(f"the message is not one line: {message[:300]!r}")
    return faults


def _faults_in(model: Any, base: Base, saved: bytes, file: Path) -> list[str]:
    """What does not work in a model that is another one than was saved."""
    faults = [*_impossible(model.fitted_)]
    settings = {k: v for k, v in model.get_params(deep=False).items() if type(v) is not ObjectText}
    try:
        Options(**settings)
    except (mg.MixedGMError, TypeError, ValueError) as error:
        faults.append(f"its settings are impossible: {error}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not all(np.isfinite(edge.norm) for edge in model.edges_):
            faults.append("an edge has a weight that is not finite")
        if _saved(mg.load(file), file) != saved:
            faults.append("it comes back as another model")
        for use in (
            model.edges,
            lambda: str(model.summary()),
            lambda: model.predict(base.rows),
        ):
            try:
                use()
            except mg.MixedGMError:
                continue
    return faults


def _impossible(fitted: FittedModel) -> Iterator[str]:
    """What no fit has, stated without a look at how files are checked."""
    report = fitted.report
    for field in fields(report):
        value, kind = getattr(report, field.name), str(field.type).split("[")[0]
        if kind in ("bool", "int", "float", "str", "tuple") and type(value).__name__ != kind:
            yield f"report.{field.name} is {value!r}"
    if report.converged and not report.kkt <= report.tol + 10.0 * report.kkt_error:
        yield f"converged with KKT {report.kkt} and tol {report.tol}"
    if not (report.n_rows >= 0 and report.n_iter >= 0 and report.total_weight >= 0.0):
        yield "a count is negative"
    if not np.nanmin(np.append(report.lam, 0.0)) >= 0.0:
        yield "lam is negative"
    for name, array in _arrays(fitted):
        # Strengths that need rows, where none are; probabilities of pairs without a test.
        unknown = name.endswith(("span", "strengths", "edge_probability"))
        if np.isnan(array).any() and not unknown:
            yield f"{name} has NaN"
    if not all(type(column.name) is str and column.kind for column in fitted.schema.columns):
        yield "a column has no name"


def _arrays(value: Any, name: str = "model") -> Iterator[tuple[str, np.ndarray]]:
    """All arrays of floats in it, but for scores, which may be NaN."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        yield name, value
    elif is_dataclass(value):
        for field in fields(value):
            if field.name not in ("scores", "trace", "layout", "schema", "report"):
                yield from _arrays(getattr(value, field.name), f"{name}.{field.name}")
    elif isinstance(value, tuple):
        for item in value:
            yield from _arrays(item, name)


CAMPAIGN = Campaign(
    what="damaged model files",
    cases=20_000,
    seconds=20.0,
    attempt=attempt,
    most_mb=200,
    prepare=bases,
)
