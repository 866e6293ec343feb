"""A seed -> a hostile table, and what check, fit and every question about it made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

import mixedgm as mg
from stress.campaign import Campaign, Found
from stress.hostile_columns import HOSTILE, Cells, columns, names
from stress.hostile_frames import WRAPPERS, Wrapper, wrapped
from stress.inquiry import Inquiry, WrongAnswerError, finite, finite_cells, listed, missing

_LIBRARIES = {
    "pandas": 0.4,
    "polars": 0.15,
    "pyarrow": 0.15,
    "numpy": 0.15,
    "lists": 0.12,
    "no table": 0.03,
}


@dataclass
class HostileTable:
    """Columns of cells, how they are wrapped, and the options of the fit."""

    library: str
    wrapper: Wrapper
    cells: list[Cells]
    names: list[Any]
    options: dict[str, Any] = field(default_factory=dict)
    sample_weight: Any = None

    @property
    def table(self) -> Any:
        return wrapped(self.wrapper, self.cells, self.names)

    def changed(self, rng: np.random.Generator, *, hostile: bool) -> Any:
        """Some rows with gaps; hostile: with a column that is another one, too."""
        n = min(len(self.cells[0]), 30)
        found = [[None if rng.random() < 0.2 else c for c in cells[:n]] for cells in self.cells]
        if hostile:
            maker = HOSTILE[int(rng.integers(len(HOSTILE)))]
            found[int(rng.integers(len(found)))] = maker(rng, n)
        wrapper = self.wrapper
        if hostile and rng.random() < 0.3:
            others = WRAPPERS[str(rng.choice(list(WRAPPERS)))]
            wrapper = others[int(rng.integers(len(others)))]
        return wrapped(wrapper, found, self.names)


def hostile_table(seed: int) -> HostileTable:
    """The table of a seed."""
    rng = np.random.default_rng([16, seed])
    library = str(rng.choice(list(_LIBRARIES), p=list(_LIBRARIES.values())))
    wrappers = WRAPPERS[library]
    n = int(rng.choice([0, 1, 2, 3, 5, 10, 30, 60, 120, 300, 2000], p=_ROWS))
    count = int(rng.choice([1, 2, 3, 4, 5, 6, 8, 12, 60], p=_COLUMNS))
    count = min(count, 4) if n == 2000 else count
    found = HostileTable(
        library,
        wrappers[int(rng.integers(len(wrappers)))],
        columns(rng, n, count),
        names(rng, count),
    )
    if rng.random() < 0.35:
        found.options = _options(rng, found)
    elif rng.random() < 0.5:
        found.options = {"missing": "drop"}
    if rng.random() < 0.12:
        found.sample_weight = _weights(rng, n)
    return found


_ROWS = [0.01, 0.02, 0.03, 0.03, 0.05, 0.1, 0.24, 0.24, 0.17, 0.1, 0.01]
_COLUMNS = [0.05, 0.14, 0.2, 0.2, 0.2, 0.1, 0.07, 0.035, 0.005]


def _options(rng: np.random.Generator, table: HostileTable) -> dict[str, Any]:
    one = table.names[int(rng.integers(len(table.names)))]
    if table.library in ("numpy", "lists"):
        one = int(rng.integers(len(table.names)))
    choices: tuple[dict[str, Any], ...] = (
        {"penalty_weights": "adaptive", "missing": "drop"},
        {"missing": "drop"},
        {"types": {one: "categorical"}},
        {"types": {one: "continuous"}},
        {"types": {one: "ordinal"}},
        {"types": {one: "count"}, "missing": "drop"},
        {"types": {one: mg.Ordinal(scores=[0, 1, 4], thresholds="quadratic")}},
        {"types": {one: mg.Count(largest=300, zero_term=True)}},
        {"types": ["ordinal"] * len(table.names), "missing": "drop"},
        {"types": ["count"] * len(table.names), "missing": "drop"},
        {"covariates": [one]},
        {"transforms": "nonparanormal"},
        {"transforms": "nonparanormal-extrapolated", "missing": "drop"},
        {"loss": "nodewise"},
        {"select": "bic"},
        {"select": mg.CV(3), "random_state": 0, "n_lams": 8, "lam_min_ratio": 0.2},
        {"refit": False},
        {"lam": 0.0 if len(table.cells[0]) <= 120 else 0.1},
        {"penalty_weights": "uniform"},
        {"types": {one: "kind"}, "missing": "maybe"},
        {"types": {one: "ordinal"}, "missing": "drop"},
        {"types": {one: "count"}, "missing": "drop"},
        {"types": ["ordinal"] * len(table.names), "missing": "drop"},
        {"types": ["count"] * len(table.names), "loss": "nodewise", "missing": "drop"},
        {"types": {one: mg.Ordinal(thresholds="quadratic")}, "moderators": [one]},
        {"types": {one: mg.Count(zero_term=True)}, "loss": "likelihood", "missing": "drop"},
        {"types": ["categorical"] * len(table.names)},
        {"types": ["continuous"] * len(table.names), "transforms": "nonparanormal"},
        {"loss": "likelihood", "missing": "drop"},
        {"moderators": [one]},
        {"loss": "nodewise", "covariates": [one], "missing": "drop"},
        {"lam": 1e-300 if len(table.cells[0]) <= 120 else 0.1},
        {"lam": 1e6},
        {"refit": True, "lam": 0.1},
    )
    return dict(choices[int(rng.integers(len(choices)))])


def _weights(rng: np.random.Generator, n: int) -> Any:
    plain = rng.random(n)
    choices: tuple[Callable[[], Any], ...] = (
        lambda: plain,
        lambda: rng.integers(0, 3, n),
        lambda: plain * 1e-300,
        lambda: plain * 1e300,
        lambda: np.where(plain < 0.9, 0.0, 1.0),
        lambda: 10.0 ** rng.integers(-30, 30, n),
        lambda: 10.0 ** rng.integers(-40, 5, n),
        lambda: 10.0 ** rng.integers(-6, 5, n),
        lambda: plain - 0.5,
        lambda: np.where(plain < 0.1, np.nan, plain),
        lambda: plain[:-1],
        lambda: ["a"] * n,
        lambda: plain[:, None],
        lambda: [None] * n,
        lambda: np.zeros(n),
    )
    return choices[int(rng.integers(len(choices)))]()


def attempt(seed: int, folder: Path) -> Found:
    """Put all questions to the table of a seed."""
    rng = np.random.default_rng([17, seed])
    case = hostile_table(seed)
    inquiry = Inquiry(__file__)
    lead = f"{case.library}, {case.wrapper.__name__.replace('_', ' ')}"
    known = {name: case.options[name] for name in _CHECKED if name in case.options}
    table = case.table
    checked = inquiry.ask(
        "check", lambda: mg.check_table(table, sample_weight=case.sample_weight, **known)
    )
    if checked is not None:
        inquiry.ask("check in words", lambda: inquiry.text(repr(checked)))

    def fit(**options: Any) -> Any:
        model = mg.MixedGraphicalModel(**{"n_jobs": 1, **case.options, **options})
        return model.fit(table, sample_weight=case.sample_weight)

    model = inquiry.ask("fit", fit)
    inquiry.compare(checked, model)
    if model is None:
        return Found(f"{lead}: error of the family", inquiry.findings)
    inquiry.ask("parameters", lambda: _look_at(model))
    if rng.random() < 0.5:
        at = inquiry.ask("fit at one lam", lambda: fit(lam=float(rng.choice([0.05, 0.1, 0.5]))))
        inquiry.ask("parameters at one lam", lambda: None if at is None else _look_at(at))
    if rng.random() < 0.5:
        inquiry.ask("two threads", lambda: _same(model, fit(n_jobs=2)))
    _questions(inquiry, case, model, rng, folder)
    return Found(f"{lead}: answer", inquiry.findings)


_CHECKED = ("types", "transforms", "covariates", "missing")


def _questions(
    inquiry: Inquiry, case: HostileTable, model: Any, rng: np.random.Generator, folder: Path
) -> None:
    """What a user asks of a fitted model."""
    table = case.table
    targets = model.schema_.targets
    inquiry.ask("edges", lambda: finite_cells("strength", list(model.edges()["strength"])))
    inquiry.ask("summary", lambda: inquiry.text(str(model.summary())))
    predicted = inquiry.ask("predict", lambda: model.predict(table))
    if predicted is not None:
        inquiry.ask("predictions", lambda: finite(predicted))
    inquiry.ask("score", lambda: _number(model.score(table, sample_weight=case.sample_weight)))
    if rng.random() < 0.5:
        inquiry.ask("probabilities", lambda: _probabilities(model, table))
    if rng.random() < 0.7:
        inquiry.ask("sample", lambda: finite(model.sample(5, random_state=0)))
    if rng.random() < 0.7:
        gaps = case.changed(rng, hostile=False)
        inquiry.ask("impute", lambda: _complete(model, model.impute(gaps)))
        if rng.random() < 0.5:
            inquiry.ask(
                "impute by draws",
                lambda: [
                    _complete(model, each) for each in model.impute(gaps, n_draws=2, random_state=0)
                ],
            )
    if rng.random() < 0.5:
        rows = case.changed(rng, hostile=True)
        inquiry.ask("predict new rows", lambda: finite(model.predict(rows)))
        inquiry.ask("unseen levels", lambda: finite(model.predict(rows, unseen="ignore")))
        inquiry.ask("score new rows", lambda: model.score(rows))
        inquiry.ask("impute new rows", lambda: model.impute(rows, unseen="ignore"))
        if rng.random() < 0.3:
            inquiry.ask("one column", lambda: model.predict(rows, targets[0]))
    if rng.random() < 0.4:
        inquiry.ask("file", lambda: _saved(model, table, predicted, folder / "model.mgm"))
    if rng.random() < 0.1:
        _joint_questions(inquiry, case, model, targets)
    if rng.random() < 0.02:
        inquiry.ask("picture", lambda: _picture(model, folder / "graph.png"))


def _joint_questions(inquiry: Inquiry, case: HostileTable, model: Any, targets: Any) -> None:
    """Questions to the joint distribution, and other views."""
    table = case.table
    inquiry.ask("log density", lambda: _no_nan(model.log_density(table)))
    inquiry.ask("mean", lambda: inquiry.text(str(model.mean())))
    inquiry.ask("marginal", lambda: finite(model.marginal(targets[0]).frame()))
    inquiry.ask("entropy", lambda: _number(model.entropy(targets[0]).value))
    inquiry.ask("predictability", lambda: model.predictability(table))
    inquiry.ask("nodes", model.nodes)
    imputer = mg.MixedImputer(mg.MixedGraphicalModel(lam=0.1, n_jobs=1), strategy="draw")
    inquiry.ask("imputer", lambda: imputer.fit(table).transform(table))


def _look_at(model: Any) -> None:
    fitted = model.fitted_
    for each in fields(model.params_):
        value = getattr(model.params_, each.name)
        if isinstance(value, np.ndarray):
            fine = np.isfinite(value) | (np.isneginf(value) & (each.name == "bias"))
            if not fine.all():
                raise WrongAnswerError(f"{each.name} is not finite (converged: {model.converged_})")
    if not np.isfinite(fitted.edge_norms).all() or not np.isfinite(fitted.node_scales).all():
        raise WrongAnswerError(f"weights of edges are not finite (converged: {model.converged_})")
    if model.converged_ and not (np.isfinite(model.kkt_) and np.isfinite(model.objective_)):
        raise WrongAnswerError(f"converged with kkt {model.kkt_} and objective {model.objective_}")


def _arrays(params: Any) -> dict[str, bytes]:
    found = {each.name: getattr(params, each.name) for each in fields(params)}
    return {name: v.tobytes() for name, v in found.items() if isinstance(v, np.ndarray)}


def _same(model: Any, other: Any) -> None:
    own, others = _arrays(model.params_), _arrays(other.params_)
    if own != others:
        different = [name for name in own if own[name] != others[name]]
        raise WrongAnswerError(f"{different} differ with n_jobs")


def _complete(model: Any, table: Any) -> None:
    """Every cell of the model's columns has a value."""
    cells = list(listed(table).values())
    continuous = {column.name for column in model.schema_.continuous}
    for name, own in zip(model.schema_.table_names, cells, strict=False):
        if name in continuous:
            finite_cells(name[:20], own)
        elif name in model.schema_.names and any(map(missing, own)):
            raise WrongAnswerError(f"column {name[:20]} has gaps")


