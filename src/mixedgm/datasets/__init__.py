"""A data set's name -> a data frame: the tables that come with the package."""

from mixedgm.datasets.bundled import load_penguins, load_taxunits, load_wage

__all__ = ["load_penguins", "load_taxunits", "load_wage"]
