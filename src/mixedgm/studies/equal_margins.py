"""Rows in groups -> the same rows, moved and weighted such that all groups have equal margins.

The model is an exponential family: weights exp(sum of a_v x_v + b_v x_v^2, or c_level) change the
own terms of its columns and none of its edges, and neither does a number added to a continuous
column.  So groups that have the same edges, and other means, variances and shares, become samples
of one distribution, and their rows may change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ParameterError
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.printable import quoted
from mixedgm.studies.row_groups import Groups
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps

_STEPS = 100
_TOL = 1e-12
_LENGTHS = 0.5 ** np.arange(40)
_RIDGE = 1e-6
_NOTHING = 1e-20
_FEWEST_EFFECTIVE = 10.0
_LEAST_FACTOR = 1e-6
"""By which a row's weight may fall: with none left a level would have no rows."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one group and their weights."""

    rows: Ints
    weights: Floats

    @property
    def share(self) -> Floats:
        """What every row counts, of one."""
        return np.asarray(self.weights / self.weights.sum())


@dataclass(frozen=True, eq=False)
class RowMargins:
    """Values of all rows, and what multiplies the own terms of their columns."""

    nodes: Nodes
    numbers: Floats
    """(n, n_real) values of real numbers."""
    codes: NDArray[np.integer]

    @cached_property
    def _statistics(self) -> tuple[Floats, Ints]:
        """(n, q) what own terms of other than Gaussian nodes multiply; the node of each."""
        nodes, p, codes = self.nodes, self.nodes.n_gaussian, self.codes
        parts = dict(enumerate(nodes.spiked_statistics(self.numbers)))
        parts |= {j: nodes.term_features(j)[codes[:, j]] for j, _, _ in nodes.scored}
        for j in range(nodes.first_indicator, len(nodes.n_levels)):
            parts[j] = np.eye(nodes.n_levels[j])[codes[:, j]]
        count = [parts[j].shape[1] for j in sorted(parts)]
        columns = [parts[j] for j in sorted(parts)]
        return np.hstack([np.zeros((len(codes), 0)), *columns]), np.repeat(
            p + np.arange(len(count)), np.array(count, dtype=np.int64)
        )

    def centred(self, parts: Sequence[Part]) -> Floats:
        """Numbers with the means of the whole table in every group, where a number can be added."""
        numbers, some = self.numbers.copy(), self.nodes.gaussian
        weights = np.concatenate([part.weights for part in parts])
        rows = np.concatenate([part.rows for part in parts])
        whole = weights / weights.sum() @ self.numbers[rows, some]
        for part in parts:
            numbers[part.rows, some] += whole - part.share @ numbers[part.rows, some]
        return numbers

    def factors(self, parts: Sequence[Part]) -> list[Floats]:
        """What weights are multiplied by to make margins equal; their sums stay as they are.

        It is the smallest change that does so, by relative entropy.  Columns that do not vary in
        some group, or lack a level there, are left as they are.
        """
        values = self._standardised(parts)
        shares, sizes = [part.share for part in parts], np.array([p.weights.sum() for p in parts])
        tilts = _tilts(values, shares, sizes)
        factors = [tilted / share for tilted, share in zip(tilts, shares, strict=True)]
        return [np.maximum(each, _LEAST_FACTOR) for each in factors]

    def _standardised(self, parts: Sequence[Part]) -> list[Floats]:
        """Statistics of every group, in units of their spread over all, less their common mean."""
        others, of_others = self._statistics
        p = self.nodes.n_gaussian
        node = np.concatenate([np.arange(p), np.arange(p), of_others])
        values = []
        for part in parts:
            numbers = self.numbers[part.rows, self.nodes.gaussian]
            numbers = numbers - part.share @ numbers
            values.append(np.hstack([numbers, numbers**2, others[part.rows]]))
        sizes = np.array([part.weights.sum() for part in parts])
        means = np.array([part.share @ each for part, each in zip(parts, values, strict=True)])
        spreads = np.array(
            [
                part.share @ (each - mean) ** 2
                for part, each, mean in zip(parts, values, means, strict=True)
            ]
        )
        whole = np.sqrt(sizes / sizes.sum() @ spreads)
        still = (spreads <= _NOTHING * (1.0 + means**2)).any(axis=0)
        kept = (whole > 0.0) & ~np.isin(node, node[still & (whole > 0.0)])
        middle = sizes / sizes.sum() @ means
        return [(each[:, kept] - middle[kept]) / whole[kept] for each in values]


