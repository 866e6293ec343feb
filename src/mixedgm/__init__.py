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
    from mixedgm.base.errors import DistributionError as DistributionError
    from mixedgm.base.errors import ExtrapolationWarning as ExtrapolationWarning
    from mixedgm.base.errors import LongFitWarning as LongFitWarning
    from mixedgm.base.errors import LongRunWarning as LongRunWarning
    from mixedgm.base.errors import MixedGMError as MixedGMError
    from mixedgm.base.errors import ModelFileError as ModelFileError
    from mixedgm.base.errors import NotYetError as NotYetError
    from mixedgm.base.errors import OutOfMemoryError as OutOfMemoryError
    from mixedgm.base.errors import OutputError as OutputError
    from mixedgm.base.errors import ParameterError as ParameterError
    from mixedgm.base.errors import SamplingWarning as SamplingWarning
    from mixedgm.base.errors import SelectionWarning as SelectionWarning
    from mixedgm.base.errors import TableError as TableError
    from mixedgm.base.errors import TableWarning as TableWarning
    from mixedgm.base.errors import TooLargeError as TooLargeError
    from mixedgm.estimator.given_parameters import from_params as from_params
    from mixedgm.estimator.given_parameters import random_model as random_model
    from mixedgm.estimator.groups import compare as compare
    from mixedgm.estimator.imputer import MixedImputer as MixedImputer
    from mixedgm.estimator.model import MixedGraphicalModel as MixedGraphicalModel
    from mixedgm.estimator.model import load as load
    from mixedgm.fit.fitted import Edge as Edge
    from mixedgm.fit.fitting import fit_path as fit_path
    from mixedgm.model.params import Params as Params
    from mixedgm.path.path import Path as Path
    from mixedgm.select.criteria import AIC as AIC
    from mixedgm.select.criteria import BIC as BIC
    from mixedgm.select.criteria import EBIC as EBIC
    from mixedgm.select.crossval import CV as CV
    from mixedgm.select.crossval import Holdout as Holdout
    from mixedgm.select.error_rates import FDR as FDR
    from mixedgm.select.error_rates import LocalFDR as LocalFDR
    from mixedgm.select.stability import StabilitySelection as StabilitySelection
    from mixedgm.select.stability import StARS as StARS
    from mixedgm.solve.monte_carlo import MonteCarlo as MonteCarlo
    from mixedgm.solve.proximal_gradient import ProximalGradient as ProximalGradient
    from mixedgm.solve.proximal_newton import ProximalNewton as ProximalNewton
    from mixedgm.studies.edges.graphs import compare_graphs as compare_graphs
    from mixedgm.studies.edges.tests import EdgeTests as EdgeTests
    from mixedgm.studies.edges.tests import edge_tests as edge_tests
    from mixedgm.studies.groups.result import GroupComparison as GroupComparison
    from mixedgm.studies.missing.pooling import Pooled as Pooled
    from mixedgm.studies.missing.pooling import pool as pool
    from mixedgm.studies.missing.report import MissingReport as MissingReport
    from mixedgm.studies.queries.distribution import Distribution as Distribution
    from mixedgm.studies.resampling.bootstrap import bootstrap as bootstrap
    from mixedgm.studies.resampling.result import Bootstrap as Bootstrap
    from mixedgm.table.checks.check import check_table as check_table
    from mixedgm.table.declarations import Count as Count
    from mixedgm.table.declarations import Ordinal as Ordinal
    from mixedgm.table.schema import Column as Column
    from mixedgm.table.schema import Schema as Schema

    __version__: str

# Public name -> the module it lives in.  Loaded on first use, so that `mixedgm --help` and small
# scripts do not wait for scikit-learn.
_HOME = {
    name: f"mixedgm.{module}"
    for module, names in {
        "base.errors": "DistributionError ExtrapolationWarning LongFitWarning LongRunWarning "
        "MixedGMError ModelFileError NotYetError OutOfMemoryError OutputError "
        "ParameterError SamplingWarning SelectionWarning TableError TableWarning "
        "TooLargeError",
        "estimator.given_parameters": "from_params random_model",
        "estimator.groups": "compare",
        "estimator.imputer": "MixedImputer",
        "estimator.model": "MixedGraphicalModel load",
        "fit.fitted": "Edge",
        "fit.fitting": "fit_path",
        "model.params": "Params",
        "path.path": "Path",
        "select.criteria": "AIC BIC EBIC",
        "select.crossval": "CV Holdout",
        "select.error_rates": "FDR LocalFDR",
        "select.stability": "StARS StabilitySelection",
        "solve.monte_carlo": "MonteCarlo",
        "solve.proximal_gradient": "ProximalGradient",
        "solve.proximal_newton": "ProximalNewton",
        "studies.edges.graphs": "compare_graphs",
        "studies.edges.tests": "EdgeTests edge_tests",
        "studies.groups.result": "GroupComparison",
        "studies.missing.pooling": "Pooled pool",
        "studies.missing.report": "MissingReport",
        "studies.queries.distribution": "Distribution",
        "studies.resampling.bootstrap": "bootstrap",
        "studies.resampling.result": "Bootstrap",
        "table.checks.check": "check_table",
        "table.declarations": "Count Ordinal",
        "table.schema": "Column Schema",
    }.items()
    for name in names.split()
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
