"""Settings as JSON holds them -> checked as a fit checks them, before anybody uses them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mixedgm.fitted import FittedModel
from mixedgm.options import Options
from mixedgm.printable import quoted
from mixedgm.settings import from_plain
from mixedgm.store.archive import count_values

__all__ = ["check_settings", "shortened"]

_MOST_VALUES = 100_000
_NAMES = frozenset(field.name for field in fields(Options))


def check_settings(settings: Mapping[str, Any], fitted: FittedModel) -> None:
    """Refuse settings that no fit of these columns could have had.

    An object that is kept as its text only (a generator, a criterion of the user's own) cannot be
    checked, nor can a setting of a later version.  A model that was not fitted, such as one given
    known values, has the settings of the fit that it came from, which may name other columns.
    """
    given = {
        name: from_plain(value)
        for name, value in settings.items()
        if name in _NAMES and not (isinstance(value, dict) and "text" in value)
    }
    options = Options(**given)
    if fitted.report.was_fitted:
        options.check_against(fitted.schema, fitted.library)


def shortened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of which a very long one, such as lists of rows for every fold, is only named."""
    return {
        name: {"text": quoted(value)} if _values_in(value) > _MOST_VALUES else value
        for name, value in settings.items()
    }


def _values_in(value: object) -> int:
    return count_values(json.dumps(value, default=str).encode())
