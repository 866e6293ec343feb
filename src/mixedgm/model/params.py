"""Parameters of a model: Params <-> theta, change of units, levels without rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import DistributionError
from mixedgm.families.gaussian import log_integral
from mixedgm.model.conditional_gaussian import MOST_VALUES, ConditionalGaussian
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.moderation import Moderation, Moderators, deviations_over_observed, over_levels
from mixedgm.model.nodes import Nodes


@dataclass(frozen=True, eq=False)
class Params:
    """Parameters of a mixed graphical model.

    The log density is, up to its constant, the sum of every node's own terms and of
    ``z_u' C_uv z_v`` over all pairs of nodes, with z the design columns and C the coefficients.
    With numbers x and categories y that is
    ``-x'Bx/2 + a'x + sum_sj rho_sj(y_j) x_s + sum_j phi_jj(y_j) + sum_{r<j} phi_rj(y_r, y_j)``:
    `precision` is B, `cont_bias` a, `category_shift` rho, `cat_bias` phi_jj and `cat_interaction`
    phi_rj.

    Parameters
    ----------
    nodes : Nodes
        Kinds and levels of the columns, in the order of all arrays.
    bias : ndarray
        Linear terms: one per continuous column, then one per level, which is ``-inf`` for a level
        that had no rows.
    diagonal : ndarray (n_gaussian,)
        Diagonal of the precision of the continuous columns.
    coef : ndarray (d, d)
        Blocks of all pairs of nodes.  Symmetric, unless nodewise: then a row is a predictor and a
        column a target.  Between two continuous columns it is minus the precision.
    nodewise : bool
        Whether these are separate regressions, in which every node has coefficients of its own.
    moderation : Moderation or None
        How edges deviate with other columns.

    Examples
    --------
    >>> params = Params.independent(Nodes.mixed(1, (2,)))
    >>> params.precision, params.cat_bias
    (array([[1.]]), array([0., 0.]))
    """

    nodes: Nodes
    bias: Floats
    diagonal: Floats
    coef: Floats
    nodewise: bool = False
    moderation: Moderation | None = None

    @classmethod
    def independent(cls, nodes: Nodes) -> Params:
        """Standard normal and uniform columns without any edge."""
        p, d, n_terms = nodes.n_gaussian, nodes.n_columns, int(nodes.n_biases.sum())
        bias = np.zeros(n_terms)
        bias[nodes.spiked_terms[0] + 2] = 1.0
        return cls(nodes, bias, np.ones(p), np.zeros((d, d)))

    @classmethod
    def of_blocks(
        cls,
        n_levels: tuple[int, ...],
        precision: Floats,
        cont_bias: Floats,
        category_shift: Floats,
        cat_interaction: Floats,
        cat_bias: Floats,
        level_effect: Floats | None = None,
    ) -> Params:
        """Continuous and categorical columns, by named blocks.

        Separate regressions have a `level_effect`: what each level says in the conditional of each
        continuous column.  What columns say about each other then need not agree.
        """
        coef = np.block(
            [
                [-precision, category_shift],
                [category_shift.T if level_effect is None else level_effect, cat_interaction],
            ]
        )
        p = len(cont_bias)
        np.fill_diagonal(coef[:p, :p], 0.0)
        return cls(
            Nodes.mixed(p, n_levels),
            np.concatenate([cont_bias, cat_bias]),
            np.diagonal(precision).copy(),
            coef,
            level_effect is not None,
        )

    @classmethod
    def of_entries(
        cls,
        nodes: Nodes,
        bias: Floats,
        diagonal: Floats,
        entries: tuple[Ints, Floats],
        nodewise: bool = False,
    ) -> Params:
        """Parameters of which few coefficients are not zero: where these stand, and their values.

        Places count row by row through ``coef``, in rising order.

        Examples
        --------
        >>> nodes = Nodes.mixed(2, ())
        >>> entries = np.array([1, 2]), np.array([-0.5, -0.5])
        >>> Params.of_entries(nodes, np.zeros(2), np.ones(2), entries).precision.tolist()
        [[1.0, 0.5], [0.5, 1.0]]
        """
        places, values = entries
        coef = np.zeros((nodes.n_columns, nodes.n_columns))
        coef.ravel()[places] = values
        params = cls(nodes, bias, diagonal, coef, nodewise)
        if len(places) == np.count_nonzero(values):
            vars(params)["places"] = places
        return params

    @cached_property
    def places(self) -> Ints:
        """Where ``coef`` is not zero, counted row by row.

        Models of many columns have far fewer edges than pairs: what goes through the edges goes
        through these.
        """
        return np.flatnonzero(self.coef)

    # -- blocks by name ----------------------------------------------------------------------------

    @property
    def n_cont(self) -> int:
        """Number of continuous columns."""
        return self.nodes.n_gaussian

    @property
    def n_levels(self) -> tuple[int, ...]:
        """Values of every discrete column."""
        return self.nodes.n_levels

    @property
    def level_start(self) -> Ints:
        """First level of every categorical column among those of all, and the end."""
        return self.nodes.level_start

    def levels_of(self, discrete: int) -> slice:
        """Levels of the categorical column number `discrete` among those of all."""
        return self.nodes.levels_of(discrete)

    @cached_property
    def precision(self) -> Floats:
        """(p, p) precision of the continuous columns given the others."""
        out = -self.coef[self.nodes.gaussian, self.nodes.gaussian]
        np.fill_diagonal(out, self.diagonal)
        return out

    @property
    def cont_bias(self) -> Floats:
        """(p,) linear terms of the continuous columns."""
        return self.bias[self.nodes.gaussian]

    @property
    def cat_bias(self) -> Floats:
        """(own terms,) terms of discrete columns: the biases of the levels, for instance."""
        return self.bias[self.nodes.n_gaussian :]

    @cached_property
    def logits(self) -> Floats:
        """(sum of values,) logits of the values of discrete columns without their neighbours."""
        nodes, slots = self.nodes, self.nodes.own_logits(self.cat_bias)
        if not nodes.n_spiked:
            return slots
        terms = slots[: 3 * nodes.n_spiked].reshape(-1, 3)
        odds = terms[:, 0] + log_integral(terms[:, 1], terms[:, 2])
        pairs = np.column_stack([np.zeros_like(odds), odds]).ravel()
        return np.concatenate([pairs, slots[3 * nodes.n_spiked :]])

    @cached_property
    def own_slots(self) -> list[Floats]:
        """(G, slots) own terms of every run of nodes, as its family takes them."""
        numbers = np.column_stack([self.cont_bias, self.diagonal])
        return self.nodes.own_slots(numbers, self.cat_bias)

    def own_of(self, node: int) -> Floats:
        """(1, slots) own terms of one node, as its family takes them."""
        at = self.nodes.place(node)
        if self.nodes.is_gaussian(node):
            return np.array([[self.bias[at], self.diagonal[at]]])
        return self.nodes.own_logits(self.cat_bias)[None, self.nodes.slots_of(at)]

    @property
    def score_interaction(self) -> Floats:
        """(numbers, numbers) terms of pairs of which at least one is ordinal or a count.

        Zero between two continuous columns, whose terms are in `precision`.
        """
        out = self.coef[self.nodes.numeric, self.nodes.numeric].copy()
        out[self.nodes.gaussian, self.nodes.gaussian] = 0.0
        return out

    @property
    def category_shift(self) -> Floats:
        """(p, sum of levels) shift of the linear term of a continuous column by every level."""
        return self.coef[: self.nodes.n_numeric, self.nodes.n_numeric :]

    @property
    def cat_interaction(self) -> Floats:
        """(sum of levels, sum of levels) terms of pairs of levels."""
        return self.coef[self.nodes.n_numeric :, self.nodes.n_numeric :]

    @property
    def level_effect(self) -> Floats:
        """(sum of levels, p) coefficients of levels in the conditionals of continuous columns."""
        return self.coef[self.nodes.n_numeric :, : self.nodes.n_numeric]

    @cached_property
    def precisions(self) -> Floats:
        """(n_real,) precisions of Gaussian nodes given all others, then of nonzero spiked ones."""
        first, _ = self.nodes.spiked_terms
        return np.concatenate([self.diagonal, self.bias[first + 2]])

    @cached_property
    def linear_terms(self) -> Floats:
        """(n_real,) linear terms of Gaussian nodes, then of spiked ones."""
        first, _ = self.nodes.spiked_terms
        return np.concatenate([self.cont_bias, self.bias[first + 1]])

    @cached_property
    def real_precision(self) -> Floats:
        """(n_real, n_real) precision of Gaussian nodes and spiked ones, where none is zero."""
        out = -self.coef[np.ix_(self.nodes.real_columns, self.nodes.real_columns)]
        np.fill_diagonal(out, self.precisions)
        return out

    @property
    def levels_possible(self) -> NDArray[np.bool_]:
        """Which values can occur."""
        return ~np.isneginf(self.logits)

    def block(self, u: int, v: int) -> Floats:
        """Edge block of two nodes: what u says about v; separate regressions: mean of both.

        For a continuous pair it is minus the precision entry, as in theta, so that a positive
        number means a positive relation.
        """
        if self.nodewise:
            return 0.5 * (self.says(u, v) + self.says(v, u).T)
        return self.says(u, v)

    def says(self, u: int, v: int) -> Floats:
        """(width of u, width of v) coefficients of node u in the conditional of node v."""
        return self.coef[self.nodes.columns_of(u), self.nodes.columns_of(v)]

    def bias_of(self, node: int) -> Floats:
        """Linear terms of a node: its one, or the logits of its values without neighbours."""
        at = self.nodes.place(node)
        if self.nodes.is_gaussian(node):
            return self.cont_bias[at : at + 1]
        return self.logits[self.nodes.levels_of(at)]

    def terms_of(self, node: int) -> Floats:
        """Own linear terms of a node: those of theta."""
        at = self.nodes.place(node)
        if self.nodes.is_gaussian(node):
            return self.cont_bias[at : at + 1]
        return self.cat_bias[self.nodes.terms_of(at)]

    def edge_coef(self, rule: str) -> Floats:
        """Symmetric d x d matrix of the edges.

        For separate regressions, the mean of the two copies of every edge, if the rule finds one.
        """
        if not self.nodewise:
            return self.coef
        there = joined(self.block_norms(self.coef) > 0.0, rule)
        width = self.nodes.width
        there = np.repeat(np.repeat(there, width, axis=0), width, axis=1)
        return np.where(there, 0.5 * (self.coef + self.coef.T), 0.0)

    @property
    def pairwise(self) -> Params:
        """The same with one coefficient for both ends of an edge."""
        return replace(self, coef=self.edge_coef("or"), nodewise=False) if self.nodewise else self

    def block_norms(self, matrix: Floats) -> Floats:
        """Euclidean norm of the block of every two nodes in a d x d matrix."""
        start = self.nodes.column_start[:-1]
        if len(start) == 0:
            return np.zeros((0, 0))
        return np.sqrt(np.add.reduceat(np.add.reduceat(matrix**2, start, axis=0), start, axis=1))

    def with_precision(self, precision: Floats) -> Params:
        """Return parameters with another precision of the continuous columns."""
        whole, p = self.real_precision.copy(), self.nodes.n_gaussian
        whole[:p, :p] = precision
        return self.with_real_precision(whole)

    def with_real_precision(self, precision: Floats) -> Params:
        """Return parameters with another `real_precision`."""
        coef, bias, p = self.coef.copy(), self.bias.copy(), self.nodes.n_gaussian
        inner, diagonal = -precision, np.diagonal(precision)
        np.fill_diagonal(inner, 0.0)
        coef[np.ix_(self.nodes.real_columns, self.nodes.real_columns)] = inner
        bias[self.nodes.spiked_terms[0] + 2] = diagonal[p:]
        return replace(self, bias=bias, diagonal=diagonal[:p].copy(), coef=coef)

    @cached_property
    def joint(self) -> ConditionalGaussian:
        """The density in the form in which the joint distribution is computed.

        A scored column is one of states: what another column says to its score it says to every
        state in proportion to the score of that state.  DistributionError with spiked columns,
        which have no such form.
        """
        nodes, p, coef, seen = self.nodes, self.nodes.n_gaussian, self.coef, None
        if nodes.n_spiked:
            raise DistributionError(
                "{columns} may be zero or any number, so that the joint distribution has no exact "
                "form: what it has is drawn by Gibbs chains. To fix: sample, marginal, "
                "conditional, mean, expectation and impute answer from these (method='auto')",
                tuple(np.flatnonzero(nodes.spiked_nodes).tolist()),
            )
        shift, between = coef[:p, p:], coef[p:, p:]
        if nodes.n_scored:
            seen = nodes.take(range(p, len(nodes)))
            shift = seen.statistics.over_values(shift)
            if sum(self.n_levels) <= MOST_VALUES:
                over_values = seen.statistics.over_values
                between, seen = over_values(over_values(between).T), None
        linear, bias = self.cont_bias, self.logits
        return ConditionalGaussian(
            self.n_levels, self.precision, linear, shift, between, bias, seen
        )

    @classmethod
    def of_joint(cls, density: ConditionalGaussian) -> Params:
        """Continuous and categorical columns with this density."""
        blocks = (density.precision, density.linear, density.shift, density.interaction)
        return cls.of_blocks(density.n_levels, *blocks, density.bias)

    @cached_property
    def unlocated(self) -> Params:
        """Parameters in own units, with spiked columns as 1[x != 0] and x: the same distribution.

        With y = x - l 1[x != 0], terms of y are terms of x, and -l times these of 1[x != 0].
        """
        nodes, bias, coef = self.nodes, self.bias.copy(), self.coef.copy()
        if not nodes.locations.any():
            return self
        first, column = nodes.spiked_terms
        location = nodes.locations[nodes.n_gaussian :]
        coef[column] -= location[:, None] * coef[column + 1]
        coef[:, column] -= location * coef[:, column + 1]
        slope, precision = bias[first + 1], bias[first + 2]
        bias[first] -= location * (slope + 0.5 * location * precision)
        bias[first + 1] += location * precision
        return replace(self, nodes=nodes.unlocated, bias=bias, coef=coef)

    def take(self, nodes: Ints) -> Params:
        """Some nodes and what is between them, as if there were no others; no deviations."""
        kept = self.nodes.take(nodes)
        wanted = np.isin(np.arange(len(self.nodes)), nodes)
        columns = np.flatnonzero(np.repeat(wanted, self.nodes.width))
        numbers = wanted[self.nodes.gaussian]
        terms = np.repeat(wanted, self.nodes.n_biases)
        return replace(
            self,
            nodes=kept,
            bias=self.bias[terms],
            diagonal=self.diagonal[numbers],
            coef=self.coef[np.ix_(columns, columns)],
            moderation=None,
        )


def joined(says: NDArray[np.bool_], rule: str) -> NDArray[np.bool_]:
    """Edges of separate regressions: where both nodes have one ("and"), or either ("or").

    Examples
    --------
    >>> says = np.array([[False, True], [False, False]])
    >>> bool(joined(says, "and").any()), bool(joined(says, "or").all(where=~np.eye(2, dtype=bool)))
    (False, True)
    """
    return says | says.T if rule == "or" else says & says.T


@dataclass(frozen=True, eq=False)
class Units:
    """Centre and scale of the numeric design columns: z = centre + scale * standardised z."""

    centre: Floats
    scale: Floats

    def of_columns(self, nodes: Nodes) -> Floats:
        """(d,) scale of every design column; indicators have none."""
        return np.concatenate([self.scale, np.ones(nodes.n_columns - nodes.n_numeric)])

    def of_terms(self, nodes: Nodes) -> Floats:
        """Divisors that bring standardised own terms to the data's own units."""
        out = np.ones(int(nodes.n_biases.sum()))
        out[: nodes.n_gaussian] = self.scale[: nodes.n_gaussian]
        first, at = nodes.spiked_terms
        for linear, scale in (
            (nodes.quadratic_terms[0], self.scale[nodes.quadratic_terms[1]]),
            (first + 1, self.scale[at + 1]),
        ):
            out[linear], out[linear + 1] = scale, scale**2
        return out

    def to_own(self, params: Params) -> Params:
        """Standardised units -> the data's own units."""
        scale, coef = self.of_columns(params.nodes), np.zeros_like(params.coef)
        row, column = np.divmod(params.places, len(coef))
        coef[row, column] = params.coef[row, column] / (scale[row] * scale[column])
        return self.with_own_coef(params, coef)

    def with_own_coef(self, params: Params, coef: Floats) -> Params:
        """Return parameters in the data's own units, in which the coefficients are known."""
        nodes, p = params.nodes.in_own_units, params.nodes.n_gaussian
        diagonal = params.diagonal / self.scale[:p] ** 2
        bias = params.bias / self.of_terms(nodes)
        linear, at = nodes.quadratic_terms
        bias[linear] -= 2.0 * bias[linear + 1] * self.centre[at]
        first, at = nodes.spiked_terms
        bias[first] -= np.log(self.scale[at + 1])
        bias -= nodes.moved_terms(self.centre @ coef[: nodes.n_numeric])
        bias[:p] += diagonal * self.centre[:p]
        return replace(params, nodes=nodes, bias=bias, diagonal=diagonal, coef=coef)

    def to_standard(self, params: Params) -> Params:
        """The data's own units -> standardised units."""
        nodes, p = params.nodes, params.nodes.n_gaussian
        scale = self.of_columns(nodes)
        bias = params.bias + nodes.moved_terms(self.centre @ params.coef[: nodes.n_numeric])
        bias[:p] -= params.diagonal * self.centre[:p]
        linear, at = nodes.quadratic_terms
        bias[linear] += 2.0 * bias[linear + 1] * self.centre[at]
        first, at = nodes.spiked_terms
        bias[first] += np.log(self.scale[at + 1])
        bias *= self.of_terms(nodes)
        return replace(
            params,
            nodes=nodes.standardised(self.centre, self.scale),
            bias=bias,
            diagonal=params.diagonal * self.scale[:p] ** 2,
            coef=params.coef * np.outer(scale, scale),
        )


