"""Mixed graphical models: which columns of a mixed table are directly related.

>>> import mixedgm as mg
>>> model = mg.MixedGraphicalModel(lam=0.2).fit(mg.datasets.load_wage())
>>> [(edge.source, edge.target) for edge in model.edges_][:2]
[('age', 'marital'), ('logwage', 'health_ins')]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixedgm import datasets as datasets
    from mixedgm import diagnostics as diagnostics
    from mixedgm.errors import DistributionError as DistributionError
    from mixedgm.errors import ExtrapolationWarning as ExtrapolationWarning
    from mixedgm.errors import LongFitWarning as LongFitWarning
    from mixedgm.errors import LongRunWarning as LongRunWarning
    from mixedgm.errors import MixedGMError as MixedGMError
    from mixedgm.errors import ModelFileError as ModelFileError
    from mixedgm.errors import NotYetError as NotYetError
    from mixedgm.errors import OutOfMemoryError as OutOfMemoryError
    from mixedgm.errors import OutputError as OutputError
    from mixedgm.errors import ParameterError as ParameterError
    from mixedgm.errors import SamplingWarning as SamplingWarning
    from mixedgm.errors import SelectionWarning as SelectionWarning
    from mixedgm.errors import TableError as TableError
    from mixedgm.errors import TableWarning as TableWarning
    from mixedgm.errors import TooLargeError as TooLargeError
    from mixedgm.estimator.given_parameters import from_params as from_params
    from mixedgm.estimator.given_parameters import random_model as random_model
    from mixedgm.estimator.groups import compare as compare
    from mixedgm.estimator.imputer import MixedImputer as MixedImputer
    from mixedgm.estimator.model import MixedGraphicalModel as MixedGraphicalModel
    from mixedgm.estimator.model import load as load
    from mixedgm.fitted import Edge as Edge
    from mixedgm.fitting import fit_path as fit_path
    from mixedgm.model.params import Params as Params
    from mixedgm.path.criteria import AIC as AIC
    from mixedgm.path.criteria import BIC as BIC
    from mixedgm.path.criteria import EBIC as EBIC
    from mixedgm.path.crossval import CV as CV
    from mixedgm.path.crossval import Holdout as Holdout
    from mixedgm.path.error_rates import FDR as FDR
    from mixedgm.path.error_rates import LocalFDR as LocalFDR
    from mixedgm.path.path import Path as Path
    from mixedgm.path.stability import StabilitySelection as StabilitySelection
    from mixedgm.path.stability import StARS as StARS
    from mixedgm.solve.monte_carlo import MonteCarlo as MonteCarlo
    from mixedgm.solve.proximal_gradient import ProximalGradient as ProximalGradient
    from mixedgm.solve.proximal_newton import ProximalNewton as ProximalNewton
    from mixedgm.studies.bootstrap import bootstrap as bootstrap
    from mixedgm.studies.bootstrap_result import Bootstrap as Bootstrap
    from mixedgm.studies.compare_result import GroupComparison as GroupComparison
    from mixedgm.studies.distribution import Distribution as Distribution
    from mixedgm.studies.edge_tests import edge_tests as edge_tests
    from mixedgm.studies.edge_tests_result import EdgeTests as EdgeTests
    from mixedgm.studies.graphs import compare_graphs as compare_graphs
    from mixedgm.studies.missing_report import MissingReport as MissingReport
    from mixedgm.studies.pooling import Pooled as Pooled
    from mixedgm.studies.pooling import pool as pool
    from mixedgm.table import Column as Column
    from mixedgm.table import Count as Count
    from mixedgm.table import Ordinal as Ordinal
    from mixedgm.table import Schema as Schema
    from mixedgm.table import check_table as check_table

    __version__: str

# Public name -> the module it lives in.  Loaded on first use, so that `mixedgm --help` and small
# scripts do not wait for scikit-learn.
_HOME = {
    "AIC": "mixedgm.path.criteria",
    "BIC": "mixedgm.path.criteria",
    "Bootstrap": "mixedgm.studies.bootstrap_result",
    "CV": "mixedgm.path.crossval",
    "Column": "mixedgm.table",
    "Count": "mixedgm.table",
    "Distribution": "mixedgm.studies.distribution",
    "DistributionError": "mixedgm.errors",
    "EBIC": "mixedgm.path.criteria",
    "FDR": "mixedgm.path.error_rates",
    "LocalFDR": "mixedgm.path.error_rates",
    "Edge": "mixedgm.fitted",
    "ExtrapolationWarning": "mixedgm.errors",
    "GroupComparison": "mixedgm.studies.compare_result",
    "Holdout": "mixedgm.path.crossval",
    "MissingReport": "mixedgm.studies.missing_report",
    "MixedGMError": "mixedgm.errors",
    "MixedGraphicalModel": "mixedgm.estimator.model",
    "MixedImputer": "mixedgm.estimator.imputer",
    "ModelFileError": "mixedgm.errors",
    "MonteCarlo": "mixedgm.solve.monte_carlo",
    "NotYetError": "mixedgm.errors",
    "Ordinal": "mixedgm.table",
    "OutOfMemoryError": "mixedgm.errors",
    "OutputError": "mixedgm.errors",
    "ParameterError": "mixedgm.errors",
    "Params": "mixedgm.model.params",
    "Path": "mixedgm.path.path",
    "Pooled": "mixedgm.studies.pooling",
    "ProximalGradient": "mixedgm.solve.proximal_gradient",
    "ProximalNewton": "mixedgm.solve.proximal_newton",
    "LongFitWarning": "mixedgm.errors",
    "LongRunWarning": "mixedgm.errors",
    "SamplingWarning": "mixedgm.errors",
    "Schema": "mixedgm.table",
    "StARS": "mixedgm.path.stability",
    "StabilitySelection": "mixedgm.path.stability",
    "TableError": "mixedgm.errors",
    "SelectionWarning": "mixedgm.errors",
    "TableWarning": "mixedgm.errors",
    "TooLargeError": "mixedgm.errors",
    "bootstrap": "mixedgm.studies.bootstrap",
    "check_table": "mixedgm.table",
    "compare": "mixedgm.estimator.groups",
    "compare_graphs": "mixedgm.studies.graphs",
    "EdgeTests": "mixedgm.studies.edge_tests_result",
    "edge_tests": "mixedgm.studies.edge_tests",
    "fit_path": "mixedgm.fitting",
    "from_params": "mixedgm.estimator.given_parameters",
    "load": "mixedgm.estimator.model",
    "pool": "mixedgm.studies.pooling",
    "random_model": "mixedgm.estimator.given_parameters",
}

_PACKAGES = ("datasets", "diagnostics")

__all__ = [*_HOME, "__version__", "datasets", "diagnostics"]

# A type checker knows the names from above, and should complain about all others.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            return import_module(f"mixedgm.{name}")
        if name == "__version__":
            from mixedgm.store import library_version

            return library_version()
        if name in _HOME:
            value = getattr(import_module(_HOME[name]), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module 'mixedgm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
