"""Proximal gradient for columns with very many levels, scaled as if all columns were independent.

A pair of columns with hundreds of levels has so many parameters that no matrix over them can be
kept.  If the columns were independent, though, their curvature would be a Kronecker product of two
small matrices, one per column.  Steps are taken in coordinates in which that product is diagonal,
and their length is that of Barzilai and Borwein (1988): what the last step says about curvature.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from mixedgm.families.hurdle import HurdleConditional
from mixedgm.model.layout import Floats, Ints, offsets
from mixedgm.objective.contract import Evaluation, Smooth
from mixedgm.objective.ridge import Ridged
from mixedgm.penalty.group_lasso import scaled_prox
from mixedgm.solve.loop import State
from mixedgm.solve.problem import Problem

_REMEMBERED = 6
_SUFFICIENT = 1e-4
_LONGEST, _SHORTEST = 1e-3, 1e8


@dataclass(frozen=True)
class SpectralGradient:
    """First-order solver whose cost follows rows times levels.

    The objective need not fall in every step, only below the highest of the last few (Wright,
    Nowak and Figueiredo 2009, "Sparse reconstruction by separable approximation").
    """

    def init(
        self, problem: Problem, theta: Floats, here: Evaluation, tol: float, memory: None = None
    ) -> SpectralState:
        """Start at theta, whose evaluation is `here`."""
        scale = IndependentScale.at(problem.smooth, theta)
        recent = (problem.objective(here, theta),)
        return SpectralState.at(problem, theta, here, tol, scale=scale, recent=recent)

    def step(self, problem: Problem, state: SpectralState) -> SpectralState:
        """One proximal step, shortened until the objective is low enough."""
        scale, bound = state.scale, state.bound
        eta, slope = scale.down(state.theta), scale.slope_down(state.evaluation.gradient)
        edges, starts = slice(scale.n_node_terms, None), scale.group_start
        pull = problem.penalty.bound(problem.lam)
        highest = max(state.recent) + 1e-13 * abs(state.objective)
        for _ in range(60):
            target = eta - slope / (bound * scale.values)
            target[edges] = scaled_prox(pull, bound * scale.values[edges], target[edges], starts)
            theta = scale.up(target)
            there = problem.smooth.evaluate(theta)
            move = target - eta
            squared = float(scale.values @ move**2)
            if squared == 0.0:
                return replace(state, halted=True)
            if there.grad is not None:
                objective = problem.objective(there, theta)
                if objective <= highest - 0.5 * _SUFFICIENT * bound * squared:
                    break
            bound *= 3.0
        else:
            return replace(state, halted=True)
        turn = float(move @ (scale.slope_down(there.gradient) - slope))
        recent = (*state.recent, objective)[-_REMEMBERED:]
        bound = min(max(turn / squared, _LONGEST), _SHORTEST)
        return state.moved(problem, theta, there, recent=recent, bound=bound)


@dataclass(frozen=True, eq=False, kw_only=True)
class SpectralState(State):
    """State with the lengths of steps."""

    scale: IndependentScale
    recent: tuple[float, ...]
    bound: float = 1.0
    """Curvature along the last step, in units of that of independent columns."""


class _Block(NamedTuple):
    """A block of a group: its place and shape in theta, and its place among the coordinates."""

    group: int
    u: int
    v: int
    at: slice
    shape: tuple[int, int]
    to: slice
    moves_v: bool
    """Whether it contributes to the own terms of v in the mean."""
    moves_u: bool


@dataclass(frozen=True, eq=False)
class IndependentScale:
    """Coordinates in which the curvature of independent columns is diagonal.

    Those of a group are its contrasts in the eigenvectors of both columns' covariances.  Those of
    a node's own terms are what it would have in the mean over its predictors.
    """

    smooth: Smooth
    share: list[Floats]
    """Level frequencies of every node with indicators; empty for others."""
    bases: list[Floats]
    spread: list[Floats]
    """Eigenvectors and eigenvalues of the covariance of every node's design columns; 1 for a number
    and for a score, which are standardised, as are both columns of a spiked node."""
    own: list[tuple[Floats, Floats]]
    """Eigenvectors and eigenvalues of the covariance of what multiplies the own terms of every
    discrete node."""
    moved: list[Floats | None]
    """(own terms, width) rise of the own terms of a discrete node with numbers when its predictors
    rise; None for other nodes, whose own terms are those of their design columns."""
    precision: Floats
    """(p,) precisions of the numbers, given the others."""

    @classmethod
    def at(cls, smooth: Smooth, theta: Floats) -> IndependentScale:
        """Coordinates by the frequencies of the values, and the precision of the numbers."""
        layout, nodes = smooth.layout, smooth.layout.nodes
        share, bases = [np.zeros(0)] * layout.n_nodes, [np.ones((1, 1))] * layout.n_nodes
        spread, own = [np.ones(1)] * layout.n_nodes, []
        moved: list[Floats | None] = [None] * layout.n_nodes
        terms = smooth.null()[layout.biases]
        logits = nodes.own_logits(terms)
        for j, v in enumerate(nodes.discrete_nodes.tolist()):
            here = moved[v] = nodes.moved_by_predictors(j)
            if here is not None and nodes.spiked_nodes[v]:
                given = nodes.families[v].given(terms[None, nodes.terms_of(j)], np.zeros((1, 2, 1)))
                assert isinstance(given, HurdleConditional)
                bb, xb, xx, qb, qx, qq = (part[0, 0] for part in given.of_statistics())
                covariance = np.array([[bb, xb, qb], [xb, xx, qx], [qb, qx, qq]])
                own.append(_decomposed(covariance))
                bases[v], spread[v] = _decomposed(here.T @ covariance @ here)
                continue
            frequency = np.asarray(softmax(logits[nodes.slots_of(j)]))
            if nodes.free[j]:
                own.append(_covariance(frequency.tobytes()))
            else:
                own.append(_covariance_of(nodes.term_features(j), frequency))
            if moved[v] is None:
                share[v] = frequency
                bases[v], spread[v] = own[j]
        return cls(smooth, share, bases, spread, own, moved, theta[layout.diagonal])

    @cached_property
    def _blocks(self) -> list[_Block]:
        """The blocks of all groups, one after the other."""
        layout, blocks, at = self.smooth.layout, [], int(self._node_starts[-1])
        has_levels = ~layout.nodes.numeric_nodes
        features, starts = layout.block_feature.tolist(), layout.block_start.tolist()
        for g, feature, start in zip(layout.block_group.tolist(), features, starts, strict=True):
            u, v = layout.pairs[g].tolist()
            shape = (len(self.bases[u]), len(self.bases[v]))
            size = len(self.spread[u]) * len(self.spread[v])
            # Deviations act on centred columns: they contribute nothing in the mean.
            in_v = feature < 0 and bool(layout.is_target[v])
            in_u = feature < 0 and bool(layout.is_target[u]) and not layout.nodewise
            blocks.append(
                _Block(
                    g,
                    u,
                    v,
                    slice(start, start + shape[0] * shape[1]),
                    shape,
                    slice(at, at + size),
                    in_v and bool(has_levels[u]),
                    in_u and bool(has_levels[v]),
                )
            )
            at += size
        return blocks

    @cached_property
    def _node_starts(self) -> Ints:
        """Where the own terms of every discrete node begin, after those of the Gaussian ones."""
        layout = self.smooth.layout
        sizes = [len(spread) for _, spread in self.own]
        return np.cumsum([layout.gaussian_terms.stop, *sizes])

    @cached_property
    def group_start(self) -> Ints:
        """Where every group begins, counted from the first one."""
        sizes = np.zeros(self.smooth.layout.n_groups, dtype=np.int64)
        for block in self._blocks:
            sizes[block.group] += block.to.stop - block.to.start
        return offsets(sizes)

    @cached_property
    def n_node_terms(self) -> int:
        """How many coordinates are not those of groups."""
        return int(self._node_starts[-1])

    @property
    def _discrete(self) -> range:
        nodes = self.smooth.layout.nodes
        return range(len(nodes))[nodes.discrete]

    def _terms(self, v: int) -> slice:
        first = self.smooth.layout.nodes.place(v)
        return slice(int(self._node_starts[first]), int(self._node_starts[first + 1]))

    @cached_property
    def values(self) -> Floats:
        """The curvature of independent columns in every coordinate."""
        layout = self.smooth.layout
        out = np.ones(self.n_node_terms + int(self.group_start[-1]))
        target = layout.is_target
        out[layout.linear] = 1.0 / self.precision
        # What others explain of a number has variance 1 - 1 / precision.
        explained = np.maximum(0.0, 1.0 - 1.0 / self.precision)
        out[layout.diagonal] = 0.5 / self.precision**2 + explained / self.precision
        for v, (_, spread) in zip(self._discrete, self.own, strict=True):
            out[self._terms(v)] = spread
        within = [*(1.0 / self.precision), *self.spread[layout.nodes.discrete]]
        ridge = self.smooth.edges if isinstance(self.smooth, Ridged) else np.zeros(layout.n_groups)
        for block in self._blocks:
            u, v = block.u, block.v
            here = np.zeros((len(self.spread[u]), len(self.spread[v])))
            if target[v]:
                here += np.multiply.outer(self.spread[u], np.ones(here.shape[1]) * within[v])
            if target[u] and not layout.nodewise:
                here += np.multiply.outer(np.ones(here.shape[0]) * within[u], self.spread[v])
            out[block.to] = here.ravel() + ridge[block.group]
        return out

    def down(self, theta: Floats) -> Floats:
        """Theta in these coordinates."""
        values = [theta[block.at].reshape(block.shape) for block in self._blocks]
        terms = theta[: self.smooth.layout.n_node_terms].copy()
        for block, value in zip(self._blocks, values, strict=True):
            self._shift(terms, block, value)
        return self._turned(terms, values)

    def _turned(self, terms: Floats, values: Iterable[Floats]) -> Floats:
        """Terms of nodes and the values of all blocks in the bases of their nodes."""
        layout, out = self.smooth.layout, np.empty(len(self.values))
        out[layout.gaussian_terms] = terms[layout.gaussian_terms]
        for v, (basis, _) in zip(self._discrete, self.own, strict=True):
            out[self._terms(v)] = basis.T @ terms[layout.node_terms_of(v)]
        for block, value in zip(self._blocks, values, strict=True):
            out[block.to] = (self.bases[block.u].T @ value @ self.bases[block.v]).ravel()
        return out

    def up(self, eta: Floats) -> Floats:
        """Turn these coordinates into theta."""
        layout = self.smooth.layout
        theta = np.empty(layout.n_theta)
        theta[layout.gaussian_terms] = eta[layout.gaussian_terms]
        for v, (basis, _) in zip(self._discrete, self.own, strict=True):
            theta[layout.node_terms_of(v)] = basis @ eta[self._terms(v)]
        for block in self._blocks:
            small = eta[block.to].reshape(len(self.spread[block.u]), len(self.spread[block.v]))
            values = self.bases[block.u] @ small @ self.bases[block.v].T
            theta[block.at] = values.ravel()
            self._shift(theta, block, -values)
        return theta

    def _shift(self, terms: Floats, block: _Block, values: Floats) -> None:
        """Add what a block contributes in the mean to the own terms of its ends."""
        if block.moves_v:
            self._move(terms, block.v, self.share[block.u] @ values)
        if block.moves_u:
            self._move(terms, block.u, values @ self.share[block.v])

    def _move(self, terms: Floats, v: int, predictors: Floats) -> None:
        """Add to the own terms of a node what its design columns have as predictors."""
        moved = self.moved[v]
        terms[self._bias(v)] += predictors if moved is None else moved @ predictors

    def _moving(self, grad: Floats, v: int) -> Floats:
        """The transpose: a gradient in own terms as one in the predictors of design columns."""
        moved, here = self.moved[v], grad[self._bias(v)]
        return here if moved is None else moved.T @ here

    def _bias(self, v: int) -> slice:
        """Theta positions of the linear terms of a node."""
        layout = self.smooth.layout
        first = int(layout.first_term[v])
        return slice(first, first + int(layout.nodes.n_biases[v]))

    def slope_down(self, grad: Floats) -> Floats:
        """A gradient with respect to theta as one with respect to these coordinates."""

        def without_mean(block: _Block) -> Floats:
            value = grad[block.at].reshape(block.shape).copy()
            if block.moves_v:
                value -= np.multiply.outer(self.share[block.u], self._moving(grad, block.v))
            if block.moves_u:
                value -= np.multiply.outer(self._moving(grad, block.u), self.share[block.v])
            return value

        return self._turned(grad, map(without_mean, self._blocks))


def _covariance_of(features: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Eigenvectors and eigenvalues of the covariance of features (values by features)."""
    centred = features - share @ features
    return _decomposed((centred * share[:, None]).T @ centred)


def _decomposed(covariance: Floats) -> tuple[Floats, Floats]:
    values, vectors = np.linalg.eigh(covariance)
    return vectors, np.maximum(values, 1e-12 * max(1.0, values[-1]))


@lru_cache(maxsize=64)
def _covariance(share: bytes) -> tuple[Floats, Floats]:
    """Eigenvectors and eigenvalues of the covariance of indicators with these frequencies.

    The first one, which is constant over levels and has no curvature, is left out.
    """
    p = np.frombuffer(share)
    values, vectors = np.linalg.eigh(np.diag(p) - np.outer(p, p))
    return np.ascontiguousarray(vectors[:, 1:]), np.maximum(values[1:], 1e-12)
