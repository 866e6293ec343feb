"""A fitted model and known values, or a model without distribution -> another model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.fitted import FitReport, FittedModel
from mixedgm.model.params import Params
from mixedgm.studies.evidence import Evidence, read_evidence
from mixedgm.table.naming import with_names
from mixedgm.table.schema import Schema

__all__ = ["asked_model", "conditioned", "is_conditioned", "repaired_model"]

_LISTED = 5
_GIVEN = "those of a larger model given "


def asked_model(
    fitted: FittedModel, given: Mapping[Any, Any] | None
) -> tuple[Evidence, FittedModel]:
    """Read known values; return them and the model of the other columns.

    Raises
    ------
    ParameterError
        When a covariate is not among the known values: the model says nothing about covariates.
    """
    evidence = read_evidence(fitted.schema, given)
    rest = conditioned(fitted, evidence)
    unknown = [rest.schema.nodes[node].name for node in rest.schema.covariates]
    if unknown:
        raise ParameterError(
            f"the model has no distribution of its covariates; give values of "
            f"{', '.join(map(repr, unknown))}, too: given={{{unknown[0]!r}: ...}}."
        )
    return evidence, rest


def conditioned(fitted: FittedModel, evidence: Evidence) -> FittedModel:
    """Return the model of the remaining columns, exactly.

    Edges among the remaining columns stay what they are, weights included; known values only
    change the node terms.
    """
    from mixedgm.joint import condition

    if not evidence.values:
        return fitted
    schema = fitted.schema
    rest = tuple(column for column in schema.columns if column.name not in evidence.values)
    if not rest:
        raise ParameterError("all columns are given, so that nothing is left; give fewer.")
    _refuse_impossible(fitted, evidence)
    params = condition(fitted.joint_params, evidence.cont, evidence.cat)
    left = Schema(rest)
    before = fitted.report.message.removeprefix(_GIVEN) if is_conditioned(fitted) else ""
    message = f"{_GIVEN}{before}{', ' if before else ''}{evidence}"
    report = replace(FitReport.given(fitted.report.notes), message=message)
    kept = [schema.node_index(column.name) for column in left.nodes]
    return FittedModel(left, params, fitted.node_scales[kept], report, fitted.library)


def is_conditioned(fitted: FittedModel) -> bool:
    """Whether the model came out of `conditioned`."""
    return fitted.report.message.startswith(_GIVEN)


def _refuse_impossible(fitted: FittedModel, evidence: Evidence) -> None:
    for cat, code in evidence.cat.items():
        params = fitted.joint_params
        if np.isneginf(params.cat_bias[params.level_start[cat] + code]):
            column = fitted.schema.categorical[cat]
            raise ParameterError(
                f"level {column.levels[code]!r} of column {column.name!r} cannot occur in this "
                "model (it had no rows), so nothing can be said given it."
            )


def repaired_model(fitted: FittedModel) -> FittedModel:
    """Return the nearest model that has a joint distribution; its notes tell what was changed.

    A model that has one already is returned as it is.
    """
    from mixedgm.joint import repaired

    # Covariates are always known, so only the targets need a distribution.
    inside = [s for s in range(fitted.schema.n_cont) if s not in fitted.schema.covariates]
    targets = Schema(tuple(fitted.schema.continuous[s] for s in inside))
    block, whole = np.ix_(inside, inside), fitted.joint_params
    part = replace(Params.independent(len(inside), ()), precision=whole.precision[block])
    valid, repair = with_names(targets, repaired, part)
    if not repair.needed:
        return fitted
    precision, names = whole.precision.copy(), targets.names
    precision[block] = valid.precision
    size = np.abs(repair.partial_after - repair.partial_before)
    largest = np.argsort(-size, kind="stable")[:_LISTED]
    listed = ", ".join(
        f"{names[int(repair.changed[k, 0])]} - {names[int(repair.changed[k, 1])]} from "
        f"{repair.partial_before[k]:.3g} to {repair.partial_after[k]:.3g}"
        for k in largest
    )
    first = "the largest: " if len(size) > _LISTED else ""
    note = f"repaired, so that there is a joint distribution. {str(repair).capitalize()}. Partial "
    note += f"correlations, {first}{listed}"
    report = replace(
        fitted.report,
        objective=np.nan,
        kkt=np.nan,
        converged=False,
        message="the parameters were repaired after the fit, so its certificate does not hold",
        notes=(*fitted.report.notes, note),
    )
    return replace(fitted, params=replace(whole, precision=precision), report=report)
