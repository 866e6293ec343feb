"""How a fit ended -> FitReport: certificate, cost, and what the user should know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixedgm.base.printable import number_of, rows
from mixedgm.model.layout import Floats
from mixedgm.path.recipe import Lam
from mixedgm.solve.loop import Account, Certificate, Cost


@dataclass(frozen=True)
class Completion:
    """How the gaps of a table were completed while it was fitted."""

    n_cells: int
    """Missing cells."""
    n_rows: int
    """Rows with gaps."""
    n_completions: int
    """Completed rows of the last round, those without gaps included."""
    n_rounds: int
    """Rounds of completing and estimating after which both agreed."""
    drawn: bool
    """Whether some states were drawn, because a row has too many to write them all out."""

    def __str__(self) -> str:
        """Return it as a sentence."""
        cells = number_of(self.n_cells, "missing cell")
        completed = number_of(self.n_completions, "completed row")
        how = "drawn and weighted" if self.drawn else "weighted"
        return (
            f"{cells} in {rows(self.n_rows)}, modelled: {completed}, {how} by the model itself "
            f"in {number_of(self.n_rounds, 'round')}"
        )


@dataclass(frozen=True)
class FitReport(Account):
    """How the fit ended: certificate and cost of the estimate, and what the user should know.

    The cost is that of the last solve: of the chosen lam, or of its refit.
    """

    lam: Lam
    """One value, or one per column of the table: NaN for covariates."""
    tol: float
    n_rows: int
    total_weight: float
    notes: tuple[str, ...] = ()
    criterion: str | None = None
    """How lam was chosen, e.g. "EBIC (gamma = 0.5)"; None for a given lam."""
    rule: str = "and"
    """Whether both of two separate regressions, or either, must have an edge."""
    loss: str = "pseudolikelihood"
    at: str = ""
    """Values of the moderators, where the model is that of a moderated one at these."""
    refitted: bool = False
    """Whether the estimates are those of the chosen graph without penalty."""
    shrunken: bool = False
    """Whether edges of several parameters are shrunken, each by its own variance."""
    ridge: tuple[tuple[str, str], ...] = ()
    """Edges whose refit is unstable or does not exist: they have a ridge worth one row."""
    untested: tuple[tuple[str, str, str], ...] = ()
    """Edges that an information criterion chose instead of a test, each with the reason."""
    noisy: tuple[str, ...] = ()
    """Numbers that the others determine: they have noise worth one row."""
    unbounded: tuple[str, ...] = ()
    """Edges and numbers without penalty that have no finite estimate: the fit has not converged."""
    open_end: str = ""
    """Reason to try smaller values of lam; empty if there is none."""
    not_considered: tuple[str, ...] = ()
    """Why a value of lam was not considered, one entry per lam; empty where all were."""
    completion: Completion | None = None
    """How rows with gaps were completed, where there were some."""

    @classmethod
    def given(cls, notes: tuple[str, ...] = ()) -> FitReport:
        """The report of parameters that nobody fitted: no lam, no objective, no certificate."""
        return cls(
            Certificate.none("given, not fitted"),
            Cost(),
            lam=np.nan,
            tol=np.nan,
            n_rows=0,
            total_weight=0.0,
            notes=notes,
        )

    @property
    def lam_by_column(self) -> Floats | None:
        """One lam per column in the order of the table; None where all have the same."""
        return np.array(self.lam) if isinstance(self.lam, tuple) else None

    @property
    def was_fitted(self) -> bool:
        """Whether the parameters come from rows; False where they were given."""
        return self.n_rows > 0
