"""A seed -> a table in parts, and what check, fit and questions about new rows made of it."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mixedgm as mg
from stress.campaign import Campaign, Found
from stress.hostile_parts import SORTS, Parts
from stress.inquiry import Inquiry, WrongAnswerError
from stress.study_checks import require

_TABLES = 6


@cache
def _whole(which: int) -> tuple[pd.DataFrame, Any]:
    """A table, and its fit in memory; made once in a process."""
    rng = np.random.default_rng([35, which])
    n = 150
    common = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "height": common + rng.normal(size=n),
            "site": rng.choice(["north", "south", "east"], n),
            "visits": rng.poisson(np.exp(0.5 + 0.4 * common)),
            "weight": 0.5 * common + rng.normal(size=n),
            "w": rng.integers(1, 4, n),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frame, _fit(frame)


def _fit(table: Any) -> Any:
    options: dict[str, Any] = {"lam": 0.08, "types": {"visits": "count"}, "n_jobs": 1}
    return mg.MixedGraphicalModel(**options).fit(table, sample_weight="w")


def attempt(seed: int, folder: Path) -> Found:
    """Put questions to the parts of a seed."""
    rng = np.random.default_rng([36, seed])
    frame, model = _whole(seed % _TABLES)
    sort = list(SORTS)[seed % len(SORTS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = SORTS[sort](frame, folder, rng)
    try:
        _made(parts)
    except Exception:  # before it can be given to anybody
        return Found(f"{sort}: refused by its library")
    inquiry = Inquiry(__file__)
    checked = inquiry.ask("check", lambda: mg.check_table(_made(parts), sample_weight="w"))
    told = [] if checked is None else [str(each) for each in checked.findings]
    fitted = inquiry.ask("fit", lambda: _fit(_made(parts)))
    told += map(str, inquiry.refused.values())
    inquiry.ask("outcome", lambda: _judge(parts, model, fitted, told))
    if rng.random() < 0.5:
        score = inquiry.ask("score", lambda: model.score(_made(parts), sample_weight="w"))
        if score is not None and parts.outcome == "equal":
            inquiry.ask("scores", lambda: _same_score(score, model, frame))
    if rng.random() < 0.5:
        inquiry.ask("predict", lambda: model.predict(_made(parts)))
    if rng.random() < 0.2:
        inquiry.ask("impute", lambda: model.impute(_made(parts)))
    if rng.random() < 0.1:
        inquiry.ask("path", lambda: mg.fit_path(_made(parts), n_lams=3))
    return Found(f"{sort}: {inquiry.end('fit', fitted)}", list(dict.fromkeys(inquiry.findings)))


def _made(parts: Parts) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parts.make()


def _judge(parts: Parts, model: Any, fitted: Any, told: list[str]) -> None:
    if parts.outcome == "refused":
        require(fitted is None, "it was fitted")
    if parts.outcome == "told":
        said = any(parts.word in text for text in told)
        require(said, f"nothing was said of {parts.word}")
    if parts.outcome == "refused" and parts.word and told:
        require(any(parts.word in text for text in told), f"no message names {parts.word}")
    if parts.outcome == "equal":
        if fitted is None:
            raise WrongAnswerError(f"it was not fitted: {told[-1:]}"[:300])
        ours, theirs = model.params_, fitted.params_
        for name in ("coef", "diagonal", "bias"):
            same = np.allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-4, atol=1e-4)
            require(same, f"{name} differs from that of the whole table")


def _same_score(score: float, model: Any, frame: pd.DataFrame) -> None:
    own = model.score(frame, sample_weight="w")
    require(np.isclose(score, own, rtol=1e-9), f"{score} instead of {own}")


CAMPAIGN = Campaign(
    what="tables in parts, odd ones and ones that fail while they are read",
    cases=1_000,
    seconds=30.0,
    attempt=attempt,
)
