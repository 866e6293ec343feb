"""Nodes and permitted edges -> where every parameter sits in the flat vector theta.

This is the only owner of offsets.  Theta is

    [ linear terms of Gaussian nodes | diagonal of the precision | own terms of discrete nodes
      (biases of levels, for instance) | edge groups ]

with one contiguous group per permitted edge (u, v), u < v, holding the ``width[u] x width[v]``
block in row-major order.  For two Gaussian nodes the entry is *minus* the precision, so that
every linear predictor reads ``bias + Z @ coef``.

An edge is shared by the conditionals of both its ends, unless the layout is *nodewise*: then every
node has coefficients of its own, and the group (u, v) is what u says in the conditional of v.

Where edges are moderated, groups of *deviations* come after those of the edges.  A deviation holds
one such block for every feature of its moderator, one after the other.

Layouts of the same columns differ: a resample in which a column is constant has fewer groups.  So a
number of a group, or a position in theta, means something in its own layout only.  Between layouts
edges go by their *triples*: the two nodes and the moderator.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.compiled import kernel
from mixedgm.base.threads import over_range
from mixedgm.model.nodes import Nodes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MANY_GROUPS = 2000
"""Number of groups from which on a compiled loop is worth loading the compiler for."""

_RESTRICTED_KEPT = 8

_SAME_FOR_ALL_GROUPS = (
    *("n_nodes", "n_gaussian", "n_levels", "width", "column_start", "column_node", "n_columns"),
    *("n_level_terms", "n_node_terms", "is_target", "softmax_nodes", "softmax_targets", "linear"),
    *("diagonal", "biases", "first_term", "bias_terms", "conditionals_at_most", "n_products"),
)
"""Attributes of a layout that depend on its nodes alone: a restriction takes them over."""


@dataclass(frozen=True, eq=False)
class Incidence:
    """Parameters of a layout, arranged by the conditional in which they occur.

    Target node v has the predictor nodes ``predictor[target_ptr[v]:target_ptr[v + 1]]``.  The
    k-th predictor, u, is joined to v by the edge ``group[k]`` and contributes the coefficients
    ``entry_ptr[k]:entry_ptr[k + 1]``: a ``width[u] x width[v]`` block, row-major.  Coefficient e
    equals ``theta[theta_index[e]]`` and stands at ``(entry_column[e], entry_target[e])`` of the
    symmetric matrix of design columns.

    A block of a deviation multiplies the columns of u by the moderators' feature ``feature[k]``
    (-1: by nothing).  Its columns come after all plain ones: ``entry_column`` is
    ``(1 + feature) * n_columns`` further on.
    """

    target_ptr: Ints
    predictor: Ints
    group: Ints
    entry_ptr: Ints
    theta_index: Ints
    entry_column: Ints
    entry_target: Ints
    feature: Ints
    nodes: Nodes

    @cached_property
    def node_entries(self) -> Ints:
        """First coefficient of every node's conditional, and the end."""
        return self.entry_ptr[self.target_ptr]

    @cached_property
    def blocks(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The predictors of every target and where their coefficients are, for rows.

        Predictors are columns of the rows (`Nodes.source`); a node with several columns of numbers
        is one for each of them.
        """
        nodes = self.nodes
        if not nodes.first_indicator:
            return self.target_ptr, self.predictor, self.entry_ptr, self.feature
        source = nodes.source[self.predictor]
        if not nodes.n_spiked:
            return self.target_ptr, source, self.entry_ptr, self.feature
        count = np.where(nodes.spiked_nodes, 2, 1)[self.predictor]
        parts = np.diff(self.entry_ptr) // count
        ends = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        return (
            ends[self.target_ptr],
            spans(source, count),
            np.concatenate([[0], np.cumsum(np.repeat(parts, count))]).astype(np.int64),
            np.repeat(self.feature, count),
        )

    @property
    def gaussian_entries(self) -> slice:
        """Coefficients of Gaussian conditionals, which come first."""
        return slice(0, int(self.node_entries[self.nodes.n_gaussian]))

    @property
    def softmax_entries(self) -> slice:
        """Coefficients of softmax conditionals."""
        return slice(self.gaussian_entries.stop, len(self.theta_index))

    @property
    def softmax_places(self) -> tuple[Ints, Ints]:
        """Where these stand among sums for all pairs: design column, column of softmax nodes."""
        entries = self.softmax_entries
        return self.entry_column[entries], self.nodes.softmax_column[self.entry_target[entries]]

    def entries_of(self, node: int) -> slice:
        """Coefficients that belong to the conditional of `node`."""
        return slice(int(self.node_entries[node]), int(self.node_entries[node + 1]))


@dataclass(frozen=True, eq=False)
class Layout:
    """Offsets of node terms and edge groups.

    Parameters
    ----------
    nodes : Nodes
        Nodes, with their kinds and design columns.
    pairs : ndarray (n_groups, 2)
        Permitted edges, or those of a wide table that are candidates; u < v, or in both directions
        when nodewise.  Sorted, but for pairs that were `appended`.
    covariates : tuple of int
        Nodes that predict but are not predicted: they have no conditional.  Their own terms stand
        in theta like all others, and nothing depends on them.
    nodewise : bool
        Whether every node has its own copy of the coefficients.
    n_features : tuple of int
        Number of features of every moderator.
    deviates : ndarray (n_groups,), optional
        Which moderator the deviations of a group belong to; -1 for an edge itself.  None: all -1.

    Examples
    --------
    >>> layout = Layout.complete(Nodes.mixed(1, (2, 3)))
    >>> layout.pairs.tolist()
    [[0, 1], [0, 2], [1, 2]]
    >>> layout.n_theta                       # 1 + 1 + 5 node terms, 2 + 3 + 6 edge terms
    18
    """

    nodes: Nodes
    pairs: Ints
    covariates: tuple[int, ...] = ()
    nodewise: bool = False
    n_features: tuple[int, ...] = ()
    deviates: Ints | None = None

    @classmethod
    def complete(
        cls,
        nodes: Nodes,
        absent: NDArray[np.bool_] | None = None,
        covariates: tuple[int, ...] = (),
        nodewise: bool = False,
    ) -> Layout:
        """All pairs, less those of two covariates and those marked in the mask `absent`."""
        u, v = np.triu_indices(len(nodes), 1)
        if nodewise:
            u, v = np.nonzero(~np.eye(len(nodes), dtype=bool))
        keep = ~np.isin(v, covariates)
        if not nodewise:
            keep |= ~np.isin(u, covariates)
        if absent is not None:
            keep &= ~absent[u, v]
        pairs = np.column_stack([u[keep], v[keep]]).astype(np.int64)
        return cls(nodes, pairs, covariates, nodewise)

    @classmethod
    def part_of_complete(cls, nodes: Nodes, numbers: Ints) -> Layout:
        """``Layout.complete(nodes).restrict(numbers)``, without a list of all pairs.

        Examples
        --------
        >>> Layout.part_of_complete(Nodes.mixed(4, ()), np.array([1, 5])).pairs.tolist()
        [[0, 2], [2, 3]]
        """
        first = _first_numbers(len(nodes))
        u = np.searchsorted(first, numbers, "right") - 1
        return cls(nodes, np.column_stack([u, numbers - first[u] + u + 1]))

    @classmethod
    def without_edges(cls, nodes: Nodes) -> Layout:
        """Node terms only."""
        return cls(nodes, np.zeros((0, 2), dtype=np.int64))

    def moderated(self, n_features: tuple[int, ...], absent: NDArray[np.bool_]) -> Layout:
        """The layout with deviations of every edge between targets, but for those in `absent`.

        `absent` has a node-by-node mask for every moderator.
        """
        u, v = self.pairs.T
        inner = self.is_target[u] & self.is_target[v]
        kept = [np.flatnonzero(inner & ~mask[u, v]) for mask in absent]
        before = np.full(self.n_groups, -1)
        return replace(
            self,
            pairs=np.concatenate([self.pairs, *(self.pairs[groups] for groups in kept)]),
            n_features=n_features,
            deviates=np.concatenate([before, *(np.full(len(g), m) for m, g in enumerate(kept))]),
        )

    def appended(self, pairs: Ints) -> Layout:
        """The layout with more pairs behind those that it has, whose positions stay.

        Examples
        --------
        >>> few = Layout(Nodes.mixed(3, ()), np.array([[0, 2]]))
        >>> few.appended(np.array([[0, 1]])).pairs.tolist()
        [[0, 2], [0, 1]]
        """
        return self._with_pairs(np.concatenate([self.pairs, pairs]), None)

    def _with_pairs(self, pairs: Ints, deviates: Ints | None) -> Layout:
        """Return a layout of the same nodes with other groups; values for nodes alone are kept."""
        other, mine = replace(self, pairs=pairs, deviates=deviates), vars(self)
        vars(other).update((name, mine[name]) for name in _SAME_FOR_ALL_GROUPS if name in mine)
        return other

    # -- nodes, as `Nodes` has them ------------------------------------------------------------

    @cached_property
    def n_nodes(self) -> int:
        """Number of columns of the table."""
        return len(self.nodes)

    @cached_property
    def n_gaussian(self) -> int:
        """Number of nodes with a Gaussian conditional, which come first."""
        return self.nodes.n_gaussian

    @cached_property
    def n_levels(self) -> tuple[int, ...]:
        """Number of values of every other node."""
        return self.nodes.n_levels

    @cached_property
    def width(self) -> Ints:
        """Design columns per node."""
        return self.nodes.width

    @cached_property
    def column_start(self) -> Ints:
        """First design column of every node, and the end."""
        return self.nodes.column_start

    @cached_property
    def column_node(self) -> Ints:
        """Node of every design column."""
        return self.nodes.column_node

    @cached_property
    def n_columns(self) -> int:
        """Number of design columns, d."""
        return self.nodes.n_columns

    @cached_property
    def n_level_terms(self) -> int:
        """Number of biases of levels."""
        return int(self.nodes.n_biases[self.nodes.discrete].sum())

    @cached_property
    def n_groups(self) -> int:
        """Number of permitted edges."""
        return len(self.pairs)

    @cached_property
    def is_target(self) -> NDArray[np.bool_]:
        """Whether a node has a conditional."""
        mask = np.ones(self.n_nodes, dtype=bool)
        mask[list(self.covariates)] = False
        return mask

    @cached_property
    def gaussian_targets(self) -> Ints:
        """Nodes with a Gaussian conditional that are targets."""
        return np.flatnonzero(self.is_target & self.nodes.gaussian_nodes)

    @cached_property
    def softmax_nodes(self) -> Ints:
        """Nodes with a softmax that are targets."""
        return np.flatnonzero(self.is_target & ~self.nodes.gaussian_nodes)

    @cached_property
    def softmax_targets(self) -> Ints:
        """Numbers of `softmax_nodes` among the discrete nodes."""
        return self.nodes.node_place[self.softmax_nodes]

    # -- node terms --------------------------------------------------------------------------

    @cached_property
    def linear(self) -> slice:
        """Theta positions of the linear terms of Gaussian nodes."""
        return slice(0, self.n_gaussian)

    @cached_property
    def diagonal(self) -> slice:
        """Theta positions of the diagonal of the precision."""
        return slice(self.n_gaussian, 2 * self.n_gaussian)

    @cached_property
    def biases(self) -> slice:
        """Theta positions of the biases of all levels."""
        return slice(2 * self.n_gaussian, self.n_node_terms)

    @cached_property
    def positive(self) -> Ints:
        """Theta positions of what must be positive: the diagonal, and precisions of own terms."""
        terms, _ = self.nodes.spiked_terms
        return np.concatenate([np.arange(self.n_theta)[self.diagonal], self.n_gaussian + terms + 2])

    @cached_property
    def n_node_terms(self) -> int:
        """Number of parameters that are not edges."""
        return 2 * self.n_gaussian + self.n_level_terms

    @property
    def gaussian_terms(self) -> slice:
        """Theta positions of all terms of Gaussian nodes: linear ones, then the diagonal."""
        return slice(0, 2 * self.n_gaussian)

    @cached_property
    def first_term(self) -> Ints:
        """Theta position of the first term of every node: its linear term, or its first bias."""
        sizes = self.nodes.n_biases
        return np.cumsum(sizes) - sizes + np.where(self.nodes.gaussian_nodes, 0, self.n_gaussian)

    @cached_property
    def bias_terms(self) -> Ints:
        """Theta positions of all linear terms, then of all biases: the order of `Params.bias`."""
        positions = np.arange(self.n_node_terms)
        return np.concatenate([positions[self.linear], positions[self.biases]])

    @cached_property
    def term_column(self) -> Ints:
        """Column that every own linear term multiplies, in the order of `bias_terms`.

        A position among the `statistics.columns` of the nodes: the term's own design column or,
        for the terms of scored nodes, one behind all design columns.
        """
        nodes, d = self.nodes, self.n_columns
        scored = d + np.arange(nodes.n_scored_terms)
        return np.concatenate([np.arange(self.n_gaussian), scored, np.arange(nodes.n_numeric, d)])

    def node_terms_of(self, node: int) -> Ints:
        """Theta positions of a node's own terms: (bias, diagonal), or the biases of its levels."""
        first = int(self.first_term[node])
        if self.nodes.is_gaussian(node):
            return np.array([first, self.diagonal.start + first])
        return np.arange(first, first + self.nodes.n_biases[node])

    @property
    def n_node_blocks(self) -> int:
        """Number of runs of node terms: see `term_blocks`."""
        return self.n_gaussian + self.n_nodes

    @cached_property
    def term_blocks(self) -> tuple[Ints, Ints]:
        """(start, size) of the runs of theta that belong together.

        Every linear term and every entry of the diagonal, the biases of every discrete node, and
        every group.
        """
        single, discrete = np.arange(self.biases.start), self.nodes.discrete
        start = np.concatenate([single, self.first_term[discrete], self.starts[:-1]])
        return start, np.concatenate(
            [np.ones_like(single), self.nodes.n_biases[discrete], self.sizes]
        )

    def independent(self, shares: Floats) -> Floats:
        """Theta without edges: standardised numbers, and these shares of the values of others."""
        theta = np.zeros(self.n_theta)
        theta[self.diagonal] = 1.0
        theta[self.biases] = self.nodes.marginal_terms(shares)
        return self.centred(theta, np.zeros(0, dtype=np.int64))

    def statistics(self, mean: Floats, second: Floats) -> Floats:
        """(n_theta,) mean of what multiplies every parameter in the log density.

        `mean` and `second` are those of the `statistics.columns` z of the nodes and of zz'; of the
        latter those of design columns are enough.
        """
        out = np.empty(self.n_theta)
        out[self.bias_terms] = mean[self.term_column]
        out[self.diagonal] = -0.5 * np.diagonal(second)[self.nodes.gaussian]
        out[self.edges] = self.from_matrix(second)
        return out

    # -- edge groups -------------------------------------------------------------------------

    @cached_property
    def sizes(self) -> Ints:
        """Parameters per group."""
        of_pair = self.width[self.pairs]
        return np.asarray(of_pair[:, 0] * of_pair[:, 1] * self.n_blocks)

    @cached_property
    def starts(self) -> Ints:
        """Theta position where each group begins; one more entry marks the end."""
        starts = np.full(self.n_groups + 1, self.n_node_terms)
        starts[1:] += self.sizes.cumsum()
        return starts

    @cached_property
    def n_theta(self) -> int:
        """Number of all parameters."""
        return int(self.starts[-1])

    @cached_property
    def edges(self) -> slice:
        """Theta positions of all edge parameters."""
        return slice(self.n_node_terms, self.n_theta)

    @cached_property
    def edge_position(self) -> tuple[Ints, Ints]:
        """(row, column) of every edge parameter in the symmetric matrix of design columns.

        Deviations have a matrix for each feature: that of feature k stands (1 + k) * d rows down.
        """
        group = self.block_group
        sizes = self.sizes[group] // self.n_blocks[group]
        before = np.repeat(self.block_start - self.n_node_terms, sizes)
        within = np.arange(int(sizes.sum())) - before
        u, v = self.pairs[group].T
        width_v = np.repeat(self.width[v], sizes)
        down = self.column_start[u] + (1 + self.block_feature) * self.n_columns
        row = np.repeat(down, sizes) + within // width_v
        return row, np.repeat(self.column_start[v], sizes) + within % width_v

    # -- deviations ----------------------------------------------------------------------------

    @cached_property
    def moderator(self) -> Ints:
        """Moderator that the deviations of a group belong to; -1 for an edge itself."""
        return np.full(self.n_groups, -1) if self.deviates is None else self.deviates

    @cached_property
    def n_products(self) -> int:
        """Number of design columns and of their products with every feature."""
        return (1 + sum(self.n_features)) * self.n_columns

    @cached_property
    def n_blocks(self) -> Ints:
        """Blocks per group: 1, or the number of features of its moderator."""
        if not self.n_features:
            return np.ones(self.n_groups, dtype=np.int64)
        return np.array([*self.n_features, 1], dtype=np.int64)[self.moderator]

    @cached_property
    def first_feature(self) -> Ints:
        """Feature of the first block of a group; -1 for an edge itself."""
        if not self.n_features:
            return self.moderator
        before = np.cumsum([0, *self.n_features[:-1]])[: len(self.n_features)]
        return np.append(before, -1).astype(np.int64)[self.moderator]

    @cached_property
    def block_group(self) -> Ints:
        """Group of every block."""
        if not self.n_features:
            return np.arange(self.n_groups)
        return np.repeat(np.arange(self.n_groups), self.n_blocks)

    @cached_property
    def block_feature(self) -> Ints:
        """Feature of every block, or -1."""
        return spans(self.first_feature, self.n_blocks)

    @cached_property
    def block_start(self) -> Ints:
        """Theta position where each block begins."""
        if not self.n_features:
            return self.starts[:-1]
        group = self.block_group
        number = self.block_feature - self.first_feature[group]
        return np.asarray(self.starts[group] + number * (self.sizes // self.n_blocks)[group])

    @property
    def has_many_groups(self) -> bool:
        """Whether looking at all of them takes longer than choosing some."""
        return self.n_groups >= _MANY_GROUPS

    def group_norms(self, theta: Floats) -> Floats:
        """Euclidean norm of every group."""
        if not self.has_many_groups:
            return np.sqrt(self.group_sums(np.square(theta[self.n_node_terms :])))
        out = np.empty(self.n_groups)

        def norms(first: int, last: int) -> None:
            _norms(self.starts, theta, first, last, out)

        over_range(norms, self.n_groups, 4 * self.n_theta)
        return out

    def active(self, theta: Floats, groups: Ints | None = None) -> Ints:
        """Groups that are not zero; all but `groups` are known to be, if given."""
        if groups is None or not self.has_many_groups:
            return np.flatnonzero(self.group_norms(theta))
        return groups[self.restrict(groups).group_norms(theta[self.positions(groups)]) > 0.0]

    def group_sums(self, edge_values: Floats) -> Floats:
        """Sum over the parameters of each group; `edge_values` covers the edge part of theta."""
        if self.n_groups == 0:
            return np.zeros(0)
        return np.asarray(np.add.reduceat(edge_values, self._edge_starts))

    @cached_property
    def _edge_starts(self) -> Ints:
        return self.starts[:-1] - self.n_node_terms

    @cached_property
    def conditionals(self) -> Ints:
        """Number of conditionals that each group is in."""
        count = self.is_target[self.pairs[:, 1]].astype(np.int64)
        return count if self.nodewise else count + self.is_target[self.pairs[:, 0]]

    @cached_property
    def conditionals_at_most(self) -> int:
        """Largest number of conditionals that a group can be in."""
        return 1 if self.nodewise else 2

    def spread(self, per_group: Floats) -> Floats:
        """One value per group -> one value per edge parameter."""
        return np.repeat(per_group, self.sizes)

    def same(self, other: Layout) -> bool:
        """Whether another layout has the same nodes and edges, in whatever units scores are."""
        mine = (self.nodes.in_own_units, self.covariates, self.nodewise, self.n_features)
        others = (other.nodes.in_own_units, other.covariates, other.nodewise, other.n_features)
        if mine != others or not np.array_equal(self.pairs, other.pairs):
            return False
        return not self.n_features or np.array_equal(self.moderator, other.moderator)

    @property
    def triples(self) -> Ints:
        """(n_groups, 3) both nodes and the moderator (-1: none): names of groups in any layout."""
        return np.column_stack([self.pairs, self.moderator])

    def numbers_of(self, triples: Ints) -> Ints:
        """(k,) group of every one of these edges; raises LookupError where there is none.

        The direction of an edge matters in a nodewise layout only.

        Examples
        --------
        >>> whole = Layout.complete(Nodes.mixed(4, ()))
        >>> resample = Layout(whole.nodes, np.array([[1, 2], [1, 3], [2, 3]]))
        >>> resample.numbers_of(whole.triples[[5, 3]])
        array([2, 0])
        """
        found = self._found(triples)
        if (found < 0).any():
            raise LookupError(f"no group for {triples[found < 0][:5].tolist()} in this layout")
        return found

    def groups_of(self, triples: Ints) -> Ints:
        """Sorted groups of these edges; edges that the layout does not have are left out.

        Examples
        --------
        >>> whole = Layout.complete(Nodes.mixed(4, ()))
        >>> resample = Layout(whole.nodes, np.array([[1, 2], [1, 3], [2, 3]]))
        >>> resample.groups_of(whole.triples[[0, 5, 3]])
        array([0, 2])
        """
        found = self._found(triples)
        return np.unique(found[found >= 0])

    def _found(self, triples: Ints) -> Ints:
        """(k,) the group of every edge, or -1."""
        if self.n_groups == 0:
            return np.full(len(triples), -1)
        keys, wanted = self._keys, self._keys_of(*triples.T)
        order = np.argsort(keys, kind="stable")
        at = np.searchsorted(keys, wanted, sorter=order)
        group = order[np.minimum(at, self.n_groups - 1)]
        return np.where(keys[group] == wanted, group, -1)

    @property
    def _keys(self) -> Ints:
        """A number for every group; they ascend unless some groups were appended."""
        first, second = self.pairs.T
        return self._keys_of(first, second, self.moderator)

    def _keys_of(self, first: Ints, second: Ints, moderator: Ints) -> Ints:
        if not self.nodewise:
            first, second = np.minimum(first, second), np.maximum(first, second)
        return np.asarray(((moderator + 1) * self.n_nodes + first) * self.n_nodes + second)

    def with_units(self, nodes: Nodes) -> Layout:
        """Return the layout with the scores of these nodes; values computed already are kept."""
        if nodes == self.nodes:
            return self
        other = replace(self, nodes=nodes)
        skipped = ("nodes", "_restricted")  # small layouts have scores, too
        vars(other).update((name, each) for name, each in vars(self).items() if name not in skipped)
        return other

    def restrict(self, groups: Ints) -> Layout:
        """The layout with only these groups (sorted indices) and all node terms.

        The last few are kept, because solvers of similar problems ask for the same ones again.
        """
        if len(groups) == self.n_groups:
            return self
        key = groups.tobytes()
        small = self._restricted.get(key)
        if small is None:
            deviates = None if self.deviates is None else self.deviates[groups]
            small = self._with_pairs(self.pairs[groups], deviates)
            # A new dict each time: another thread may be reading the old one.
            last = list(self._restricted.items())[1 - _RESTRICTED_KEPT :]
            vars(self)["_restricted"] = dict([*last, (key, small)])
        return small

    @cached_property
    def _restricted(self) -> dict[bytes, Layout]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """Pickle only what defines the layout: the rest is computed anew after unpickling."""
        return {field.name: vars(self)[field.name] for field in fields(self)}

    def positions(self, groups: Ints) -> Ints:
        """Theta positions of the node terms and these groups, in the restricted layout's order."""
        edge = self.n_node_terms + self.edge_places(groups)
        return np.concatenate([np.arange(self.n_node_terms), edge])

    def edge_places(self, groups: Ints) -> Ints:
        """Where the parameters of these groups are among those of all edges."""
        return spans(self.starts[:-1][groups] - self.n_node_terms, self.sizes[groups])

    def expanded(self, groups: Ints, terms: Floats) -> Floats:
        """Theta with these terms of nodes and of groups, and zero elsewhere."""
        theta = np.zeros(self.n_theta)
        theta[self.positions(groups)] = terms
        return theta

    # -- symmetric matrix of design columns ----------------------------------------------------

    def to_matrix(self, theta: Floats) -> Floats:
        """Edge parameters as the d x d matrix with zero diagonal blocks.

        Column by column the coefficients of a conditional; symmetric unless nodewise.  An edge of a
        covariate is in one conditional, and always stands on both sides.  The matrices of
        deviations follow below, one for each feature.
        """
        there = np.flatnonzero(theta[self.edges])
        if len(there) < 0.1 * (self.n_theta - self.n_node_terms):
            # Positions of the groups that are not zero are enough, and far fewer.
            groups = np.unique(np.searchsorted(self.starts, there + self.n_node_terms, "right") - 1)
            if len(groups) < self.n_groups:
                return self.restrict(groups).to_matrix(theta[self.positions(groups)])
        matrix = np.zeros((self.n_products, self.n_columns))
        row, column = self.edge_position
        matrix[row, column] = theta[self.edges]
        shared = ~self.is_target[self.pairs[:, 0]] | (not self.nodewise)
        both, within = np.repeat(shared, self.sizes), row % self.n_columns
        matrix[(row - within + column)[both], within[both]] = theta[self.edges][both]
        return matrix

    def from_matrix(self, matrix: Floats) -> Floats:
        """Edge parameters read from the upper blocks of such a matrix."""
        row, column = self.edge_position
        return np.asarray(matrix[row, column])

    def centred(self, theta: Floats, groups: Ints) -> Floats:
        """Return theta with these groups and all biases centred over levels: the same distribution.

        What all levels of a node have in common in a block belongs to the own terms of the node at
        the other end.  The penalty centres its groups by itself; groups free of penalty and the
        biases need it done.  Deviations act on design columns less their means, which sum to zero
        over levels: what levels have in common in them acts on nothing and is dropped.
        """
        theta = theta.copy()
        self.centre(theta, groups)
        return theta

    def centre(self, theta: Floats, groups: Ints) -> None:
        """Centre these groups and all biases of theta over levels, in place."""
        if len(groups):
            whole = len(groups) == self.n_groups
            small = self if whole else self.restrict(groups)
            small._centre_blocks(theta, self.positions(groups)[small.edges])
        if self.n_levels:
            biases, count = theta[self.biases], self.nodes.n_biases[self.nodes.discrete]
            means = np.add.reduceat(biases, self.nodes.term_start[:-1]) / count
            theta[self.biases] = biases - np.repeat(np.where(self.nodes.free, means, 0.0), count)

    def _centre_blocks(self, theta: Floats, at: Ints) -> None:
        """Centre all groups, which stand at these positions of a larger theta, in place."""
        ends, is_edge = self.pairs[self.block_group], self.block_feature < 0
        sizes = self.width[ends].prod(axis=1)
        values, moved = theta[at], np.zeros(self.n_columns)
        for end, position in enumerate(self.edge_position):
            # A line is what a block has in one design column of the node at this end.
            node, other = ends[:, end], ends[:, 1 - end]
            lines = self.width[node]
            first = np.cumsum(lines) - lines - self.column_start[node]
            line = np.repeat(first, sizes) + position % self.n_columns
            share = np.repeat(self.nodes.sums_to_one[other] / self.width[other], sizes)
            if end == 1 or not self.nodewise:  # else no conditional changes
                column = spans(self.column_start[node], lines)
                common = np.repeat(is_edge, lines) * np.bincount(line, share * theta[at])
                moved += np.bincount(column, common, len(moved))
            values -= np.bincount(line, share * values)[line]
        theta[at] = values
        theta[self.bias_terms] += self.nodes.moved_terms(moved)

    # -- conditionals ---------------------------------------------------------------------------

    @cached_property
    def incidence(self) -> Incidence:
        """Every coefficient of every conditional: by target, then predictor, base edges first.

        The blocks of a deviation that has several features stand together.
        """
        key, order = self._keys, np.arange(self.n_groups)
        if (key[1:] < key[:-1]).any():  # some were appended
            order = np.argsort(key)
        times = self.conditionals
        target_ptr = np.zeros(self.n_nodes + 1, dtype=np.int64)
        blocks = np.empty((3, int(times @ self.n_blocks)), dtype=np.int64)
        entry_ptr = np.zeros(blocks.shape[1] + 1, dtype=np.int64)
        entries = np.empty((3, int(times @ self.sizes)), dtype=np.int64)
        _fill_incidence(
            (self.pairs, self.moderator, self.first_feature, self.n_blocks, self.starts, order),
            (self.width, self.column_start, self.is_target),
            (len(self.n_features), self.conditionals_at_most),
            (target_ptr, blocks, entry_ptr, entries),
            np.zeros_like(target_ptr),
        )
        predictor, group, feature = blocks
        theta_index, column, target = entries
        by_block = target_ptr, predictor, group, entry_ptr
        return Incidence(*by_block, theta_index, column, target, feature, self.nodes)

    @cached_property
    def conditional(self) -> tuple[Ints, Ints]:
        """(start, index): theta positions of everything in the conditional of every node.

        Those of node v are ``index[start[v]:start[v + 1]]``: its own terms (bias and diagonal, or
        the biases of its levels), then its entries of the incidence in their order.
        """
        nodes, incidence = self.nodes, self.incidence
        n_terms = nodes.n_biases + nodes.gaussian_nodes
        n_entries = np.diff(incidence.entry_ptr[incidence.target_ptr])
        start = np.concatenate([[0], np.cumsum(n_terms + n_entries)]).astype(np.int64)
        index = np.empty(start[-1], dtype=np.int64)
        index[spans(start[:-1], n_terms)] = spans(self.first_term, n_terms)
        index[start[:-1][nodes.gaussian] + 1] = np.arange(self.n_theta)[self.diagonal]
        index[spans(start[:-1] + n_terms, n_entries)] = incidence.theta_index
        return start, index


def pair_numbers(n_nodes: int, pairs: Ints) -> Ints:
    """Where pairs (u < v) stand among all pairs of so many nodes, in their order.

    Examples
    --------
    >>> pair_numbers(4, np.array([[0, 2], [2, 3]])).tolist()
    [1, 5]
    """
    u, v = pairs.T
    return np.asarray(_first_numbers(n_nodes)[u] + v - u - 1)


def _first_numbers(n_nodes: int) -> Ints:
    """Number of the pair (u, u + 1) for every node u."""
    u = np.arange(max(n_nodes, 1))
    return np.asarray(u * n_nodes - u * (u + 1) // 2)


def offsets(sizes: Ints) -> Ints:
    """Sum of the sizes before each, and of all."""
    out = np.zeros(len(sizes) + 1, dtype=np.int64)
    sizes.cumsum(out=out[1:])
    return out


def spans(start: Ints, length: Ints) -> Ints:
    """The concatenation of the ranges ``start[k] : start[k] + length[k]``."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(start - ends + length, length) + np.arange(total)


# -- kernels ---------------------------------------------------------------------------------------


@kernel(fastmath={"reassoc", "contract"})
def _norms(starts, theta, first, last, out):
    """out[g] = norm of theta[starts[g]:starts[g + 1]], for the groups first:last."""
    for g in range(first, last):
        total = 0.0
        for k in range(starts[g], starts[g + 1]):
            total += theta[k] * theta[k]
        out[g] = np.sqrt(total)


@kernel
def _fill_incidence(groups, nodes, sizes, out, at):
    """Fill an Incidence: out = (target_ptr, (predictor, group, feature), entry_ptr, entries).

    groups = (pairs, moderator, first feature, number of blocks, start) of each, and the order in
    which pairs are sorted; nodes = (width,
    first column, whether it is a target); sizes = (moderators, ends of a pair that it counts for);
    entries = (theta_index, entry_column, entry_target).  `at` is zero, one longer than the nodes.
    """
    pairs, moderator, first_feature, n_blocks, start, order = groups
    width, column, is_target = nodes
    n_moderators, n_ends = sizes
    target_ptr, blocks, entry_ptr, entries = out
    for g in range(pairs.shape[0]):
        for end in range(n_ends):
            if is_target[pairs[g, 1 - end]]:
                target_ptr[pairs[g, 1 - end] + 1] += n_blocks[g]
    for v in range(width.shape[0]):
        target_ptr[v + 1] += target_ptr[v]
        at[v] = target_ptr[v]
    # In sorted pairs those in which a node is the second come in the order of predictors, before
    # those in which it is the first.
    for m in range(-1, n_moderators):
        for end in range(n_ends):
            for g in order:
                u, v = pairs[g, end], pairs[g, 1 - end]
                if moderator[g] != m or not is_target[v]:
                    continue
                for k in range(n_blocks[g]):
                    blocks[0, at[v]], blocks[1, at[v]] = u, g
                    blocks[2, at[v]] = first_feature[g] + k
                    entry_ptr[at[v] + 1] = width[u] * width[v]
                    at[v] += 1
    e = 0
    for v in range(width.shape[0]):
        for k in range(target_ptr[v], target_ptr[v + 1]):
            u, g, feature = blocks[0, k], blocks[1, k], blocks[2, k]
            base = start[g] + (feature - first_feature[g]) * width[u] * width[v]
            # In theta the first node of a pair runs along the rows of the block.
            down, along = (width[v], 1) if u == pairs[g, 0] else (1, width[u])
            for a in range(width[u]):
                for b in range(width[v]):
                    entries[0, e] = base + a * down + b * along
                    entries[1, e] = column[u] + (1 + feature) * column[-1] + a
                    entries[2, e] = column[v] + b
                    e += 1
            entry_ptr[k + 1] = e
