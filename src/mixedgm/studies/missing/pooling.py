"""Results of one analysis on several imputed tables -> Pooled: one result by Rubin's rules."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from mixedgm.base.errors import ParameterError
from mixedgm.base.parameters import ensure, ensure_in, is_real
from mixedgm.base.printable import few, number_of, quoted
from mixedgm.model.layout import Floats
from mixedgm.table.read import Columns, frame
from mixedgm.table.values import as_doubles

_ERRORS = {"se": ("se", "std_error", "std.error"), "variance": ("variance", "var")}
"""What the second of two numbers is, and what a frame may call it."""
_NAMES = ("source", "target", "moderator", "source_level", "target_level", "moderator_level")
_MOST = 1e150
"""Beyond, squares of estimates and of errors overflow, and below its inverse they vanish."""
_LEADING = ("name", "estimate", "se", "lower", "upper", "p", "missing_information")


@dataclass(frozen=True, eq=False)
class Pooled:
    """The results of several imputed tables as one.

    ``print(pooled)`` shows the table.  Every field is an array with one number per parameter.

    Parameters
    ----------
    names : tuple
        Of the parameters, as the results have them; numbers from 0 where they have none.
    estimate : ndarray
        Mean of the estimates.
    within : ndarray
        Mean of their variances.
    between : ndarray
        Variance of the estimates between the tables.
    n_results : int
        Number of results.
    df_complete : float
        Degrees of freedom that a table without gaps would have.
    level : float
        Of the intervals.
    library : str
        Library of the frame.
    """

    names: tuple[Hashable, ...]
    estimate: Floats
    within: Floats
    between: Floats
    n_results: int
    df_complete: float
    level: float
    library: str = "numpy"

    @property
    def _added(self) -> Floats:
        """What gaps add to the variance."""
        return (1.0 + 1.0 / self.n_results) * self.between

    @property
    def variance(self) -> Floats:
        """Of the estimate: that within tables, and what gaps add to it."""
        return self.within + self._added

    @property
    def se(self) -> Floats:
        """Standard error of the estimate."""
        return np.sqrt(self.variance)

    @property
    def df(self) -> Floats:
        """Degrees of freedom (Rubin 1987; Barnard and Rubin 1999 where `df_complete` is given)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(self.variance > 0.0, self._added / self.variance, 0.0)
            by_results = (self.n_results - 1) / share**2
            complete = self.df_complete
            if not np.isfinite(complete):
                return np.asarray(by_results)
            observed = (complete + 1.0) / (complete + 3.0) * complete * (1.0 - share)
            return np.asarray(1.0 / (1.0 / by_results + 1.0 / observed))

    @property
    def statistic(self) -> Floats:
        """The estimate in standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.estimate / self.se)

    @property
    def p(self) -> Floats:
        """Of the hypothesis that the parameter is zero, two-sided."""
        return np.asarray(2.0 * stats.t.sf(np.abs(self.statistic), self.df))

    @property
    def lower(self) -> Floats:
        """Lower end of the interval."""
        return self.estimate - self._half

    @property
    def upper(self) -> Floats:
        """Upper end of the interval."""
        return self.estimate + self._half

    @property
    def _half(self) -> Floats:
        return np.asarray(stats.t.isf(0.5 * (1.0 - self.level), self.df) * self.se)

    @property
    def missing_information(self) -> Floats:
        """The share of the information about a parameter that gaps have taken."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self._added > 0.0, self._added / self.within, 0.0)
            few_results = np.where(self._added > 0.0, 2.0 / (self.df + 3.0), 0.0)
            share = (ratio + few_results) / (ratio + 1.0)
        return np.asarray(np.where(np.isinf(ratio), 1.0, share))

    # -- frame and text ----------------------------------------------------------------------------

    def frame(self) -> Any:
        """One row per parameter.

        Columns: name, estimate, se, lower, upper, statistic, df, p, missing_information.
        """
        return frame(self._columns, self.library)

    @property
    def _columns(self) -> Columns:
        fields = ("estimate", "se", "lower", "upper", "statistic", "df", "p")
        named = [_shown(name) for name in self.names]
        values = {field: getattr(self, field) for field in (*fields, "missing_information")}
        return {"name": named, **values}

    @property
    def _said(self) -> tuple[str, Columns, tuple[str, ...]]:
        columns = self._columns
        shown = {name: columns[name] for name in _LEADING}
        lines = [f"Rubin's rules; intervals of {self.level:.0%}"]
        if np.isfinite(self.df_complete):
            lines.append(f"{self.df_complete:g} degrees of freedom without gaps")
        title = f"{number_of(len(self.names), 'estimate')}, pooled over {self.n_results} tables"
        return title, shown, tuple(lines)

    def summary(self) -> str:
        """Return the table as text."""
        from mixedgm.results.result import result_text

        return result_text(*self._said)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from mixedgm.results.result import result_html

        return result_html(*self._said)


