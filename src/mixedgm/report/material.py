"""A fitted model, a table and studies of them -> Material: all that a report tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mixedgm.base.errors import DistributionError, Finding, MixedGMError, ParameterError
from mixedgm.base.parallel import RandomState
from mixedgm.base.printable import quoted
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.options import Options
from mixedgm.results.summary import Summary, summarise
from mixedgm.studies.edges.effects import (
    EdgeEffect,
    beside_table,
    edge_effects,
    rows_to_vary,
    typical_row,
)
from mixedgm.studies.edges.tests import EdgeTests
from mixedgm.studies.fit_check.joint_discrepancy import summary_notes
from mixedgm.studies.fit_check.predictability import FOLDS, NodePredictability, predictability
from mixedgm.studies.fit_check.result import ModelCheck
from mixedgm.studies.groups.result import GroupComparison
from mixedgm.studies.resampling.result import Bootstrap

if TYPE_CHECKING:
    from mixedgm.studies.missing.report import MissingReport
    from mixedgm.table.gaps import Gaps


MOST_CHECKED = 100
"""Columns up to which a report checks the fit by itself: beyond, simulations take minutes."""


@dataclass(frozen=True, eq=False)
class Studies:
    """What the user has found out about the model before."""

    bootstrap: Bootstrap | None = None
    tests: EdgeTests | None = None
    comparison: GroupComparison | None = None
    check: ModelCheck | bool | None = None
    """A check that was made; True makes one, False none, None one unless it takes long."""

    def refuse_others(self, fitted: FittedModel) -> None:
        """Raise ParameterError where something is not what it should be, or of other columns."""
        wanted = {"bootstrap": Bootstrap, "tests": EdgeTests, "comparison": GroupComparison}
        makers = {"bootstrap": "bootstrap", "tests": "edge_tests", "comparison": "compare"}
        for name, kind in wanted.items():
            given = getattr(self, name)
            if given is not None and not isinstance(given, kind):
                raise ParameterError.must_be(name, f"the result of mixedgm.{makers[name]}", given)
        if not isinstance(self.check, ModelCheck | bool | None):
            raise ParameterError.must_be(
                "check", "the result of check_fit, True, False or None", self.check
            )
        names = set(fitted.schema.names)
        for name, given in (("bootstrap", self.bootstrap), ("tests", self.tests)):
            if given is not None and set(given.fitted.schema.names) != names:
                raise ParameterError(f"{name} is about a model with other columns than this one.")
        if self.comparison is not None:
            compared = set(self.comparison.fitted[0].schema.names)
            if not compared <= names:
                other = quoted(sorted(compared - names)[0])
                raise ParameterError(f"comparison is about other columns, such as {other}.")


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that a report tells, as the package's own values."""

    fitted: FittedModel
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of the estimator."""
    title: str = ""
    source: str = ""
    """Where the table came from, for the reader."""
    gaps: Gaps | None = None
    findings: tuple[Finding, ...] = ()
    predictability: tuple[NodePredictability, ...] = ()
    effects: Mapping[tuple[str, str], EdgeEffect] = field(default_factory=dict)
    check: ModelCheck | None = None
    not_checked: str = ""
    """Why there is no check."""
    missing: MissingReport | None = None
    studies: Studies = field(default_factory=Studies)
    groups: Mapping[Any, Any] | None = None
    """Groups of columns that have a colour each, as `MixedGraphicalModel.plot` takes them."""

    @cached_property
    def summary(self) -> Summary:
        """What every view of the model shows."""
        return summarise(self.fitted, summary_notes(self.fitted))

    @cached_property
    def place(self) -> dict[str, int]:
        """Where every column stands in the table, by name."""
        return {name: at for at, name in enumerate(self.fitted.schema.names)}

    @cached_property
    def shares(self) -> dict[str, float]:
        """What the ring around a node shows: the share of the column that is predicted."""
        return {node.column: node.share for node in self.predictability if node.share == node.share}


def gather(
    fitted: FittedModel,
    settings: Mapping[str, Any],
    data: Any = None,
    *,
    sample_weight: Any = None,
    studies: Studies | None = None,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
) -> Material:
    """Ask the studies of the package about a model and, where there is one, a table."""
    studies = studies or Studies()
    studies.refuse_others(fitted)
    if data is None:
        check = studies.check if isinstance(studies.check, ModelCheck) else None
        why = "" if check is not None else "no table was given"
        return Material(
            fitted,
            settings,
            effects=_effects(fitted, None),
            check=check,
            not_checked=why,
            studies=studies,
        )
    from mixedgm.table.gaps import read_gaps
    from mixedgm.table.read import as_frame

    frame = as_frame(data)
    gaps = read_gaps(frame, fitted.schema, sample_weight=sample_weight, require_covariates=False)
    check, why = _check(fitted, gaps, studies.check, random_state, n_jobs)
    return Material(
        fitted,
        settings,
        gaps=gaps,
        findings=_findings(frame, settings, sample_weight),
        predictability=_predictability(fitted, gaps),
        effects=_effects(fitted, gaps),
        check=check,
        not_checked=why,
        missing=_missing(fitted, settings, gaps, n_jobs),
        studies=studies,
    )


def _findings(frame: Any, settings: Mapping[str, Any], sample_weight: Any) -> tuple[Finding, ...]:
    """Return what is worth knowing about the table, as the fit understands it."""
    from mixedgm.table.checks.check import check_table

    covariates = [*(settings.get("covariates") or ()), *(settings.get("moderators") or ())]
    known = ("types", "transforms", "missing", "forbid")
    options = {name: settings[name] for name in known if name in settings}
    try:
        return check_table(
            frame, covariates=covariates or None, sample_weight=sample_weight, **options
        ).findings
    except MixedGMError:  # options that do not suit this table: the model reads it all the same
        return ()


def _predictability(fitted: FittedModel, gaps: Gaps) -> tuple[NodePredictability, ...]:
    given = gaps.missing[:, list(fitted.schema.covariates)].any(axis=1)
    gaps = gaps.take(np.flatnonzero(~given)) if given.any() else gaps
    try:
        return predictability(fitted, gaps, FOLDS)
    except DistributionError:  # rows with gaps, and no distribution that says what they may be
        complete = _complete(gaps)
        return predictability(fitted, complete, FOLDS) if complete.n_rows else ()


def _complete(gaps: Gaps) -> Gaps:
    """Return the rows without gaps."""
    return gaps.take(np.flatnonzero(~gaps.missing.any(axis=1)))


def _effects(fitted: FittedModel, gaps: Gaps | None) -> dict[tuple[str, str], EdgeEffect]:
    rows = None if gaps is None else rows_to_vary(gaps)
    rows = typical_row(fitted) if rows is None else rows
    effects = {} if rows is None else edge_effects(fitted, rows)
    if gaps is None:
        return effects
    return {ends: beside_table(effect, gaps) for ends, effect in effects.items()}


def _check(
    fitted: FittedModel,
    gaps: Gaps,
    wanted: ModelCheck | bool | None,
    random_state: RandomState,
    n_jobs: int | None,
) -> tuple[ModelCheck | None, str]:
    """Return the check of the fit, and why there is none where there is none."""
    from mixedgm.studies.fit_check.adequacy import check_model

    if isinstance(wanted, ModelCheck):
        return wanted, ""
    if wanted is False:
        return None, "it was not asked for"
    n_columns = len(fitted.schema.nodes)
    if wanted is None and n_columns > MOST_CHECKED:
        return None, f"with {n_columns} columns it takes long; check=True makes it all the same"
    rows = _complete(gaps) if fitted.report.completion is None else gaps
    if not rows.n_rows:
        return None, "no row of the table is complete"
    design = rows if rows.missing.any() else rows.complete
    try:
        return check_model(fitted, design, random_state=random_state, n_jobs=n_jobs), ""
    except (DistributionError, ParameterError) as error:
        return None, str(error).rstrip(".")


def _missing(
    fitted: FittedModel, settings: Mapping[str, Any], gaps: Gaps, n_jobs: int | None
) -> MissingReport | None:
    """Return what gaps mean, where there are some."""
    if not gaps.missing.any():
        return None
    from mixedgm.studies.missing.report import report_missing

    options = Options(**{**settings, "n_jobs": n_jobs, "verbose": 0})
    return report_missing(fitted, options, gaps)
