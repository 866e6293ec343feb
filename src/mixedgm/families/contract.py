"""Contract of a kind of column, and of a family: the distribution of a column given all others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]
Array = Any
"""An array of NumPy, or of another library with the functions of the array API."""
Point = Literal["mode", "median", "mean"]
"""The value that stands for a distribution."""


class Transform(Protocol):
    """A change of scale of one column, as the schema holds it."""

    def forward(self, values: Any) -> Floats:
        """Return the values on the scale of the model."""

    def inverse(self, scores: Any) -> Floats:
        """Return the values on the scale of the table."""


class States(NamedTuple):
    """The finitely many states of a column; a real number may follow in the last of them."""

    logits: Floats
    """(states,) own terms of the states."""
    columns: Floats
    """(states, width) design columns in every state, less their centres and the real number."""
    number: tuple[float, float] | None
    """Own linear term and precision of the real number, which is seen in the last column."""


class Family(ABC):
    """Conditional distributions of G columns of one form, as functions of their linear predictors.

    Rows are the last axis of every array.  The own terms (G, slots) are, of numbers, a linear term
    and a precision; of finitely many values, their logits; of hurdle columns, the height of what is
    not zero, a linear term and a precision.  `own` and predictors (G, width, n) may be arrays of
    any library `xp` with the functions of the array API.
    """

    @abstractmethod
    def given(self, own: Array, predictors: Array, xp: Any = np) -> Conditional:
        """The distribution of every column in every row."""

    @abstractmethod
    def columns(self, codes: Codes, numbers: Floats) -> Floats:
        """(G, width, n) design columns of values: the number of the state, and the real number."""

    def numbers(self, codes: Codes, columns: Floats) -> Floats:
        """(G, n) the real numbers of values that are seen as these columns; zeros without one."""
        return np.zeros(codes.shape)

    @abstractmethod
    def statistics(self, codes: Codes, numbers: Floats) -> Floats:
        """(G, terms, n) what own terms multiply in the log density."""

    def with_noise(self, own: Floats, noise: Floats) -> Floats:
        """Own terms of columns without edges -> those with so much noise (G,) in their numbers.

        Columns without real numbers have none.
        """
        return own

    def in_basis(self, basis: Callable[[int], Floats]) -> Family:
        """Replace indicators of V values, where there are some, by the columns of basis(V)."""
        return self

    @abstractmethod
    def states(self, own: Floats) -> States:
        """The states of a single column; values that cannot occur are left out."""

    def on(self, put: Callable[[Floats], Array]) -> Self:
        """The family with its arrays where `put` puts them."""
        arrays = {name: put(x) for name, x in vars(self).items() if isinstance(x, np.ndarray)}
        return replace(self, **arrays)  # type: ignore[type-var]

    @classmethod
    def stacked(cls, families: Sequence[Self]) -> Self:
        """One family of all the columns of several."""
        return families[0]


class Conditional(ABC):
    """Distributions of G columns in n rows."""

    xp: Any
    """Library of the arrays."""

    @property
    @abstractmethod
    def log_normaliser(self) -> Array:
        """(G, n) logarithm of the sum or integral over all values."""

    @property
    @abstractmethod
    def columns(self) -> Array:
        """(G, width, n) expected design columns."""

    @property
    @abstractmethod
    def terms(self) -> Array:
        """(G, terms, n) expected statistics of the own terms."""

    def term_sums(self, weight: Array | None) -> Array:
        """(G, terms) `terms` summed over rows, times weights where there are some."""
        return self.xp.sum(self.terms if weight is None else self.terms * weight, axis=2)

    @abstractmethod
    def covariances(self) -> tuple[Array, Array]:
        """(G, width, width, n) covariances of the design columns; (G, width, terms, n) with terms.

        They are the derivatives of the expected design columns.
        """

    @abstractmethod
    def scores(self, codes: Codes, numbers: Floats) -> Sequence[Floats] | Floats:
        """Derivatives of the loss of values in each own term, (G, n): `terms` less statistics."""

    @abstractmethod
    def log_density(self, codes: Codes, numbers: Floats) -> Floats:
        """(G, n) log density of values, constant included."""

    @abstractmethod
    def drawn(self, rng: np.random.Generator) -> tuple[Codes, Floats]:
        """Draw a value of every column in every row: state and real number (G, n)."""


class Kind(ABC):
    """One kind of column.

    A column of a kind is seen by all others as one or more *design columns*, and has a conditional
    of its own: Gaussian, or a softmax over finitely many values.  `n_values` is the number of these
    values, and 0 for a kind that has any real number.  A kind with finitely many values that are
    numbers to the others (`is_numeric`) is *scored*: each value has a score.
    """

    name: ClassVar[str]
    """Name of the kind in schemas, edge kinds and files."""
    short: ClassVar[str]
    """Name of the kind where there is little room."""
    fill: ClassVar[str]
    """Colour of its nodes in pictures of networks."""
    line: ClassVar[str]
    """Colour of its curves."""
    marker: ClassVar[str]
    """Shape of its nodes, as matplotlib calls it."""
    marker_size: ClassVar[float]
    """Width of its marker, relative to a circle that looks as large."""
    is_gaussian: ClassVar[bool]
    """Whether its conditional is Gaussian; else it is a softmax over its values."""
    is_numeric: ClassVar[bool]
    """Whether its design columns are numbers, which have units; else they are indicators."""
    has_levels: ClassVar[bool]
    """Whether its values are levels with names; else they are numbers."""
    predicted_by: ClassVar[Point]
    """The value that predicts it, where no other is asked for."""
    measure: ClassVar[str]
    """Name of the number in `NodePredictability` that tells how well such columns are predicted."""
    assumption: ClassVar[str]
    """Assumption of the model about such columns, as a sentence for the reader of a report."""

    has_spike: ClassVar[bool] = False
    """Whether its values are zero or any real number: neither Gaussian nor finitely many."""

    @property
    def is_free(self) -> bool:
        """Whether every value has a term of its own, so that one without rows cannot occur."""
        return True

    @abstractmethod
    def family(self, n_values: int) -> Family:
        """The distribution of one such column given all others."""

    @abstractmethod
    def width(self, n_values: int) -> int:
        """Number of design columns: what the other columns see of it."""

    @abstractmethod
    def n_biases(self, n_values: int) -> int:
        """Number of its own linear terms; a Gaussian kind also has one on the diagonal."""

    @abstractmethod
    def freedom(self, n_values: int) -> int:
        """Directions of its design columns in which a block of an edge can differ.

        The parameters of an edge are counted as the product of those of its ends.
        """

    @abstractmethod
    def is_signed(self, n_values: int) -> bool:
        """Whether "more" and "less" of it have a meaning, so that an edge can have a sign."""

    @abstractmethod
    def variance(self, mean: Floats, varies: Floats) -> Floats:
        """Variances of its standardised design columns, from their means.

        `varies` is 1 for a number that varies and 0 for a constant.
        """

    @abstractmethod
    def problem(self, levels: tuple[Any, ...], transform: Transform | None) -> str | None:
        """Say why a column of this kind cannot be described so, or None if it can."""

    @abstractmethod
    def axis(self, name: str, level_names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the design columns of a column."""

    @abstractmethod
    def encode(self, values: NDArray[Any], transform: Transform | None) -> NDArray[Any]:
        """Values of the table (level codes of a kind with levels) -> those of the model."""

    @abstractmethod
    def decode(self, values: NDArray[Any], transform: Transform | None) -> NDArray[Any]:
        """Return what `encode` was given."""

    @abstractmethod
    def term_names(self, level_names: tuple[str, ...]) -> tuple[str | None, ...]:
        """Names of its own linear terms; None for the only one."""

    @abstractmethod
    def point(
        self, conditional: Floats, which: Point | None = None, numbers: Floats | None = None
    ) -> NDArray[Any]:
        """The value that stands for a conditional; by default, one that can fill a gap.

        The conditional is the means (n,) of a Gaussian kind; else log probabilities (n, n_values),
        and the value is given by its position; of a kind with a spike, see there.  Of ordered
        values, `which` asks for the mode, for the median, or for the mean of `numbers` (n_values,).
        """
