"""Fits of the package reach the optimum of the independent references, and certify it."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from tests.reference import optimality, plain, problems
from tests.support.shared import shared_data

SOLVERS = ("proximal-newton", "proximal-gradient")
TOL = 1e-8

# Set: columns, then lambda, the optimum there, and lambda_max, as published with the data
# (continuous columns standardised by their population standard deviation).
SIMULATED = {
    "a": (0.1, 9.0234725, 0.908589),
    "b": (0.2, 89.5720618, 0.698182),
    "c10k": (0.05, 10.3514296, 1.048309),
}


@contextmanager
def findings_allowed():
    """Unseen levels and weights that do not sum to the rows are remarked upon, rightly."""
    from mixedgm.base.errors import TableWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        yield


def fit(problem, solver, tol=TOL):
    import mixedgm as mg

    types = dict.fromkeys(problem.node_names, "continuous")
    types.update({name: "categorical" for name in problem.node_names if name[0] == "k"})
    model = mg.MixedGraphicalModel(
        lam=problem.lam,
        penalty_weights=problem.weights,
        penalty_factors=problem.penalty_factors,
        types=types,
        solver=solver,
        tol=tol,
        max_iter=20_000,
    )
    with findings_allowed():
        return model.fit(problem.frame(), sample_weight=problem.row_weights)


def edges_in_use(params):
    """Pairs of nodes whose block is not exactly zero."""
    pairs = plain.pairs(len(params.cont_bias), len(params.n_levels))
    return {(u, v) for u, v in pairs if plain.norm(plain.block(params, u, v)) > 0}


def edge_names(model):
    """The pairs of `edges_` as unordered pairs of column names."""
    names = model.schema_.nodes
    return {
        frozenset(names[end].name if isinstance(end, int | np.integer) else end for end in edge[:2])
        for edge in model.edges_
    }


@pytest.fixture(scope="module")
def fitted():
    """One fit per problem and solver for all tests of this file."""
    known = {}

    def get(name, solver):
        if (name, solver) not in known:
            known[name, solver] = fit(problems.get(name), solver)
        return known[name, solver]

    return get


EVERY = [
    pytest.mark.parametrize("solver", SOLVERS),
    pytest.mark.parametrize("name", problems.NAMES),
]


def on_every_problem(test):
    for mark in EVERY:
        test = mark(test)
    return test


@on_every_problem
def test_objective_equals_the_conic_optimum(fitted, name, solver):
    model, optimum = fitted(name, solver), problems.optimum(name)
    assert model.converged_
    assert abs(model.objective_ - optimum.value) <= 1e-7 * max(1.0, abs(optimum.value))


@on_every_problem
def test_edges_equal_those_of_the_conic_optimum(fitted, name, solver):
    model, optimum = fitted(name, solver), problems.optimum(name)
    assert edges_in_use(model.params_) == optimum.edges
    names = problems.get(name).node_names
    assert edge_names(model) == {frozenset((names[u], names[v])) for u, v in optimum.edges}


@on_every_problem
def test_objective_and_certificate_equal_those_of_the_loops(fitted, name, solver):
    model, problem = fitted(name, solver), problems.get(name)
    given = (problem.X, problem.Y, problem.lam, problem.edge_weights, problem.row_weights)
    assert plain.objective(model.params_, *given) == pytest.approx(model.objective_, abs=1e-9)
    found = optimality.certificate(model.params_, *given)
    # Own units cost digits: a column at 1e4 with scale 1 is known to about 1e-12.
    assert found.kkt == pytest.approx(model.kkt_, abs=1e-9)
    assert found.kkt <= TOL + 1e-9


@on_every_problem
def test_parameters_equal_those_of_the_conic_optimum(fitted, name, solver):
    """Compared in standardised coordinates, where one tolerance suits all blocks."""
    params, optimum, problem = (
        fitted(name, solver).params_,
        problems.optimum(name),
        problems.get(name),
    )
    units = plain.mean_and_scale(problem.X, problem.row_weights)
    found, expected = (optimality.standardised(b, *units) for b in (params, optimum))
    for block in ("precision", "cont_bias", "category_shift", "cat_interaction", "cat_bias"):
        np.testing.assert_allclose(
            getattr(found, block), getattr(expected, block), atol=2e-5, rtol=1e-5, err_msg=block
        )


# --- published optima of simulated tables -----------------------------------------------------


def simulated(name, standardise=True):
    """The simulated table as a problem, its continuous columns standardised or as they are."""
    lam, _, _ = SIMULATED[name]
    with np.load(shared_data(f"sim/{name}.npz")) as arrays:
        X, Y, levels = arrays["X"], arrays["Y"], tuple(int(m) for m in arrays["levels"])
    if standardise:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return problems.Problem(name, X, Y, levels, lam)


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        ("a", "proximal-newton"),
        ("a", "proximal-gradient"),
        ("b", "auto"),
        ("c10k", "proximal-newton"),
        ("c10k", "proximal-gradient"),
    ],
)
def test_optima_of_the_simulated_tables(name, solver):
    model = fit(simulated(name), solver, tol=1e-6)
    # The published number has seven decimals.
    assert model.objective_ == pytest.approx(SIMULATED[name][1], abs=1.5e-7)


def test_optimum_in_own_units_differs_by_the_log_scales():
    problem = simulated("a", standardise=False)
    model = fit(problem, "auto", tol=1e-6)
    shift = np.log(problem.X.std(axis=0)).sum()
    assert abs(shift) > 1e-3, "the columns are standardised already: nothing is tested"
    assert model.objective_ - shift == pytest.approx(SIMULATED["a"][1], abs=1.5e-7)


@pytest.mark.parametrize("name", SIMULATED)
def test_loops_reproduce_the_published_lam_max(name):
    problem = simulated(name)
    top = plain.lam_max(problem.X, problem.Y, problem.n_levels, problem.edge_weights)
    assert top == pytest.approx(SIMULATED[name][2], abs=6e-7)


@pytest.mark.parametrize("name", SIMULATED)
def test_path_starts_at_the_published_lam_max(name):
    import mixedgm as mg

    path = mg.fit_path(simulated(name).frame(), n_lams=2, lam_min_ratio=0.9)
    assert max(path.lams) == pytest.approx(SIMULATED[name][2], abs=6e-7)
