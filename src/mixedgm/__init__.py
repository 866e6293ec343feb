"""Mixed graphical models: which columns of a mixed table are directly related.

>>> import mixedgm as mg
>>> table = mg.datasets.load_penguins()
>>> model = mg.MixedGraphicalModel(missing="drop", types={"year": "categorical"})  # ... .fit(table)
"""

from importlib.metadata import PackageNotFoundError, version

from mixedgm import datasets
from mixedgm.errors import (
    MixedGMError,
    ModelFileError,
    NotYetError,
    ParameterError,
    TableError,
    TableWarning,
)
from mixedgm.estimator import MixedGraphicalModel, load
from mixedgm.fitting import fit_path
from mixedgm.path.criteria import AIC, BIC, EBIC
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.table import check

try:
    __version__ = version("mixedgm")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "AIC",
    "BIC",
    "EBIC",
    "MixedGMError",
    "MixedGraphicalModel",
    "ModelFileError",
    "NotYetError",
    "ParameterError",
    "ProximalGradient",
    "ProximalNewton",
    "TableError",
    "TableWarning",
    "check",
    "datasets",
    "fit_path",
    "load",
]