def _no_nan(logs: Any) -> None:
    """A density may be zero: of a level that no row of the fit had."""
    if np.isnan(logs).any() or np.isposinf(logs).any():
        raise WrongAnswerError("a log density is NaN or inf")


def _number(value: float) -> None:
    if not np.isfinite(value):
        raise WrongAnswerError(f"it is {value}")


def _probabilities(model: Any, table: Any) -> None:
    if not any(column.role == "target" for column in model.schema_.categorical):
        return
    for name, own in model.predict_proba(table).items():
        sums = np.sum(list(listed(own).values()), axis=0)
        if not np.allclose(sums, 1.0):
            raise WrongAnswerError(f"probabilities of {name[:20]} do not add up to 1")


def _saved(model: Any, table: Any, predicted: Any, path: Path) -> None:
    model.save(path)
    again = mg.load(path)
    if _arrays(again.params_) != _arrays(model.params_):
        raise WrongAnswerError("the loaded model has other parameters")
    if predicted is not None:
        ours, theirs = listed(predicted), listed(again.predict(table))
        if repr(ours) != repr(theirs):
            raise WrongAnswerError("the loaded model predicts something else")


def _picture(model: Any, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    model.plot()
    plt.savefig(path)
    plt.close("all")


CAMPAIGN = Campaign(
    what="hostile tables: an answer with finite numbers, or an error of the family",
    cases=10_000,
    seconds=20.0,
    attempt=attempt,
)
