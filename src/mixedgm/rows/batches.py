"""Nodes of like size -> their conditionals, computed together with the functions of the array API.

A batch has G nodes of one kind with w design columns each; their predictors are padded to the same
number K of columns with a column of zeros.  Linear predictors m are arrays (G, w, rows), and all
sums are over rows, times weights where there are some.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mixedgm.model.layout import Floats, Incidence, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.arrays import Array, Arrays
from mixedgm.rows.spiked import assembled, covariance_of_statistics


class BatchSums(NamedTuple):
    """What a pass needs of a batch."""

    normaliser: Array
    """(G,) sums of the log normaliser: of the loss, what is not linear in the coefficients."""
    expected: Array
    """(G, w, rows) expected design columns, times weights."""
    terms: Array
    """(G, terms) sums of what is expected of what multiplies own terms."""


def weighed(values: Array, weight: Array | None) -> Array:
    """(..., rows) times the weights of the rows, if they have some."""
    return values if weight is None else values * weight


def _turned(xp: Array, array: Array) -> Array:
    """The last two axes exchanged."""
    return xp.permute_dims(array, (0, 2, 1))


def _softmax(xp: Array, logits: Array) -> tuple[Array, Array]:
    """Probabilities over the middle axis, and the log normaliser (G, rows)."""
    top = xp.max(logits, axis=1, keepdims=True)
    weights = xp.exp(logits - top)
    norm = xp.sum(weights, axis=1, keepdims=True)
    return weights / norm, (top + xp.log(norm))[:, 0, :]


class BatchKind(ABC):
    """The conditionals of a batch, given their linear predictors and own terms."""

    rows_of_work: int
    """Numbers that a pass holds for every row of a node, besides its predictors."""

    @abstractmethod
    def sums(self, xp: Array, m: Array, own: Array, weight: Array | None) -> BatchSums:
        """For a pass; own (G, slots) are logits of values or own terms, -inf where padded."""

    @abstractmethod
    def curvature(
        self, xp: Array, m: Array, own: Array, weight: Array | None, z: Array
    ) -> tuple[Array, ...]:
        """Sums of second derivatives; z (G, 1 + K, rows) has the intercept first."""


@dataclass(frozen=True, eq=False)
class GaussianBatch(BatchKind):
    """Continuous nodes: (linear term, precision) -> expected value."""

    rows_of_work = 4

    def sums(self, xp: Array, m: Array, own: Array, weight: Array | None) -> BatchSums:
        """The expected value; moments have the rest."""
        expected = (m + own[:, :1, None]) / own[:, 1:, None]
        return BatchSums(own[:, 0], weighed(expected, weight), own[:, :0])

    def curvature(
        self, xp: Array, m: Array, own: Array, weight: Array | None, z: Array
    ) -> tuple[Array, ...]:
        """Not from rows: moments have it."""
        raise NotImplementedError("the curvature of Gaussian terms follows from moments")


@dataclass(frozen=True, eq=False)
class IndicatorBatch(BatchKind):
    """Categorical nodes of L levels: (biases) -> probabilities."""

    n_levels: int

    @property
    def rows_of_work(self) -> int:  # type: ignore[override]
        """Numbers per row: logits, probabilities, and their parts."""
        return 4 * self.n_levels + 4

    def sums(self, xp: Array, m: Array, own: Array, weight: Array | None) -> BatchSums:
        """Softmax."""
        probability, normaliser = _softmax(xp, m + own[:, :, None])
        expected = weighed(probability, weight)
        total = xp.sum(weighed(normaliser, weight), axis=1)
        return BatchSums(total, expected, xp.sum(expected, axis=2))

    def curvature(
        self, xp: Array, m: Array, own: Array, weight: Array | None, z: Array
    ) -> tuple[Array, ...]:
        """(G, 1 + K, 1 + K, packed): of diag(p) - pp', the lower triangle over levels 1 to L - 1.

        In one product for every pair of levels, over all nodes of the batch.
        """
        p, _ = _softmax(xp, m + own[:, :, None])
        parts = []
        for k in range(1, self.n_levels):
            for other in range(1, k + 1):
                both = -p[:, k, :] * p[:, other, :]
                both = weighed(both + p[:, k, :] if other == k else both, weight)
                parts.append(xp.matmul(z * both[:, None, :], _turned(xp, z)))
        return (xp.stack(parts, axis=3),)


@dataclass(frozen=True, eq=False)
class ScoredBatch(BatchKind):
    """Ordinal columns and counts of at most V values: (logits of values) -> expected score."""

    scores: Array
    """(G, V) of every value."""
    features: Array | None
    """(G, V, terms) what multiplies own terms; None where every value has its own."""

    @property
    def rows_of_work(self) -> int:  # type: ignore[override]
        """Numbers per row: logits, probabilities, and their parts."""
        return 5 * int(self.scores.shape[1]) + 8

    def _given(self, xp: Array, m: Array, own: Array) -> tuple[Array, Array, Array]:
        """Probabilities of values, log normalisers, expected scores (G, 1, rows)."""
        scores = self.scores[:, :, None]
        probability, normaliser = _softmax(xp, own[:, :, None] + scores * m)
        return probability, normaliser, xp.sum(probability * scores, axis=1, keepdims=True)

    def sums(self, xp: Array, m: Array, own: Array, weight: Array | None) -> BatchSums:
        """Softmax over values."""
        probability, normaliser, mean = self._given(xp, m, own)
        of_values = xp.sum(weighed(probability, weight), axis=2)
        total = xp.sum(weighed(normaliser, weight), axis=1)
        if self.features is not None:
            of_values = xp.sum(self.features * of_values[:, :, None], axis=1)
        return BatchSums(total, weighed(mean, weight), of_values)

    def curvature(
        self, xp: Array, m: Array, own: Array, weight: Array | None, z: Array
    ) -> tuple[Array, ...]:
        """Of own terms (G, T, T), of these with columns (G, T, K), and of columns (G, K, K).

        Deviations are taken from the means of every row, so that nothing cancels.
        """
        p, _, mean = self._given(xp, m, own)
        z = z[:, 1:, :]
        away = self.scores[:, :, None] - mean
        variance = weighed(xp.sum(p * away * away, axis=1), weight)
        columns = xp.matmul(z * variance[:, None, :], _turned(xp, z))
        if self.features is None:
            mixed = weighed(p * away, weight)
            by_values = weighed(p, weight)
            diagonal = xp.sum(by_values, axis=2)
            one = xp.eye(int(p.shape[1]), dtype=p.dtype, device=_device(p))
            terms = diagonal[:, :, None] * one - xp.matmul(by_values, _turned(xp, p))
            return terms, xp.matmul(mixed, _turned(xp, z)), columns
        n_terms = int(self.features.shape[2])
        offsets = []
        for a in range(n_terms):
            feature = self.features[:, :, a][:, :, None]
            offsets.append(feature - xp.sum(p * feature, axis=1, keepdims=True))
        mixed = xp.stack([xp.sum(p * away * each, axis=1) for each in offsets], axis=1)
        terms = xp.stack(
            [
                xp.stack(
                    [
                        xp.sum(weighed(xp.sum(p * one * two, axis=1), weight), axis=1)
                        for two in offsets
                    ],
                    axis=1,
                )
                for one in offsets
            ],
            axis=1,
        )
        return terms, xp.matmul(weighed(mixed, weight), _turned(xp, z)), columns


@dataclass(frozen=True, eq=False)
class SpikedBatch(BatchKind):
    """Hurdle columns: (odds, linear term, precision) -> whether, and how much."""

    constants: Array
    """(3, G, 1) what `HurdleKind.constants` says: 1 / scale of b, centres of x and of b."""

    rows_of_work = 24

    def sums(self, xp: Array, m: Array, own: Array, weight: Array | None) -> BatchSums:
        """By c = own term + predictor of x: x given b = 1 has mean c / precision.

        The log odds of b are those of their own plus (c^2 / precision - log(precision / 2 pi)) / 2.
        """
        per_b, middle, low = self.constants[0], self.constants[1], self.constants[2]
        variance = 1.0 / own[:, 2:]
        slope = own[:, 1:2] + m[:, 1, :]
        mean = slope * variance
        constant = own[:, :1] + 0.5 * xp.log(2.0 * np.pi * variance)
        odds = constant + per_b * m[:, 0, :] + 0.5 * slope * mean
        small = xp.exp(-xp.abs(odds))
        normaliser = xp.where(odds > 0.0, odds, 0.0) + xp.log1p(small)
        chance = xp.where(odds >= 0.0, 1.0, small) / (1.0 + small)
        amount = chance * mean
        expected = xp.stack([per_b * chance - low, amount - middle], axis=1)
        square = -0.5 * chance * (variance + mean * mean)
        terms = [xp.sum(weighed(each, weight), axis=1) for each in (chance, amount, square)]
        total = xp.sum(weighed(normaliser, weight), axis=1)
        return BatchSums(total, weighed(expected, weight), xp.stack(terms, axis=1))

    def curvature(
        self, xp: Array, m: Array, own: Array, weight: Array | None, z: Array
    ) -> tuple[Array, ...]:
        """Of b and x with each other (G, 3, 1 + K, 1 + K), and of -x^2 / 2 (G, 3, 1 + K)."""
        terms = (own[:, :1], own[:, 1:2], own[:, 2:])
        parts = covariance_of_statistics(terms, self.constants[0] * m[:, 0, :], m[:, 1, :], xp)
        parts = tuple(weighed(part, weight) for part in parts)
        turned = _turned(xp, z)
        pairs = xp.stack([xp.matmul(z * part[:, None, :], turned) for part in parts[:3]], axis=1)
        return pairs, xp.matmul(xp.stack(parts[3:], axis=1), turned)


def _device(array: Array) -> Array:
    from array_api_compat import device

    return device(array)


# -- which nodes go together -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NodeBatch:
    """Nodes whose conditionals are computed together."""

    kind: BatchKind
    nodes: Ints
    """(G,) numbers of the nodes."""
    width: int
    n_columns: Ints
    """(G,) columns that predict every node."""
    columns: Array
    """(G * K,) on the device: these, and d where padded, which stands for zeros."""
    coefficients: Array
    """(G * K * w,) on the device: positions among all coefficients, and the last where padded."""
    slots: Array
    """(G * slots,) on the device: positions among the slots of all nodes, or the last if padded."""
    entries: Ints
    """(G, K, w) the positions of the coefficients on the host."""
    terms: Ints
    """(G, terms) positions among own terms, and -1 where padded."""

    @property
    def n_nodes(self) -> int:
        """G."""
        return len(self.nodes)

    @property
    def shape(self) -> tuple[int, int]:
        """(G, K)."""
        return self.entries.shape[:2]

    def own(self, xp: Array, slots: Array) -> Array:
        """(G, slots) own logits or terms, from those of all nodes."""
        return xp.reshape(xp.take(slots, self.slots, axis=0), (self.n_nodes, -1))

    def gathered(self, xp: Array, z: Array) -> Array:
        """(G, K, rows) the columns that predict the nodes."""
        return xp.reshape(xp.take(z, self.columns, axis=0), (*self.shape, -1))

    def predictors(self, xp: Array, columns: Array, values: Array) -> Array:
        """(G, w, rows) linear predictors, from the gathered columns and all coefficients."""
        slopes = xp.reshape(xp.take(values, self.coefficients, axis=0), self.entries.shape)
        return xp.matmul(_turned(xp, slopes), columns)

    def columns_covered(self, nodes: Nodes) -> Ints:
        """(G * w,) design columns of the nodes."""
        first = nodes.column_start[self.nodes]
        return np.asarray((first[:, None] + np.arange(self.width)).ravel())

    def whole_matrices(self, parts: list[Floats], nodes: Nodes) -> Iterator[Floats]:
        """Sums of curvature of scored or spiked nodes -> a matrix over own terms and entries."""
        for g, k in enumerate(self.n_columns.tolist()):
            if isinstance(self.kind, SpikedBatch):
                pairs, of_terms = parts[0][g][:, : 1 + k, : 1 + k], parts[1][g][:, : 1 + k]
                per_b = nodes.scores[nodes.slots_of(nodes.place(int(self.nodes[g])))][0]
                yield assembled(pairs, of_terms, per_b)
                continue
            t = int(np.count_nonzero(self.terms[g] >= 0))
            own, mixed, columns = parts[0][g][:t, :t], parts[1][g][:t, :k], parts[2][g][:k, :k]
            yield np.block([[own, mixed], [mixed.T, columns]])


def padded(count: Ints) -> Ints:
    """Numbers of columns rounded up, so that few different ones are left.

    Examples
    --------
    >>> padded(np.array([0, 1, 3, 5, 9, 13, 17, 33])).tolist()
    [1, 1, 4, 6, 12, 16, 24, 48]
    """
    power = 2 ** np.ceil(np.log2(np.maximum(count, 1))).astype(np.int64)
    return np.where((count > 2) & (count <= 3 * power // 4), 3 * power // 4, power)


def batches_of(
    nodes: Nodes, incidence: Incidence, targets: Ints, arrays: Arrays, most_numbers: int, n: int
) -> list[NodeBatch]:
    """Batches of these nodes, each for at most about `most_numbers` numbers at n rows."""
    width = nodes.width[targets]
    n_columns = np.diff(incidence.node_entries)[targets] // width
    sizes = padded(n_columns)
    groups: dict[tuple[object, ...], list[int]] = {}
    for at in np.argsort(n_columns, kind="stable").tolist():
        key = _alike(nodes, int(targets[at]))
        groups.setdefault((*key, int(sizes[at])), []).append(at)
    out = []
    for members in groups.values():
        at = np.array(members)
        one = _batch(nodes, incidence, targets[at], n_columns[at], arrays)
        numbers = n * (one.shape[1] + one.kind.rows_of_work)
        some = max(1, most_numbers // numbers)
        if some >= len(at):
            out.append(one)
            continue
        for first in range(0, len(at), some):
            part = at[first : first + some]
            out.append(_batch(nodes, incidence, targets[part], n_columns[part], arrays))
    return out


def _alike(nodes: Nodes, node: int) -> tuple[object, ...]:
    """What nodes of a batch have in common: a kind, and about as many values."""
    if nodes.is_gaussian(node):
        return ("gaussian",)
    kind, count = nodes.kinds[node], nodes.n_values[node]
    if not kind.is_numeric:
        return ("indicators", count)
    if kind.has_spike:
        return ("spiked",)
    free = bool(kind.is_free)
    return ("scored", free, 0 if free else int(nodes.n_biases[node]), int(padded(np.array(count))))


def _batch(
    nodes: Nodes, incidence: Incidence, targets: Ints, n_columns: Ints, arrays: Arrays
) -> NodeBatch:
    width, d = int(nodes.width[targets[0]]), nodes.n_columns
    size = int(padded(n_columns).max())
    first, k = incidence.node_entries[targets], np.arange(size)
    there = k < n_columns[:, None]
    entry = np.where(there, first[:, None] + k * width, 0)
    column = incidence.entry_column if len(incidence.entry_column) else np.zeros(1, np.int64)
    columns = np.where(there, column[entry], d)
    entries = np.where(there[:, :, None], entry[:, :, None] + np.arange(width), -1)
    last = len(incidence.theta_index)
    conditional, slots, terms = _conditional(nodes, targets, arrays)
    return NodeBatch(
        conditional,
        targets,
        width,
        n_columns,
        arrays.put(columns.ravel()),
        arrays.put(np.where(entries < 0, last, entries).ravel()),
        arrays.put(slots.ravel()),
        entries,
        terms,
    )


def _conditional(nodes: Nodes, targets: Ints, arrays: Arrays) -> tuple[BatchKind, Ints, Ints]:
    """The conditionals of nodes that are alike, where their slots are, and their own terms."""
    if nodes.is_gaussian(int(targets[0])):
        # The slots of Gaussian nodes are linear terms, then precisions.
        slots = np.column_stack([targets, nodes.n_gaussian + targets])
        return GaussianBatch(), slots, np.zeros((len(targets), 0), dtype=np.int64)
    places = nodes.node_place[targets]
    kind, last = nodes.kinds[targets[0]], int(nodes.slot_start[-1])
    slots = _ranges(nodes.slot_start, places, last)
    terms = _ranges(nodes.term_start, places, -1)
    if not kind.is_numeric:
        return IndicatorBatch(slots.shape[1]), slots, terms
    if kind.has_spike:
        constants = np.stack([nodes.scores[nodes.slots_of(j)] for j in places.tolist()])
        return SpikedBatch(arrays.put(constants.T[:, :, None])), slots, terms
    scores = np.append(nodes.scores, 0.0)[slots]
    features = None
    if not kind.is_free:
        features = np.zeros((*slots.shape, terms.shape[1]))
        for g, j in enumerate(places.tolist()):
            table = nodes.term_features(j)
            features[g, : len(table)] = table
    return (
        ScoredBatch(arrays.put(scores), None if features is None else arrays.put(features)),
        slots,
        terms,
    )


def _ranges(start: Ints, places: Ints, padding: int) -> Ints:
    """(G, most) the positions start[j] : start[j + 1] of every place, one row for each."""
    count = start[places + 1] - start[places]
    k = np.arange(int(count.max()))
    return np.where(k < count[:, None], start[places][:, None] + k, padding)


def with_intercept(batch: NodeBatch, arrays: Arrays, d: int) -> NodeBatch:
    """The batch with a column of ones before all others; its coefficients stay as they are."""
    columns = arrays.get(batch.columns).reshape(batch.shape)
    ones = np.full((batch.n_nodes, 1), d + 1)
    return replace(batch, columns=arrays.put(np.hstack([ones, columns]).ravel()))
