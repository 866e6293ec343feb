"""The estimator's parameters -> checked Options, and values that JSON can hold."""

from __future__ import annotations

import numbers
import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from mixedgm.base.errors import ModelFileError, NotYetError, ParameterError, near_matches
from mixedgm.base.parallel import Runtime, check_n_jobs, n_workers, seeds
from mixedgm.base.parameters import ensure, ensure_in, is_integer, is_real
from mixedgm.base.printable import few, number_of, quoted
from mixedgm.path.path import given_lams
from mixedgm.path.recipe import Lam, Loss, Moderated, Recipe, Weights
from mixedgm.penalty.weights import deviation_factors, pair_factors
from mixedgm.select.criteria import AIC, BIC, EBIC
from mixedgm.select.crossval import CV, Holdout
from mixedgm.select.error_rates import FDR, LocalFDR
from mixedgm.select.evidence import Criterion, Traits
from mixedgm.select.selection import NAMED
from mixedgm.select.stability import StabilitySelection, StARS
from mixedgm.solve.choose import solver_for
from mixedgm.solve.loop import Solver
from mixedgm.solve.monte_carlo import MonteCarlo
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.table.checks.check import MissingArg, Reading, raise_or_warn, resolve_options
from mixedgm.table.declarations import Count, Ordinal
from mixedgm.table.read import Frame
from mixedgm.table.schema import Schema

if TYPE_CHECKING:
    from mixedgm.fit.fitted import FittedModel

_CHOICES: dict[str, tuple[Any, ...]] = {
    "loss": get_args(Loss),
    "rule": ("and", "or"),
    "penalty_weights": get_args(Weights),
    "missing": get_args(MissingArg),
    "refit": ("auto", True, False),
    "penalize_covariates": (True, False),
}


