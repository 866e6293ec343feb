"""Contract of a kind of column: everything the rest of the package asks of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Point = Literal["mode", "median", "mean"]
"""The value that stands for a distribution."""


class Transform(Protocol):
    """A change of scale of one column, as the schema holds it."""

    def forward(self, values: Any) -> Floats:
        """Return the values on the scale of the model."""

    def inverse(self, scores: Any) -> Floats:
        """Return the values on the scale of the table."""


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