def from_theta(layout: Layout, theta: Floats) -> Params:
    """Flat vector -> Params; deviations are left out."""
    return Params(
        layout.nodes,
        theta[layout.bias_terms],
        theta[layout.diagonal].copy(),
        layout.to_matrix(theta)[: layout.n_columns],
        layout.nodewise,
    )


def to_theta(layout: Layout, params: Params, deviations: Floats | None = None) -> Floats:
    """Params -> flat vector; blocks of edges outside the layout are dropped.

    `deviations` holds their matrices, one below the other, where the layout has some.
    """
    coef = params.coef if deviations is None else np.vstack([params.coef, deviations])
    return np.concatenate(
        [params.cont_bias, params.diagonal, params.cat_bias, layout.from_matrix(coef)]
    )


def with_all_levels(params: Params, observed: NDArray[np.bool_], nodes: Nodes) -> Params:
    """Parameters over observed values -> over all declared ones, which `nodes` have.

    A level without rows gets edge parameters zero and bias ``-inf``: probability zero in the
    fitted distribution, so the objective at the result is the objective that was minimised.
    """
    if observed.all():
        return params
    p, keep = nodes.n_gaussian, nodes.columns_kept(observed)
    coef = np.zeros((nodes.n_columns, nodes.n_columns))
    coef[np.ix_(keep, keep)] = params.coef
    bias = np.full(int(nodes.n_biases.sum()), -np.inf)
    bias[:p], bias[p + nodes.terms_kept(observed)] = params.cont_bias, params.cat_bias
    moderation = params.moderation
    if moderation is not None:
        moderation = over_levels(moderation, nodes, observed)
    return replace(params, nodes=nodes, bias=bias, coef=coef, moderation=moderation)


