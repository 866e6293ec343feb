"""A seed -> results of imputed tables, some of them odd, and what `pool` made of them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

import mixedgm as mg
from stress.campaign import Campaign, Found
from stress.inquiry import Inquiry, WrongAnswerError
from stress.study_checks import by_name, require

Floats = NDArray[np.float64]


class Numbers(NamedTuple):
    """What one analysis of m tables found: (m, k) estimates and standard errors, and k names."""

    estimates: Floats
    errors: Floats
    names: list[str]


def _numbers(rng: np.random.Generator) -> Numbers:
    m, k = int(rng.choice([2, 3, 5, 20])), int(rng.choice([1, 2, 4]))
    scale = float(rng.choice([1e-6, 1.0, 1.0, 1e6]))
    truth = rng.normal(size=k)
    estimates = scale * (truth + 0.3 * rng.normal(size=(m, k)))
    errors = scale * rng.uniform(0.2, 1.0, (m, k))
    if rng.random() < 0.1:
        estimates[:] = estimates[0]  # nothing is missing
    return Numbers(estimates, errors, [f"x{at}" for at in range(k)])


# -- forms -----------------------------------------------------------------------------------------

Form = Callable[[Any, Any, list[str]], Any]


def _frame(library: str) -> Form:
    def make(estimate: Any, error: Any, names: list[str]) -> Any:
        columns = {"source": names, "target": ["y"] * len(names)}
        columns |= {"estimate": list(estimate), "se": list(error)}
        if library == "pandas":
            return pd.DataFrame(columns)
        return pl.DataFrame(columns, strict=False) if library == "polars" else pa.table(columns)

    return make


def _series(estimate: Any, error: Any, names: list[str]) -> Any:
    return pd.Series(list(estimate), index=names), pd.Series(list(error), index=names)


def _fitted(estimate: Any, error: Any, names: list[str]) -> Any:
    params, bse = _series(estimate, error, names)
    return SimpleNamespace(params=params, bse=bse)


def _covariance(estimate: Any, error: Any, names: list[str]) -> Any:
    params, bse = _series(estimate, error, names)
    spread = np.asarray(bse, dtype=np.float64)
    with np.errstate(over="ignore"):
        matrix = pd.DataFrame(np.diag(spread * np.abs(spread)), index=names)
    return SimpleNamespace(params=params, cov_params=lambda: matrix.set_axis(names, axis=1))


FORMS: dict[str, Form] = {
    "pairs": lambda estimate, error, names: (estimate, error),
    "lists": lambda estimate, error, names: [list(estimate), list(error)],
    "series": _series,
    "fitted": _fitted,
    "covariance": _covariance,
    "pandas": _frame("pandas"),
    "polars": _frame("polars"),
    "pyarrow": _frame("pyarrow"),
}
_NAMED = ("series", "fitted", "covariance", "pandas", "polars", "pyarrow")


# -- what is odd -----------------------------------------------------------------------------------

_REFUSED: dict[str, Any] = {
    "negative error": -0.1,
    "error is NaN": np.nan,
    "error is infinite": np.inf,
    "error is missing": None,
}
_ABSURD: dict[str, Any] = {
    "error is zero": 0.0,
    "error is 1e200": 1e200,
    "error is 1e308": 1e308,
    "error is 5e-324": 5e-324,
    "error is text": "0.5",
    "error is a word": "wide",
    "error is complex": 0.5 + 1j,
    "error is a truth": True,
    "error is exact": Decimal("0.5"),
    "error is a list": [0.5],
}
_ESTIMATES: dict[str, Any] = {
    "estimate is NaN": np.nan,
    "estimate is infinite": -np.inf,
    "estimate is missing": None,
    "estimate is 1e300": 1e300,
    "estimate is a word": "large",
}
_SHAPES = ("plain", "permuted", "other terms", "fewer terms", "name twice", "other forms", "few")
_OPTIONS: tuple[dict[str, Any], ...] = (
    {"errors": "variance"},
    {"errors": "sd"},
    {"by": "nowhere"},
    {"by": ["source", "source"]},
    {"by": 3},
    {"by": []},
    {"df_complete": 0},
    {"df_complete": -5.0},
    {"df_complete": np.nan},
    {"df_complete": np.inf},
    {"df_complete": 1e-300},
    {"df_complete": "many"},
    {"level": 1.0},
    {"level": np.nan},
    {"level": 1.0 - 1e-16},
    {"level": 1e-300},
    {"level": "0.95"},
)
ODD = ("plain", *_SHAPES, *_REFUSED, *_ABSURD, *_ESTIMATES, "options", "no results")


def attempt(seed: int, folder: Path) -> Found:
    """Pool the results of a seed."""
    rng = np.random.default_rng([37, seed])
    numbers, odd = _numbers(rng), ODD[seed % len(ODD)]
    form = str(rng.choice(list(FORMS)))
    inquiry = Inquiry(__file__)
    options = {} if rng.random() < 0.6 else {"df_complete": 40.0, "level": 0.9}
    try:
        results, options = _results(rng, numbers, form, odd, options)
    except (TypeError, ValueError, pa.ArrowInvalid, pl.exceptions.PolarsError):
        return Found(f"{odd}: refused by its library")
    pooled = inquiry.ask("pool", lambda: mg.pool(results, **options))
    if pooled is not None:
        inquiry.ask("numbers", lambda: _check(pooled))
        inquiry.ask("pooled in words", lambda: _words(inquiry, pooled))
    if odd in ("plain", "permuted") and form in (_NAMED if odd == "permuted" else FORMS):
        inquiry.ask("Rubin's rules", lambda: _same_as_rubin(pooled, numbers, options))
    missing = odd in _REFUSED and pooled is not None
    inquiry.ask("outcome", lambda: require(not missing, f"pooled in spite of: {odd}"))
    return Found(f"{odd}: {inquiry.end('pool', pooled)}", list(dict.fromkeys(inquiry.findings)))


def _results(
    rng: np.random.Generator, numbers: Numbers, form: str, odd: str, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Results in a form, with what is odd about one of them, and the options of `pool`."""
    estimates, errors = (list(map(list, part)) for part in (numbers.estimates, numbers.errors))
    names = [list(numbers.names) for _ in estimates]
    at, k = int(rng.integers(len(estimates))), int(rng.integers(len(numbers.names)))
    cells = {**_REFUSED, **_ABSURD}
    if odd in cells:
        errors[at][k] = cells[odd]
        if odd == "error is zero" and rng.random() < 0.5:
            errors = [[0.0] * len(numbers.names) for _ in errors]
    elif odd in _ESTIMATES:
        estimates[at][k] = _ESTIMATES[odd]
    elif odd == "permuted":
        for which in range(len(names)):
            order = rng.permutation(len(numbers.names)) if which else range(len(numbers.names))
            for part in (estimates, errors, names):
                part[which] = [part[which][j] for j in order]  # type: ignore[index,call-overload]
    elif odd == "other terms":
        names[at][k] = "another"
    elif odd == "fewer terms":
        for part in (estimates, errors, names):
            part[at].pop()  # type: ignore[attr-defined]
    elif odd == "name twice":
        names[at] = ["x0"] * len(names[at])
    forms = [FORMS[form]] * len(estimates)
    if odd == "other forms":
        forms[at] = FORMS[str(rng.choice(list(FORMS)))]
    made = [f(*each) for f, *each in zip(forms, estimates, errors, names, strict=True)]
    if odd == "few":
        return made[:1] if rng.random() < 0.5 else iter(made), options
    if odd == "options":
        return made, options | _OPTIONS[int(rng.integers(len(_OPTIONS)))]
    if odd == "no results":
        things: tuple[Any, ...] = ([], None, 3, "ab", made[0], dict(enumerate(made)), [None, None])
        return things[int(rng.integers(len(things)))], options
    return made, options


