"""Names stand for solvers; the rule of "auto" follows the size of the curvature."""

import numpy as np
import pytest

from mixedgm.base.errors import ParameterError
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.solve import choose
from mixedgm.solve.choose import Auto, solver_for
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.solve.working_set import Start, solve
from tests.support.problems import draw, solved


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("auto", Auto),
        ("proximal-newton", ProximalNewton),
        ("proximal-gradient", ProximalGradient),
    ],
)
def test_names(name, kind):
    assert isinstance(solver_for(name), kind)


def test_a_solver_object_is_taken_as_it_is():
    solver = ProximalGradient("tseng")
    assert solver_for(solver) is solver


@pytest.mark.parametrize("bad", ["newton", 3, None, ProximalNewton])
def test_anything_else_is_named(bad):
    with pytest.raises(ParameterError, match=r"solver must be one of 'auto', .* Got"):
        solver_for(bad)


@pytest.mark.parametrize("limit", [2.0**31, 0.0])
def test_auto_reaches_the_optimum_either_way(limit):
    task = draw(1, 60, 2, (2, 3)).task()
    lam = 0.2 * task.lam_max
    start = Start(task.null.theta, task.null.evaluation, task.lam_max)
    found = solve(task.problem(lam), Auto(limit), start, tol=1e-8, max_iter=5000)
    assert found.converged
    assert found.objective == pytest.approx(solved(task, lam).objective, abs=1e-9)
    assert (found.curvature_passes > 0) == (limit > 0)


@pytest.mark.parametrize("some", [1, 3])
def test_auto_knows_the_size_of_the_curvature(some):
    """Not that of theta's own coordinates, which is several times as large."""
    layout = Layout.complete(Nodes.mixed(3, (2, 3, 5)))
    layout = layout.restrict(np.arange(layout.n_groups)[::some])
    own = np.where(np.arange(layout.n_nodes) < 3, 2, layout.width - 1)
    expected = Contrasts(layout).runs.node_size - own
    np.testing.assert_array_equal(choose._contrasts(layout), expected)
