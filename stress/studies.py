"""A seed -> a mild table, and what bootstrap, comparison and tests made of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import mixedgm as mg
from mixedgm.path.rounds import ROUGH
from stress.campaign import Campaign, Found
from stress.inquiry import Inquiry, WrongAnswerError
from stress.mild_tables import KINDS, MildTable, mild_table, nearly_constant
from stress.study_checks import (
    by_name,
    check_bootstrap,
    check_comparison,
    check_tests,
    distances,
    numbers,
    require,
    tests_by_name,
)

_N_BOOT = 8
_CLOSE = 0.02
"""Standard errors by which estimates may differ that should be equal; `ROUGH` with gaps."""
_FAR = 1.5
"""Standard errors by which a nearly constant column may move estimates of all others."""


def attempt(seed: int, folder: Path) -> Found:
    """Fit the table of a seed and put every study to it."""
    rng = np.random.default_rng([34, seed])
    case, inquiry = mild_table(seed), Inquiry(__file__)
    model = inquiry.ask("fit", lambda: _fit(case))
    kind = f"gaps: {case.gaps}, missing={case.options.get('missing', 'error')}"
    if model is None:
        return Found(f"{kind}: not fitted", inquiry.findings)
    _bootstrapped(inquiry, case, model, rng)
    _tested(inquiry, case, model, rng)
    _compared(inquiry, case, rng)
    if rng.random() < 0.03:
        inquiry.ask("pictures", lambda: _pictures(case, model))
    end = "fitted, some studies refused" if inquiry.refused else "all answered"
    return Found(f"{kind}: {end}", list(dict.fromkeys(inquiry.findings)))


def _fit(case: MildTable) -> Any:
    model = mg.MixedGraphicalModel(**case.options)
    return model.fit(case.table, sample_weight=case.sample_weight)


# -- bootstrap -------------------------------------------------------------------------------------


def _bootstrapped(inquiry: Inquiry, case: MildTable, model: Any, rng: np.random.Generator) -> None:
    options: dict[str, Any] = {"n_boot": _N_BOOT, "n_jobs": 1, "random_state": 1}
    chosen = rng.random()
    if chosen < 0.2:
        options |= {"kind": "case-dropping", "drop": [0.1, 0.5]}
    elif chosen < 0.3:
        options |= {"select": "again", "n_boot": 5}
    elif chosen < 0.4:
        options |= {"intervals": False}
    if rng.random() < 0.15:
        options["groups"] = _labels(rng, case.n)

    def ask(**more: Any) -> Any:
        return mg.bootstrap(
            model, case.table, sample_weight=case.sample_weight, **{**options, **more}
        )

    found = inquiry.ask("bootstrap", ask)
    if found is None:
        return
    inquiry.ask("tables of the bootstrap", lambda: check_bootstrap(found))
    inquiry.ask("bootstrap in words", lambda: _words(inquiry, found))
    if rng.random() < 0.02:
        inquiry.ask("bootstrap by two processes", lambda: _same(found, ask(n_jobs=2)))
    if found.pair_replicates is None or found.select == "again" or "groups" in options:
        return
    completion = model.fitted_.report.completion
    drawn = completion is not None and completion.drawn  # by numbers that the order changes
    if rng.random() < 0.4 and not drawn:
        inquiry.ask("columns in another order", lambda: _turned_around(case, found))
    if rng.random() < 0.2:
        kind = str(rng.choice([kind for kind in KINDS if kind != "hurdle"]))
        cells = nearly_constant(rng, case.n, kind)
        inquiry.ask("one more column", lambda: _with_one_more(case, found, cells, kind))


def _labels(rng: np.random.Generator, n: int) -> Any:
    return [f"house {k}" for k in rng.integers(0, max(4, n // 2), n)]


def _words(inquiry: Inquiry, found: Any) -> None:
    inquiry.text(str(found))
    inquiry.text(repr(found))
    if hasattr(found, "_repr_html_"):
        inquiry.text(found._repr_html_())


def _same(found: Any, again: Any) -> None:
    require(found.failures == again.failures, "failures differ with n_jobs")
    pairs = [("norms", found.replicates.norms, again.replicates.norms)]
    if found.pair_replicates is not None:
        pairs += [("estimates", found.pair_replicates.values, again.pair_replicates.values)]
    for what, ours, theirs in pairs:
        which = np.flatnonzero(
            ((ours != theirs) & ~(np.isnan(ours) & np.isnan(theirs))).any(axis=1)
        )
        text = f"{what} of resamples {which.tolist()} differ with n_jobs"
        require(np.array_equal(ours, theirs, equal_nan=True), text)


def _again(case: MildTable, n_boot: int) -> Any:
    """The bootstrap of a table of which the same rows are drawn."""
    return mg.bootstrap(
        _fit(case),
        case.table,
        n_boot=n_boot,
        n_jobs=1,
        random_state=1,
        sample_weight=case.sample_weight,
    )


def _turned_around(case: MildTable, found: Any) -> None:
    """The order of columns changes no resample."""
    columns = dict(reversed(case.columns.items()))
    again = _again(replace(case, columns=columns), found.n_boot)
    if again.pair_replicates is None or again.n_failed != found.n_failed:
        raise WrongAnswerError(f"{again.n_failed} failed instead of {found.n_failed}")
    apart, names = distances(found, again)
    close = _CLOSE if again.fitted.report.completion is None else ROUGH
    if (apart > close).any():
        at, pair = np.unravel_index(apart.argmax(), apart.shape)
        text = f"{names[pair]} moved by {apart[at, pair]:.3g} standard errors in resample {at}"
        raise WrongAnswerError(text)


def _with_one_more(case: MildTable, found: Any, cells: Any, kind: str) -> None:
    """A column adds nothing to the resamples in which it is constant, and little to the others.

    With it, another graph may be held while pairs are estimated; then all resamples differ.
    """
    again = _again(case.with_column("extra", cells, kind), found.n_boot)
    if again.pair_replicates is None or again.n_failed or found.n_failed:
        return
    apart, _ = distances(found, again)
    if again.pair_replicates.method != found.pair_replicates.method or not apart.size:
        return
    typical = np.median(apart, axis=1)
    require(np.median(typical) < _FAR, f"estimates moved by {np.median(typical):.3g} errors")
    node = again.fitted.schema.node_index("extra")
    constant = again.replicates.constant(again.estimate.scales[0])[:, node]
    if constant.any() and not constant.all():
        here, there = (float(np.median(typical[which])) for which in (constant, ~constant))
        text = f"estimates moved by {here:.3g} errors where it is constant, else by {there:.3g}"
        require(here <= max(_CLOSE, 2.0 * there), text)


# -- tests -----------------------------------------------------------------------------------------


def _tested(inquiry: Inquiry, case: MildTable, model: Any, rng: np.random.Generator) -> None:
    options: dict[str, Any] = {"n_jobs": 1, "random_state": 1}
    options["method"] = str(rng.choice(["graph", "free"], p=[0.7, 0.3]))
    modelled = case.gaps != "none" and case.options.get("missing") == "model"
    if rng.random() < 0.3:
        options["covariance"] = "model"
    elif not modelled and case.n > 60 and rng.random() < 0.3:
        options["cluster"] = rng.integers(0, case.n, case.n)
    tests = inquiry.ask(
        "tests",
        lambda: mg.edge_tests(model, case.table, sample_weight=case.sample_weight, **options),
    )
    if tests is None:
        return
    given = case.options.get("covariates", ())
    inquiry.ask("tables of the tests", lambda: check_tests(tests, case.columns, given))
    inquiry.ask("tests in words", lambda: _words(inquiry, tests))
    if rng.random() < 0.3 and not modelled:
        weights = rng.integers(1, 4, case.n)
        inquiry.ask("rows repeated", lambda: _repeated(case, model, weights))


def _repeated(case: MildTable, model: Any, weights: Any) -> None:
    """A weight of two is the same as the row twice."""
    rows = np.repeat(np.arange(case.n), weights)
    columns = {name: cells[rows] for name, cells in case.columns.items()}
    options: dict[str, Any] = {"covariance": "rows", "method": "free", "n_jobs": 1}
    weighted = mg.edge_tests(model, case.table, sample_weight=weights, **options)
    repeated = mg.edge_tests(model, replace(case, columns=columns).table, **options)
    ours, theirs = (_statistics(tests) for tests in (weighted, repeated))
    require(ours.keys() == theirs.keys(), "other pairs")
    for pair, statistic in ours.items():
        close = np.isclose(statistic, theirs[pair], rtol=0.02, atol=0.02, equal_nan=True)
        require(close, f"{' - '.join(pair)}: {statistic:.5g} became {theirs[pair]:.5g}")


def _statistics(tests: Any) -> dict[tuple[str, str], float]:
    columns = tests_by_name(tests)
    pairs = zip(columns["source"], columns["target"], strict=True)
    return dict(zip(pairs, numbers(columns, "statistic").tolist(), strict=True))


# -- comparison ------------------------------------------------------------------------------------


def _compared(inquiry: Inquiry, case: MildTable, rng: np.random.Generator) -> None:
    names = ["north", "south", "east"][: 3 if case.n > 90 and rng.random() < 0.3 else 2]
    groups = rng.permutation(np.resize(names, case.n))
    options = {k: v for k, v in case.options.items() if k not in ("n_jobs", "random_state")}
    modelled = case.gaps != "none" and case.options.get("missing") == "model"
    if modelled or (case.n > 60 and rng.random() < 0.6):
        options["test"] = "differences"
    else:
        options["n_perm"] = int(rng.choice([0, 5]))
        if rng.random() < 0.1:
            options["paired"] = rng.integers(0, 5, case.n)
    if rng.random() < 0.1 and "lam" not in options:
        options["penalty"] = "own"

    def ask(n_jobs: int = 1) -> Any:
        return mg.compare(
            case.table,
            groups,
            sample_weight=case.sample_weight,
            n_jobs=n_jobs,
            random_state=1,
            **options,
        )

    found = inquiry.ask("comparison", ask)
    if found is None:
        return
    inquiry.ask("tables of the comparison", lambda: check_comparison(found))
    inquiry.ask("comparison in words", lambda: _words(inquiry, found))
    if rng.random() < 0.02:
        inquiry.ask("comparison by two processes", lambda: _same_comparison(found, ask(2)))


def _same_comparison(found: Any, again: Any) -> None:
    ours, theirs = (repr(by_name(each.edges())) for each in (found, again))
    require(ours == theirs, "edges differ with n_jobs")
    if found.test != "differences":  # which shuffles nothing
        require(found.failures == again.failures, "failures differ with n_jobs")


def _pictures(case: MildTable, model: Any) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    options: dict[str, Any] = {"sample_weight": case.sample_weight, "n_jobs": 1, "random_state": 1}
    try:
        mg.edge_tests(model, case.table, **options).plot()
        found = mg.bootstrap(model, case.table, n_boot=5, **options)
        found.plot_selection()
        found.plot_centrality()
        if found.pair_replicates is not None:
            found.plot_intervals()
        plt.gcf().canvas.draw()
    finally:
        plt.close("all")


CAMPAIGN = Campaign(
    what="small tables with rare levels and gaps: bootstrap, comparison and tests of edges",
    cases=2_500,
    seconds=60.0,
    attempt=attempt,
)
