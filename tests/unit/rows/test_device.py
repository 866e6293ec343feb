"""Rows on a device: whole paths equal the processor's, and what a user hears when it fails."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.fit.fitting import enough_memory
from mixedgm.fit.options import Options
from mixedgm.path.path import geometric_lams, solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import prepare
from mixedgm.rows import device as module
from mixedgm.rows.arrays import Arrays, arrays_on
from mixedgm.rows.batches import padded
from mixedgm.rows.device import DeviceRows
from mixedgm.rows.memory import MemoryRows
from tests.support.problems import SCORED, draw

# Rows, continuous columns, levels, weighted; kinds of scored columns, hurdle columns.
TABLES = {
    "mixed": (300, 4, (2, 3, 5), True),
    "every-kind": (300, 3, (4, 5, 14, 18, 3, 2), False, SCORED, 1),
    "hurdle": (300, 3, (4, 9, 3), True, (SCORED[0], SCORED[3]), 2),
    "many-columns": (150, 20, (3,) * 20, False),
    "numbers-only": (120, 12, (), True),
    "categories-only": (200, 0, (2, 3, 4, 2), False),
}
LIBRARIES = ["numpy", "torch"]


def path_of(table, **recipe):
    made = Recipe(tol=1e-9, **recipe)
    task = prepare(table.design, made)
    return task, solve_path(task, geometric_lams(task.lam_max, 6, 0.1), made)


def needs(library):
    if library == "torch":
        pytest.importorskip("torch", reason="PyTorch is not part of the test environment")


def assert_equal_paths(one, other):
    np.testing.assert_allclose(other.objective, one.objective, rtol=0, atol=1e-10)
    assert [other.edges(k) for k in range(len(other))] == [one.edges(k) for k in range(len(one))]
    assert other.kkt.max() <= 1e-9


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("most", [np.inf, 0.0], ids=["all-pairs", "candidates"])
@pytest.mark.parametrize("name", TABLES)
def test_a_path_is_that_of_the_processor(name, most, library):
    needs(library)
    table = draw(3, *TABLES[name])
    _, here = path_of(table, most_parameters=most)
    task, there = path_of(table, most_parameters=most, device=library)
    assert isinstance(task.smooth.rows, DeviceRows)
    assert there.n_edges[-1] > 3
    assert_equal_paths(here, there)


@pytest.mark.parametrize("options", [{"loss": "nodewise"}, {"weights": "adaptive"}], ids=str)
def test_other_losses_and_weights(options):
    table = draw(3, *TABLES["every-kind"])
    assert_equal_paths(path_of(table, **options)[1], path_of(table, device="numpy", **options)[1])


def test_covariates_are_not_predicted():
    table = replace(draw(3, *TABLES["mixed"]), covariates=(0, 5))
    for most in (np.inf, 0.0):
        both = [path_of(table, device=name, most_parameters=most)[1] for name in ("cpu", "numpy")]
        assert_equal_paths(*both)


def rows_of(shape, **options):
    task = draw(0, *TABLES[shape]).task()
    return DeviceRows(task.smooth.rows, arrays_on("numpy"), **options), task


@pytest.fixture
def frame():
    import pandas as pd

    table = draw(1, 400, 3, (2, 3))
    columns = {f"x{s}": table.X[:, s] for s in range(3)}
    columns |= {f"y{j}": np.array(list("abc"))[table.Y[:, j]] for j in range(2)}
    return pd.DataFrame(columns)


def test_the_default_fit_is_the_same(frame):
    here = mg.MixedGraphicalModel(tol=1e-9).fit(frame)
    there = mg.MixedGraphicalModel(tol=1e-9, device="numpy").fit(frame)
    assert [edge[:2] for edge in there.edges_] == [edge[:2] for edge in here.edges_]
    assert there.objective_ == pytest.approx(here.objective_, abs=1e-10)
    np.testing.assert_allclose(there.params_.coef, here.params_.coef, atol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {"missing": "model", "lam": 0.2},
        {"select": mg.CV(3), "n_lams": 8, "random_state": 0, "n_jobs": 1},
        {"loss": "nodewise", "select": "ebic"},
        {"covariates": ["x0", "y1"]},
    ],
    ids=["missing", "cv", "nodewise", "covariates"],
)
def test_other_fits_are_the_same(frame, options):
    if "missing" in options:
        frame.loc[3:20, "x1"] = np.nan
    here = mg.MixedGraphicalModel(tol=1e-8, **options).fit(frame)
    there = mg.MixedGraphicalModel(tol=1e-8, device="numpy", **options).fit(frame)
    assert [edge[:2] for edge in there.edges_] == [edge[:2] for edge in here.edges_]
    assert there.objective_ == pytest.approx(here.objective_, abs=1e-8)


def test_paths_criteria_and_model_files(frame, tmp_path):
    path = mg.fit_path(frame, n_lams=4, device="numpy")
    np.testing.assert_allclose(path.objective, mg.fit_path(frame, n_lams=4).objective, atol=1e-9)
    model = mg.MixedGraphicalModel(select="ebic", device="numpy").fit(frame)
    model.save(tmp_path / "model.mgm")
    loaded = mg.load(tmp_path / "model.mgm")
    assert loaded.device == "numpy"
    np.testing.assert_array_equal(loaded.score(frame), model.score(frame))


def test_the_command_line(frame, tmp_path):
    from mixedgm.cli.main import main

    frame.to_csv(tmp_path / "table.csv", index=False)
    given = ["fit", str(tmp_path / "table.csv"), "--device", "numpy", "-o", str(tmp_path / "m.mgm")]
    assert main(given) == 0
    assert mg.load(tmp_path / "m.mgm").device == "numpy"


# -- what cannot be --------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "CUDA", "", None, 0])
def test_names_of_devices_are_checked(device):
    with pytest.raises(mg.ParameterError, match=r"device must be 'cpu', 'cuda', or 'cuda:1'"):
        Options(device=device)


def test_without_torch(monkeypatch, frame):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "array_api_compat.torch", None)
    message = re.escape("device='cuda' needs PyTorch") + ".*" + re.escape("mixedgm[gpu]")
    with pytest.raises(mg.ParameterError, match=message):
        mg.MixedGraphicalModel(device="cuda").fit(frame)
    with pytest.raises(mg.ParameterError, match=message):
        mg.fit_path(frame, device="cuda")


def test_without_a_gpu(monkeypatch, frame):
    torch = pytest.importorskip("torch", reason="PyTorch is not part of the test environment")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(mg.ParameterError, match=r"needs an NVIDIA GPU, and PyTorch .* finds none"):
        mg.MixedGraphicalModel(device="cuda").fit(frame)


def test_a_gpu_that_is_not_there(monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not part of the test environment")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(mg.ParameterError, match=r"'cuda:7' is not there: use 'cuda:0' or 'cuda:1'"):
        arrays_on("cuda:7")


@pytest.mark.parametrize("loss", ["likelihood", "likelihood-mc"])
def test_likelihoods_are_refused(loss):
    with pytest.raises(mg.ParameterError, match=f"with loss='{loss}' use device='cpu'"):
        Options(device="cuda", loss=loss)


def test_moderated_edges_are_refused():
    with pytest.raises(mg.NotYetError, match="moderators are not available yet with device"):
        Options(device="cuda", moderators=["age"])
    rows, _ = rows_of("mixed")
    features = object()
    with pytest.raises(mg.NotYetError, match="moderated edges are not available yet"):
        DeviceRows(replace(rows.memory, products=features), arrays_on("numpy"))


class Small(Arrays):
    """A device that has memory for so many numbers in one array."""

    most: int

    def zeros(self, shape):
        if np.prod(shape) > self.most:
            raise MemoryError
        return super().zeros(shape)


def small_device(most):
    arrays = Small(arrays_on("numpy").xp, "cuda")
    object.__setattr__(arrays, "most", most)
    object.__setattr__(arrays, "release", lambda: None)
    object.__setattr__(arrays, "free_bytes", lambda: 2**40)
    object.__setattr__(arrays, "get", np.array)
    return arrays


def test_where_memory_is_short_rows_come_in_blocks():
    whole, task = rows_of("mixed", block_rows=None)
    memory = replace(whole.memory, numbers=np.tile(whole.memory.numbers, (8, 1)),
                     codes=np.tile(whole.memory.codes, (8, 1)), weights=None)  # fmt: skip
    plenty, short = (DeviceRows(memory, small_device(most)) for most in (10**9, 9000))
    theta = task.smooth.null()
    coef = module.Coefficients(
        task.layout.incidence,
        np.full(len(task.layout.incidence.theta_index), 0.1),
        task.layout.nodes.own_logits(theta[task.layout.biases]),
        task.layout.softmax_targets,
    )
    a, b = (rows.softmax(coef, "support") for rows in (plenty, short))
    assert plenty._block_rows == 2400
    assert 256 <= short._block_rows < 1200
    np.testing.assert_allclose(b.support, a.support, atol=1e-13)
    np.testing.assert_allclose(b.loss, a.loss, atol=1e-12)


def test_where_nothing_fits_the_message_says_what_would():
    rows, task = rows_of("mixed")
    tiny = DeviceRows(rows.memory, small_device(10))
    message = r"not enough memory on 'cuda': 14 design columns .* would fit\. To fix: fewer columns"
    # A fit adds nothing to it.
    with pytest.raises(mg.OutOfMemoryError, match=message), enough_memory(draw(0, 9, 1, ()).design):
        tiny.column_moments()


def test_other_errors_are_passed_on():
    rows, _ = rows_of("mixed")
    with pytest.raises(ZeroDivisionError):
        rows._with_memory(lambda: 1 // 0)


def test_padding_wastes_little():
    count = np.arange(1, 3000)
    size = padded(count)
    assert (size >= count).all()
    assert (size <= np.maximum(4, np.where(count > 32, 1.5, 2.0) * count)).all()
    assert len(np.unique(size)) < 20


def test_rows_stay_in_memory_for_tests_of_pairs():
    from mixedgm.select.pair_tests import rows_of as memory_of

    task = prepare(draw(0, *TABLES["mixed"]).design, Recipe(device="numpy"))
    assert isinstance(memory_of(task), MemoryRows)
