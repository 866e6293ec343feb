"""A data set's name or a seed -> a data frame: bundled tables, and tables of a known truth."""

from mixedgm.datasets.bundled import load_penguins, load_taxunits, load_wage
from mixedgm.datasets.simulate import make_ladder

__all__ = ["load_penguins", "load_taxunits", "load_wage", "make_ladder"]
