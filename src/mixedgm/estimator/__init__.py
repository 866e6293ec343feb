"""The scikit-learn face of the package: parameters in, FittedModel behind, frames out."""

from mixedgm.estimator.model import MixedGraphicalModel, load

__all__ = ["MixedGraphicalModel", "load"]
