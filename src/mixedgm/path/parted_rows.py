"""A table in parts -> what tasks, criteria and reports ask of a table, as sums over its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.parts.contract import Sums
from mixedgm.model.layout import Floats
from mixedgm.model.nodes import Mask, Nodes
from mixedgm.model.params import Params, Units
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.parts import Opener, PartedRows, Standardising
from mixedgm.rows.predict import mean_losses
from mixedgm.table.encode import Design
from mixedgm.table.parted.design import PartedDesign

if TYPE_CHECKING:
    from mixedgm.path.task import Reference

AnyDesign = Design | PartedDesign
"""The rows of a table, in memory or in parts."""


def units_of(
    mean: Floats, variance: Floats, reference: Reference | None
) -> tuple[Units, NDArray[np.bool_]]:
    """Units in which columns have mean 0 and variance 1, and which columns do not vary.

    These have the units of the reference, or 1.
    """
    scale = np.sqrt(variance)
    constant = scale <= 1e-13 * np.abs(mean)
    scale[constant] = 1.0
    if reference is not None:
        mean = np.where(constant, reference.mean, mean)
        scale = np.where(constant, np.sqrt(reference.variance), scale)
    return Units(mean, scale), constant


def parted_rows(
    design: PartedDesign, reference: Reference | None, n_threads: int
) -> tuple[Units, Mask, PartedRows, Floats]:
    """Units, levels with rows, standardised rows, and which design columns of numbers vary."""
    observed, declared = parted_levels(design), design.schema.spans
    units, constant = units_of(*design.number_moments, reference)
    nodes = declared.kept(observed).standardised(units.centre, units.scale)
    code: tuple[NDArray[np.int64], ...] = ()
    if not observed.all():
        masks = np.split(observed, np.cumsum(design.schema.n_levels)[:-1])
        code = tuple(np.cumsum(mask) - 1 for mask in masks)
    opener = Standardising(declared, nodes, units.centre, units.scale, constant, code)
    rows = PartedRows(design.parts, opener, design.sizes, nodes, n_threads)
    return units, observed, rows, _varying(rows, opener, units.scale)


def losses_of(params: Params, design: AnyDesign, n_observed: float = np.inf) -> Floats:
    """Mean negative log conditional of every node; see `mean_losses`."""
    if not isinstance(design, PartedDesign):
        return mean_losses(params, design.numbers, design.codes, design.weights, n_observed)
    (sums,) = design.parts.total(_loss_sums, params, n_observed)
    return np.asarray(sums / design.total_weight)


def _loss_sums(part: Design, params: Params, n_observed: float) -> Sums:
    losses = mean_losses(params, part.numbers, part.codes, part.weights, n_observed)
    return (part.total_weight * losses,)


def parted_levels(design: PartedDesign) -> Mask:
    """Levels with rows; values that have no term of their own count as observed."""
    schema = design.schema
    free = np.repeat(schema.spans.free, schema.n_levels) if schema.n_levels else np.zeros(0, bool)
    return np.asarray((design.value_counts > 0) | ~free.astype(bool))


def parted_spikes(design: PartedDesign) -> Floats:
    """(hurdle columns, 3) means of what multiplies their own terms."""
    if not design.schema.spans.n_spiked:
        return np.zeros((0, 3))
    (sums,) = design.parts.total(_spiked_sums)
    return np.asarray(sums / design.total_weight)


def _spiked_sums(part: Design) -> Sums:
    weights = np.ones(part.n_rows) if part.weights is None else part.weights
    statistics = part.schema.spans.spiked_statistics(part.numbers)
    return (np.array([weights @ each for each in statistics]),)


def _varying(rows: PartedRows, opener: Opener, unit: Floats) -> Floats:
    """1 for every design column of numbers that varies, and 0 for a constant.

    A hurdle column varies if it has zeros and two other values.
    """
    nodes, every = rows.nodes, list(rows.parts.map(_variation, opener, rows.nodes))
    varies = np.any([there for there, _ in every], axis=0).astype(np.float64)
    for j, column in enumerate(nodes.spiked_terms[1].tolist()):
        count, low, high = zip(*(amounts[j] for _, amounts in every), strict=True)
        rounding = 1e-13 * abs(nodes.locations[nodes.discrete_nodes[j]]) / unit[column + 1]
        if sum(count) in (0, rows.n_rows) or max(high) - min(low) <= rounding:
            varies[column : column + 2] = 0.0
    return np.asarray(varies)


def _variation(
    part: object, opener: Opener, nodes: Nodes
) -> tuple[Mask, list[tuple[int, float, float]]]:
    """Which columns are not zero everywhere; number and range of a hurdle column's amounts."""
    rows: MemoryRows = opener(part)
    amounts = []
    for j, column in enumerate(nodes.spiked_terms[1].tolist()):
        there = rows.numbers[rows.codes[:, j] > 0, column + 1]
        ends = there.min(initial=np.inf), there.max(initial=-np.inf)
        amounts.append((len(there), float(ends[0]), float(ends[1])))
    return (rows.numbers != 0.0).any(axis=0), amounts
