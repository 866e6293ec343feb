"""A design or a fit -> what its user should hear: a long fit before it begins, trouble after it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from mixedgm.errors import LongFitWarning, OutOfMemoryError, SelectionWarning, level_of_caller
from mixedgm.fitted import FittedModel
from mixedgm.options import Options
from mixedgm.path.path import Path, given_lams
from mixedgm.printable import few
from mixedgm.report import FitReport
from mixedgm.solve.loop import Status
from mixedgm.table.effort import REMEDY, effort
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps
from mixedgm.table.parted import PartedDesign

# A single lam is approached from far away: the work of about so many lams of a path.
_LAMS_FOR_ONE = 6.0


def announce(
    design: Design | PartedDesign | Gaps, options: Options, n_lams: float | None = None
) -> None:
    """Say before a long fit how long it takes, and what makes it long."""
    if options.loss not in ("pseudolikelihood", "nodewise"):
        return  # the number of states is limited there, and the time with it
    if options.device != "cpu":
        return  # times are known for processors only
    if options.lams is not None:
        n_lams = len(given_lams(options.lams))
    expected = effort(
        design.schema.columns,
        design.n_rows,
        n_lams=_LAMS_FOR_ONE if options.lam is not None else n_lams,
        times=getattr(options.criterion, "effort", 1.0),
        n_threads=options.n_threads,
    )
    finding = expected.finding
    if finding is not None:
        progress = "" if options.verbose else "; verbose=1 shows progress"
        warnings.warn(f"{finding}{progress}.", LongFitWarning, stacklevel=level_of_caller())


@contextmanager
def enough_memory(design: Design | PartedDesign | Gaps) -> Iterator[None]:
    """Say what needs the memory when there is not enough."""
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        expected = effort(design.schema.columns, design.n_rows)
        raise OutOfMemoryError(
            f"there is not enough memory for this fit ({expected.because}; about "
            f"{expected.gigabytes:.1g} GB). To fix: {REMEDY}."
        ) from error


def warn_of_trouble(fitted: FittedModel, tol: float) -> None:
    """Warn of what did not converge, and of a choice at the end of its path."""
    report, path = fitted.report, fitted.path
    if path is not None:
        warn_unless_converged(path, tol)
    apart = report.refitted or report.unbounded  # else the path has said it
    if not report.solved and (apart or path is None or path.converged.all()):
        what = "" if path is None or report.unbounded else "estimate of the chosen edges: "
        warn_about(report, "refit: " if report.refitted else what)
    if report.open_end:
        warnings.warn(report.open_end, SelectionWarning, stacklevel=level_of_caller())


def warn_unless_converged(path: Path, tol: float) -> None:
    """Issue one ConvergenceWarning for all values of lam that missed `tol`."""
    bad = [point for point in path.points if not point.converged]
    if not bad:
        return
    worst = max(bad, key=lambda point: point.kkt)
    where = f"at lam = {worst.lam:.4g}"
    if len(path) > 1:
        where = f"at {len(bad)} of {len(path)} values of lam, worst {where}"
    which = "".join(f"{note}; " for note in worst.notes if worst.status is Status.UNBOUNDED)
    _warn(f"{where}: {worst.message} ({which}KKT {worst.kkt:.1e}, tol {tol:g}).")


def warn_about(report: FitReport, what: str = "") -> None:
    """Issue a ConvergenceWarning for one estimate."""
    which = f"without bound: {few(report.unbounded)}; " if report.unbounded else ""
    _warn(f"{what}{report.message} ({which}KKT {report.kkt:.1e}, tol {report.tol:g}).")


def _warn(message: str) -> None:
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())
