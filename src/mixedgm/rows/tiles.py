"""Gradients of all pairs of nodes, tile by tile -> those near their bound, and the largest.

Nodes of one width stand together in a tile, so that the norms of all their pairs are one sum over
two axes.  Nothing but what is wanted leaves the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.rows.arrays import Array, Arrays
from mixedgm.rows.contract import Outside, Question


@dataclass(frozen=True, eq=False)
class Tile:
    """Nodes of one width."""

    nodes: Ints
    """Numbers of the nodes, rising."""
    width: int
    first: int
    """First design column, where the columns of the nodes follow each other; else -1."""
    columns: Array
    """(nodes * width,) design columns of the nodes, on the device."""
    numbers: Array
    """The numbers of the nodes, on the device."""

    @property
    def n_columns(self) -> int:
        """Number of design columns."""
        return len(self.nodes) * self.width

    def of(self, xp: Array, matrix: Array) -> Array:
        """The rows of a matrix that belong to these columns; no copy where they follow."""
        if self.first >= 0:
            return matrix[self.first : self.first + self.n_columns, :]
        return xp.take(matrix, self.columns, axis=0)


def tiles_of(nodes: Nodes, arrays: Arrays, most_columns: int) -> list[Tile]:
    """All nodes, in tiles of at most so many columns (or one node)."""
    out = []
    for width in np.unique(nodes.width).tolist():
        alike = np.flatnonzero(nodes.width == width)
        some = max(1, most_columns // width)
        for a in range(0, len(alike), some):
            part = alike[a : a + some]
            columns = (nodes.column_start[part][:, None] + np.arange(width)).ravel()
            follow = columns[-1] - columns[0] == len(columns) - 1
            first = int(columns[0]) if follow else -1
            out.append(Tile(part, width, first, arrays.put(columns), arrays.put(part)))
    return out


class Wanted:
    """Pairs that a question asks for, collected from tiles of the matrix of all pairs."""

    def __init__(
        self, tiles: list[Tile], question: Question, arrays: Arrays, *, shared: bool
    ) -> None:
        self._tiles, self._question, self._arrays, self._shared = tiles, question, arrays, shared
        every = range(len(tiles))
        self.pairs = [(i, j) for i in every for j in every if not shared or i <= j]
        """Which tiles of the matrix are needed."""
        self._largest, self._count = 0.0, 0
        self._found: list[tuple[Ints, Ints, Floats]] = []
        weights = question.weights
        self._by_kind, self._kind = arrays.put(weights.by_kind), arrays.put(weights.kind)
        self._scale = arrays.put(weights.scale)
        self._is_symmetric = np.array_equal(weights.by_kind, weights.by_kind.T)
        self._exceptions = self._located()

    def _located(self) -> dict[tuple[int, int], tuple[Array, Array]]:
        """Exceptions by pair of tiles: places in the matrix of their nodes, and weights."""
        weights, tiles = self._question.weights, self._tiles
        if not len(weights.pairs):
            return {}
        tile, place = np.zeros((2, weights.n_nodes), dtype=np.int64)
        for t, each in enumerate(tiles):
            tile[each.nodes], place[each.nodes] = t, np.arange(len(each.nodes))
        u, v = weights.pairs.T
        if self._shared:
            turned = tile[u] > tile[v]
            u, v = np.where(turned, v, u), np.where(turned, u, v)
        size = np.array([len(each.nodes) for each in tiles])
        key, at = tile[u] * len(tiles) + tile[v], place[u] * size[tile[v]] + place[v]
        order = np.argsort(key, kind="stable")
        key, places = key[order], self._arrays.put(at[order])
        given = self._arrays.put(weights.weights[order])
        cuts = [0, *(np.flatnonzero(np.diff(key)) + 1).tolist(), len(key)]
        return {
            (int(key[a]) // len(tiles), int(key[a]) % len(tiles)): (places[a:b], given[a:b])
            for a, b in zip(cuts[:-1], cuts[1:], strict=True)
        }

    def add(self, pair: tuple[int, int], gradient: Array) -> None:
        """Take a tile of the gradient of all pairs: (columns, columns)."""
        xp, one, two = self._arrays.xp, self._tiles[pair[0]], self._tiles[pair[1]]
        shape = (len(one.nodes), one.width, len(two.nodes), two.width)
        square = xp.sum(xp.reshape(gradient * gradient, shape), axis=(1, 3))
        weight = self._weights(pair)
        is_asked = xp.isfinite(weight)
        if pair[0] == pair[1]:
            u, v = one.numbers[:, None], two.numbers[None, :]
            is_asked = is_asked & (u < v if self._shared else u != v)
        # What is not asked about has no entry: minus one.
        entry = xp.where(is_asked, xp.sqrt(square) / weight, -1.0)
        self._keep(xp.reshape(entry, (-1,)), one, two)

    def _weights(self, pair: tuple[int, int]) -> Array:
        """(nodes, nodes) weights of all pairs of two tiles."""
        xp, i, j = self._arrays.xp, self._tiles[pair[0]].numbers, self._tiles[pair[1]].numbers
        a, b = xp.take(self._kind, i, axis=0), xp.take(self._kind, j, axis=0)
        out = xp.take(xp.take(self._by_kind, a, axis=0), b, axis=1)
        if self._shared and not self._is_symmetric:
            # The first kind is that of the node with the smaller number.
            turned = xp.permute_dims(xp.take(xp.take(self._by_kind, b, axis=0), a, axis=1), (1, 0))
            out = xp.where(i[:, None] < j[None, :], out, turned)
        out = xp.take(self._scale, i, axis=0)[:, None] * xp.take(self._scale, j, axis=0) * out
        if pair in self._exceptions:
            places, given = self._exceptions[pair]
            flat = xp.reshape(out, (-1,))
            flat[places] = given
            out = xp.reshape(flat, out.shape)
        return out

    def _keep(self, entry: Array, one: Tile, two: Tile) -> None:
        """Count entries of a tile, and keep the largest that are wanted."""
        xp, arrays, question = self._arrays.xp, self._arrays, self._question
        if not entry.shape[0]:
            return
        is_wanted = (entry >= question.floor) & (entry >= 0.0)
        summary = xp.stack(
            [xp.max(entry), xp.astype(xp.sum(xp.astype(is_wanted, xp.int64)), entry.dtype)]
        )
        largest, count = arrays.get(summary).tolist()
        self._largest, n = float(np.maximum(self._largest, largest)), int(count)
        self._count += n
        if n == 0 or question.most == 0:
            return
        if n > question.most:
            # As many as are wanted, and those that are equal to the last of them.
            least = xp.sort(xp.where(is_wanted, entry, -1.0))[-question.most]
            is_wanted = is_wanted & (entry >= least)
        at = xp.nonzero(is_wanted)[0]
        values, places = arrays.get(xp.take(entry, at, axis=0)), arrays.get(at).astype(np.int64)
        u, v = one.nodes[places // len(two.nodes)], two.nodes[places % len(two.nodes)]
        if self._shared:
            u, v = np.minimum(u, v), np.maximum(u, v)
        self._found.append((u, v, values))

    def answer(self) -> Outside:
        """The largest, how many are wanted, and these in order."""
        if not self._found:
            none = np.zeros((0, 2), dtype=np.int64)
            return Outside(self._largest, self._count, none, np.zeros(0))
        u, v, entries = (np.concatenate(part) for part in zip(*self._found, strict=True))
        order = np.lexsort((v, u, -entries))[: self._question.most]
        pairs = np.column_stack([u, v])[order]
        return Outside(self._largest, self._count, pairs, entries[order])
