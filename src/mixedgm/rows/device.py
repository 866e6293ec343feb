"""Rows in memory -> Rows on a GPU: whole matrices there, and only sums come back.

Everything is written with the functions of the Python array API (`arrays`), in double precision.
Design columns Z stand on the device columns by rows, where they fit as one matrix, else block of
rows by block.  Where few coefficients are in use, the columns that predict a node are gathered, and
nodes of like size are multiplied together (`batches`); where many are, one product does it all.

Gradients of all pairs of nodes, tile by tile -> those near their bound, and the largest.

Nodes of one width stand together in a tile, so that the norms of all their pairs are one sum over
two axes.  Nothing but what is wanted leaves the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import NotYetError, OutOfMemoryError
from mixedgm.model.layout import Floats, Incidence, Ints, spans
from mixedgm.model.nodes import Nodes
from mixedgm.rows.arrays import Array, Arrays, arrays_on
from mixedgm.rows.batches import NodeBatch, alike, batches_of, curvature_sums, weighed
from mixedgm.rows.contract import (
    Coefficients,
    ColumnMoments,
    Conditionals,
    Gradient,
    Moments,
    NodeMatrices,
    Outside,
    Question,
    SoftmaxCurvature,
    SoftmaxSums,
)
from mixedgm.rows.memory import MemoryRows

T = TypeVar("T")

# A column that is gathered costs about as much as so many that are multiplied in one product.
GATHERED_COST = 256.0
# Of the memory that is free at first: the share of Z and its like, and of batches.
_FOR_ROWS, _FOR_WORK, _FOR_MOMENTS = 0.6, 0.1, 0.2
_FEWEST_ROWS = 256
# Columns of a tile of the matrix of all pairs.
_TILE = 4096
_PLANS = 6
_GB = 1e9


@dataclass(frozen=True, eq=False)
class DeviceBlock:
    """Some rows on the device."""

    z: Array
    """(d + 2, rows) design columns; then zeros, and ones."""
    weight: Array | None
    """(rows,)"""

    def every(self, first: int, stride: int) -> DeviceBlock:
        """The rows first, first + stride, ..."""
        weight = None if self.weight is None else self.weight[first::stride]
        return DeviceBlock(self.z[:, first::stride], weight)


@dataclass(frozen=True, eq=False)
class PassPlan:
    """How the linear predictors of some nodes are computed."""

    incidence: Incidence
    targets: Ints
    batches: list[NodeBatch]
    is_dense: bool
    """Whether by one product with a matrix of all coefficients."""


@dataclass(eq=False)
class DeviceRows:
    """Rows on a device, and in memory for what is not asked of a device."""

    memory: MemoryRows
    arrays: Arrays
    block_rows: int | None = None
    """Rows on the device at a time; by default as many as fit."""
    gathered_cost: float = GATHERED_COST
    """Cost by which either the columns that predict a node are gathered, or one product is made for
    all nodes."""
    curvature_at_once: ClassVar[int] = 2**23
    """Numbers of curvature to be asked for in one call: every call takes some milliseconds."""
    passes: float = field(default=0.0, init=False)
    curvature_passes: float = field(default=0.0, init=False)
    part_seconds: tuple[float, float] = field(default=(0.0, 0.0), init=False)
    _plans: list[PassPlan] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.memory.products is not None:
            raise NotYetError(
                f"moderated edges are not available yet with device={self.arrays.name!r}; "
                "use device='cpu'."
            )
        self._budget = self.arrays.free_bytes()
        self._kept: dict[tuple[int, int], DeviceBlock] = {}
        self._block_rows = self._rows_that_fit()

    @property
    def nodes(self) -> Nodes:
        """Kinds of the columns."""
        return self.memory.nodes

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.memory.n_rows

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return self.memory.total_weight

    @property
    def _d(self) -> int:
        return self.nodes.n_columns

    @property
    def _width(self) -> int:
        """Design columns of discrete nodes."""
        return int(self.nodes.width[self.nodes.discrete].sum())

    @cached_property
    def _first_softmax(self) -> int:
        """The first design column of discrete nodes."""
        return -int(self.nodes.softmax_column[0]) if self._d else 0

    # -- rows on the device ------------------------------------------------------------------------

    def _rows_that_fit(self) -> int:
        """Rows of a block: Z, residuals, expected columns and one more of their size must fit."""
        if self.block_rows is not None:
            return min(self.block_rows, self.n_rows)
        each = 8 * (2 * self._d + 2 * self._width + 4)
        return int(min(self.n_rows, max(_FEWEST_ROWS, _FOR_ROWS * self._budget // each)))

    def _blocks(self) -> Iterator[DeviceBlock]:
        size = self._block_rows
        for first in range(0, self.n_rows, size):
            yield self._block(first, min(first + size, self.n_rows))

    def _block(self, first: int, last: int) -> DeviceBlock:
        """Rows first:last; kept if they are all, else copied from memory again and again."""
        if (first, last) in self._kept:
            return self._kept[first, last]
        arrays, xp, rows = self.arrays, self.arrays.xp, self.memory
        z = arrays.zeros((self._d + 2, last - first))
        z[self._d + 1, :] = 1.0
        p = self.nodes.n_numeric
        z[:p, :] = xp.permute_dims(arrays.put(rows.numbers[first:last]), (1, 0))
        node, level = self._indicators
        if len(node):
            own = _plain(rows.codes[first:last, self.nodes.first_indicator :])
            codes = xp.permute_dims(arrays.put(own), (1, 0))
            for a in range(0, len(node), _TILE):
                part = slice(a, min(a + _TILE, len(node)))
                of_columns = xp.take(codes, arrays.put(node[part]), axis=0)
                seen = of_columns == arrays.put(level[part].astype(own.dtype))[:, None]
                z[p + part.start : p + part.stop, :] = xp.astype(seen, xp.float64)
        weight = None if rows.weights is None else arrays.put(rows.weights[first:last])
        block = DeviceBlock(z, weight)
        if last - first == self.n_rows:
            self._kept[first, last] = block
        return block

    @cached_property
    def _indicators(self) -> tuple[Ints, Ints]:
        """Node, counted among those with indicators, and level of every indicator."""
        nodes = self.nodes
        column = np.arange(nodes.n_numeric, nodes.n_columns)
        node = nodes.column_node[column]
        return nodes.node_place[node] - nodes.first_indicator, column - nodes.column_start[node]

    def _with_memory(self, compute: Callable[[], T]) -> T:
        """Compute; where the device is full, with fewer rows at a time."""
        while True:
            try:
                return compute()
            except Exception as error:
                if not self.arrays.is_full(error) or isinstance(error, OutOfMemoryError):
                    raise
                rows = self._block_rows
                message = self._what_would_fit()
            # Outside of the handler, which keeps the arrays of what has failed.
            if rows <= _FEWEST_ROWS:
                raise OutOfMemoryError(message)
            self._kept.clear()
            self._plans.clear()
            self._block_rows = max(_FEWEST_ROWS, rows // 2)
            self.arrays.release()

    def _what_would_fit(self) -> str:
        """Why no number of rows is small enough, and what would be."""
        d, free = self._d, self._budget / _GB
        needed = 8 * d * d / _GB
        columns = int((0.5 * self._budget / 8) ** 0.5)
        return (
            f"there is not enough memory on {self.arrays.name!r}: {d:,} design columns (one per "
            f"number, one per level) have a matrix of {needed:,.1f} GB, and {free:,.1f} GB were "
            f"free. About {columns:,} design columns would fit. To fix: fewer columns or levels, a "
            "GPU with more memory or without other programs on it, or device='cpu'."
        )

    # -- moments -----------------------------------------------------------------------------------

    def moments(self) -> Moments:
        """Weighted means and second moments of the design columns, copied from the device."""
        return self._moments

    @cached_property
    def _moments(self) -> Moments:
        columns = self._column_moments
        second = self.arrays.get(self._gram).reshape(self._d, self._d)
        return Moments(columns.total_weight, columns.mean, second, columns.shares)

    @cached_property
    def _gram(self) -> Array:
        """(d * d,) second moments, on the device."""
        return self._with_memory(self._products)

    def _products(self) -> Array:
        xp, d, total = self.arrays.xp, self._d, self.arrays.zeros((self._d, self._d))
        for block in self._blocks():
            z = block.z[:d, :]
            total += xp.matmul(weighed(z, block.weight), xp.permute_dims(z, (1, 0)))
        total /= self.total_weight
        return xp.reshape(total, (d * d,))

    def column_moments(self) -> ColumnMoments:
        """Weighted means of the columns and of their squares, shares of values."""
        return self._column_moments

    @cached_property
    def _column_moments(self) -> ColumnMoments:
        mean, squares = self._with_memory(self._column_sums) / self.total_weight
        nodes, rows = self.nodes, self.memory
        counts = [
            np.bincount(rows.codes[:, j], rows.weights, nodes.n_levels[j]) / self.total_weight
            for j in range(nodes.n_spiked, nodes.first_indicator)
        ]
        spiked = [sums / self.total_weight for sums in rows.spiked_sums()]
        shares = np.concatenate([*spiked, *counts, mean[nodes.indicators]])
        return ColumnMoments(self.total_weight, mean, squares, shares)

    def _column_sums(self) -> Floats:
        """(2, d) weighted sums of the columns and of their squares."""
        xp, total = self.arrays.xp, np.zeros((2, self._d))
        for block in self._blocks():
            z = block.z[: self._d, :]
            once = weighed(z, block.weight)
            total += self.arrays.get(xp.stack([xp.sum(once, axis=1), xp.sum(once * z, axis=1)]))
        return total

    def second_moments(self, first: Ints, second: Ints) -> Floats:
        """The mean of z_a z_b for every pair of columns listed.

        Picked from the matrix of all of them, unless it is too large for the device.
        """
        if not len(first):
            return np.zeros(0)
        xp, arrays, d = self.arrays.xp, self.arrays, self._d
        if 8 * d * d <= _FOR_MOMENTS * self._budget:
            return arrays.get(xp.take(self._gram, arrays.put(first * d + second), axis=0))
        return self._with_memory(lambda: self._listed_products(first, second))

    def _listed_products(self, first: Ints, second: Ints) -> Floats:
        xp, arrays, out = self.arrays.xp, self.arrays, np.zeros(len(first))
        for block in self._blocks():
            some = max(1, int(_FOR_WORK * self._budget // (24 * block.z.shape[1])))
            for a in range(0, len(first), some):
                part = slice(a, a + some)
                one, two = (
                    xp.take(block.z, arrays.put(each[part]), axis=0) for each in (first, second)
                )
                out[part] += arrays.get(xp.sum(weighed(one * two, block.weight), axis=1))
        return out / self.total_weight

    # -- conditionals ------------------------------------------------------------------------------

    def _plan(self, incidence: Incidence, targets: Ints) -> PassPlan:
        """How to predict these nodes; the last few plans are kept."""
        for plan in self._plans:
            if plan.incidence is incidence and np.array_equal(plan.targets, targets):
                return plan
        nodes = self.nodes
        n_columns = np.diff(incidence.node_entries)[targets] // nodes.width[targets]
        covered = int(nodes.width[targets].sum())
        is_dense = self.gathered_cost * int(n_columns.sum()) > self._d * covered
        most = _FOR_WORK * self._budget / (8 * self._block_rows)
        batches = batches_of(nodes, incidence, targets, self._alike, self.arrays, most)
        plan = PassPlan(incidence, targets, batches, is_dense)
        self._plans[:] = [plan, *self._plans[: _PLANS - 1]]
        return plan

    @cached_property
    def _alike(self) -> Ints:
        return alike(self.nodes)

    def _coefficient_matrix(self, plan: PassPlan, values: Floats) -> Array:
        """(columns, d) coefficients: a row for every column from the first target to the last."""
        incidence, d, columns = plan.incidence, self._d, self._columns_between(plan.targets)
        first, last = incidence.node_entries[plan.targets], incidence.node_entries[plan.targets + 1]
        entries = spans(first, last - first)
        out = self.arrays.zeros((len(columns) * d,))
        if len(entries):
            row = incidence.entry_target[entries] - columns.start
            at = row * d + incidence.entry_column[entries]
            out[self.arrays.put(at)] = self.arrays.put(values[entries])
        return self.arrays.xp.reshape(out, (len(columns), d))

    def _columns_between(self, targets: Ints) -> range:
        """The design columns from the first of these nodes to the last."""
        start = self.nodes.column_start
        return range(int(start[targets.min()]), int(start[targets.max() + 1]))

    def _predicted(
        self, plan: PassPlan, block: DeviceBlock, values: Array, matrix: Array | None
    ) -> Iterator[tuple[NodeBatch, Array | None, Array]]:
        """Every batch with its gathered columns (None where one product does it) and predictors."""
        xp, before = self.arrays.xp, self._columns_between(plan.targets).start
        if matrix is not None:
            every = xp.matmul(matrix, block.z[: self._d, :])
        for batch in plan.batches:
            if matrix is None:
                columns = batch.gathered(xp, block.z)
                yield batch, columns, batch.predictors(xp, columns, values)
                continue
            yield batch, None, batch.own_rows(xp, every, before)

    # -- passes ------------------------------------------------------------------------------------

    def softmax(self, coef: Coefficients, gradient: Gradient) -> SoftmaxSums:
        """Loss per discrete node and the mean of z E' as asked."""
        clock = time.perf_counter()
        self.passes += 0.5 if gradient == "none" else 1.0
        sums = self._with_memory(lambda: self._softmax(coef, gradient))
        self._spend(time.perf_counter() - clock, 0.0)
        return sums

    def _softmax(self, coef: Coefficients, gradient: Gradient) -> SoftmaxSums:
        plan = self._plan(coef.incidence, self.nodes.discrete_nodes[coef.nodes])
        values, slots = self._on_device(coef)
        matrix = self._coefficient_matrix(plan, coef.values) if plan.is_dense else None
        total: list[Array] = []
        for block in self._blocks():
            parts = self._softmax_block(plan, block, (values, slots, matrix), gradient)
            total = parts if not total else [a + b for a, b in zip(total, parts, strict=True)]
        return self._collected(plan, coef, total, gradient)

    def _on_device(self, coef: Coefficients) -> tuple[Array, Array]:
        """Coefficients and own logits, with what padded positions point at behind them."""
        n = len(coef.values) + 1
        both = self.arrays.put(np.concatenate([coef.values, [0.0], coef.bias, [-np.inf]]))
        return both[:n], both[n:]

    def _softmax_block(
        self,
        plan: PassPlan,
        block: DeviceBlock,
        given: tuple[Array, Array, Array | None],
        gradient: Gradient,
    ) -> list[Array]:
        """Sums over a block: per batch normalisers, terms, gradient; then those of all pairs."""
        xp, (values, slots, matrix) = self.arrays.xp, given
        out: list[Array] = []
        every = gradient == "all" or (gradient == "support" and plan.is_dense)
        expected = self.arrays.zeros((self._width, block.z.shape[1])) if every else None
        for batch, columns, m in self._predicted(plan, block, values, matrix):
            conditional = batch.given(xp, m, slots)
            out.append(xp.sum(weighed(conditional.log_normaliser, block.weight), axis=1))
            if gradient == "none":
                continue
            out.append(conditional.term_sums(block.weight))
            found = weighed(conditional.columns, block.weight)
            if expected is not None:
                batch.set_own_rows(xp, expected, self._first_softmax, found)
            else:
                out.append(xp.matmul(columns, xp.permute_dims(found, (0, 2, 1))))
        if expected is not None:
            product = xp.matmul(block.z[: self._d, :], xp.permute_dims(expected, (1, 0)))
            out.append(product)
        return out

    def _collected(
        self, plan: PassPlan, coef: Coefficients, total: list[Array], gradient: Gradient
    ) -> SoftmaxSums:
        """Means on the host, from the sums of a pass."""
        nodes, incidence, xp = self.nodes, coef.incidence, self.arrays.xp
        loss = np.zeros(len(nodes.n_levels))
        mean_terms, support = np.zeros(int(nodes.term_start[-1])), np.zeros(len(coef.values))
        all_pairs = None
        if gradient != "none" and (gradient == "all" or plan.is_dense):
            product = total.pop()
            if gradient == "all":
                all_pairs = self.arrays.get(product) / self.total_weight
            else:
                entries = incidence.softmax_entries
                target = nodes.softmax_column[incidence.entry_target[entries]]
                at = incidence.entry_column[entries] * self._width + target
                total.append(xp.take(xp.reshape(product, (-1,)), self.arrays.put(at), axis=0))
        found = iter(self._fetched(total))
        for batch in plan.batches:
            loss[nodes.node_place[batch.nodes]] = next(found)
            if gradient == "none":
                continue
            there = batch.terms >= 0
            mean_terms[batch.terms[there]] = next(found)[there]
            if gradient == "support" and not plan.is_dense:
                there = batch.entries >= 0
                support[batch.entries[there]] = next(found)[there]
        if gradient == "support" and plan.is_dense:
            support[incidence.softmax_entries] = next(found)
        loss[coef.nodes] -= self._seen(coef)[coef.nodes]
        loss[np.array(nodes.n_levels) == 1] = 0.0  # and not what rounding leaves of it
        return SoftmaxSums(
            loss / self.total_weight,
            mean_terms / self.total_weight if gradient != "none" else None,
            support / self.total_weight if gradient == "support" else None,
            all_pairs,
        )

    def _fetched(self, arrays: list[Array]) -> list[NDArray[Any]]:
        """Copy several arrays from the device at once."""
        if not arrays:
            return []
        xp = self.arrays.xp
        flat = self.arrays.get(xp.concat([xp.reshape(each, (-1,)) for each in arrays]))
        ends = np.cumsum([int(np.prod(each.shape)) for each in arrays])
        parts = np.split(flat, ends[:-1])
        return [part.reshape(tuple(each.shape)) for part, each in zip(parts, arrays, strict=True)]

    def _seen(self, coef: Coefficients) -> Floats:
        """(q,) sums of the logits of what was observed, which are linear in the coefficients.

        The logit of a value that no row has may be -inf.
        """
        nodes, incidence = self.nodes, coef.incidence
        shares = self._observed_shares
        logits = np.where(shares != 0.0, coef.bias, 0.0) * shares
        of_slot = np.repeat(np.arange(len(nodes.n_levels)), np.diff(nodes.slot_start))
        out = np.bincount(of_slot, logits, len(nodes.n_levels))
        entries = incidence.softmax_entries
        node = nodes.node_place[nodes.column_node[incidence.entry_target[entries]]]
        linear = coef.values[entries] * self._observed(incidence)
        return np.asarray(out + np.bincount(node, linear, len(out))) * self.total_weight

    @cached_property
    def _observed_shares(self) -> Floats:
        """Shares of values in the rows, even where a fit replaces those of hurdle columns."""
        return self._column_moments.shares.copy()

    def _observed(self, incidence: Incidence) -> Floats:
        """Mean of z_a and what the target of an entry has in a row, of every softmax entry.

        That is the target's own column, but for hurdle columns: these with their centres.
        """
        if self._last_observed is None or self._last_observed[0] is not incidence:
            nodes, entries = self.nodes, incidence.softmax_entries
            column, target = incidence.entry_column[entries], incidence.entry_target[entries]
            out = self.second_moments(column, target)
            if nodes.n_spiked:
                shift = np.zeros(self._d)
                for j, kind in nodes.spiked:
                    _, middle, low = kind.constants
                    shift[nodes.columns_of(nodes.discrete_nodes[j])] = low, middle
                out = out + shift[target] * self._column_moments.mean[column]
            self._last_observed = incidence, out
        return self._last_observed[1]

    _last_observed: tuple[Incidence, Floats] | None = field(default=None, init=False, repr=False)

    # -- curvature ---------------------------------------------------------------------------------

    def softmax_curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> SoftmaxCurvature:
        """Second derivatives of the mean loss of nodes with indicators, every stride-th row."""
        clock = time.perf_counter()
        self.curvature_passes += len(nodes) / self.memory.codes.shape[1] / stride
        targets = self.nodes.discrete_nodes[nodes]
        width = self.nodes.width[targets]
        n_columns = 1 + np.diff(coef.incidence.node_entries)[targets] // width
        start = np.zeros(len(nodes) + 1, dtype=np.int64)
        np.cumsum(n_columns**2 * (width * (width - 1) // 2), out=start[1:])
        sums = np.zeros(int(start[-1]))
        varies = np.flatnonzero(width > 1)
        where = {int(targets[k]): k for k in varies.tolist()}
        for batch, (found,) in self._curvature(coef, targets[varies], stride):
            for g, (node, k) in enumerate(zip(batch.nodes.tolist(), batch.n_columns, strict=True)):
                at = where[node]
                sums[start[at] : start[at + 1]] = found[g, : 1 + k, : 1 + k].ravel()
        self._spend(0.0, time.perf_counter() - clock)
        return SoftmaxCurvature(sums, start, width, n_columns, 1.0 / self._strided_weight(stride))

    def scored_curvature(self, coef: Coefficients, nodes: Ints, stride: int) -> NodeMatrices:
        """Second derivatives of scored nodes and of those with a spike."""
        clock = time.perf_counter()
        self.curvature_passes += len(nodes) / self.memory.codes.shape[1] / stride
        matrices: dict[int, Floats] = {}
        total = self._strided_weight(stride)
        for batch, found in self._curvature(coef, self.nodes.discrete_nodes[nodes], stride):
            whole = batch.whole_matrices([part / total for part in found], self.nodes)
            matrices |= zip(self.nodes.node_place[batch.nodes].tolist(), whole, strict=True)
        flat = [matrices[j].ravel() for j in nodes.tolist()]
        start = np.cumsum([0, *map(len, flat)]).astype(np.int64)
        self._spend(0.0, time.perf_counter() - clock)
        return NodeMatrices(nodes, start, np.concatenate(flat))

    def _strided_weight(self, stride: int) -> float:
        weights = self.memory.weights
        return float(-(-self.n_rows // stride) if weights is None else weights[::stride].sum())

    def _curvature(
        self, coef: Coefficients, targets: Ints, stride: int
    ) -> list[tuple[NodeBatch, list[NDArray[Any]]]]:
        """Sums of second derivatives, batch by batch, on the host."""
        return self._with_memory(lambda: list(self._curvature_batches(coef, targets, stride)))

    def _curvature_batches(
        self, coef: Coefficients, targets: Ints, stride: int
    ) -> Iterator[tuple[NodeBatch, list[NDArray[Any]]]]:
        if not len(targets):
            return
        xp, (values, slots) = self.arrays.xp, self._on_device(coef)
        for batch in self._plan(coef.incidence, targets).batches:
            total: list[Array] = []
            for at, block in enumerate(self._blocks()):
                first = -at * self._block_rows % stride
                if first >= block.z.shape[1]:
                    continue
                some = block.every(first, stride)
                z = xp.take(some.z, batch.with_intercept, axis=0)
                z = xp.reshape(z, (batch.n_nodes, 1 + batch.shape[1], -1))
                m = batch.predictors(xp, z[:, 1:, :], values)
                parts = list(curvature_sums(xp, batch.given(xp, m, slots), some.weight, z))
                total = [a + b for a, b in zip(total, parts, strict=True)] if total else parts
            yield batch, self._fetched(total)

    # -- all pairs ---------------------------------------------------------------------------------

    def outside(self, conditionals: Conditionals, question: Question) -> Outside:
        """Pairs, among those asked about, whose gradient is near its bound.

        The matrix of all pairs is made tile by tile, and never leaves the device.
        """
        clock = time.perf_counter()
        self.passes += 1.0
        found = self._with_memory(lambda: self._outside(conditionals, question))
        self._spend(time.perf_counter() - clock, 0.0)
        return found

    def _outside(self, conditionals: Conditionals, question: Question) -> Outside:
        tiles = self._tiles
        wanted = Wanted(tiles, question, self.arrays, shared=conditionals.shared)
        blocks = -(-self.n_rows // self._block_rows)
        total: dict[tuple[int, int], Array] = {}
        for block in self._blocks():
            residuals = self._residuals(conditionals, block)
            for pair in wanted.pairs:
                product = self._tile(block.z, residuals, tiles, pair, conditionals.shared)
                if blocks == 1:
                    wanted.add(pair, product / self.total_weight)
                else:
                    total[pair] = total[pair] + product if pair in total else product
        for pair, product in total.items():
            wanted.add(pair, product / self.total_weight)
        return wanted.answer()

    @cached_property
    def _tiles(self) -> list[Tile]:
        return tiles_of(self.nodes, self.arrays, _TILE)

    def _tile(
        self, z: Array, r: Array, tiles: list[Tile], pair: tuple[int, int], shared: bool
    ) -> Array:
        """Sums of z_u r_v' (and of r_u z_v') for the columns of two tiles."""
        xp, (one, two) = self.arrays.xp, (tiles[pair[0]], tiles[pair[1]])
        product = xp.matmul(one.of(xp, z), xp.permute_dims(two.of(xp, r), (1, 0)))
        if shared and pair[0] == pair[1]:
            return product + xp.permute_dims(product, (1, 0))
        if shared:
            product += xp.matmul(one.of(xp, r), xp.permute_dims(two.of(xp, z), (1, 0)))
        return product

    def _residuals(self, conditionals: Conditionals, block: DeviceBlock) -> Array:
        """(d, rows) expected less observed design columns, times weights; 0 if not predicted."""
        xp, arrays, nodes = self.arrays.xp, self.arrays, self.nodes
        predicted = np.flatnonzero(conditionals.predicted)
        gaussian = predicted[nodes.gaussian_nodes[predicted]]
        discrete = predicted[~nodes.gaussian_nodes[predicted]]
        coef, out = conditionals.softmax, arrays.zeros((self._d, block.z.shape[1]))
        values, of_values = self._on_device(coef)
        pairs = np.column_stack([conditionals.linear, conditionals.precision])
        of_numbers = arrays.put(pairs.ravel())
        for targets, slots in ((gaussian, of_numbers), (discrete, of_values)):
            if not len(targets):
                continue
            plan = self._plan(coef.incidence, targets)
            matrix = self._coefficient_matrix(plan, coef.values) if plan.is_dense else None
            for batch, _, m in self._predicted(plan, block, values, matrix):
                found = weighed(batch.given(xp, m, slots).columns, block.weight)
                batch.set_own_rows(xp, out, 0, found)
        seen = weighed(block.z[: self._d, :], block.weight)
        is_predicted = arrays.put(conditionals.predicted[nodes.column_node].astype(np.float64))
        out -= seen if conditionals.predicted.all() else seen * is_predicted[:, None]
        return out

    def _spend(self, passes: float, curvature: float) -> None:
        self.part_seconds = (self.part_seconds[0] + passes, self.part_seconds[1] + curvature)


def rows_on(device: str, rows: MemoryRows) -> DeviceRows:
    """The rows on a device, which is named as for `arrays_on`."""
    return DeviceRows(rows, arrays_on(device))


def _plain(codes: NDArray[np.integer]) -> NDArray[np.integer]:
    """Codes of a type that all libraries have."""
    return codes if codes.dtype == np.uint8 else codes.astype(np.int32)


# -- tiles -----------------------------------------------------------------------------------------


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
