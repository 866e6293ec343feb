"""Evidence -> a graph whose edges come back in subsamples: StARS and stability selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mixedgm.base.parallel import seeds
from mixedgm.base.parameters import ensure, ensure_in, is_integer, is_real
from mixedgm.model.layout import Floats, Ints
from mixedgm.path.task import Task
from mixedgm.select.evidence import Choice, Evidence
from mixedgm.select.resamples import ByResamples, Counts, Location, checkpoint_field, edge_counts

_ROUNDING = 1e-12


@dataclass(frozen=True)
class StARS(ByResamples):
    """Stability approach to regularisation selection.

    An edge that is in a share f of the subsamples' graphs has the instability 2 f (1 - f).  The
    instability of a lam is the mean over all penalised pairs, made monotone: the largest of all
    lams from the top down to this one.  The smallest lam whose instability is at most `beta` is
    chosen.

    Parameters
    ----------
    beta : float
        The instability that is allowed, in (0, 0.5).
    n_subsamples : int
        Number of subsamples, drawn without replacement by the estimator's `random_state`.
    ratio : float, optional
        Size of a subsample as a share of the rows; by default 10 / sqrt(n), and 0.8 up to
        144 rows.
    checkpoint : path of a folder, optional
        Finished subsamples are kept there.  The same fit with the same folder goes on where it
        was, however it was ended; needs the estimator's `random_state`.

    References
    ----------
    Liu, Roeder and Wasserman (2010), "Stability approach to regularization selection (StARS) for
    high dimensional graphical models".

    Examples
    --------
    >>> StARS(beta=0.1).label
    'StARS (instability 0.1, 20 subsamples)'
    """

    refit = True
    all_pairs = True  # of which shares and means are taken

    beta: float = 0.05
    n_subsamples: int = 20
    ratio: float | None = None
    checkpoint: Location = checkpoint_field()

    def __post_init__(self) -> None:
        super().__post_init__()
        ensure_in("(0, 0.5)", beta=self.beta)
        _check_count(self.n_subsamples)
        share = self.ratio is None or (is_real(self.ratio) and 0.0 < self.ratio < 1.0)
        ensure(share, "ratio", "a number in (0, 1) or None", self.ratio)

    @property
    def effort(self) -> float:
        """About how often the work of EBIC's path is done."""
        return 1.0 + self.n_subsamples

    @property
    def label(self) -> str:
        """How the choice is described."""
        return f"StARS (instability {self.beta:g}, {self.n_subsamples} subsamples)"

    def choose(self, evidence: Evidence) -> Choice:
        """Smallest lam that is stable down from the top."""
        subsamples = self._subsamples(evidence)
        counts = edge_counts(evidence, subsamples, self.checkpoint)
        raw = evidence.joined("stars_raw", _instability(evidence.task, counts))
        monotone = np.maximum.accumulate(raw)
        stable = monotone <= self.beta
        scores = {
            "stars": monotone,
            "stars_limit": np.full(len(raw), float(self.beta)),
            "stars_raw": raw,
        }
        notes = counts.notes
        if not stable[0]:
            notes += ("no lam is as stable as asked for; the largest was taken",)
        index = max(int(stable.sum()) - 1, 0)
        return Choice(
            index,
            self.label,
            scores,
            evidence.all_notes(notes),
            down_to=_next_part(evidence, counts, bool(stable[-1])),
            frequencies=_frequencies(evidence, counts, index),
            ends=counts.ends,
        )

    def _subsamples(self, evidence: Evidence) -> list[Ints]:
        n = evidence.rows.n_rows
        ratio = self.ratio
        if ratio is None:
            ratio = 10.0 / np.sqrt(n) if n > 144 else 0.8
        size = min(max(1, int(ratio * n + 1e-9)), n - 1)
        return [
            np.sort(np.random.default_rng(seed).permutation(n)[:size])
            for seed in seeds(evidence.seed, self.n_subsamples)
        ]


def _next_part(evidence: Evidence, counts: Counts, within: bool) -> float | None:
    """Value of `down_to`: 0.0, a whole part more, if smaller lams may be allowed; else None."""
    return 0.0 if within and not evidence.saturated and not counts.interrupted else None


def _frequencies(evidence: Evidence, counts: Counts, index: int) -> Floats:
    """Share of the subsamples that have each edge at the chosen point of the path."""
    here, before = index - evidence.n_before, evidence.before
    # A choice before this part can only be the last lam of the part before.
    if here < 0 and before is not None and before.frequencies is not None:
        return before.frequencies
    return np.asarray(counts.edges[here] / counts.n_subsamples)


def _instability(task: Task, counts: Counts) -> Floats:
    """Mean over penalised pairs of twice the variance of the edge's indicator."""
    penalised = task.penalty.penalised & counts.once
    if not penalised.any():
        return np.zeros(len(counts.edges))
    share = counts.edges[:, penalised] / counts.n_subsamples
    return np.asarray((2.0 * share * (1.0 - share)).mean(axis=1))


