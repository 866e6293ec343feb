"""Results of bootstrap, comparison and tests -> WrongAnswerError where numbers cannot be right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from stress.inquiry import WrongAnswerError, missing

Floats = NDArray[np.float64]


def by_name(frame: Any) -> dict[str, list[Any]]:
    """Columns of a frame of any library."""
    import narwhals as nw

    columns = nw.from_native(frame, eager_only=True).to_dict(as_series=False)
    return {name: [None if missing(v) else v for v in cells] for name, cells in columns.items()}


def numbers(columns: dict[str, list[Any]], name: str) -> Floats:
    """A column of numbers; NaN where there is none."""
    return np.array([np.nan if v is None else v for v in columns[name]], dtype=np.float64)


def require(fine: Any, what: str) -> None:
    """Raise WrongAnswerError unless all of it is fine."""
    if not np.all(fine):
        raise WrongAnswerError(what)


# -- bootstrap -------------------------------------------------------------------------------------


def check_bootstrap(found: Any) -> None:
    """Counts, failures with reasons, and every table of a bootstrap."""
    require(found.n_done + found.n_failed == found.n_boot, "resamples are not done or failed")
    check_failures(found)
    degenerate = by_name(found.degenerate())
    require(numbers(degenerate, "constant") <= found.n_done, "constant in too many resamples")
    if found.kind == "case-dropping":
        _check_stability(found)
        return
    if found.pair_replicates is not None:
        for name in ("intervals", "parameters"):
            _check_intervals(found, name, set(degenerate["column"]))
    elif not found.no_intervals:
        raise WrongAnswerError("there are no intervals, and no reason")
    _check_selection(by_name(found.selection()))
    _check_selection(by_name(found.selection(parts=True)))
    _check_ordered("differences", by_name(found.differences()), "difference")
    centrality = by_name(found.centrality())
    measures = np.array(centrality["measure"]) != "expected_influence"
    for name in ("estimate", "mean", "lower", "upper"):
        values = numbers(centrality, name)
        require(np.isfinite(values[measures]), f"centrality: {name} is not finite")


def check_failures(found: Any) -> None:
    """Every failure has a number and a reason that is more than the name of an exception."""
    for number, message in found.failures:
        require(number >= 0 and len(message.strip()) > 10, f"resample {number}: no reason")


def _check_intervals(found: Any, name: str, degenerate: set[str]) -> None:
    """Numbers are finite; where there is no interval, a column or a pair of columns says why."""
    columns = by_name(getattr(found, name)())
    estimate, se, lower, upper = (
        numbers(columns, each) for each in ("estimate", "se", "lower", "upper")
    )
    own = np.array([v is None for v in columns["target"]], dtype=bool)  # terms of one column
    known = np.isfinite(se)
    require(np.isfinite(estimate) | (~own & ~known), f"{name}: an estimate is not finite")
    require((se[known] >= 0.0) & (se[known] < 1e12), f"{name}: a standard error is absurd")
    require(np.isnan(se[~known]), f"{name}: a standard error is infinite")
    for each, values in (("lower", lower), ("upper", upper)):
        require(np.isfinite(values) == known, f"{name}: {each} without a standard error, or not")
    require((lower <= estimate)[known] & (estimate <= upper)[known], f"{name}: not in its interval")
    pairs = found.pair_replicates
    nodes = [node.name for node in found.fitted.schema.nodes]
    ends = pairs.layout.pairs[pairs.is_open]
    is_open = {frozenset((nodes[u], nodes[v])) for u, v in ends.tolist()}
    for at in np.flatnonzero(~known).tolist():
        here = {columns["source"][at], columns["target"][at]} - {None}
        reason = here & degenerate or frozenset(here) in is_open or own[at]
        require(reason, f"{name}: no interval of {sorted(here)} for no reason")


def _check_selection(columns: dict[str, list[Any]]) -> None:
    require(np.isfinite(numbers(columns, "strength")), "selection: a strength is not finite")
    require(np.isfinite(numbers(columns, "mean")), "selection: a mean is not finite")
    inclusion = numbers(columns, "inclusion")
    require((inclusion >= 0.0) & (inclusion <= 1.0), "selection: inclusion is no share")
    same = numbers(columns, "same_sign")
    fine = np.isnan(same) | ((same >= 0.0) & (same <= inclusion + 1e-12))
    require(fine, "selection: same_sign is larger than inclusion")


def _check_ordered(what: str, columns: dict[str, list[Any]], middle: str) -> None:
    values = [numbers(columns, name) for name in ("lower", middle, "upper")]
    require([np.isfinite(v).all() for v in values], f"{what}: a number is not finite")
    require(values[0] <= values[2], f"{what}: lower is above upper")


def _check_stability(found: Any) -> None:
    columns = by_name(found.stability())
    mean = numbers(columns, "mean")
    require(np.isnan(mean) | (np.abs(mean) <= 1.0 + 1e-9), "stability: no correlation")
    shares = dict.fromkeys(columns["statistic"], 0)
    for name, count in zip(columns["statistic"], columns["n_resamples"], strict=True):
        shares[name] += count
    require([n == found.n_done for n in shares.values()], "stability: resamples are lost")
    cs = numbers(by_name(found.cs_coefficient()), "cs_coefficient")
    require(np.isnan(cs) | ((cs >= 0.0) & (cs < 1.0)), "cs_coefficient: no share")


def distances(found: Any, again: Any) -> tuple[Floats, list[str]]:
    """(resamples, pairs) distances of estimates in standard errors, and names of the pairs."""
    ours, theirs = (each.pair_replicates for each in (found, again))
    se = _by_ends(ours.intervals(0.95), "se")
    others = _by_ends(theirs.intervals(0.95), "se")
    keys = [key for key in se if se[key] > 0.0 and key in others]
    apart = np.empty((len(ours.values), len(keys)))
    for at, both in enumerate(zip(ours.values, theirs.values, strict=True)):
        with np.errstate(invalid="ignore"):  # a resample may say nothing about a pair
            here, there = (
                _by_ends(replace(pairs, estimate=values).intervals(0.95), "estimate")
                for pairs, values in zip((ours, theirs), both, strict=True)
            )
        apart[at] = [abs(here[key] - there[key]) / se[key] for key in keys]
    return np.nan_to_num(apart), [" - ".join(sorted(name for name, _ in key)) for key in keys]


def _by_ends(columns: Any, name: str) -> dict[frozenset[Any], float]:
    """Numbers of pairs, whichever of the two columns is called source."""
    source, target = (
        zip(columns[end], columns[f"{end}_level"], strict=True) for end in ("source", "target")
    )
    return dict(zip(map(frozenset, zip(source, target, strict=True)), columns[name], strict=True))


# -- tests -----------------------------------------------------------------------------------------


def tests_by_name(tests: Any) -> dict[str, list[Any]]:
    """Columns of tests by the names that they have after a call without options."""
    return {
        name.removesuffix(tests.option): cells for name, cells in by_name(tests.edges()).items()
    }


def check_tests(tests: Any, names: Iterable[str], covariates: Iterable[str] = ()) -> None:
    """Tests of all pairs; p-values again from Wald's statistic, by scipy's chi-square."""
    columns, parameters = tests_by_name(tests), by_name(tests.parameters())
    for name in ("estimate", "se", "lower", "upper"):
        require(np.isfinite(numbers(parameters, name)), f"parameters: {name} is not finite")
    _check_all_there(tests, columns, list(names), set(covariates))
    columns = _with_a_test(columns)
    nodes = [node.name for node in tests.task.schema.nodes]
    ends = tests.task.layout.pairs[list(tests.tests.ratios)].tolist()
    by_ratio = {frozenset((nodes[u], nodes[v])) for u, v in ends}
    w, df, p = (numbers(columns, name) for name in ("statistic", "df", "p"))
    require(np.isfinite(w) & (w >= 0.0), "tests: a statistic is not finite")
    for name in ("p", "p_holm", "p_bh", "probability"):
        values = numbers(columns, name)
        require((values >= 0.0) & (values <= 1.0), f"tests: {name} is no probability")
        if name in ("p_holm", "p_bh"):
            require(values >= p * (1.0 - 1e-9), f"tests: {name} is below p")
    for name in ("strength", "log_bf", "log_bf_unit"):
        require(np.isfinite(numbers(columns, name)), f"tests: {name} is not finite")
    strength, lower, upper = (numbers(columns, name) for name in ("strength", "lower", "upper"))
    known = np.isfinite(lower) | np.isfinite(upper)
    inside = (lower <= strength + 1e-9) & (strength <= upper + 1e-9)
    require(inside[known], "tests: a strength is not in its interval")
    _check_p("tests", w, df, p)
    single = df == 1
    estimate, se = numbers(columns, "estimate"), numbers(columns, "se")
    require(np.isfinite(se[single]) & (se[single] > 0.0), "tests: a standard error is no number")
    pairs = map(frozenset, zip(columns["source"], columns["target"], strict=True))
    of_wald = single & ~np.array([pair in by_ratio for pair in pairs], dtype=bool)
    wald = (estimate[of_wald] / se[of_wald]) ** 2
    require(np.isclose(wald, w[of_wald], rtol=1e-6, atol=1e-12), "tests: not (estimate / se)^2")


def _with_a_test(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The pairs that have a test; all others have a reason, and no number that a test has."""
    reasons = columns.get("untested", [None] * len(columns["source"]))
    without = [reason is not None for reason in reasons]
    require([len(reason) > 10 for reason in reasons if reason is not None], "tests: no reason")
    for name in ("statistic", "p", "p_holm", "p_bh", "probability", "log_bf"):
        there = np.isfinite(numbers(columns, name))
        require(~there[without], f"tests: {name} of a pair that has none")
    tested = [at for at, apart in enumerate(without) if not apart]
    return {name: [cells[at] for at in tested] for name, cells in columns.items()}


