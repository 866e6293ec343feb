"""A model taken as the truth -> what theory says about finding it."""

from mixedgm.diagnostics.consistency import consistency
from mixedgm.diagnostics.result import Consistency, MissingEdge
from mixedgm.diagnostics.theorem import Constants, Promise

__all__ = ["Consistency", "Constants", "MissingEdge", "Promise", "consistency"]
