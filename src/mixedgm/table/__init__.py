"""A table becomes numbers: any frame, array or file in -> Design and Schema out, and back."""

from mixedgm.table.checks.check import Checked, check_table
from mixedgm.table.declarations import Count, Ordinal
from mixedgm.table.decode import decode
from mixedgm.table.encode import Design, apply, learn
from mixedgm.table.files import read_table
from mixedgm.table.read import Frame, as_frame
from mixedgm.table.schema import Column, Kind, Level, Role, Schema
from mixedgm.table.transform import Nonparanormal

__all__ = [
    "Checked",
    "Column",
    "Count",
    "Design",
    "Frame",
    "Kind",
    "Level",
    "Nonparanormal",
    "Ordinal",
    "Role",
    "Schema",
    "apply",
    "as_frame",
    "check_table",
    "decode",
    "learn",
    "read_table",
]
