"""The scikit-learn face of the package: parameters in, FittedModel behind, frames out."""
