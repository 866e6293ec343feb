"""Contract of a smooth function of theta: everything that penalties and solvers ask of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.rows.contract import Counted, NodeMatrices, Rows, SoftmaxCurvature


class Slopes(Protocol):
    """Derivatives of the conditionals one by one, which the gradient adds up."""

    def on(self, layout: Layout) -> Floats | None:
        """Derivatives in the coefficients of all conditionals, in the order of the incidence.

        None where they are not known on that layout.
        """


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Value and gradient at one theta; the value is +inf outside the domain."""

    value: float
    grad: Floats | None = None
    slopes: Slopes | None = None
    """Where the function is a sum over nodes and says what each of them adds."""

    @property
    def gradient(self) -> Floats:
        """The gradient, which must have been asked for."""
        if self.grad is None:
            raise ValueError("this evaluation was made without a gradient")
        return self.grad


@dataclass(frozen=True, eq=False)
class NodeCurvature:
    """Second derivative of one node's term: `matrix` over the theta positions `index`.

    The order is that of ``Layout.conditional``: the node's own terms, then its coefficients.
    """

    index: Ints
    matrix: Floats


@dataclass(frozen=True, eq=False)
class Curvature:
    """The Hessian as a sum over nodes, each touching only its own terms and edges.

    Nodes that are not predicted have none.
    """

    layout: Layout
    asked: Ints
    """The nodes whose part this is."""
    single: NodeMatrices
    """Matrices of nodes with one linear predictor: Gaussian and scored ones."""
    discrete: Ints
    """The nodes of `softmax`."""
    softmax: SoftmaxCurvature | None
    ridge: Floats | None = None
    """(n_groups,) ridge of an edge, on the diagonal of every conditional that it is in."""

    @cached_property
    def nodes(self) -> list[NodeCurvature]:
        """One matrix for every node asked for."""
        start, index = self.layout.conditional
        places = {v: index[start[v] : start[v + 1]] for v in self.asked.tolist()}
        matrices = {v: np.zeros((len(at), len(at))) for v, at in places.items()}
        matrices |= {v: self.single[k] for k, v in enumerate(self.single.nodes.tolist())}
        if self.softmax is not None:
            matrices |= zip(self.discrete.tolist(), self.softmax, strict=True)
        if self.ridge is not None:
            level = np.zeros(self.layout.n_theta)
            level[self.layout.edges] = self.layout.spread(self.ridge)
            matrices = {v: matrices[v] + np.diag(level[at]) for v, at in places.items()}
        return [NodeCurvature(at, matrices[v]) for v, at in places.items()]

    def product(self, delta: Floats) -> Floats:
        """Hessian times `delta`."""
        out = np.zeros(self.layout.n_theta)
        for node in self.nodes:
            out[node.index] += node.matrix @ delta[node.index]
        return out

    def dense(self) -> Floats:
        """The assembled matrix (small problems and tests)."""
        out = np.zeros((self.layout.n_theta, self.layout.n_theta))
        for node in self.nodes:
            out[np.ix_(node.index, node.index)] += node.matrix
        return out


class RowsCounted:
    """A function that passes over a store of rows, which counts."""

    rows: Rows

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.n_rows

    @property
    def passes(self) -> float:
        """Passes over the rows so far."""
        return self.rows.passes

    @property
    def curvature_passes(self) -> float:
        """Passes over the rows for curvature so far."""
        return self.rows.curvature_passes


class WholeCurvature(Protocol):
    """A Hessian in which everything may touch everything: one dense matrix."""

    def product(self, delta: Floats) -> Floats:
        """Hessian times `delta`."""

    def dense(self) -> Floats:
        """The matrix."""

    def on(self, layout: Layout, columns: Floats) -> Floats:
        """The matrix for the design columns ``z @ columns``, laid out as `layout`."""


class Smooth(Counted, Protocol):
    """A convex smooth function of theta on a layout."""

    @property
    def layout(self) -> Layout:
        """Which parameters exist."""

    @property
    def terms_per_edge(self) -> int:
        """How many of the terms that the function adds up have an edge between targets in them."""

    @property
    def by_nodes(self) -> bool:
        """Whether the Hessian is a sum over nodes; else it is one matrix."""

    @property
    def curvature_rows(self) -> int:
        """Rows, or states of the model, that curvature is summed over with a stride of 1.

        Zero where curvature would be too large to be had.
        """

    @property
    def exact_curvature(self) -> bool:
        """Whether curvature with a stride of 1 is exact."""

    def evaluate(
        self, theta: Floats, gradient: bool = True, groups: Ints | None = None
    ) -> Evaluation:
        """Value and, if asked, gradient; all but `groups` (if given) are known to be zero."""

    def curvature(
        self, theta: Floats, stride: int = 1, nodes: Ints | None = None
    ) -> Curvature | WholeCurvature:
        """Hessian at theta, from every `stride`-th row; the part of some nodes, if named.

        With `by_nodes` it is a Curvature, else a WholeCurvature.
        """

    def restrict(self, groups: Ints) -> Smooth:
        """Return the function of the node terms and these groups, all others being zero."""

    def null(self) -> Floats:
        """The minimiser over the node terms with all edges zero."""