# -- what must hold --------------------------------------------------------------------------------


def _check(pooled: Any) -> None:
    """Numbers that can be: finite ones, shares, probabilities."""
    for name in ("estimate", "se", "lower", "upper"):
        require(np.isfinite(getattr(pooled, name)), f"{name} is not finite")
    require(pooled.se >= 0.0, "a standard error is negative")
    require(pooled.df > 0.0, "no degrees of freedom")
    for name in ("p", "missing_information"):
        values = getattr(pooled, name)
        require((values >= 0.0) & (values <= 1.0), f"{name} is not between 0 and 1")
    inside = (pooled.lower <= pooled.estimate) & (pooled.estimate <= pooled.upper)
    require(inside, "the estimate is not in its interval")


def _words(inquiry: Inquiry, pooled: Any) -> None:
    inquiry.text(str(pooled))
    inquiry.text(pooled._repr_html_())
    require(len(by_name(pooled.frame())["estimate"]) == len(pooled.names), "rows are missing")


def _same_as_rubin(pooled: Any, numbers: Numbers, options: dict[str, Any]) -> None:
    """The rules as van Buuren writes them (Flexible Imputation, section 2.3 and 2.4)."""
    if pooled is None:
        raise WrongAnswerError("good results were not pooled")
    m, complete = len(numbers.estimates), options.get("df_complete", np.inf)
    q, u = numbers.estimates.mean(axis=0), (numbers.errors**2).mean(axis=0)
    b = numbers.estimates.var(axis=0, ddof=1)
    total = u + b + b / m
    share = (b + b / m) / total
    seen = np.inf if np.isinf(complete) else (complete + 1) / (complete + 3) * complete
    with np.errstate(divide="ignore"):
        dof = 1.0 / (share**2 / (m - 1) + 1.0 / (seen * (1.0 - share)))
    p = 2.0 * stats.t.sf(np.abs(q) / np.sqrt(total), dof)
    half = stats.t.isf((1.0 - options.get("level", 0.95)) / 2.0, dof) * np.sqrt(total)
    for name, values in (("estimate", q), ("se", np.sqrt(total)), ("p", p), ("upper", q + half)):
        close = np.allclose(getattr(pooled, name), values, rtol=1e-6, atol=0.0)
        require(close, f"{name}: {getattr(pooled, name)} instead of {values}"[:200])


CAMPAIGN = Campaign(
    what="results of imputed tables, pooled: Rubin's rules, or an error of the family",
    cases=5_000,
    seconds=10.0,
    attempt=attempt,
)
