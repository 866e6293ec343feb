"""The columns of a table in -> their kinds, and findings about each and about all together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import Finding
from mixedgm.table.dependence import FEWEST_ROWS, Sample, dependence_findings, sample_rows
from mixedgm.table.infer import (
    family_finding,
    kind_of_numbers,
    numbering_finding,
    text_finding,
)
from mixedgm.table.missing import Missing
from mixedgm.table.options import ColumnOptions, in_declared_levels
from mixedgm.table.read import Frame
from mixedgm.table.row_checks import (
    closeness_finding,
    infinite_finding,
    level_findings,
    spread_finding,
)
from mixedgm.table.schema import Column, Kind, LeftOut, Level, Role
from mixedgm.table.shape import Shape, shape_of
from mixedgm.table.values import Factor, Values, read_values

__all__ = ["Inspection"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Inspection:
    """The columns of one table while they are checked, one after the other."""

    def __init__(self, frame: Frame, options: ColumnOptions, weights: Floats | None) -> None:
        self.frame = frame
        self.options = options
        self.present = None if weights is None or (weights > 0).all() else weights > 0
        self.findings: list[Finding] = []
        self.values: dict[str, Values] = {}
        self.factors: dict[str, Factor] = {}
        self.schema: list[Column] = []
        self.left_out: list[LeftOut] = []
        self.shapes: list[Shape] = []

    def read(self) -> None:
        """Find the family of each column, and the codes of those that have levels."""
        for name, at in self.frame.positions.items():
            if name in self.options.left_out:
                self.left_out.append(LeftOut(name, self.options.left_out[name], at))
                continue
            values = read_values(name, self.frame.columns[at], self.frame.library)
            declared = self.options.kinds.get(name)
            finding = family_finding(values, declared) if self.frame.n_rows else None
            if finding is not None:
                self.findings.append(finding)
                continue
            if declared is None and values.family != "number":
                factor = values.factor()
                finding, reason = text_finding(values, factor, self._level_counts(factor))
                self.findings += [] if finding is None else [finding]
                if reason is not None:
                    self.left_out.append(LeftOut(name, reason, at))
                    continue
                self.factors[name] = factor
            elif declared == "categorical":
                self._set_factor(values)
            self.values[name] = values

    def _set_factor(self, values: Values) -> None:
        if values.name not in self.factors:
            declared = self.options.declared.get(values.name)
            self.factors[values.name], finding = in_declared_levels(values.factor(), declared)
            self.findings += [] if finding is None else [finding]

    def gaps(self) -> Iterable[tuple[str, Mask]]:
        """Yield where each column has missing values."""
        for name, values in self.values.items():
            if name in self.factors:
                yield name, self.factors[name].codes < 0
            else:
                yield name, np.isnan(values.numbers())

    def decide(self, empty: tuple[str, ...]) -> None:
        """Decide the kind of each column by all its values, not only those in complete rows."""
        for name, values in self.values.items():
            if name in empty:
                continue
            findings: list[Finding] = []
            kind = self._kind(values, findings)
            if kind == "categorical" and not _has_error(findings):
                findings += self._level_findings(name)
                if self.options.transforms.get(name):
                    what = "transforms names it, but it is categorical"
                    findings.append(Finding(name, what, "take it out of transforms"))
            self.findings += findings
            if not _has_error(findings):
                self.schema.append(self._column(values, kind))

    def _level_findings(self, name: str) -> list[Finding]:
        factor = self.factors[name]
        findings = level_findings(name, factor, self._level_counts(factor))
        if name not in self.options.declared:
            return findings
        # The levels are those of a larger table, so that some may have no rows here.
        return [replace(each, severity="warning") for each in findings if each.severity == "error"]

    def _kind(self, values: Values, findings: list[Finding]) -> Kind:
        name, declared = values.name, self.options.kinds.get(values.name)
        if name in self.factors and values.family != "number":
            return "categorical"
        numbers = values.numbers() if self.present is None else values.numbers()[self.present]
        numbers = numbers[~np.isnan(numbers)]
        finding = infinite_finding(name, numbers)
        if finding is None and declared != "categorical":
            finding = spread_finding(name, numbers)
        if finding is not None:
            findings.append(finding)
            return declared or "continuous"
        kind, finding = (declared, None) if declared else kind_of_numbers(values, numbers)
        if kind == "categorical":
            self._set_factor(values)
        elif not self.options.transformed(name):
            if name not in self.options.transforms:  # None there: the user wants no transform
                shape = shape_of(name, numbers, settled=bool(declared or finding))
                self.shapes += [] if shape is None else [shape]
            finding = closeness_finding(name, numbers) or finding  # ranks need no precision
        if finding is None and declared is None and kind == "continuous":
            finding = numbering_finding(name, numbers)
        findings += [] if finding is None else [finding]
        return kind

    def _level_counts(self, factor: Factor) -> NDArray[np.intp]:
        codes = factor.codes if self.present is None else factor.codes[self.present]
        return np.bincount(codes[codes >= 0], minlength=len(factor.levels))

    def compare_complete(self, gap: Missing) -> None:
        """Find columns and levels that vary in the table, but not in its complete rows."""
        keep = gap.keep
        if keep is None or not gap.dropped or np.count_nonzero(keep) < 2:
            return
        flat: dict[str, Mask] = {}
        lost: dict[str, list[Level]] = {}
        elsewhere = np.zeros(len(keep), dtype=np.bool_)
        for column in self.schema:
            name = column.name
            if not column.has_levels:
                numbers = self.values[name].numbers()
                kept = numbers[keep]
                if kept.min() == kept.max():
                    flat[name] = ~np.isnan(numbers) & (numbers != kept[0])
                continue
            factor = self.factors[name]
            kept_counts = np.bincount(factor.codes[keep], minlength=len(factor.levels))
            gone = (kept_counts == 0) & (self._level_counts(factor) > 0)
            rows_gone = np.append(gone, False)[factor.codes]
            if np.count_nonzero(kept_counts) == 1:
                flat[name] = rows_gone
            elif gone.any():
                lost[name] = [factor.levels[int(at)] for at in np.flatnonzero(gone)]
                elsewhere |= rows_gone
        if lost:
            self.findings.append(gap.levels_finding(lost, elsewhere))
        if flat:
            vary = np.logical_or.reduce(list(flat.values()))
            self.findings.append(gap.constant_finding(list(flat), vary))

    def look_for_dependence(self, leave_out: tuple[str, ...]) -> None:
        """Find columns that follow from others."""
        n_rows = self.frame.n_rows
        if n_rows < FEWEST_ROWS:
            return
        rows = np.arange(n_rows) if self.present is None else np.flatnonzero(self.present)
        some = sample_rows(rows, len(self.schema))
        whole = slice(None) if self.present is None else self.present

        def numbers(name: str) -> Floats:
            values = self.values[name].numbers()
            # Through a transform, the model sees ranks only.
            return _ranks(values) if self.options.transformed(name) else values

        kinds = {column.name: column.kind for column in self.schema}
        continuous = [name for name, kind in kinds.items() if kind == "continuous"]
        discrete = [name for name, kind in kinds.items() if kind == "categorical"]
        sample = Sample(
            {name: numbers(name)[some] for name in continuous},
            {name: self.factors[name].codes[some] for name in discrete},
            {name: len(self.factors[name].levels) for name in discrete},
            lambda name: numbers(name)[whole],
            lambda name: self.factors[name].codes[whole],
            leave_out,
        )
        self.findings += dependence_findings(sample)

    def _column(self, values: Values, kind: Kind) -> Column:
        name = values.name
        role: Role = "covariate" if name in self.options.covariates else "target"
        dtype = f"{values.library}:{values.dtype}"
        labels = self.frame.labels
        label = labels[self.frame.positions[name]] if labels else None
        if kind == "continuous":
            return Column(name, kind, role, dtype=dtype, label=label)
        factor = self.factors[name]
        return Column(name, kind, role, factor.levels, factor.ordered, dtype, label=label)


def _has_error(findings: Iterable[Finding]) -> bool:
    return any(finding.severity == "error" for finding in findings)


def _ranks(numbers: Floats) -> Floats:
    """Return mid-ranks, NaN where a value is missing."""
    distinct, where, counts = np.unique(
        numbers, return_inverse=True, return_counts=True, equal_nan=True
    )
    ranks = np.cumsum(counts) - counts / 2
    return np.where(np.isnan(numbers), np.nan, ranks[where])
