"""Content of a model file -> the same, where it has the types, ranges and shapes stated here.

One schema for all that is read: `DOCUMENT` for the values of ``model.json``, `ARRAYS` for the rest.
Fields that are not stated are left to later versions, and ignored.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ModelFileError
from mixedgm.base.printable import quoted
from mixedgm.families import KINDS
from mixedgm.families.finite import Thresholds
from mixedgm.fit.certificate import ROUNDING
from mixedgm.fit.options import OBJECTS
from mixedgm.path.recipe import Loss
from mixedgm.solve.loop import Certificate, Status
from mixedgm.solve.monte_carlo import STANDARD_ERRORS
from mixedgm.table.schema import Role

Check = Callable[[Any, str], Any]
Sizes = Mapping[str, int]

COST = ("passes", "curvature_passes", "seconds", "pass_seconds", "curvature_seconds")
"""Names of the costs of a solve, besides its steps."""

WIDE = 400
"""Number of columns from which on zeros of most pairs of columns are left out of a file."""

_MOST = sys.float_info.max


# -- values ------------------------------------------------------------------------------------


def _checked(wanted: str, fits: Callable[[Any], bool]) -> Check:
    """A value that fits; the error says what was wanted."""

    def check(value: object, where: str) -> Any:
        if not fits(value):
            raise _refused(value, where, wanted)
        return value

    return check


def number(low: float = -_MOST, high: float = _MOST, *, nan: bool = False) -> Check:
    """A number in [low, high], or NaN where that is allowed; returned as a float."""
    least = "" if low == -_MOST else f" of at least {low:g}"

    def fits(value: Any) -> bool:
        return type(value) in (int, float) and (low <= value <= high or (nan and value != value))

    check = _checked(f"a number{least}", fits)
    return lambda given, where: float(check(given, where))


def whole(low: int = -(2**63)) -> Check:
    """A whole number of at least `low`."""
    least = f" of at least {low}" if low > -(2**63) else ""
    return _checked(f"a whole number{least}", lambda n: type(n) is int and low <= n < 2**63)


def text(*choices: str) -> Check:
    """Text: one of the choices, if there are any."""
    wanted = " or ".join(map(repr, choices)) or "text"
    return _checked(wanted, lambda s: type(s) is str and (not choices or s in choices))


truth = _checked("true or false", lambda given: type(given) is bool)


def maybe(inner: Check) -> Check:
    """Check that takes what `inner` takes, or None."""
    return lambda value, where: None if value is None else inner(value, where)


def list_of(inner: Check, length: int | None = None) -> Check:
    """A list, of this length if one is given."""

    def check(value: object, where: str) -> list[Any]:
        if type(value) is not list or length not in (None, len(value)):
            raise _refused(value, where, "a list" if length is None else f"a list of {length}")
        inside = f"{where}[]"
        return [inner(item, inside) for item in value]

    return check


def record(fields: Mapping[str, Check | tuple[Check, Any]]) -> Check:
    """An object with these fields; one with a second value may be missing, and then has that."""
    checks = {name: each[0] if isinstance(each, tuple) else each for name, each in fields.items()}
    absent = {name: each[1] for name, each in fields.items() if isinstance(each, tuple)}

    def check(value: object, where: str) -> dict[str, Any]:
        if type(value) is not dict:
            raise _refused(value, where, "an object")
        for name in fields:
            if name not in value and name not in absent:
                raise ModelFileError(f"{where} has no field {name!r}")
        return {
            name: inner(value[name], f"{where}.{name}") if name in value else absent[name]
            for name, inner in checks.items()
        }

    return check


def _refused(value: object, where: str, wanted: str) -> ModelFileError:
    return ModelFileError(f"{where} is {quoted(value)}, but must be {wanted}")


# -- the document ------------------------------------------------------------------------------


_level = _checked(
    "text, a number, true or false",
    lambda level: type(level) in (str, bool, int, float) and level == level,
)


def _lam(value: object, where: str) -> float | tuple[float, ...]:
    one = number(0.0, nan=True)
    return tuple(list_of(one)(value, where)) if type(value) is list else one(value, where)


def _setting(value: object, where: str) -> Any:
    """A value as `mixedgm.fit.options.to_plain` writes it."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return list_of(_setting)(value, where)
    form = next((form for form in _FORMS if type(value) is dict and set(value) == set(form)), None)
    if form is None:
        raise _refused(value, where, "a setting")
    return record(_FORMS[form])(value, where)


