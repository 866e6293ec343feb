"""Nodes of like size -> their conditionals, computed together with the functions of the array API.

A batch has G nodes of one kind with w design columns each; their predictors are padded to the same
number K of columns with a column of zeros.  Linear predictors m are arrays (G, w, rows), and all
sums are over rows, times weights where there are some.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mixedgm.families.contract import Conditional, Family
from mixedgm.families.finite import FiniteConditional
from mixedgm.families.hurdle import HurdleConditional, HurdleFamily
from mixedgm.model.layout import Floats, Incidence, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.arrays import Array, Arrays
from mixedgm.rows.curvature import assembled


def weighed(values: Array, weight: Array | None) -> Array:
    """(..., rows) times the weights of the rows, if they have some."""
    return values if weight is None else values * weight


def _turned(xp: Array, array: Array) -> Array:
    """The last two axes exchanged."""
    return xp.permute_dims(array, (0, 2, 1))


def curvature_sums(
    xp: Array, given: Conditional, weight: Array | None, z: Array
) -> tuple[Array, ...]:
    """Sums of second derivatives of a batch; z (G, 1 + K, rows) has the intercept first."""
    if isinstance(given, HurdleConditional):
        return _of_hurdles(xp, given, weight, z)
    assert isinstance(given, FiniteConditional)  # those of Gaussian nodes follow from moments
    if given.family.scores is None:
        return _of_indicators(xp, given, weight, z)
    return _of_scores(xp, given, weight, z)


def _of_indicators(
    xp: Array, given: FiniteConditional, weight: Array | None, z: Array
) -> tuple[Array, ...]:
    """(G, 1 + K, 1 + K, packed): of diag(p) - pp', the lower triangle over levels 1 to L - 1.

    In one product for every pair of levels, over all nodes of the batch.
    """
    p, parts = given.chance, []
    for k in range(1, int(p.shape[1])):
        for other in range(1, k + 1):
            both = -p[:, k, :] * p[:, other, :]
            both = weighed(both + p[:, k, :] if other == k else both, weight)
            parts.append(xp.matmul(z * both[:, None, :], _turned(xp, z)))
    return (xp.stack(parts, axis=3),)


def _of_scores(
    xp: Array, given: FiniteConditional, weight: Array | None, z: Array
) -> tuple[Array, ...]:
    """Sums for own terms (G, T, T), these with columns (G, T, K), and columns (G, K, K)."""
    z, features, terms = z[:, 1:, :], given.family.features, given.terms
    variance, mixed = given.covariances()
    columns = xp.matmul(z * weighed(variance[:, 0, :, :], weight), _turned(xp, z))
    shares = xp.sum(weighed(given.chance, weight), axis=2)
    if features is None:
        one = xp.eye(int(shares.shape[1]), dtype=shares.dtype, device=_device(shares))
        second = shares[:, :, None] * one
    else:
        second = xp.matmul(_turned(xp, features), features * shares[:, :, None])
    own = second - xp.matmul(weighed(terms, weight), _turned(xp, terms))
    return own, xp.matmul(weighed(mixed[:, 0, :, :], weight), _turned(xp, z)), columns


def _of_hurdles(
    xp: Array, given: HurdleConditional, weight: Array | None, z: Array
) -> tuple[Array, ...]:
    """Sums for pairs of b and x (G, 3, 1 + K, 1 + K), and with -x^2 / 2 (G, 3, 1 + K)."""
    parts = tuple(weighed(part, weight) for part in given.of_statistics())
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

    family: Family
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

    def given(self, xp: Array, m: Array, slots: Array) -> Conditional:
        """The conditionals, given predictors (G, w, rows) and own logits or terms of all nodes."""
        own = xp.reshape(xp.take(slots, self.slots, axis=0), (self.n_nodes, -1))
        return self.family.given(own, m, xp)

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
            if isinstance(self.family, HurdleFamily):
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

    family: Family
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
        family, slots, terms = _conditional(nodes, targets, arrays)
        covered = nodes.column_start[targets][:, None] + np.arange(width)
        coefficients = np.where(entries < 0, len(incidence.theta_index), entries)
        parts = (columns[:, 1:], columns, coefficients, slots, covered)
        positions = tuple(part.ravel() for part in parts)
        return cls(family, targets, width, n_columns, entries, terms, positions)

    def batch(self, parts: list[Array]) -> NodeBatch:
        """The batch with its positions on the device."""
        covered = self.positions[-1]
        follow = bool((np.diff(covered) == 1).all())
        columns, with_intercept, coefficients, slots, own = parts
        return NodeBatch(
            self.family,
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


def _conditional(nodes: Nodes, targets: Ints, arrays: Arrays) -> tuple[Family, Ints, Ints]:
    """The family of nodes that are alike, where their slots are, and their own terms."""
    families = [nodes.families[node] for node in targets.tolist()]
    family = type(families[0]).stacked(families).on(arrays.put)
    if nodes.is_gaussian(int(targets[0])):
        # The slots of Gaussian nodes are linear term and precision of the first, and so on.
        slots = np.column_stack([2 * targets, 2 * targets + 1])
        return family, slots, np.zeros((len(targets), 0), dtype=np.int64)
    places = nodes.node_place[targets]
    slots = _ranges(nodes.slot_start, places, int(nodes.slot_start[-1]))
    return family, slots, _ranges(nodes.term_start, places, -1)


def _ranges(start: Ints, places: Ints, padding: int) -> Ints:
    """(G, most) the positions start[j] : start[j + 1] of every place, one row for each."""
    count = start[places + 1] - start[places]
    k = np.arange(int(count.max()))
    return np.where(k < count[:, None], start[places][:, None] + k, padding)
