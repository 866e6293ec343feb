"""Models of very many columns: files hold what is not zero, come back exactly, and are checked."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

from mixedgm.base.errors import ModelFileError
from mixedgm.fit.fitted import FitReport, FittedModel
from mixedgm.model.layout import Layout
from mixedgm.model.params import Params, Units
from mixedgm.path.path import Path, PathPoint
from mixedgm.solve.loop import Certificate, Cost, Status
from mixedgm.store import load, save
from mixedgm.store.validation import WIDE
from mixedgm.table.schema import Column, Schema
from tests.unit.store.test_model_file import difference

N_NUMBERS = WIDE - 40


def wide_model(*, nodewise: bool = False, active_only: bool = False, seed: int = 0) -> FittedModel:
    """360 numbers and 40 categories of three levels, 300 edges, and a path of three points."""
    rng = np.random.default_rng(seed)
    names = [Column(f"x{k}", "continuous") for k in range(N_NUMBERS)]
    names += [
        Column(f"c{k}", "categorical", levels=("a", "b", "c")) for k in range(WIDE - N_NUMBERS)
    ]
    schema = Schema(tuple(names))
    nodes = schema.spans
    units = Units(rng.normal(size=nodes.n_numeric), rng.uniform(0.5, 2.0, nodes.n_numeric))
    observed = np.ones(sum(schema.n_levels), dtype=bool)
    layout = Layout.complete(nodes, nodewise=nodewise)
    n_possible = WIDE * (WIDE - 1) // 2
    points = tuple(_point(layout, rng, lam, size) for lam, size in ((0.9, 0), (0.5, 40), (0.3, 99)))
    loss: Any = "nodewise" if nodewise else "pseudolikelihood"
    path = Path(points, 1.0, schema, layout, units, observed, 50.0, "and", loss)
    if active_only:
        used = np.unique(np.concatenate([point.groups for point in points]))
        small = Layout(nodes, layout.pairs[used], (), nodewise)
        points = tuple(replace(p, groups=np.searchsorted(used, p.groups)) for p in points)
        path = replace(path, points=points, layout=small, n_permitted=n_possible)
    assert path.n_possible == n_possible
    params = _params(layout, rng, units)
    certificate = Certificate(3.5, 1e-6, converged=True, message="converged")
    report = FitReport(certificate, Cost(12), 0.3, 1e-5, 50, 50.0, (), "EBIC")
    weights = np.zeros((1, WIDE, WIDE))
    weights[0, 3, 5] = weights[0, 5, 3] = 0.25
    fitted = FittedModel(
        schema,
        params,
        np.ones(WIDE),
        replace(report, loss=loss, refitted=True),
        "pandas",
        path,
        {"ebic": rng.normal(size=3)},
        shrunken_norms=weights,
    )
    return replace(fitted, known_strengths=rng.uniform(size=len(fitted.pair_norms)))


def _point(layout: Layout, rng: np.random.Generator, lam: float, n_groups: int) -> PathPoint:
    groups = np.sort(rng.choice(layout.n_groups, n_groups, replace=False))
    return PathPoint(
        Certificate.of(Status.CONVERGED, 1.5, 1e-7),
        Cost(2, 1.0, 1.0, 0.01, 0.004, 0.002),
        lam,
        rng.normal(size=layout.n_node_terms),
        groups,
        rng.normal(size=int(layout.sizes[groups].sum())),
    )


def _params(layout: Layout, rng: np.random.Generator, units: Units) -> Params:
    groups = np.sort(rng.choice(layout.n_groups, 300, replace=False))
    theta = layout.expanded(groups, np.zeros(len(layout.positions(groups))))
    theta[layout.positions(groups)] = rng.normal(size=len(layout.positions(groups)))
    coef = layout.to_matrix(theta)
    bias = rng.normal(size=int(layout.nodes.n_biases.sum()))
    diagonal = rng.uniform(1.0, 2.0, layout.n_gaussian)
    return Params(layout.nodes, bias, diagonal, coef, layout.nodewise)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> FilePath:
    file = tmp_path_factory.mktemp("wide") / "wide.mgm"
    save(wide_model(), file)
    return file


@pytest.mark.parametrize("nodewise", [False, True])
def test_a_wide_model_comes_back_bit_by_bit(nodewise: bool, tmp_path: FilePath) -> None:
    """All but the pairs of its path that are active nowhere, of which only the number is kept."""
    fitted = wide_model(nodewise=nodewise)
    save(fitted, tmp_path / "wide.mgm")
    back, _ = load(tmp_path / "wide.mgm")
    expected = wide_model(nodewise=nodewise, active_only=True)
    assert list(difference(back, expected)) == []
    assert back.edges == fitted.edges
    assert fitted.path is not None
    assert back.path is not None
    for k in range(3):
        assert list(difference(back.path.params(k), fitted.path.params(k))) == []
        assert back.path.edges(k) == fitted.path.edges(k)
    assert back.path.n_possible == fitted.path.n_possible
    save(back, tmp_path / "again.mgm")
    assert (tmp_path / "again.mgm").read_bytes() == (tmp_path / "wide.mgm").read_bytes()


def test_groups_of_a_path_may_be_in_any_order(saved: FilePath, tmp_path: FilePath) -> None:
    """Pairs that became candidates late stand at the end of a layout."""
    fitted = wide_model()
    path = fitted.path
    assert path is not None
    order = np.random.default_rng(1).permutation(path.layout.n_groups)
    place = np.argsort(order)
    shuffled = Layout(path.layout.nodes, path.layout.pairs[order])
    points = []
    for point in path.points:
        by_place = np.argsort(place[point.groups])
        ends = np.cumsum(path.layout.sizes[point.groups])
        parts = np.split(point.values, ends[:-1]) if len(ends) else []
        values = np.concatenate([np.zeros(0), *(parts[at] for at in by_place)])
        points.append(replace(point, groups=place[point.groups][by_place], values=values))
    other = replace(fitted, path=replace(path, points=tuple(points), layout=shuffled))
    save(other, tmp_path / "shuffled.mgm")
    assert (tmp_path / "shuffled.mgm").read_bytes() == saved.read_bytes()


def test_a_wide_file_is_small_and_says_its_format(saved: FilePath) -> None:
    n_columns = N_NUMBERS + 3 * (WIDE - N_NUMBERS)
    assert saved.stat().st_size < 0.2 * 8 * n_columns**2
    with np.load(saved, allow_pickle=False) as opened:
        places, entries = opened["coef_places"], opened["coef_entries"]
        assert len(places) == len(entries) < 3000
        assert "coef" not in opened
        assert "path_permitted" not in opened


def test_a_dense_wide_model_is_stored_whole(tmp_path: FilePath) -> None:
    fitted = wide_model()
    coef = np.random.default_rng(0).normal(size=fitted.params.coef.shape)
    node = fitted.params.nodes.column_node
    coef = np.where(node[:, None] == node, 0.0, coef + coef.T)
    dense = replace(fitted, params=replace(fitted.params, coef=coef), path=None)
    dense = replace(dense, known_strengths=np.zeros(len(dense.pair_norms)))
    save(dense, tmp_path / "dense.mgm")
    assert "coef_places" not in _document(tmp_path / "dense.mgm")["arrays"]
    assert list(difference(load(tmp_path / "dense.mgm")[0], dense)) == []


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("coef_places", lambda a: a[::-1].copy(), "'coef' are in the wrong order"),
        ("coef_places", lambda a: np.append(a[:-1], 480**2), "beyond its end"),
        ("coef_places", lambda a: np.append(a[:-1], -1), "impossible number"),
        ("coef_places", lambda a: a[:-1], "'coef_entries' is float64"),
        ("coef_entries", lambda a: np.append(a[:-1], 0.0), "'coef' hold zeros"),
        ("coef_entries", lambda a: np.append(a[:-1], np.nan), "impossible number"),
        ("coef_entries", lambda a: np.append(a[0] + 1.0, a[1:]), "not symmetric"),
        ("coef_places", lambda a: np.append(a[:-1], 480**2 - 1), "an edge to itself|symmetric"),
        ("path_pairs", lambda a: a[::-1].copy(), "in the wrong order"),
        ("path_pairs", lambda a: a[:, ::-1].copy(), "impossible or in the wrong order"),
        ("path_pairs", lambda a: np.append(a[:-1], [[3, WIDE]], axis=0), "impossible"),
        ("path_pairs", lambda a: np.append(a, [[WIDE - 2, WIDE - 1]], axis=0), "no solution has"),
        ("path_groups", lambda a: a + 1, "no solution has"),
        ("shrunken_norms_entries", lambda a: -a, "impossible number"),
    ],
)
def test_a_damaged_wide_file_is_refused(
    saved: FilePath, tmp_path: FilePath, name: str, change: Any, says: str
) -> None:
    with np.load(saved) as opened:
        array = change(opened[name])
    file = _rewritten(saved, tmp_path / "x.mgm", {f"{name}.npy": _npy(array)})
    with pytest.raises(ModelFileError, match=says):
        load(file)


@pytest.mark.parametrize("n_possible", [None, 3, WIDE**2])
def test_an_impossible_number_of_pairs_is_refused(
    saved: FilePath, tmp_path: FilePath, n_possible: int | None
) -> None:
    document = _document(saved)
    document["path"]["n_possible"] = n_possible
    changes: dict[str, bytes | None] = {"model.json": json.dumps(document).encode()}
    with pytest.raises(ModelFileError, match="number of its possible edges"):
        load(_rewritten(saved, tmp_path / "x.mgm", changes))


def test_coefficients_that_are_there_twice_are_refused(saved: FilePath, tmp_path: FilePath) -> None:
    document = _document(saved)
    document["arrays"].append("nodewise_coef")
    n_columns = N_NUMBERS + 3 * (WIDE - N_NUMBERS)
    changes: dict[str, bytes | None] = {
        "model.json": json.dumps(document).encode(),
        "nodewise_coef.npy": _npy(np.zeros((n_columns, n_columns))),
    }
    with pytest.raises(ModelFileError, match="there twice"):
        load(_rewritten(saved, tmp_path / "x.mgm", changes))


def test_edges_of_a_wide_model_take_no_matrix_of_all_pairs(saved: FilePath) -> None:
    """Beside the coefficients themselves, memory follows the edges."""
    fitted = load(saved)[0]
    cold = replace(fitted)
    tracemalloc.start()
    assert len(cold.edges) == 300
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * cold.params.coef.nbytes


# -- files -------------------------------------------------------------------------------------


def _document(file: FilePath) -> dict[str, Any]:
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("model.json"))  # type: ignore[no-any-return]


def _rewritten(saved: FilePath, to: FilePath, changes: dict[str, bytes | None]) -> FilePath:
    """The same archive with some members replaced or left out, without checksums."""
    changes = {"checksums.json": None, **changes}
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(to, "w") as new:
        for name in dict.fromkeys([*old.namelist(), *changes]):
            content = changes[name] if name in changes else old.read(name)
            if content is not None:
                new.writestr(name, content)
    return to


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array))
    return buffer.getvalue()
