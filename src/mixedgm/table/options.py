"""Options by column (`types`, `transforms`, `covariates`) in -> the same by name, with findings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, get_args

import numpy as np

from mixedgm.errors import Finding, near_matches
from mixedgm.printable import quoted
from mixedgm.table.read import Frame
from mixedgm.table.schema import Column, Kind, Schema
from mixedgm.table.values import Factor
from mixedgm.table.wording import counted

__all__ = ["ColumnOptions", "TransformArg", "TypesArg", "in_declared_levels", "resolve_options"]

TypesArg = Mapping[Any, str] | Sequence[str | None] | Schema | None
TransformArg = Mapping[Any, str | None] | str | None

# Name of a transform -> whether values come back from beyond the range of the data.
_TRANSFORMS = {"nonparanormal": False, "nonparanormal-extrapolated": True}


@dataclass(frozen=True)
class ColumnOptions:
    """What the user says about columns, by name.

    Parameters
    ----------
    kinds : mapping of str to kind
        Kinds that override inference.
    transforms : mapping of str to str or None
        Columns with an entry of their own in `transforms`.
    transform_all : str or None
        The transform of all other continuous columns.
    covariates : frozenset of str
        Columns that predict but are not predicted.
    declared : mapping of str to Column
        Categorical columns whose levels are given, by a schema as `types`.
    left_out : mapping of str to str
        Columns that a schema as `types` leaves out, and why.
    """

    kinds: Mapping[str, Kind]
    transforms: Mapping[str, str | None]
    transform_all: str | None
    covariates: frozenset[str]
    declared: Mapping[str, Column] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def transformed(self, name: str) -> bool:
        """Return whether a continuous column is to be transformed."""
        return self.transforms.get(name, self.transform_all) is not None

    def extrapolated(self, name: str) -> bool:
        """Return whether the transform of a column continues beyond the range of the data."""
        chosen = self.transforms.get(name, self.transform_all)
        return chosen is not None and _TRANSFORMS[chosen]


def resolve_options(
    frame: Frame,
    types: TypesArg = None,
    transforms: TransformArg = None,
    covariates: Sequence[Any] | str | None = None,
) -> tuple[ColumnOptions, list[Finding]]:
    """Return the options by column name, with a finding for each entry that fits no column.

    Parameters
    ----------
    frame : Frame
        The table.
    types : mapping, sequence or Schema, optional
        Kind by column name (by position for arrays), or one kind or None for each column; a schema
        gives kinds and levels.
    transforms : "nonparanormal", "nonparanormal-extrapolated" or mapping, optional
        For all continuous columns, or by column name.
    covariates : sequence of names, optional
        Columns with the role "covariate".
    """
    findings: list[Finding] = []
    kinds: dict[str, Kind] = {}
    for key, kind in _type_items(frame, types, findings):
        name = _resolved(frame, key, "types", findings)
        if kind not in get_args(Kind):
            findings.append(_bad_choice("types", key, "'continuous' or 'categorical'", kind))
        elif name is not None:
            kinds[name] = cast(Kind, kind)
    by_column: dict[str, str | None] = {}
    if isinstance(transforms, Mapping):
        for key, choice in transforms.items():
            name = _resolved(frame, key, "transforms", findings)
            if choice is not None and choice not in tuple(_TRANSFORMS):
                findings.append(_bad_choice("transforms", key, "'nonparanormal' or None", choice))
            elif name is not None:
                by_column[name] = choice
    elif transforms is not None and transforms not in tuple(_TRANSFORMS):
        wanted = "'nonparanormal', None, or a dictionary by column"
        findings.append(
            Finding(None, f"transforms must be {wanted}. Got {quoted(transforms)} instead", "")
        )
    several = () if covariates is None else covariates
    wanted_covariates = (several,) if isinstance(several, str) else several
    named = [_resolved(frame, key, "covariates", findings) for key in wanted_covariates]
    roles = frozenset(name for name in named if name is not None)
    known = types.columns if isinstance(types, Schema) else ()
    declared = {c.name: c for c in known if c.has_levels and c.name in kinds}
    for_all = transforms if isinstance(transforms, str) and transforms in _TRANSFORMS else None
    out = types.left_out if isinstance(types, Schema) else ()
    left_out = {each.name: each.reason for each in out if each.name in frame.positions}
    return ColumnOptions(kinds, by_column, for_all, roles, declared, left_out), findings


def in_declared_levels(factor: Factor, column: Column | None) -> tuple[Factor, Finding | None]:
    """Return a factor over the levels that a schema declares for the column.

    The finding, an error, counts values that are none of these.
    """
    if column is None:
        return factor, None
    position = {level: at for at, level in enumerate(column.levels)}
    codes = np.array([*(position.get(level, -2) for level in factor.levels), -1], dtype=np.int32)
    declared = Factor(codes[factor.codes], column.levels, column.ordered)
    counts = np.bincount(factor.codes[declared.codes == -2], minlength=len(factor.levels))
    if not counts.any():
        return declared, None
    listed = counted(list(zip(factor.levels, counts.tolist(), strict=True)))
    what = f"levels that the schema in types does not have: {listed}"
    return factor, Finding(column.name, what, "use the schema of a table that has them all")


def _type_items(
    frame: Frame, types: TypesArg, findings: list[Finding]
) -> list[tuple[object, object]]:
    if types is None:
        return []
    if isinstance(types, Schema):
        return [(column.name, column.kind) for column in types.columns]
    if isinstance(types, Mapping):
        return list(types.items())
    listed = isinstance(types, Collection) and not isinstance(types, str)
    if not listed or len(types) != len(frame.names):
        got = f"{len(types)} entries" if listed else quoted(types)
        wanted = f"a dictionary by column, a schema, or a list of {len(frame.names)} kinds"
        findings.append(Finding(None, f"types must be {wanted}. Got {got} instead", ""))
        return []
    return [(name, kind) for name, kind in zip(frame.names, types, strict=True) if kind is not None]


def _resolved(frame: Frame, key: object, option: str, findings: list[Finding]) -> str | None:
    """Return the column that an entry names, by name or (for an array) by position."""
    if str(key) in frame.positions:
        return str(key)
    by_position = isinstance(key, int | np.integer) and not frame.named
    if by_position and 0 <= cast(int, key) < len(frame.names):
        return frame.names[cast(int, key)]
    hint = near_matches(key, frame.names)
    findings.append(Finding(None, f"{option} names {quoted(key)}, which is not a column", hint))
    return None


def _bad_choice(option: str, key: object, wanted: str, got: object) -> Finding:
    return Finding(None, f"{option}[{quoted(key)}] must be {wanted}. Got {quoted(got)} instead", "")