def _check_p(what: str, w: Floats, df: Floats, p: Floats) -> None:
    """One parameter: the tail of a chi-square; more: nothing below, as no direction has more."""
    single, tail = df == 1, chi2.sf(w, 1)
    close = np.isclose(p, tail, rtol=1e-6, atol=1e-290)
    require(close[single], f"{what}: p is not that of its statistic")
    require(p[~single] >= 0.5 * tail[~single], f"{what}: p is too small for its statistic")


def _check_all_there(
    tests: Any, columns: dict[str, list[Any]], names: list[str], covariates: set[str]
) -> None:
    """Pairs that are not tested have a column that the text names."""
    there = set(map(frozenset, zip(columns["source"], columns["target"], strict=True)))
    text = "\n".join(tests.notes)
    for at, a in enumerate(names):
        for b in names[:at]:
            if frozenset((a, b)) in there or {a, b} <= covariates:
                continue
            require(a in text or b in text, f"tests: {b} - {a} is not there, without a word")


# -- comparison ------------------------------------------------------------------------------------


def check_comparison(found: Any) -> None:
    """Counts, p-values, and differences again from estimates and standard errors of the groups."""
    differences = found.test == "differences"
    if not differences:
        require(found.n_done + found.n_failed == found.n_perm, "lost shuffles")
        check_failures(found)
    columns, whole = by_name(found.edges()), by_name(found.tests())
    for table in (columns, whole):
        p = numbers(table, _p_of(table))
        # Pairs with cells of too few rows, or graphs that nobody wanted to have tested.
        skipped = np.isnan(p) & (differences or found.n_done == 0)
        require(skipped | ((p >= 0.0) & (p <= 1.0)), "comparison: p is no probability")
    require(np.isfinite(numbers(whole, "value")), "comparison: a statistic is not finite")
    for name in ("p_holm", "p_bh", "p_max"):
        p, single = numbers(columns, name), numbers(columns, _p_of(columns))
        fine = np.isnan(single) | ((p <= 1.0) & (p >= single * (1.0 - 1e-9)))
        require(fine | (name == "p_max"), f"comparison: {name} is below p")
        require(np.isnan(p) | ((p >= 0.0) & (p <= 1.0)), f"comparison: {name} is no probability")
    labels = [str(label) for label in found.groups]
    fine = np.isfinite(numbers(columns, "difference")) | _not_comparable(found, columns)
    require(fine, "comparison: a difference is not finite")
    single = numbers(columns, "df") == 1 if differences else np.ones(len(columns["kind"]), bool)
    for label in labels:
        estimates = numbers(columns, f"estimate_{label}")[single]
        require(np.isfinite(estimates), f"comparison: estimate_{label} is not finite")
        strengths = numbers(columns, f"strength_{label}")
        require((strengths >= 0.0) & (strengths <= 1.0), f"comparison: strength_{label} is none")
    groups = by_name(found.group_table())
    require(np.isfinite(numbers(groups, "strength")), "comparison: a strength is not finite")
    if differences:
        probability = numbers(columns, "probability_differs")
        fine = np.isnan(probability) | ((probability >= 0.0) & (probability <= 1.0))
        require(fine, "comparison: probability_differs is no probability")
    if differences and len(labels) == 2:
        _check_differences(columns, labels)
    if not differences:
        by_name(found.degenerate())


