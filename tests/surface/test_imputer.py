"""MixedImputer: scikit-learn's checks, pipelines, set_output."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import mixedgm as mg


@pytest.mark.filterwarnings("ignore::mixedgm.errors.TableWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([mg.MixedImputer(mg.MixedGraphicalModel(lam=0.1))])
def test_estimator_checks(estimator, check):
    check(estimator)