def with_unknown(params: Params, more: NDArray[np.bool_]) -> Params:
    """Return parameters with one more value, unknown to the model, of some discrete columns.

    It cannot occur.  To the others it is what the kind of its column makes of it: a category has no
    terms, a scored column the score of an unknown value.
    """
    nodes, p = params.nodes, params.nodes.n_gaussian
    wide, old = nodes.with_unknown(more), nodes.n_levels
    places = zip(np.split(params.logits, nodes.level_start[1:-1]), more, nodes.free, strict=True)
    bias, columns = [params.cont_bias], list(range(nodes.n_numeric))
    for j, (logits, added, free) in enumerate(places):
        bias.append(params.terms_of(p + j) if free or not added else logits)
        bias.append(np.full(int(added), -np.inf))
        if j >= nodes.first_indicator:
            first = int(wide.column_start[p + j])
            columns += range(first, first + old[j])
    coef = np.zeros((wide.n_columns, wide.n_columns))
    coef[np.ix_(columns, columns)] = params.coef
    return replace(params, nodes=wide, bias=np.concatenate(bias), coef=coef, moderation=None)


def over_observed(params: Params, observed: NDArray[np.bool_]) -> Params:
    """Parameters over all declared values -> over observed ones; deviations are left out."""
    nodes, p = params.nodes, params.nodes.n_gaussian
    keep = nodes.columns_kept(observed)
    return replace(
        params,
        nodes=nodes.kept(observed),
        bias=np.concatenate([params.cont_bias, params.bias[p + nodes.terms_kept(observed)]]),
        coef=params.coef[np.ix_(keep, keep)],
        moderation=None,
    )


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Units, levels without rows and moderators, which solver coordinates do not have."""

    layout: Layout
    """Layout over observed levels."""
    units: Units
    observed: NDArray[np.bool_]
    """Which of all declared levels have rows."""
    nodes: Nodes
    """Nodes with all declared levels, in the data's own units."""
    moderators: Moderators | None = None

    def params(self, theta: Floats) -> Params:
        """Solver coordinates -> the data's own units and all declared levels."""
        if self.layout.n_features:
            params = self.units.to_own(from_theta(self.layout, theta))
        else:
            # Of very many columns most coefficients are zero and take no memory, unless they are
            # divided, too.
            scale, own = self.units.of_columns(self.layout.nodes), theta.copy()
            row, column = self.layout.edge_position
            own[self.layout.edges] /= scale[row] * scale[column]
            params = from_theta(self.layout, own)
            params = self.units.with_own_coef(params, params.coef)
        if self.moderators is not None:
            moderation = self.moderators.to_own(self.layout, theta, self.units)
            params = replace(params, moderation=moderation)
        return with_all_levels(params, self.observed, self.nodes)

    def over_observed(self, params: Params) -> Params:
        """The data's own units and all declared levels -> standardised, observed levels only."""
        return over_observed(self.units.to_standard(params), self.observed)

    def theta(self, params: Params, standard: Params) -> Floats:
        """Solver coordinates of `standard`, with the deviations of `params` where there are any."""
        if self.moderators is None:
            return to_theta(self.layout, standard)
        if params.moderation is None:
            d = self.layout.n_columns
            stack = np.zeros((self.layout.n_products - d, d))
        else:
            here = deviations_over_observed(params.moderation, params.nodes, self.observed)
            stack = self.moderators.to_stack(self.layout, here, self.units)
        return to_theta(self.layout, standard, stack)