@dataclass(frozen=True, eq=False)
class Options:
    """Parameters of `MixedGraphicalModel`, whose documentation explains them."""

    lam: Any = None
    select: Any = "local-fdr"
    lams: ArrayLike | None = None
    n_lams: int = 50
    lam_min_ratio: float = 0.01
    loss: Any = "pseudolikelihood"
    penalty_weights: Any = "calibrated"
    penalty_factors: Any = None
    require: Any = None
    forbid: Any = None
    covariates: Sequence[str] | None = None
    penalize_covariates: bool = True
    moderators: Sequence[str] | None = None
    rule: str = "and"
    types: Any = None
    transforms: Any = "auto"
    missing: Any = "error"
    refit: Any = "auto"
    solver: Any = "auto"
    tol: float = 1e-5
    max_iter: int = 1000
    device: str = "cpu"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def __post_init__(self) -> None:
        self._check_lam()
        for name in ("n_lams", "max_iter"):
            n = getattr(self, name)
            ensure(is_integer(n, 1), name, "an integer of at least 1", n)
        ensure_in("(0, 1)", lam_min_ratio=self.lam_min_ratio)
        ensure_in("(0, inf)", tol=self.tol)
        check_n_jobs(self.n_jobs)
        whole = is_integer(self.verbose, 0)
        ensure(whole, "verbose", "0 or a positive integer", self.verbose)
        for name, allowed in _CHOICES.items():
            if not _among(getattr(self, name), allowed):
                *first, last = map(repr, allowed)
                wanted = f"one of {', '.join([*first, last])}"
                if len(allowed) < 4:
                    wanted = f"{', '.join(first)} or {last}"
                raise ParameterError.must_be(name, wanted, getattr(self, name))
        wanted = "'cpu', 'cuda', or 'cuda:1' and so on"
        ensure(is_device(self.device), "device", wanted, self.device)
        ensure(_names(self.covariates), "covariates", "a list of column names", self.covariates)
        if self.lams is not None:
            given_lams(self.lams)
        self._check_not_yet()
        traits = Traits.of(self._criterion())
        if traits.checkpoint is not None and self.random_state is None:
            raise ParameterError(
                "a checkpoint needs random_state, so that the same rows are drawn when the work "
                "is resumed; give an integer, for example random_state=0."
            )
        if traits.per_node and self.loss != "nodewise":
            raise ParameterError(
                "per_node=True chooses one lam per column, for regressions that share no "
                f"parameters; with loss={self.loss!r} both ends of an edge share it. Use "
                "loss='nodewise', or per_node=False."
            )

    def _check_lam(self) -> None:
        if self.lam is not None and self.lams is not None:
            raise ParameterError(
                "lam and lams were both given; give one value or the values of a path."
            )
        if self.lam is None or _is_lam(self.lam):
            return
        if not _by_column(self.lam):
            more = ", one such per column," if self.loss == "nodewise" else ""
            raise ParameterError.must_be("lam", f"a float in [0, inf){more} or None", self.lam)
        if self.loss != "nodewise":
            raise ParameterError(
                "one lam per column is for regressions that share no parameters; give one value, "
                "or use loss='nodewise'."
            )

    def given_lam(self, schema: Schema) -> Lam | None:
        """The penalty that was given, or one per column of the table; None where it is chosen."""
        if self.lam is None or _is_lam(self.lam):
            return None if self.lam is None else float(self.lam)
        lams = tuple(float(value) for value in self.lam)
        if len(lams) != len(schema.columns):
            raise ParameterError(
                f"lam has {number_of(len(lams), 'value')}, but the model has "
                f"{number_of(len(schema.columns), 'column')}; give one value per "
                "column, in the order of the table."
            )
        lacking = [
            column.name
            for column, value in zip(schema.columns, lams, strict=True)
            if column.role == "target" and np.isnan(value)
        ]
        if lacking:
            raise ParameterError(f"lam is missing for {few(lacking)}; only covariates have none.")
        return lams

    def _check_not_yet(self) -> None:
        """Combinations of options that are not offered, or not yet."""
        sampled = self.loss == "likelihood-mc"
        if sampled != isinstance(self.solver_object, MonteCarlo):
            wanted = "'auto' or a MonteCarlo(...)" if sampled else "a solver other than MonteCarlo"
            raise ParameterError.must_be("solver", f"{wanted} with loss={self.loss!r}", self.solver)
        if sampled and self.covariates is not None and len(self.covariates):
            raise NotYetError(
                "covariates are not available yet with loss='likelihood-mc'; use "
                "loss='likelihood', which is exact, or loss='pseudolikelihood'."
            )
        if self.rule == "or" and self.loss != "nodewise":
            raise ParameterError(
                "rule='or' is for separate regressions, where two columns may disagree about an "
                "edge; leave it at 'and', or use loss='nodewise'."
            )
        if self.missing == "model" and sampled:
            raise NotYetError(
                "missing='model' is not available yet with loss='likelihood-mc'; use "
                "loss='likelihood', which is exact, or loss='pseudolikelihood'."
            )
        if self.missing == "model" and self.moderators is not None and len(self.moderators):
            raise NotYetError(
                "missing='model' is not available yet with moderators: every row would have a "
                "joint distribution of its own; drop the rows with gaps (missing='drop')."
            )
        self._check_moderators()
        self._check_device()

    def _check_device(self) -> None:
        """A GPU makes passes over rows."""
        if self.device == "cpu":
            return
        if self.loss.startswith("likelihood"):
            raise ParameterError(
                f"device={self.device!r} is for loss='pseudolikelihood' or 'nodewise', which pass "
                f"over the rows again and again; with loss={self.loss!r} use device='cpu'."
            )
        if self.moderator_names:
            raise NotYetError(
                f"moderators are not available yet with device={self.device!r}; use device='cpu'."
            )

    def _check_moderators(self) -> None:
        """Moderators are named; their deviations need the conditionals."""
        given = self.moderators
        if not _names(given) or len(set(self.moderator_names)) < len(self.moderator_names):
            raise ParameterError.must_be("moderators", "a list of different column names", given)
        if self.moderator_names and self.loss not in ("pseudolikelihood", "nodewise"):
            raise ParameterError(
                f"moderators need loss='pseudolikelihood' or 'nodewise', not {self.loss!r}: with "
                "moderated edges every row has a partition function of its own, so that the "
                "likelihood is no longer a sum over moments."
            )

    def check_moderators(self, frame: Frame) -> None:
        """Raise ParameterError where a moderator is not a column of the table."""
        for name in self.moderator_names:
            by_position = isinstance(name, numbers.Integral) and not frame.named
            if str(name) in frame.positions or (by_position and 0 <= name < len(frame.names)):
                continue
            hint = near_matches(name, frame.names)
            raise ParameterError(f"moderators names {quoted(name)}, which is not a column; {hint}")

    def check_against(self, schema: Schema, library: str) -> None:
        """Raise what a fit of a table with this schema would say about the options."""
        frame = Frame(schema.table_names, (), 0, library)
        _, findings = resolve_options(frame, self.reading())
        raise_or_warn(findings)
        self.check_moderators(frame)
        self.given_lam(schema)
        seeds(self.random_state, 1)
        self.recipe(schema)

    def recipe(self, schema: Schema) -> Recipe:
        """How the rows of a table with this schema become a path."""
        wishes = self.penalty_factors, self.require, self.forbid
        nodes = tuple(_moderator(schema, name) for name in self.moderator_names)
        factors = pair_factors(
            schema, *wishes, penalize_covariates=self.penalize_covariates, moderated=bool(nodes)
        )
        return Recipe(
            self.solver_object,
            self.tol,
            self.max_iter,
            self.penalty_weights,
            factors,
            self.loss,
            seeds(self.random_state, 1)[0] if self.loss == "likelihood-mc" else None,
            self.rule,
            Moderated(nodes, deviation_factors(schema, nodes, *wishes)) if nodes else None,
            self.refits,
            device=self.device,
            **({"most_parameters": np.inf} if Traits.of(self.criterion).all_pairs else {}),
        )

    def reading(self, sample_weight: ArrayLike | str | None = None) -> Reading:
        """How a table is read."""
        return Reading(
            types=self.types,
            transforms=self.transforms,
            covariates=self.all_covariates,
            missing=self.missing,
            sample_weight=sample_weight,
            forbid=self.forbid,
        )

    @property
    def runtime(self) -> Runtime:
        """Threads, workers and progress bars; Ctrl-C leaves a model from what is done."""
        return Runtime(self.n_threads, self.n_jobs, keep_interrupted=True, show=self.verbose > 0)

    @property
    def moderator_names(self) -> tuple[Any, ...]:
        """The moderators, none by default."""
        if self.moderators is None:
            return ()
        return (self.moderators,) if isinstance(self.moderators, str) else tuple(self.moderators)

    @property
    def all_covariates(self) -> tuple[Any, ...] | None:
        """Covariates and moderators: a moderator predicts and is not predicted."""
        if not self.moderator_names:
            return self.covariates  # type: ignore[return-value]
        given = self.covariates
        names = () if given is None else (given,) if isinstance(given, str) else tuple(given)
        return tuple(dict.fromkeys([*names, *self.moderator_names]))

    @property
    def criterion(self) -> Criterion | None:
        """How lam is chosen; None when it is given."""
        return self._criterion() if self.lam is None else None

    @property
    def refits(self) -> bool:
        """Whether the chosen graph is estimated again without penalty.

        By default where the criterion judges graphs; cross-validation chooses lam for shrunken
        predictions, and a given lam promises its objective.
        """
        if self.refit != "auto":
            return bool(self.refit)
        return bool(Traits.of(self.criterion).refit)

    def _criterion(self) -> Criterion:
        if isinstance(self.select, str) and self.select in NAMED:
            return NAMED[self.select]
        if not isinstance(self.select, (str, type)) and hasattr(self.select, "choose"):
            return cast(Criterion, self.select)
        raise ParameterError.must_be(
            "select",
            f"one of {', '.join(map(repr, NAMED))} or a criterion such as mixedgm.EBIC(gamma=0.5)",
            self.select,
        )

    @property
    def solver_object(self) -> Solver:
        """The solver that `solver` names."""
        if self.loss == "likelihood-mc" and self.solver == "auto":
            return MonteCarlo()
        return solver_for(self.solver)

    @property
    def n_threads(self) -> int:
        """Threads for passes over the rows."""
        return n_workers(self.n_jobs)