def pool(
    results: Sequence[Any],
    *,
    errors: str = "se",
    by: str | Sequence[str] | None = None,
    df_complete: float | None = None,
    level: float = 0.95,
) -> Pooled:
    """Combine the results of one analysis on several imputed tables by Rubin's rules.

    Parameters
    ----------
    results : sequence
        One result per table, all of the same form:

        - pairs ``(estimate, se)`` of numbers, arrays or pandas Series;
        - data frames with columns `estimate` and `se` (or `variance`), such as
          ``edge_tests(...).parameters()``;
        - objects with `params`, and `bse` or `cov_params()`, as statsmodels returns.

        Where the results have names (those of a Series, of `by`, or the index of a pandas frame),
        parameters are matched by these, in the order of the first result.
    errors : {"se", "variance"}
        What the second of each pair is: a standard error, or a variance (or a covariance matrix).
    by : str or sequence of str, optional
        Columns of the data frames that name a parameter.  By default `source`, `target` and the
        like where a frame has them, as those of this package; else the index of a pandas frame.
    df_complete : float, optional
        Degrees of freedom that a table without gaps would have, such as rows minus parameters: with
        few rows, intervals are then wider (Barnard and Rubin 1999).  By default infinitely many.
    level : float
        Of the intervals.

    Returns
    -------
    Pooled
        `estimate`, `se`, `df`, `lower`, `upper`, `statistic`, `p` and `missing_information`, each
        an array; `frame()` has them all.

    Raises
    ------
    ParameterError
        With fewer than two results, or results that do not have the same parameters; for
        estimates that are not finite, and errors that are not finite and above zero.

    Notes
    -----
    With m results, the mean W of their variances and the variance B of their estimates, the
    variance of the mean estimate is W + (1 + 1/m) B.  That is right where the imputations are
    proper: ``model.impute(X, n_draws=20, parameters="resampled")``.

    References
    ----------
    Rubin, "Multiple imputation for nonresponse in surveys" (1987); Barnard and Rubin,
    "Small-sample degrees of freedom with multiple imputation", Biometrika 86 (1999).

    Examples
    --------
    A mean, estimated in three imputed tables:

    >>> import mixedgm as mg
    >>> pooled = mg.pool([(5.0, 0.5), (5.4, 0.5), (4.9, 0.4)])
    >>> pooled.estimate.round(3), pooled.se.round(3), pooled.missing_information.round(2)
    (array([5.1]), array([0.56]), array([0.35]))
    """
    ensure(errors in _ERRORS, "errors", "'se' or 'variance'", errors)
    ensure_in("(0, 1)", level=level)
    good = df_complete is None or (is_real(df_complete) and df_complete > 0.0)
    ensure(good, "df_complete", "a positive number or None", df_complete)
    given = list(results) if isinstance(results, (list, tuple)) or _is_iterator(results) else []
    if len(given) < 2:
        raise ParameterError(
            "pool needs the results of at least two imputed tables, in a list. To fix: "
            "model.impute(X, n_draws=20), and one result for each of these tables."
        )
    good = by is None or isinstance(by, (str, list, tuple))
    ensure(good, "by", "the name of a column, or a list of names", by)
    columns = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    read = [_read(result, errors, columns, number) for number, result in enumerate(given)]
    names = read[0].names
    aligned = [_aligned(each, names, number) for number, each in enumerate(read)]
    estimates, spreads = (np.array(part) for part in zip(*aligned, strict=True))
    _refuse_impossible(names, estimates, spreads)
    squared = np.array([each.kind == "se" for each in read])[:, None]
    variances = np.where(squared, spreads**2, spreads)
    return Pooled(
        names=names,
        estimate=estimates.mean(axis=0),
        within=variances.mean(axis=0),
        between=estimates.var(axis=0, ddof=1),
        n_results=len(given),
        df_complete=np.inf if df_complete is None else float(df_complete),
        level=float(level),
        library=read[0].library,
    )


@dataclass(frozen=True, eq=False)
class _Result:
    """One result as plain values."""

    names: tuple[Hashable, ...]
    estimate: Floats
    spread: Floats
    kind: str
    """What `spread` is: "se" or "variance"."""
    library: str = "numpy"


def _refuse_impossible(names: tuple[Hashable, ...], estimates: Floats, spreads: Floats) -> None:
    """Raise ParameterError that lists all numbers by which nothing can be pooled."""
    wrong = [
        f"{noun} {values[number, k]:g} of parameter {_shown(names[k])} in result {number}"
        for noun, values, good in (
            ("estimate", estimates, np.abs(estimates) < _MOST),
            ("error", spreads, (spreads > 1.0 / _MOST) & (spreads < _MOST)),
        )
        for number, k in np.argwhere(~good).tolist()
    ]
    if wrong:
        raise ParameterError(
            f"{number_of(len(wrong), 'number')} cannot be pooled: {few(wrong, 10, str)}. Estimates "
            f"must be finite, standard errors and variances above zero, all below {_MOST:g}. To "
            "fix: leave out what has no estimate; errors= says whether the second numbers are "
            "variances."
        )