def _settings(value: object, where: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise _refused(value, where, "an object")
    return {name: _setting(each, f"{where}.{name}") for name, each in value.items()}


SCHEMA = record(
    {
        "columns": list_of(
            record(
                {
                    "name": text(),
                    "kind": text(*KINDS),
                    "role": text(*get_args(Role)),
                    "levels": list_of(_level),
                    "ordered": truth,
                    "dtype": text(),
                    "transform": maybe(
                        record(
                            {
                                "name": text("nonparanormal"),
                                "values": list_of(number()),
                                "scores": list_of(number()),
                                "extrapolate": (truth, False),
                            }
                        )
                    ),
                    "label": (maybe(whole()), None),
                    "scores": (list_of(number()), []),
                    "thresholds": (text(*get_args(Thresholds)), "free"),
                    "largest": (maybe(whole(1)), None),
                    "zero_term": (truth, False),
                    "location": (number(), 0.0),
                }
            )
        ),
        "left_out": (list_of(record({"name": text(), "reason": text(), "position": whole(0)})), []),
    }
)

_FORMS: dict[tuple[str, ...], dict[str, Check]] = {
    ("schema",): {"schema": SCHEMA},
    ("mapping",): {"mapping": list_of(list_of(_setting, 2))},
    ("tuple",): {"tuple": list_of(_setting)},
    ("text",): {"text": text()},
    ("object", "options"): {"object": text(*OBJECTS), "options": _settings},
}

_RULE, _LOSS = text("and", "or"), text(*get_args(Loss))

COMPLETION = record(
    {
        "n_cells": whole(1),
        "n_rows": whole(1),
        "n_completions": whole(1),
        "n_rounds": whole(0),
        "drawn": truth,
    }
)

REPORT = record(
    {
        "lam": _lam,
        "objective": number(nan=True),
        "kkt": number(0.0, np.inf, nan=True),
        "tol": number(0.0, nan=True),
        "converged": truth,
        "message": text(),
        "n_iter": whole(0),
        "n_rows": whole(0),
        "total_weight": number(0.0),
        "notes": list_of(text()),
        "criterion": maybe(text()),
        **dict.fromkeys(COST, number(0.0)),
        "rule": _RULE,
        "loss": _LOSS,
        "kkt_error": number(0.0, np.inf),
        "objective_error": number(0.0, np.inf),
        "at": text(),
        "refitted": truth,
        "shrunken": truth,
        "ridge": list_of(list_of(text(), 2)),
        "untested": list_of(list_of(text(), 3)),
        "noisy": list_of(text()),
        "unbounded": list_of(text()),
        "open_end": text(),
        "not_considered": list_of(text()),
        "completion": maybe(COMPLETION),
    }
)

PATH = record(
    {
        "lam_max": number(0.0),
        "total_weight": number(0.0),
        "loss": _LOSS,
        "rule": _RULE,
        "status": list_of(text(*(status.name for status in Status))),
        "notes": list_of(list_of(text())),
        "traced": truth,
        "n_possible": maybe(whole(0)),
    }
)

DOCUMENT = record(
    {
        "schema": SCHEMA,
        "library": text("pandas", "polars", "pyarrow", "numpy"),
        "report": REPORT,
        "settings": _settings,
        "scores": list_of(text()),
        "path": maybe(PATH),
        "joint": maybe(record({"error": number(0.0, np.inf), "sampled": truth})),
        "arrays": list_of(text()),
    }
)


def check_certificate(what: str, certificate: Certificate, tol: float) -> None:
    """Refuse a claim to have converged that the KKT number contradicts.

    A sampled one may be as many standard errors above `tol` as the solver allows.
    """
    kkt, error = certificate.kkt, certificate.kkt_error
    if certificate.converged and not kkt <= tol + STANDARD_ERRORS * error + ROUNDING:
        raise ModelFileError(f"{what} claims to have converged, with KKT {kkt:g} and tol {tol:g}")


# -- arrays ------------------------------------------------------------------------------------


def _anything(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.ones(values.shape, dtype=bool)


def _between(low: float, high: float = _MOST) -> Callable[[NDArray[Any]], NDArray[np.bool_]]:
    return lambda values: np.asarray((values >= low) & (values <= high))


LARGEST = 1e30
"""A size that no number of a fit has in standard units, even where a column follows from others."""
_LARGEST_UNIT = 1e80
"""Tables with numbers above 1e75 are refused, and so are columns that vary by less than 1e-75."""

_positive = _between(np.nextafter(0.0, 1.0))
_standard = _between(-LARGEST, LARGEST)
_scale = _between(1.0 / _LARGEST_UNIT, _LARGEST_UNIT)
_size = _between(0.0)
_violation = _between(0.0, np.inf)
_share = _between(0.0, 1.0 + 1e-9)
_bias = _between(-np.inf)


def _share_or_none(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(_share(values) | np.isnan(values))


@dataclass(frozen=True)
class Array:
    """Type, shape and values of an array.

    A letter of `shape` is a length: p continuous columns, q design columns that are numbers, t
    values of the discrete columns, l all own linear terms, d design columns, n
    nodes, s scales of columns, k points of a path, m moderators, and so on.  A letter without a
    given length matches any; one with a question mark is an axis only where its length is given.
    """

    shape: str
    allowed: Callable[[NDArray[Any]], NDArray[np.bool_]] = np.isfinite
    dtype: str = "float64"

    def lengths(self, sizes: Sizes) -> tuple[int | None, ...]:
        """The shape with these lengths; None where any will do."""
        there = [one for one in self.shape.split() if one[0] in sizes or "?" not in one]
        return tuple(int(one) if one.isdigit() else sizes.get(one[0]) for one in there)

    def check_header(
        self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], sizes: Sizes
    ) -> None:
        """Refuse another type or shape."""
        wanted, lengths = np.dtype(self.dtype), self.lengths(sizes)
        fits = len(shape) == len(lengths) and all(
            length >= 0 and want in (None, length)
            for length, want in zip(shape, lengths, strict=True)
        )
        if dtype.newbyteorder("=") != wanted or not fits:
            raise ModelFileError(
                f"the array {name!r} is {dtype.name} {_shown(shape)} but the model needs "
                f"{wanted.name} {_shown(lengths)}"
            )

    def check_values(self, name: str, values: NDArray[Any]) -> None:
        """Refuse values that are not allowed."""
        bad = int(values.size - np.count_nonzero(self.allowed(values)))
        if bad:
            raise ModelFileError(f"{name} holds {bad} impossible number{'s' * (bad > 1)}")


def _shown(shape: Sequence[int | None]) -> str:
    return " x ".join("n" if length is None else str(length) for length in shape) or "number"


SHARES = Array("t", _share)
ARRAYS = {
    "bias": Array("l", _bias),
    "diagonal": Array("p", _positive),
    "coef": Array("d d"),
    "nodewise_coef": Array("d d"),
    "node_scales": Array("s", lambda values: _scale(values) | (values == 0.0)),
    "scores": Array("k c?", _anything),
    "selection_frequency": Array("h? n n", _share),
    "edge_probability": Array("h? n n", lambda values: _share(values) | np.isnan(values)),
    "shrunken_norms": Array("g n n", _size),
    "strengths": Array("x", _share_or_none),
    "moderators": Array("m", dtype="int64"),
    "moderation_middle": Array("d"),
    "moderation_span": Array("m 2", _anything),
    "deviation": Array("f d d"),
    "table_mean": Array("d"),
    "table_variance": Array("q", _positive),
    "table_shares": Array("t", _share),
    "table_covariance": Array("d d"),
    "joint_diagonal": Array("p", _positive),
    "joint_bias": Array("l", _bias),
    "joint_covariance": Array("d d"),
    "path_centre": Array("q", _between(-_LARGEST_UNIT, _LARGEST_UNIT)),
    "path_scale": Array("q", _scale),
    "path_observed": Array("t", _anything, "bool"),
    "path_permitted": Array("e", _anything, "uint8"),
    "path_pairs": Array("j 2", _size, "int64"),
    "path_n_iter": Array("k", _size, "int64"),
    "path_node_terms": Array("k w", _standard),
    "path_groups": Array("a", _size, "int64"),
    "path_group_ends": Array("k", _size, "int64"),
    "path_values": Array("v", _standard),
    **{f"path_{name}": Array("k", _size) for name in ("lam", *COST)},
    "path_objective": Array("k"),
    "path_kkt": Array("k", _violation),
    "path_kkt_error": Array("k", _violation),
    "path_objective_error": Array("k", _violation),
    "path_strengths": Array("y", _share_or_none),
    "path_strength_ends": Array("k", _size, "int64"),
    "path_trace": Array("r 4", _anything),
    "path_trace_ends": Array("k", _size, "int64"),
    "path_moderators": Array("m", _size, "int64"),
    "path_level_share": Array("u", _share),
    "path_moderator_span": Array("m 2", _anything),
    "path_deviations": Array("b", _anything, "uint8"),
}

SPARSE = ("coef", "nodewise_coef", "selection_frequency", "edge_probability", "shrunken_norms")
"""Arrays that may be two instead: NAME_places, where it is not zero, and NAME_entries."""
for _name in SPARSE:
    ARRAYS[f"{_name}_places"] = Array("i", _size, "int64")
    ARRAYS[f"{_name}_entries"] = Array("i", ARRAYS[_name].allowed)


def check_array(name: str, values: NDArray[Any], sizes: Sizes) -> None:
    """Refuse an array of another type, shape or values than the schema states."""
    spec = array_spec(name)
    assert spec is not None, f"the schema of model files does not know {name}"
    spec.check_header(name, values.dtype, values.shape, sizes)
    spec.check_values(name, values)


def array_spec(name: str) -> Array | None:
    """Return what an array must be, numbered or not; None for one that is not known."""
    return ARRAYS.get(re.sub(r"_\d+$", "", name))