def _tilts(values: Sequence[Floats], shares: Sequence[Floats], sizes: Floats) -> list[Floats]:
    """(m,) shares of the rows of every group, tilted such that all groups have equal means.

    Coefficients a_g minimise sum of n_g log sum of share exp(values a_g), subject to
    sum of n_g a_g = 0: a convex function of those of all groups but the last.  Newton steps, each
    halved until it goes down far enough.  Where groups do not overlap, few rows keep a weight.
    """
    n_groups, q = len(values), values[0].shape[1]
    size = sizes / sizes.sum()
    # Of every group's coefficients, as a function of those that are free.
    free = np.vstack([np.eye(n_groups - 1), -size[:-1] / size[-1]])
    a = np.zeros((n_groups, q))
    value, tilted = _tilted(values, shares, a, size)
    for _ in range(_STEPS):
        means = np.array([t @ v for t, v in zip(tilted, values, strict=True)])
        slope = free.T @ (size[:, None] * (means + _RIDGE * a))
        curvature = np.zeros((slope.size, slope.size))
        for g, (t, v) in enumerate(zip(tilted, values, strict=True)):
            own = (v * t[:, None]).T @ v - np.outer(means[g], means[g]) + _RIDGE * np.eye(q)
            curvature += size[g] * np.kron(np.outer(free[g], free[g]), own)
        step = np.linalg.solve(curvature, slope.ravel())
        gain = float(slope.ravel() @ step)
        if gain < _TOL:
            return tilted
        move = free @ step.reshape(n_groups - 1, q)
        for length in _LENGTHS:
            reached, tilted = _tilted(values, shares, a - length * move, size)
            if reached <= value - 0.25 * length * gain:
                break
        a, value = a - length * move, reached
    return tilted


def _tilted(
    values: Sequence[Floats], shares: Sequence[Floats], a: Floats, size: Floats
) -> tuple[float, list[Floats]]:
    """The function that is minimised, and tilted shares, with sum one in every group."""
    total, out = 0.5 * _RIDGE * float(size @ (a**2).sum(axis=1)), []
    for each, share, own, part in zip(values, shares, a, size, strict=True):
        logits = each @ own
        highest = float(logits.max())
        tilted = share * np.exp(logits - highest)
        total += float(part) * (highest + float(np.log(tilted.sum())))
        out.append(tilted / tilted.sum())
    return total, out


def effective(before: Floats, after: Floats) -> float:
    """So many observations count, as Kish counts them, once weights have changed."""
    return float(after.sum() ** 2 / (after**2 / before).sum())


def row_weights(design: Design | Gaps) -> Floats:
    """(n,) how often every row counts."""
    return np.ones(design.n_rows) if design.weights is None else design.weights


@dataclass(frozen=True, eq=False)
class EqualGroups:
    """The rows of all groups, moved and weighted such that groups have equal margins."""

    groups: Groups
    before: Design
    design: Design

    @classmethod
    def of(cls, design: Design, groups: Groups) -> EqualGroups:
        """Take the groups' own means, variances and shares out."""
        margins = RowMargins(design.schema.spans, design.numbers, design.codes)
        weights, parts = row_weights(design).copy(), []
        for group in range(len(groups)):
            rows = groups.rows(group)
            parts.append(Part(rows, weights[rows]))
        for part, factors in zip(parts, margins.factors(parts), strict=True):
            weights[part.rows] *= factors
        parts = [replace(part, weights=weights[part.rows]) for part in parts]
        return cls(groups, design, replace(design, numbers=margins.centred(parts), weights=weights))

    def parts(self) -> list[Design]:
        """The rows of every group."""
        return [self.design.take(self.groups.rows(group)) for group in range(len(self.groups))]

    @cached_property
    def effective_rows(self) -> list[float]:
        """So many rows count in every group."""
        before, after = row_weights(self.before), row_weights(self.design)
        rows = map(self.groups.rows, range(len(self.groups)))
        return [effective(before[some], after[some]) for some in rows]

    @property
    def overlap(self) -> bool:
        """Whether enough rows count in every group."""
        return min(self.effective_rows) >= _FEWEST_EFFECTIVE

    def require_overlap(self) -> None:
        """Raise for groups that are too unlike each other."""
        if not self.overlap:
            least = int(np.argmin(self.effective_rows))
            raise ParameterError(
                "the groups' own means and shares cannot be taken out: group "
                f"{quoted(self.groups.labels[least])} would be left with "
                f"{self.effective_rows[least]:.2g} rows that are like those of the others. To fix: "
                "test='differences', or leave out columns in which groups hardly overlap."
            )

    @cached_property
    def margins(self) -> RowMargins:
        """Of the rows once they are moved."""
        return RowMargins(self.design.schema.spans, self.design.numbers, self.design.codes)

    @cached_property
    def frequencies(self) -> NDArray[np.int64] | None:
        """Weights of the table that are whole numbers, and so count identical rows."""
        weights = self.before.weights
        if weights is None or not np.array_equal(weights, np.rint(weights)):
            return None
        return weights.astype(np.int64)
