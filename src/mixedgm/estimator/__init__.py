"""The scikit-learn face of the package: parameters in, FittedModel behind, frames out."""

from mixedgm.estimator.given_parameters import from_params, random_model
from mixedgm.estimator.groups import compare
from mixedgm.estimator.imputer import MixedImputer
from mixedgm.estimator.model import MixedGraphicalModel, load

__all__ = ["MixedGraphicalModel", "MixedImputer", "compare", "from_params", "load", "random_model"]