@dataclass(frozen=True)
class StabilitySelection(ByResamples):
    """Edges that are selected in at least a share `threshold` of half-samples.

    Rows are split at random into two halves, `n_subsamples` / 2 times, and each half is fitted at
    every lam.  With q edges selected on average among P penalised pairs, the expected number of
    false edges among the stable ones is bounded; the smallest lam is taken at which the bound is
    at most `max_false`.  The model returned has the stable edges only, estimated on all rows at
    this lam.

    Parameters
    ----------
    threshold : float
        In (0.5, 1]: share of the half-samples in which a stable edge must be.
    max_false : float
        Expected number of false edges that is allowed.
    n_subsamples : int
        Number of half-samples, even.
    bound : {"unimodal", "worst-case"}
        Worst case: q^2 / ((2 threshold - 1) P), for all pairs if false edges are exchangeable and
        no worse than guessing (Meinshausen and Buehlmann), and without assumptions for pairs whose
        selection is less probable than q / P (Shah and Samworth).  The other one assumes
        unimodal distributions of simultaneous selection in both halves and allows for larger q.
    checkpoint : path of a folder, optional
        Folder of checkpoints, as for `StARS`.

    References
    ----------
    Meinshausen and Buehlmann (2010), "Stability selection".  Shah and Samworth (2013), "Variable
    selection with error control: another look at stability selection".

    Examples
    --------
    >>> StabilitySelection(threshold=0.9).label
    'stability selection (in 90% of 100 half-samples, at most 1 false edge expected)'
    """

    refit = True
    all_pairs = True  # of which shares and means are taken

    threshold: float = 0.75
    max_false: float = 1.0
    n_subsamples: int = 100
    bound: Literal["unimodal", "worst-case"] = "unimodal"
    checkpoint: Location = checkpoint_field()

    def __post_init__(self) -> None:
        super().__post_init__()
        ensure_in("(0.5, 1]", threshold=self.threshold)
        positive = is_real(self.max_false) and 0.0 < self.max_false < np.inf
        ensure(positive, "max_false", "a positive number", self.max_false)
        _check_count(self.n_subsamples)
        even, wanted = self.n_subsamples % 2 == 0, "an even number, as rows are split in halves"
        ensure(even, "n_subsamples", wanted, self.n_subsamples)
        offered = self.bound in ("unimodal", "worst-case")
        ensure(offered, "bound", "'unimodal' or 'worst-case'", self.bound)

    @property
    def effort(self) -> float:
        """About how often the work of EBIC's path is done: halves of the rows, large lams only."""
        return 1.0 + 0.15 * self.n_subsamples

    @property
    def label(self) -> str:
        """How the choice is described."""
        edges = "edge" if self.max_false == 1 else "edges"
        return (
            f"stability selection (in {100.0 * self.threshold:g}% of {self.n_subsamples} "
            f"half-samples, at most {self.max_false:g} false {edges} expected)"
        )

    def choose(self, evidence: Evidence) -> Choice:
        """Smallest lam down to which the bound holds, and its stable edges."""
        counts = edge_counts(evidence, self._halves(evidence), self.checkpoint)
        penalised = evidence.task.penalty.penalised & counts.once
        share = counts.edges / counts.n_subsamples
        selected = evidence.joined("stability_selected", share[:, penalised].sum(axis=1))
        stable = share >= self.threshold - _ROUNDING
        false = self.expected_false(selected, int(penalised.sum()))
        allowed = np.logical_and.accumulate(false <= self.max_false)
        scores = {
            "stability": false,
            "stability_limit": np.full(len(false), float(self.max_false)),
            "stability_selected": selected,
            "stability_stable": evidence.joined(
                "stability_stable", stable[:, counts.once].sum(axis=1).astype(np.float64)
            ),
        }
        index = max(int(allowed.sum()) - 1, 0)
        frequencies, notes = _frequencies(evidence, counts, index), counts.notes
        if not allowed[0]:
            notes += ("the bound exceeds max_false at every lam; the largest was taken",)
        return Choice(
            index,
            self.label,
            scores,
            evidence.all_notes(notes),
            down_to=_next_part(evidence, counts, bool(allowed[-1])),
            groups=np.flatnonzero(frequencies >= self.threshold - _ROUNDING),
            frequencies=frequencies,
            ends=counts.ends,
        )

    def expected_false(self, selected: Floats, n_pairs: int) -> Floats:
        """Bound on the expected number of false stable edges, by the number selected on average."""
        q, share = np.asarray(selected, dtype=np.float64), np.asarray(selected) / max(n_pairs, 1)
        product = q * share
        worst = product / (2.0 * self.threshold - 1.0)
        if self.bound == "worst-case":
            return worst
        pairs = self.n_subsamples / 2
        valid = share <= 1.0 / np.sqrt(3.0)
        if self.threshold > 0.75:
            constant = 4.0 * (1.0 - self.threshold + 0.5 / pairs) / (1.0 + 1.0 / pairs)
        else:
            # A frequency is a multiple of 1 / (2 pairs); the theorem begins at 1/2 + 1 / pairs.
            reached = np.ceil(2.0 * pairs * self.threshold - 1e-9)
            if reached < pairs + 2.0:
                return worst
            constant = 0.5 / (2.0 * self.threshold - 1.0 - 0.5 / pairs)
            reach = np.minimum(share**2, 0.5 / pairs + 0.75 * share**2)
            valid &= self.threshold > 0.5 + reach
        return np.where(valid, np.minimum(constant * product, worst), worst)

    def _halves(self, evidence: Evidence) -> list[Ints]:
        n = evidence.rows.n_rows
        halves = []
        for seed in seeds(evidence.seed, self.n_subsamples // 2):
            order = np.random.default_rng(seed).permutation(n)
            half = max(1, n // 2)
            halves += [np.sort(order[:half]), np.sort(order[half : 2 * half])]
        return halves


def _check_count(n: object) -> None:
    ensure(is_integer(n, 2), "n_subsamples", "an integer of at least 2", n)