def _shown(name: Hashable) -> str:
    return " - ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _is_iterator(results: object) -> bool:
    return hasattr(results, "__next__")


def _read(result: Any, errors: str, by: tuple[str, ...], number: int) -> _Result:
    if hasattr(result, "params") and (hasattr(result, "bse") or hasattr(result, "cov_params")):
        of_model = hasattr(result, "bse")
        spread = result.bse if of_model else result.cov_params()
        return _pair(result.params, spread, "se" if of_model else "variance", number)
    if hasattr(result, "columns"):
        return _of_frame(result, by, number)
    if isinstance(result, (tuple, list)) and len(result) == 2:
        estimate, spread = result
        return _pair(estimate, spread, errors, number)
    wanted = "a pair (estimate, se), a data frame, or an object with params and bse"
    raise ParameterError.must_be(f"result {number}", wanted, result)


def _pair(estimate: Any, spread: Any, errors: str, number: int) -> _Result:
    named, library = hasattr(estimate, "index") and hasattr(estimate, "iloc"), "numpy"
    names = tuple(estimate.index) if named else ()
    if named:
        library = "pandas"
        if hasattr(spread, "reindex"):
            both = {"columns": estimate.index} if np.ndim(spread) == 2 else {}
            spread = spread.reindex(index=estimate.index, **both)
    values, spreads = (np.asarray(_numbers(each, number)) for each in (estimate, spread))
    values = np.atleast_1d(values)
    if spreads.ndim == 2 and spreads.shape == (len(values),) * 2 and errors == "variance":
        spreads = np.diagonal(spreads)
    spreads = np.atleast_1d(spreads)
    if values.ndim != 1 or spreads.shape != values.shape:
        raise ParameterError(
            f"result {number} has {values.size} estimates and {spreads.size} errors; there must be "
            "one for each, or a covariance matrix with errors='variance'."
        )
    return _Result(names or tuple(range(len(values))), values, spreads, errors, library)


def _numbers(values: Any, number: int) -> Any:
    try:
        if np.iscomplexobj(values):
            raise TypeError
        return as_doubles(values)
    except (TypeError, ValueError):
        raise ParameterError.must_be(f"result {number}", "real numbers", values) from None


def _of_frame(result: Any, by: tuple[str, ...], number: int) -> _Result:
    import narwhals as nw

    try:
        table = nw.from_native(result, eager_only=True)
    except TypeError:
        raise ParameterError.must_be(f"result {number}", "a data frame", result) from None
    found = [(kind, c) for kind, known in _ERRORS.items() for c in known if c in table.columns]
    if "estimate" not in table.columns or not found:
        raise ParameterError(
            f"result {number} has columns {few(table.columns, 20)}; it needs 'estimate', and 'se' "
            "or 'variance'."
        )
    absent = [name for name in by if name not in table.columns]
    if absent:
        raise ParameterError(f"by names {quoted(absent[0])}, which result {number} does not have.")
    kind, error = found[0]
    chosen = by or tuple(name for name in _NAMES if name in table.columns)
    labels = [table[name].to_list() for name in chosen]
    pair = _pair(table["estimate"].to_numpy(), table[error].to_numpy(), kind, number)
    library = table.implementation.value
    if labels:
        rows = [tuple(None if v != v else v for v in row) for row in zip(*labels, strict=True)]
        names: tuple[Hashable, ...] = tuple(
            row[0] if len(chosen) == 1 else tuple(v for v in row if v is not None) for row in rows
        )
        return replace(pair, names=names, library=library)
    if hasattr(result, "index") and hasattr(result, "iloc"):
        return replace(pair, names=tuple(result.index), library=library)
    return replace(pair, library=library)


def _aligned(result: _Result, names: tuple[Hashable, ...], number: int) -> tuple[Floats, Floats]:
    """Return estimates and their spreads in the order of the names."""
    if len(set(result.names)) < len(result.names):
        raise ParameterError(
            f"two parameters of result {number} have the same name; by= names columns that tell "
            "them apart."
        )
    at = {name: k for k, name in enumerate(result.names)}
    if set(at) != set(names):
        other = sorted(map(str, set(at) ^ set(names)))
        raise ParameterError(
            f"result {number} does not have the parameters of the first one: {few(other)} is in "
            "one of them only. To fix: pool what all results have."
        )
    order = [at[name] for name in names]
    return result.estimate[order], result.spread[order]
