"""Column kinds and permitted edges -> where every parameter sits in the flat vector theta.

This is the only owner of offsets.  Nodes are numbered continuous columns first, then
categorical ones.  The *design columns* are the continuous columns followed by one indicator per
level; node v covers the columns ``column_start[v]:column_start[v + 1]``.  Theta is

    [ cont_bias (p) | diagonal of the precision (p) | cat_bias (sum of levels) | edge groups ]

with one contiguous group per permitted edge (u, v), u < v, holding the ``width[u] x width[v]``
block in row-major order.  For two continuous nodes the entry is *minus* the precision, so that
every linear predictor reads ``bias + Z @ coef``.

An edge is shared by the conditionals of both its ends, unless the layout is *nodewise*: then every
node has coefficients of its own, and the group (u, v) is what u says in the conditional of v.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MANY_GROUPS = 2000
"""From here on a compiled loop is worth loading the compiler for."""

_RESTRICTED_KEPT = 8


@dataclass(frozen=True, eq=False)
class Incidence:
    """The same parameters seen from the conditional of each node.

    Target node v has the predictor nodes ``predictor[target_ptr[v]:target_ptr[v + 1]]``.  The
    k-th predictor, u, is joined to v by the edge ``group[k]`` and contributes the coefficients
    ``entry_ptr[k]:entry_ptr[k + 1]``: a ``width[u] x width[v]`` block, row-major.  Coefficient e
    equals ``theta[theta_index[e]]`` and stands at ``(entry_column[e], entry_target[e])`` of the
    symmetric matrix of design columns.
    """

    target_ptr: Ints
    predictor: Ints
    group: Ints
    entry_ptr: Ints
    theta_index: Ints
    entry_column: Ints
    entry_target: Ints

    def entries_of(self, node: int) -> slice:
        """Coefficients that belong to the conditional of `node`."""
        first, last = self.target_ptr[node], self.target_ptr[node + 1]
        return slice(int(self.entry_ptr[first]), int(self.entry_ptr[last]))


@dataclass(frozen=True, eq=False)
class Layout:
    """Offsets of node terms and edge groups.

    Parameters
    ----------
    n_cont : int
        Number of continuous nodes.
    n_levels : tuple of int
        Levels of every categorical node.
    pairs : ndarray (n_groups, 2)
        Permitted edges, sorted; u < v, or in both directions when nodewise.
    covariates : tuple of int
        Nodes that predict but are not predicted: they have no conditional.  Their own terms stand
        in theta like all others, and nothing depends on them.
    nodewise : bool
        Whether every node has its own copy of the coefficients.

    Examples
    --------
    >>> layout = Layout.complete(1, (2, 3))
    >>> layout.pairs.tolist()
    [[0, 1], [0, 2], [1, 2]]
    >>> layout.n_theta                       # 1 + 1 + 5 node terms, 2 + 3 + 6 edge terms
    18
    """

    n_cont: int
    n_levels: tuple[int, ...]
    pairs: Ints
    covariates: tuple[int, ...] = ()
    nodewise: bool = False

    @classmethod
    def complete(
        cls,
        n_cont: int,
        n_levels: tuple[int, ...],
        absent: NDArray[np.bool_] | None = None,
        covariates: tuple[int, ...] = (),
        nodewise: bool = False,
    ) -> Layout:
        """All pairs, less those of two covariates and those marked in the mask `absent`."""
        n_nodes = n_cont + len(n_levels)
        u, v = np.triu_indices(n_nodes, 1)
        if nodewise:
            u, v = np.nonzero(~np.eye(n_nodes, dtype=bool))
        keep = ~np.isin(v, covariates)
        if not nodewise:
            keep |= ~np.isin(u, covariates)
        if absent is not None:
            keep &= ~absent[u, v]
        pairs = np.column_stack([u[keep], v[keep]]).astype(np.int64)
        return cls(n_cont, n_levels, pairs, covariates, nodewise)

    @cached_property
    def n_nodes(self) -> int:
        """Number of columns of the table."""
        return self.n_cont + len(self.n_levels)

    @cached_property
    def n_groups(self) -> int:
        """Number of permitted edges."""
        return len(self.pairs)

    @cached_property
    def width(self) -> Ints:
        """Design columns per node: 1, or the number of levels."""
        return np.array([1] * self.n_cont + list(self.n_levels), dtype=np.int64)

    @cached_property
    def is_target(self) -> NDArray[np.bool_]:
        """Whether a node has a conditional."""
        found = np.ones(self.n_nodes, dtype=bool)
        found[list(self.covariates)] = False
        return found

    @cached_property
    def predicted_categories(self) -> Ints:
        """Categorical columns that have a conditional, counted from 0."""
        return np.flatnonzero(self.is_target[self.n_cont :])

    @cached_property
    def column_start(self) -> Ints:
        """First design column of every node, and the end."""
        return np.concatenate([[0], np.cumsum(self.width)]).astype(np.int64)

    @cached_property
    def column_node(self) -> Ints:
        """Node of every design column."""
        return np.repeat(np.arange(self.n_nodes), self.width)

    @property
    def n_columns(self) -> int:
        """Number of design columns, d."""
        return int(self.column_start[-1])

    @property
    def n_cat_columns(self) -> int:
        """Number of level columns."""
        return self.n_columns - self.n_cont

    # -- node terms --------------------------------------------------------------------------

    @property
    def cont_bias(self) -> slice:
        """Theta positions of the linear terms of continuous nodes."""
        return slice(0, self.n_cont)

    @property
    def diagonal(self) -> slice:
        """Theta positions of the diagonal of the precision."""
        return slice(self.n_cont, 2 * self.n_cont)

    @property
    def cat_bias(self) -> slice:
        """Theta positions of the biases of all levels."""
        return slice(2 * self.n_cont, self.n_node_terms)

    @cached_property
    def n_node_terms(self) -> int:
        """Number of parameters that are not edges."""
        return 2 * self.n_cont + self.n_cat_columns

    def node_terms_of(self, node: int) -> Ints:
        """Theta positions of a node's own terms: (bias, diagonal), or the biases of its levels."""
        if node < self.n_cont:
            return np.array([node, self.n_cont + node])
        first = self.n_cont + self.column_start[node]
        return np.arange(first, first + self.width[node])

    # -- edge groups -------------------------------------------------------------------------

    @cached_property
    def sizes(self) -> Ints:
        """Parameters per group."""
        width = self.width
        return np.asarray(width[self.pairs[:, 0]] * width[self.pairs[:, 1]])

    @cached_property
    def starts(self) -> Ints:
        """Theta position where each group begins; one more entry marks the end."""
        return self.n_node_terms + np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def n_theta(self) -> int:
        """Number of all parameters."""
        return int(self.starts[-1])

    @property
    def edges(self) -> slice:
        """Theta positions of all edge parameters."""
        return slice(self.n_node_terms, self.n_theta)

    @cached_property
    def edge_position(self) -> tuple[Ints, Ints]:
        """(row, column) of every edge parameter in the symmetric matrix of design columns."""
        within = np.arange(int(self.sizes.sum())) - np.repeat(
            self.starts[:-1] - self.n_node_terms, self.sizes
        )
        width_v = np.repeat(self.width[self.pairs[:, 1]], self.sizes)
        first_u = np.repeat(self.column_start[self.pairs[:, 0]], self.sizes)
        first_v = np.repeat(self.column_start[self.pairs[:, 1]], self.sizes)
        return first_u + within // width_v, first_v + within % width_v

    def group_norms(self, theta: Floats) -> Floats:
        """Euclidean norm of every group."""
        if self.n_groups < _MANY_GROUPS:
            return np.sqrt(self.group_sums(theta[self.edges] ** 2))
        from mixedgm.model.kernels import group_norms

        out = np.empty(self.n_groups)
        group_norms(self.starts, theta, out)
        return out

    def group_sums(self, edge_values: Floats) -> Floats:
        """Sum over the parameters of each group; `edge_values` covers the edge part of theta."""
        if self.n_groups == 0:
            return np.zeros(0)
        return np.asarray(np.add.reduceat(edge_values, self.starts[:-1] - self.n_node_terms))

    @cached_property
    def conditionals(self) -> Ints:
        """In how many conditionals each group is."""
        found = self.is_target[self.pairs[:, 1]].astype(np.int64)
        return found if self.nodewise else found + self.is_target[self.pairs[:, 0]]

    @property
    def conditionals_at_most(self) -> int:
        """In how many conditionals a group can be."""
        return 1 if self.nodewise else 2

    def spread(self, per_group: Floats) -> Floats:
        """One value per group -> one value per edge parameter."""
        return np.repeat(per_group, self.sizes)

    def same(self, other: Layout) -> bool:
        """Whether another layout has the same nodes and edges."""
        mine = (self.n_cont, self.n_levels, self.covariates, self.nodewise)
        if mine != (other.n_cont, other.n_levels, other.covariates, other.nodewise):
            return False
        return np.array_equal(self.pairs, other.pairs)

    def restrict(self, groups: Ints) -> Layout:
        """The layout with only these groups (sorted indices) and all node terms.

        The last few are kept, because solvers of similar problems ask for the same ones again.
        """
        key = groups.tobytes()
        found = self._restricted.get(key)
        if found is None:
            found = replace(self, pairs=self.pairs[groups])
            # A new dict each time: another thread may be reading the old one.
            last = list(self._restricted.items())[1 - _RESTRICTED_KEPT :]
            vars(self)["_restricted"] = dict([*last, (key, found)])
        return found

    @cached_property
    def _restricted(self) -> dict[bytes, Layout]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """Only what defines it: the rest is computed anew where it is unpickled."""
        return {field.name: vars(self)[field.name] for field in fields(self)}

    def positions(self, groups: Ints) -> Ints:
        """Theta positions of the node terms and these groups, in the restricted layout's order."""
        edge = _spans(self.starts[:-1][groups], self.sizes[groups])
        return np.concatenate([np.arange(self.n_node_terms), edge])

    # -- symmetric matrix of design columns ----------------------------------------------------

    def to_matrix(self, theta: Floats) -> Floats:
        """Edge parameters as the d x d matrix with zero diagonal blocks.

        Column by column the coefficients of a conditional; symmetric unless nodewise.
        """
        matrix = np.zeros((self.n_columns, self.n_columns))
        row, column = self.edge_position
        if not self.nodewise:
            matrix[column, row] = theta[self.edges]
        matrix[row, column] = theta[self.edges]
        return matrix

    def from_matrix(self, matrix: Floats) -> Floats:
        """Edge parameters read from the upper blocks of a d x d matrix."""
        row, column = self.edge_position
        return np.asarray(matrix[row, column])

    def centred(self, theta: Floats, groups: Ints) -> Floats:
        """The same distribution with these groups and all biases summing to zero over levels.

        A row mean of an interaction belongs to the bias of that row's node, the mean of a
        category shift to the bias of the continuous node.  The penalty centres its groups by
        itself; groups free of penalty and the biases need it done.
        """
        theta = theta.copy()
        for u, v, start, size in zip(
            *self.pairs[groups].T, self.starts[:-1][groups], self.sizes[groups], strict=True
        ):
            block = theta[start : start + size].reshape(self.width[u], self.width[v])
            for mean, node in ((block.mean(axis=1), u), (block.mean(axis=0), v)):
                if node == u and self.nodewise:
                    continue  # the same for all levels of v: no conditional changes
                if self.width[v if node == u else u] > 1:
                    theta[self.node_terms_of(node)[: self.width[node]]] += mean
            if self.width[v] > 1:
                block -= block.mean(axis=1, keepdims=True)
            if self.width[u] > 1:
                block -= block.mean(axis=0, keepdims=True)
        if self.n_levels:
            width = self.width[self.n_cont :]
            first = self.column_start[self.n_cont : -1] - self.n_cont
            means = np.add.reduceat(theta[self.cat_bias], first) / width
            theta[self.cat_bias] -= np.repeat(means, width)
        return theta

    # -- conditionals ---------------------------------------------------------------------------

    @cached_property
    def incidence(self) -> Incidence:
        """Every coefficient of every conditional, sorted by target node, then predictor."""
        u, v = self.pairs[:, 0], self.pairs[:, 1]
        target, predictor, group = v, u, np.arange(self.n_groups)
        if not self.nodewise:
            target, predictor = np.concatenate([v, u]), np.concatenate([u, v])
            group = np.concatenate([group] * 2)
        order = np.lexsort((predictor, target))
        order = order[self.is_target[target[order]]]
        target, predictor, group = target[order], predictor[order], group[order]
        rows, columns = self.width[predictor], self.width[target]
        sizes = rows * columns
        entry_ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        within = np.arange(entry_ptr[-1]) - np.repeat(entry_ptr[:-1], sizes)
        row, column = within // np.repeat(columns, sizes), within % np.repeat(columns, sizes)
        # In theta the first node of a pair runs along the rows of the block.
        first = np.repeat(predictor == self.pairs[group, 0], sizes)
        offset = np.where(first, within, column * np.repeat(rows, sizes) + row)
        return Incidence(
            target_ptr=np.searchsorted(target, np.arange(self.n_nodes + 1)).astype(np.int64),
            predictor=predictor,
            group=group,
            entry_ptr=entry_ptr,
            theta_index=np.repeat(self.starts[:-1][group], sizes) + offset,
            entry_column=np.repeat(self.column_start[predictor], sizes) + row,
            entry_target=np.repeat(self.column_start[target], sizes) + column,
        )

    @cached_property
    def conditional(self) -> tuple[Ints, Ints]:
        """(start, index): theta positions of everything in the conditional of every node.

        Those of node v are ``index[start[v]:start[v + 1]]``: its own terms (bias and diagonal, or
        the biases of its levels), then its entries of the incidence in their order.
        """
        p, incidence = self.n_cont, self.incidence
        n_own = np.where(np.arange(self.n_nodes) < p, 2, self.width)
        n_entries = np.diff(incidence.entry_ptr[incidence.target_ptr])
        start = np.concatenate([[0], np.cumsum(n_own + n_entries)]).astype(np.int64)
        own = np.concatenate(
            [
                np.column_stack([np.arange(p), np.arange(p, 2 * p)]).ravel(),
                np.arange(2 * p, self.n_node_terms),
            ]
        )
        index = np.empty(start[-1], dtype=np.int64)
        index[_spans(start[:-1], n_own)] = own
        index[_spans(start[:-1] + n_own, n_entries)] = incidence.theta_index
        return start, index


def _spans(start: Ints, length: Ints) -> Ints:
    """The concatenation of the ranges ``start[k] : start[k] + length[k]``."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(start - ends + length, length) + np.arange(total)
