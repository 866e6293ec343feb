"""The estimator's parameters <-> values that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from mixedgm.errors import ModelFileError
from mixedgm.path.criteria import AIC, BIC, EBIC
from mixedgm.path.crossval import CV, Holdout
from mixedgm.path.error_rates import FDR, LocalFDR
from mixedgm.path.stability import StabilitySelection, StARS
from mixedgm.printable import quoted
from mixedgm.solve.monte_carlo import MonteCarlo
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.table.declarations import Count, Ordinal
from mixedgm.table.schema import Schema

_CRITERIA = (LocalFDR, FDR, EBIC, BIC, AIC, Holdout, CV, StARS, StabilitySelection)
OBJECTS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (*_CRITERIA, MonteCarlo, ProximalGradient, ProximalNewton, Ordinal, Count)
}


class ObjectText(str):
    """The text of an object that no file can hold; the object itself is gone."""


def to_plain(value: Any) -> Any:
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


def from_plain(value: Any) -> Any:
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