def _not_comparable(found: Any, columns: dict[str, list[Any]]) -> NDArray[np.bool_]:
    """Pairs of a column that lacks a level in some group, by the frame of untested pairs."""
    if found.test != "differences":
        return np.zeros(len(columns["kind"]), dtype=bool)
    told = by_name(found.untested())
    rows = zip(told["source"], told["target"], told["reason"], strict=True)
    lacking = {(a, b) for a, b, reason in rows if "lacks a level in" in reason}
    ends = zip(columns["source"], columns["target"], strict=True)
    return np.array([pair in lacking for pair in ends], dtype=bool)


def _p_of(columns: dict[str, list[Any]]) -> str:
    return "p" if "p" in columns else "p_value"


def _check_differences(columns: dict[str, list[Any]], labels: list[str]) -> None:
    w, df, p = (numbers(columns, name) for name in ("statistic", "df", _p_of(columns)))
    known = ~np.isnan(p)
    _check_p("comparison", w[known], df[known], p[known])
    a, b = (numbers(columns, f"estimate_{label}") for label in labels)
    se_a, se_b = (numbers(columns, f"se_{label}") for label in labels)
    single = known & (df == 1) & np.isfinite(se_a) & np.isfinite(se_b)
    wald = (a - b)[single] ** 2 / (se_a**2 + se_b**2)[single]
    fine = np.isclose(wald, w[single], rtol=1e-6, atol=1e-9)
    require(fine, "comparison: not (difference / se)^2")