def of_estimator(model: Any, **changes: Any) -> tuple[FittedModel, Options]:
    """The model that an estimator holds, and its options with some changes."""
    from sklearn.utils.validation import check_is_fitted

    estimator = hasattr(model, "get_params") and hasattr(model, "fit")
    ensure(estimator, "model", "a fitted MixedGraphicalModel", model)
    check_is_fitted(model, "fitted_")
    return model.fitted_, Options(**(model.get_params(deep=False) | changes))


def is_device(value: object) -> bool:
    """Whether it names the processor or a GPU; or a library, by which tests stand in for one."""
    names = r"cpu|cuda(:\d{1,3})?|numpy|torch"
    return isinstance(value, str) and re.fullmatch(names, value) is not None


def _moderator(schema: Schema, name: object) -> int:
    """The node of a moderator: by name, or (for an array) by position."""
    if isinstance(name, numbers.Integral) and str(name) not in schema.names:
        name = schema.table_names[int(name)]
    return schema.node_index(name)


def _is_lam(value: object) -> bool:
    return is_real(value) and 0.0 <= float(value) < np.inf


def _among(value: object, allowed: tuple[Any, ...]) -> bool:
    """Whether it is one of these, and not merely equal to it as 1 is to True."""
    kinds = (str, bool, np.bool_)
    return isinstance(value, kinds) and any(value == one for one in allowed)


