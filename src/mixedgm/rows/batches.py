"""Nodes of like size -> their conditionals, computed together with the functions of the array API.

A batch has G nodes of one kind with w design columns each; their predictors are padded to the same
number K of columns with a column of zeros.  Linear predictors m are arrays (G, w, rows), and all
sums are over rows, times weights where there are some.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mixedgm.model.layout import Floats, Incidence, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.arrays import Array, Arrays
from mixedgm.rows.curvature import assembled, covariance_of_statistics


class BatchSums(NamedTuple):
    """Sums over the rows of a batch that a pass needs."""

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
    """Probabilities over the middle axis, and the log normaliser (G, rows); changes the logits."""
    top = xp.max(logits, axis=1, keepdims=True)
    logits -= top
    weights = xp.exp(logits)
    norm = xp.sum(weights, axis=1, keepdims=True)
    weights /= norm
    return weights, (top + xp.log(norm))[:, 0, :]


class BatchKind(ABC):
    """The conditionals of a batch, given their linear predictors and own terms."""

    @abstractmethod
    def sums(self, xp: Array, m: Array, own: Array, weight: Array | None) -> BatchSums:
        """Sums for a pass; own (G, slots) are logits of values or own terms, -inf where padded."""

    @abstractmethod
    def curvature(
        self, xp: Array, m: Array, own: Array, weight: Array | None, z: Array
    ) -> tuple[Array, ...]:
        """Sums of second derivatives; z (G, 1 + K, rows) has the intercept first."""


@dataclass(frozen=True, eq=False)
class GaussianBatch(BatchKind):
    """Continuous nodes: (linear term, precision) -> expected value."""

    def sums(self, xp: Array, m: Array, own: Array, weight: Array | None) -> BatchSums:
        """The expected value; moments have the rest."""
        expected = (m + own[:, :1, None]) / own[:, 1:, None]
        return BatchSums(own[:, 0], weighed(expected, weight), own[:, :0])

    def curvature(
        self, xp: Array, m: Array, own: Array, weight: Array | None, z: Array
    ) -> tuple[Array, ...]:
        """Raise: the curvature of Gaussian terms follows from moments."""
        raise NotImplementedError("the curvature of Gaussian terms follows from moments")


@dataclass(frozen=True, eq=False)
class IndicatorBatch(BatchKind):
    """Categorical nodes of L levels: (biases) -> probabilities."""

    n_levels: int

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
    """(G, V) scores of the values."""
    features: Array | None
    """(G, V, terms) statistics of the own terms; None where every value has its own."""

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
        """Sums for own terms (G, T, T), these with columns (G, T, K), and columns (G, K, K).

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
    """(3, G, 1) constants as in `HurdleKind.constants`: 1 / scale of b, centres of x and of b."""

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
        """Sums for pairs of b and x (G, 3, 1 + K, 1 + K), and with -x^2 / 2 (G, 3, 1 + K)."""
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
    with_intercept: Array
    """(G * (1 + K),) the same with d + 1, which stands for ones, before those of every node."""
    coefficients: Array
    """(G * K * w,) on the device: positions among all coefficients, and the last where padded."""
    slots: Array
    """(G * slots,) on the device: positions among the slots of all nodes, or the last if padded."""
    covered: Array
    """(G * w,) on the device: the nodes' own design columns."""
    first_covered: int
    """The first of these, where they follow each other; else -1."""
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

    def own_rows(self, xp: Array, matrix: Array, before: int) -> Array:
        """(G, w, rows) rows of a matrix for the nodes' own columns; its first is `before`."""
        if self.first_covered >= 0:
            first = self.first_covered - before
            part = matrix[first : first + self.n_nodes * self.width, :]
        else:
            part = xp.take(matrix, self.covered - before, axis=0)
        return xp.reshape(part, (self.n_nodes, self.width, -1))

    def set_own_rows(self, xp: Array, matrix: Array, before: int, values: Array) -> None:
        """Write (G, w, rows) to these places."""
        flat = xp.reshape(values, (self.n_nodes * self.width, -1))
        if self.first_covered >= 0:
            first = self.first_covered - before
            matrix[first : first + self.n_nodes * self.width, :] = flat
        else:
            matrix[self.covered - before, :] = flat

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
    """Numbers of columns or values rounded up, so that few different ones are left.

    A few batches of some zeros are faster than many without: each takes a dozen calls.

    Examples
    --------
    >>> padded(np.array([0, 1, 5, 9, 17, 33, 49])).tolist()
    [4, 4, 8, 16, 32, 48, 64]
    """
    power = 2 ** np.ceil(np.log2(np.maximum(count, 4))).astype(np.int64)
    return np.where((count > 32) & (count <= 3 * power // 4), 3 * power // 4, power)


def alike(nodes: Nodes) -> Ints:
    """(n_nodes,) equal numbers for nodes that may share a batch: a kind, about as many values."""
    known: dict[tuple[object, ...], int] = {}
    keys = (_key(nodes, node) for node in range(len(nodes)))
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


def _key(nodes: Nodes, node: int) -> tuple[object, ...]:
    if nodes.is_gaussian(node):
        return ("gaussian",)
    kind, count = nodes.kinds[node], nodes.n_values[node]
    if not kind.is_numeric:
        return ("indicators", count)
    if kind.has_spike:
        return ("spiked",)
    free = bool(kind.is_free)
    return ("scored", free, 0 if free else int(nodes.n_biases[node]), int(padded(np.array(count))))


def batches_of(
    nodes: Nodes, incidence: Incidence, targets: Ints, kinds: Ints, arrays: Arrays, most: float
) -> list[NodeBatch]:
    """Batches of these nodes; kinds as `alike` has them, at most `most` numbers per row."""
    n_columns = np.diff(incidence.node_entries)[targets] // nodes.width[targets]
    sizes = padded(n_columns)
    key = kinds[targets] * (1 + int(sizes.max())) + sizes
    order = np.argsort(key, kind="stable")
    members: list[Ints] = []
    for group in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        each = int(sizes[group[0]]) + _work(nodes, int(targets[group[0]]))
        some = max(1, int(most // each))
        members += [group[a : a + some] for a in range(0, len(group), some)]
    drafts = [_Draft.of(nodes, incidence, targets[at], n_columns[at], arrays) for at in members]
    # One copy to the device for all positions.
    flat = arrays.put(np.concatenate([part for draft in drafts for part in draft.positions]))
    out, at = [], 0
    for draft in drafts:
        parts = []
        for part in draft.positions:
            parts.append(flat[at : at + len(part)])
            at += len(part)
        out.append(draft.batch(parts))
    return out


def _work(nodes: Nodes, node: int) -> int:
    """Numbers that a pass holds for every row of a node, besides its predictors."""
    if nodes.is_gaussian(node):
        return 4
    return 24 if nodes.kinds[node].has_spike else 5 * nodes.n_values[node] + 8


@dataclass(frozen=True, eq=False)
class _Draft:
    """A batch whose positions are still on the host."""

    kind: BatchKind
    nodes: Ints
    width: int
    n_columns: Ints
    entries: Ints
    terms: Ints
    positions: tuple[Ints, ...]
    """Columns, the same with the intercept, coefficients, slots, own columns."""

    @classmethod
    def of(
        cls, nodes: Nodes, incidence: Incidence, targets: Ints, n_columns: Ints, arrays: Arrays
    ) -> _Draft:
        """Draft the batch of nodes that are alike, with these numbers of columns."""
        width, d, k = int(nodes.width[targets[0]]), nodes.n_columns, int(padded(n_columns).max())
        first, place = incidence.node_entries[targets], np.arange(k)
        there = place < n_columns[:, None]
        entry = np.where(there, first[:, None] + place * width, 0)
        column = incidence.entry_column if len(incidence.entry_column) else np.zeros(1, np.int64)
        columns = np.full((len(targets), 1 + k), d + 1)
        columns[:, 1:] = np.where(there, column[entry], d)
        entries = np.where(there[:, :, None], entry[:, :, None] + np.arange(width), -1)
        kind, slots, terms = _conditional(nodes, targets, arrays)
        covered = nodes.column_start[targets][:, None] + np.arange(width)
        coefficients = np.where(entries < 0, len(incidence.theta_index), entries)
        parts = (columns[:, 1:], columns, coefficients, slots, covered)
        positions = tuple(part.ravel() for part in parts)
        return cls(kind, targets, width, n_columns, entries, terms, positions)

    def batch(self, parts: list[Array]) -> NodeBatch:
        """The batch with its positions on the device."""
        covered = self.positions[-1]
        follow = bool((np.diff(covered) == 1).all())
        columns, with_intercept, coefficients, slots, own = parts
        return NodeBatch(
            self.kind,
            self.nodes,
            self.width,
            self.n_columns,
            columns,
            with_intercept,
            coefficients,
            slots,
            own,
            int(covered[0]) if follow else -1,
            self.entries,
            self.terms,
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