def _names(value: object) -> bool:
    """Whether it is None, a name, or several."""
    if value is None or isinstance(value, str):
        return True
    if not isinstance(value, Collection) or isinstance(value, (Mapping, bytes)):
        return False
    return all(isinstance(name, Hashable) for name in value)


def _by_column(value: object) -> bool:
    """Whether it is a list of penalties; NaN stands for a column that has none."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        return False
    return all(_is_lam(x) or (isinstance(x, float) and np.isnan(x)) for x in value)


# -- settings of model files -----------------------------------------------------------------------

_CRITERIA = (LocalFDR, FDR, EBIC, BIC, AIC, Holdout, CV, StARS, StabilitySelection)
OBJECTS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (*_CRITERIA, MonteCarlo, ProximalGradient, ProximalNewton, Ordinal, Count)
}


class ObjectText(str):
    """The text of an object that no file can hold; the object itself is gone."""


def to_plain(value: object) -> Any:
    """Return a JSON-able value; objects that have no plain form become their text.

    Examples
    --------
    >>> to_plain({("age", "wage"): 0.5})
    {'mapping': [[{'tuple': ['age', 'wage']}, 0.5]]}
    >>> from_plain(to_plain({("age", "wage"): 0.5}))
    {('age', 'wage'): 0.5}
    """
    if isinstance(value, ObjectText):
        return {"text": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if is_dataclass(value) and type(value).__name__ in OBJECTS:
        return _object_to_plain(value)
    if isinstance(value, Schema):
        return {"schema": value.to_dict()}
    if isinstance(value, Mapping):
        return {"mapping": [[to_plain(k), to_plain(v)] for k, v in value.items()]}
    if isinstance(value, (tuple, frozenset)):  # both may be keys of a mapping
        return {"tuple": [to_plain(item) for item in value]}
    if isinstance(value, (list, set, np.ndarray)):
        return [to_plain(item) for item in value]
    return {"text": repr(value)}


def from_plain(value: object) -> Any:
    """Undo `to_plain`; only the known option classes are ever made."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "schema" in value:
        return Schema.from_dict(value["schema"])
    if "mapping" in value:
        return {from_plain(k): from_plain(v) for k, v in value["mapping"]}
    if "tuple" in value:
        return tuple(from_plain(item) for item in value["tuple"])
    if "object" in value:
        if value["object"] not in OBJECTS:
            raise ModelFileError(f"{quoted(value['object'])} is not an object that options hold")
        options = {name: from_plain(option) for name, option in value["options"].items()}
        return OBJECTS[value["object"]](**options)
    return ObjectText(value["text"])


def _object_to_plain(value: Any) -> dict[str, Any]:
    """Class and options of an object; its text if an option (a splitter) has no plain form.

    An option that is not in the text, such as a folder of checkpoints, is not kept either.
    """
    kept = [each.name for each in fields(value) if each.repr]
    options = {name: to_plain(getattr(value, name)) for name in kept}
    if any(isinstance(option, dict) and "text" in option for option in options.values()):
        return {"text": repr(value)}
    return {"object": type(value).__name__, "options": options}
