"""Saved models come back exactly; every other file is refused with a reason."""

from __future__ import annotations

import copy
import io
import json
import os
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mixedgm as mg
from mixedgm.base.errors import MixedGMError, ModelFileError, ParameterError
from mixedgm.fit.fitted import FitReport, FittedModel
from mixedgm.joint.margins import Margins, NodeTerms
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, Units
from mixedgm.path.path import Path, PathPoint
from mixedgm.solve.loop import Certificate, Cost, Status, TraceRow
from mixedgm.store import FORMAT_VERSION, load, save
from mixedgm.table.schema import Column, Schema
from mixedgm.table.transform import Nonparanormal
from tests.support.moderated import people

# -- random fitted models ----------------------------------------------------------------------

numbers = st.floats(allow_nan=False, allow_infinity=False)
terms = st.floats(-1e20, 1e20)  # sizes that a fit may have
sizes = st.floats(1e-3, 1e3)
levels = st.one_of(
    st.lists(st.text(), min_size=1, max_size=4, unique=True),
    st.just([False, True]),
    st.lists(st.integers(), min_size=1, max_size=4, unique=True),
    st.lists(numbers, min_size=1, max_size=4, unique_by=str),
)


@st.composite
def transforms(draw: st.DrawFn) -> Nonparanormal:
    n = draw(st.integers(2, 5))
    knots = st.lists(numbers, min_size=n, max_size=n, unique=True).map(sorted)
    return Nonparanormal(tuple(draw(knots)), tuple(draw(knots)))


@st.composite
def ordinal_columns(draw: st.DrawFn, name: str) -> Column:
    named = tuple(draw(levels))
    knots = st.lists(terms, min_size=len(named), max_size=len(named), unique=True).map(sorted)
    how = "quadratic" if len(named) > 2 and draw(st.booleans()) else "free"
    scores = tuple(draw(st.just([]) | knots))
    return Column(name, "ordinal", levels=named, scores=scores, thresholds=how)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    columns = []
    for name in draw(st.lists(st.text(), min_size=1, max_size=5, unique=True)):
        kind = draw(st.sampled_from(["continuous", "hurdle", "categorical", "ordinal", "count"]))
        if kind == "continuous":
            transform = draw(st.none() | transforms())
            columns.append(Column(name, "continuous", dtype="pandas:int64", transform=transform))
        elif kind == "hurdle":
            columns.append(Column(name, "hurdle", location=draw(terms)))
        elif kind == "count":
            largest, zero_term = draw(st.integers(3, 9)), draw(st.booleans())
            columns.append(Column(name, "count", largest=largest, zero_term=zero_term))
        elif kind == "ordinal":
            columns.append(draw(ordinal_columns(name)))
        else:
            ordered = draw(st.booleans())
            columns.append(Column(name, "categorical", "target", tuple(draw(levels)), ordered))
    return Schema(tuple(columns))


def floats(draw: st.DrawFn, *shape: int, elements: st.SearchStrategy[float] = terms) -> Any:
    return draw(hnp.arrays(np.float64, shape, elements=elements))


def symmetric(draw: st.DrawFn, n: int) -> Any:
    upper = np.triu(floats(draw, n, n), 1)
    return upper + upper.T


@st.composite
def paths(draw: st.DrawFn, schema: Schema) -> Path:
    spans = schema.spans
    observed = draw(hnp.arrays(np.bool_, sum(schema.n_levels))) | ~spans.free_values
    n_nodes = len(schema.nodes)
    absent = draw(hnp.arrays(np.bool_, (n_nodes, n_nodes)))
    units = Units(floats(draw, spans.n_numeric), floats(draw, spans.n_numeric, elements=sizes))
    kept = spans.kept(observed).standardised(units.centre, units.scale)
    layout = Layout.complete(kept, absent)
    points = []
    traced = draw(st.booleans())
    for _ in range(draw(st.integers(0, 3))):
        groups = np.flatnonzero(draw(hnp.arrays(np.bool_, layout.n_groups)))
        trace = draw(st.lists(st.builds(TraceRow, *[st.floats()] * 4), max_size=3))
        status = draw(st.sampled_from(Status))
        points.append(
            PathPoint(
                Certificate.of(
                    status, draw(numbers), draw(st.floats(0.0, 1e-6 if status.good else None))
                ),
                Cost(draw(st.integers(0, 10**6)), *(draw(sizes) for _ in range(5))),
                lam=draw(sizes),
                node_terms=floats(draw, layout.n_node_terms),
                groups=groups,
                values=floats(draw, int(layout.sizes[groups].sum())),
                notes=tuple(draw(st.lists(st.text(), max_size=2))),
                trace=tuple(trace) if traced else (),
            )
        )
    return Path(tuple(points), draw(sizes), schema, layout, units, observed, draw(sizes))


@st.composite
def fitted_models(draw: st.DrawFn) -> FittedModel:
    schema = draw(schemas())
    nodes = schema.spans
    bias = floats(draw, int(nodes.n_biases.sum()))
    if draw(st.booleans()):
        bias[nodes.free_terms] = -np.inf
        bias[nodes.n_gaussian + nodes.term_start[:-1]] = (
            0.0  # a column has a level that is possible
        )
    bias[nodes.spiked_terms[0] + 2] = floats(draw, nodes.n_spiked, elements=sizes)
    coef = symmetric(draw, nodes.n_columns)
    coef[nodes.column_node[:, None] == nodes.column_node] = 0.0  # and no edge to itself
    params = Params(nodes, bias, floats(draw, nodes.n_gaussian, elements=sizes), coef)
    converged = draw(st.booleans())
    report = FitReport(
        Certificate(
            draw(numbers | st.just(np.nan)),
            draw(st.floats(0.0, 1e-6) if converged else st.floats(0.0) | st.just(np.nan)),
            converged,
            draw(st.text()),
        ),
        Cost(draw(st.integers(0, 2**63 - 1)), *(draw(sizes) for _ in range(5))),
        lam=draw(sizes),
        tol=draw(sizes),
        n_rows=draw(st.integers(1, 2**63 - 1)),
        total_weight=draw(sizes),
        notes=tuple(draw(st.lists(st.text(), max_size=2))),
        criterion=draw(st.none() | st.text()),
    )
    path = draw(st.none() | paths(schema))
    n_scores = st.integers(0, 4) if path is None else st.just(len(path))
    scores = draw(st.dictionaries(st.text(), hnp.arrays(np.float64, n_scores), max_size=2))
    return FittedModel(
        schema=schema,
        params=params,
        node_scales=floats(draw, len(nodes.scale_node), elements=sizes),
        report=report,
        library=draw(st.sampled_from(["pandas", "polars", "pyarrow", "numpy"])),
        path=path,
        scores=scores,
    )


def difference(a: Any, b: Any, where: str = "model") -> Iterator[str]:
    """Where two values differ, in type, in any bit of a number, or in structure."""
    if type(a) is not type(b):
        yield f"{where}: {type(a)} and {type(b)}"
    elif is_dataclass(a):
        for field in fields(a):
            x, y = getattr(a, field.name), getattr(b, field.name)
            yield from difference(x, y, f"{where}.{field.name}")
    elif isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
            yield f"{where}: {a!r} and {b!r}"
    elif isinstance(a, dict):
        if list(a) != list(b):
            yield f"{where}: keys {list(a)} and {list(b)}"
        else:
            for key in a:
                yield from difference(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, tuple | list):
        if len(a) != len(b):
            yield f"{where}: lengths {len(a)} and {len(b)}"
        else:
            for k, (x, y) in enumerate(zip(a, b, strict=True)):
                yield from difference(x, y, f"{where}[{k}]")
    elif isinstance(a, float):
        if np.float64(a).tobytes() != np.float64(b).tobytes() and not (a != a and b != b):
            yield f"{where}: {a!r} and {b!r}"
    elif a != b:
        yield f"{where}: {a!r} and {b!r}"


def small_model() -> FittedModel:
    """Two continuous columns, one of them transformed, two categorical ones, a level unseen."""
    skewed = Nonparanormal((0.0, 1.0, 5.0), (-1.0, 0.0, 1.0))
    schema = Schema(
        (
            Column("sex", "categorical", levels=("F", "M")),
            Column("age", "continuous", dtype="pandas:int64"),
            Column("größe ☃", "continuous", transform=skewed),
            Column("stage", "categorical", levels=(1, 2, 3), ordered=True),
        )
    )
    params = Params.of_blocks(
        (2, 3),
        precision=np.array([[2.0, -0.5], [-0.5, 1.0]]),
        cont_bias=np.array([0.1, -0.0]),
        category_shift=np.array([[0.25, -0.25, 0.0, 0.0, 0.0], [0.0, 0.0, 0.5, -0.5, 0.0]]),
        cat_interaction=np.zeros((5, 5)),
        cat_bias=np.array([0.0, 0.0, 0.5, -0.5, -np.inf]),
    )
    certificate = Certificate(3.5, 1e-6, converged=True, message="converged")
    cost = Cost(12, 20.5, 1.0, 0.01, 0.004, 0.002)
    report = FitReport(certificate, cost, 0.1, 1e-5, 100, 100.0, ("a note",), "EBIC")
    observed = np.array([True, True, True, True, False])
    layout = Layout.complete(Nodes.mixed(2, (2, 2)))
    point = PathPoint(
        replace(certificate, message=Status.CONVERGED.value),
        cost,
        lam=0.1,
        node_terms=np.arange(8.0),
        groups=np.array([0, 3]),
        values=np.linspace(0.1, 0.9, int(layout.sizes[[0, 3]].sum())),
        notes=("fell back",),
        trace=(TraceRow(4.0, np.inf, 1.0, 0.001), TraceRow(3.5, 1e-6, 20.5, 0.01)),
    )
    units = Units(np.array([40.0, 0.0]), np.array([10.0, 1.0]))
    path = Path((point,), 0.9, schema, layout, units, observed, 100.0)
    scores = {"ebic": np.array([700.25])}
    mean = np.array([40.0, 1.5, 0.25, 0.75, 0.5, 0.5, 0.0])
    margins = Margins(mean, np.array([100.0, 2.0]), np.eye(7))
    terms = NodeTerms(params.bias, np.ones(2), 1e-12, True, np.eye(7))
    return FittedModel(
        schema,
        params,
        np.ones(4),
        report,
        "pandas",
        path,
        scores,
        margins=margins,
        known_terms=terms,
    )


SETTINGS = {
    "lam": None,
    "types": {"mapping": [["stage", "categorical"]]},
    "tol": 1e-5,
    "inf": np.inf,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> FilePath:
    file = tmp_path_factory.mktemp("store") / "small.mgm"
    save(small_model(), file, settings=SETTINGS)
    return file


def document_of(file: FilePath) -> dict[str, Any]:
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("model.json"))  # type: ignore[no-any-return]


def rewritten(
    saved: FilePath,
    to: FilePath,
    changes: dict[str, bytes | None],
    compression: int = zipfile.ZIP_STORED,
) -> FilePath:
    """The same archive with some members replaced, or left out, as an old file: no checksums."""
    changes = {"checksums.json": None, **changes}
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(to, "w", compression) as new:
        for name in dict.fromkeys([*old.namelist(), *changes]):
            content = changes[name] if name in changes else old.read(name)
            if content is not None:
                new.writestr(name, content)
    return to


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


# -- what goes in comes out --------------------------------------------------------------------


@settings(max_examples=30)
@given(fitted=fitted_models())
def test_a_model_comes_back_bit_by_bit(
    fitted: FittedModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "round-trip.mgm"
    settings = {**SETTINGS, "types": {"mapping": []}}
    save(fitted, file, settings=settings)
    back, stored = load(file)
    assert list(difference(fitted, back)) == []
    assert stored == settings


def test_the_comparison_of_models_sees_one_changed_bit() -> None:
    other = small_model()
    other.params.bias[1] = 0.0  # was -0.0
    assert list(difference(small_model(), other)) != []


def test_every_field_of_the_report_is_stored(saved: FilePath) -> None:
    kinds = (FitReport, Certificate, Cost)
    names = {field.name for kind in kinds for field in fields(kind)}
    assert set(document_of(saved)["report"]) == names - {"certificate", "cost"}


def test_the_path_of_a_loaded_model_works(saved: FilePath) -> None:
    back, _ = load(saved)
    assert back.path is not None
    before = small_model().path
    assert before is not None
    np.testing.assert_array_equal(back.path.params(0).cat_bias, before.params(0).cat_bias)
    assert back.edges == small_model().edges


def test_the_same_model_gives_the_same_bytes(saved: FilePath, tmp_path: FilePath) -> None:
    save(small_model(), tmp_path / "again.mgm", settings=SETTINGS)
    assert (tmp_path / "again.mgm").read_bytes() == saved.read_bytes()


def test_numpy_opens_the_file_without_pickle(saved: FilePath) -> None:
    with np.load(saved, allow_pickle=False) as opened:
        assert opened["diagonal"].tolist() == [2.0, 1.0]
        assert opened["coef"][:2, :2].tolist() == [[0.0, 0.5], [0.5, 0.0]]
        assert np.isneginf(opened["bias"][-1])


def test_the_document_says_what_the_file_is(saved: FilePath) -> None:
    document = document_of(saved)
    assert document["format"] == "mixedgm-model"
    assert document["format_version"] == FORMAT_VERSION == 1
    with zipfile.ZipFile(saved) as archive:
        members = {name.removesuffix(".npy") for name in archive.namelist()}
    assert members == {"model.json", "checksums.json", *document["arrays"]}


def test_a_failed_save_leaves_the_old_file(saved: FilePath, tmp_path: FilePath) -> None:
    file = tmp_path / "kept.mgm"
    file.write_bytes(saved.read_bytes())
    with pytest.raises(ModelFileError, match="a setting of type object cannot be stored"):
        save(small_model(), file, settings={"odd": object()})
    assert [each.name for each in tmp_path.iterdir()] == ["kept.mgm"]
    assert list(difference(load(file)[0], small_model())) == []


def test_saving_into_no_folder_is_a_clear_error(tmp_path: FilePath) -> None:
    with pytest.raises(ParameterError, match="no folder"):
        save(small_model(), tmp_path / "nowhere" / "x.mgm")


@pytest.mark.parametrize(
    ("name", "at", "value", "says"),
    [
        ("coef", (0, 1), 7.0, "coef is not symmetric"),
        ("diagonal", 0, -2.0, "diagonal holds 1 impossible number"),
        ("bias", 2, np.inf, "bias holds 1 impossible number"),
        ("bias", 0, np.nan, "bias holds 1 impossible number"),
        ("bias", 0, -np.inf, "bias holds impossible numbers"),
    ],
)
def test_impossible_parameters_are_not_saved(
    tmp_path: FilePath, name: str, at: Any, value: float, says: str
) -> None:
    model = small_model()
    getattr(model.params, name)[at] = value
    with pytest.raises(ModelFileError, match=says):
        save(model, tmp_path / "x.mgm")
    assert list(tmp_path.iterdir()) == []


# -- what is refused, and how ------------------------------------------------------------------


def refusal(file: FilePath) -> str:
    with pytest.raises(ModelFileError) as caught:
        load(file)
    message = str(caught.value)
    assert repr(str(file)) in message
    assert "\n" not in message
    return message


def test_a_file_that_is_not_there(tmp_path: FilePath) -> None:
    assert "there is no file" in refusal(tmp_path / "none.mgm")


def test_a_folder(tmp_path: FilePath) -> None:
    assert "cannot be read" in refusal(tmp_path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs file permissions")
def test_a_file_without_permission(saved: FilePath, tmp_path: FilePath) -> None:
    file = rewritten(saved, tmp_path / "private.mgm", {})
    file.chmod(0)
    assert "Permission denied" in refusal(file)


def test_an_empty_file(tmp_path: FilePath) -> None:
    (tmp_path / "empty.mgm").touch()
    assert "is empty. Model files are written by" in refusal(tmp_path / "empty.mgm")


def test_a_file_of_another_kind(tmp_path: FilePath) -> None:
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert "is not a model file of mixedgm" in refusal(tmp_path / "table.csv")


def test_a_foreign_zip_archive(tmp_path: FilePath) -> None:
    np.savez(tmp_path / "arrays.npz", a=np.ones(3))
    assert "is a zip archive, but not a model file" in refusal(tmp_path / "arrays.npz")


def test_a_foreign_document(saved: FilePath, tmp_path: FilePath) -> None:
    for k, text in enumerate([b"[]", b"{}", b'{"format": "other"}']):
        file = rewritten(saved, tmp_path / f"{k}.mgm", {"model.json": text})
        assert "not a model file" in refusal(file)


def test_a_newer_format_says_to_upgrade(saved: FilePath, tmp_path: FilePath) -> None:
    document = document_of(saved) | {"format_version": 4, "library_version": "9.1"}
    text = json.dumps(document).encode()
    message = refusal(rewritten(saved, tmp_path / "new.mgm", {"model.json": text}))
    assert "written by mixedgm 9.1 in format 4" in message
    assert message.endswith("To fix: open it with a newer version of mixedgm")


def test_every_truncation_is_refused(saved: FilePath, tmp_path: FilePath) -> None:
    content = saved.read_bytes()
    file = tmp_path / "short.mgm"
    for length in range(1, len(content), 97):
        file.write_bytes(content[:length])
        refusal(file)


def test_every_missing_part_is_named(saved: FilePath, tmp_path: FilePath) -> None:
    for name in document_of(saved)["arrays"]:
        file = rewritten(saved, tmp_path / "part.mgm", {f"{name}.npy": None})
        assert f"its part '{name}.npy' is missing" in refusal(file)


def test_a_part_with_another_shape_or_type(saved: FilePath, tmp_path: FilePath) -> None:
    needed = "but the model needs float64 7 x 7"
    for array, says in [
        (np.eye(3), f"is float64 3 x 3 {needed}"),
        (np.eye(7, dtype=np.float32), f"is float32 7 x 7 {needed}"),
        (np.asfortranarray(np.ones((7, 7))), "has its numbers in another order"),
        (np.eye(7, dtype=">f8"), "has its numbers in another order"),
    ]:
        file = rewritten(saved, tmp_path / "shape.mgm", {"coef.npy": npy(array)})
        assert f"the array 'coef' {says}" in refusal(file)


def test_pickled_objects_are_not_even_looked_at(saved: FilePath, tmp_path: FilePath) -> None:
    evil = npy(np.array([_Evil(tmp_path / "executed")], dtype=object))
    file = rewritten(saved, tmp_path / "evil.mgm", {"bias.npy": evil})
    assert "the array 'bias' is object" in refusal(file)
    assert not (tmp_path / "executed").exists()


class _Evil:
    def __init__(self, mark: FilePath) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (FilePath.touch, (self.mark,))


@pytest.mark.parametrize(
    "shape",
    ["(99999999999999,)", "(-1,)", "(9**9,)", "(2,)", "(0,)", "(1, 1)", "[1]", "()", "x"],
)
def test_a_claimed_size_is_not_believed(saved: FilePath, tmp_path: FilePath, shape: str) -> None:
    """Scores may have any length, so only the size of the member can show that one lies."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8)
    file = rewritten(saved, tmp_path / "liar.mgm", {"scores_0.npy": content})
    refusal(file)


def test_a_compressed_part_is_refused_unread(saved: FilePath, tmp_path: FilePath) -> None:
    bomb = npy(np.zeros(10**6))
    changes = {"scores_0.npy": bomb}
    file = rewritten(saved, tmp_path / "bomb.mgm", changes, zipfile.ZIP_DEFLATED)
    assert "is compressed; model files are not" in refusal(file)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b" " * 40_000_000, "40,000,000 bytes"), (b"[" + b"0," * 600_000 + b"0]", "600,001 values")],
)
def test_a_huge_document_is_refused_unread(
    saved: FilePath, tmp_path: FilePath, content: bytes, says: str
) -> None:
    file = rewritten(saved, tmp_path / "long.mgm", {"model.json": content})
    assert f"'model.json' has {says}" in refusal(file)


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("report.kkt", 5.0, "the fit claims to have converged, with KKT 5 and tol 1e-05"),
        ("report.kkt", np.nan, "the fit claims to have converged, with KKT nan"),
        (
            "report.n_rows",
            -5,
            "document.report.n_rows is -5, but must be a whole number of at least 0",
        ),
        ("report.n_rows", 0, "nothing was fitted, so nothing can have converged"),
        ("report.lam", -0.1, "document.report.lam is -0.1, but must be a number of at least 0"),
        ("report.lam", np.nan, "lam does not match its columns"),
        ("report.tol", 0.0, "a fit needs rows of positive weight and a positive tol"),
        ("report.rule", "xor", "document.report.rule is 'xor', but must be 'and' or 'or'"),
        ("report.message", "x" * 10**5, ""),
        ("report.message", ["x" * 10**5], "document.report.message is ['xxxx"),
        ("settings.n_lams", -0.0, "n_lams must be an integer of at least 1. Got -0.0 instead"),
        ("settings.tol", [None], "tol must be a number in (0, inf). Got [None] instead"),
        (
            "settings.missing",
            "categorical",
            "missing must be 'error', 'drop' or 'model'. Got 'categorical'",
        ),
        (
            "settings.penalty_weights",
            "x",
            "penalty_weights must be 'calibrated', 'uniform' or 'adaptive'. Got 'x'",
        ),
        ("settings.covariates", 5, "covariates must be a list of column names. Got 5 instead"),
        ("settings.covariates", ["x"], "covariates names 'x', which is not a column"),
        ("settings.require", [["sex", "x"]], "there is no column 'x'"),
        ("settings.penalty_factors", {"mapping": [["x", 1]]}, "penalty_factors has the key 'x'"),
        (
            "settings.types",
            {"mapping": [["age", 1]]},
            "types['age'] must be 'continuous', 'hurdle'",
        ),
        ("settings.lams", ["x"], "lams must be a list of numbers in [0, inf). Got ['x'] instead"),
        (
            "settings.solver",
            {"x": 1},
            "document.settings.solver is {'x': 1}, but must be a setting",
        ),
        ("settings.select", {"object": "EBIC", "options": {"gamma": 2}}, "gamma must be a number"),
        ("settings.random_state", -1, "random_state must be None, an integer of at least 0"),
        (
            "schema.columns.0.kind",
            "x",
            "columns[].kind is 'x', but must be 'continuous' or 'hurdle' or 'ordinal' or",
        ),
        ("schema.columns.0.ordered", 1, "columns[].ordered is 1, but must be true or false"),
        (
            "schema.columns.0.levels.0",
            None,
            "columns[].levels[] is None, but must be text, a number",
        ),
        ("schema.columns.1.label", 3, "column 'age' has the label 3"),
        ("schema.columns.2.transform.values.0", 9.0, "strictly increasing knots"),
        ("path.status.0", "FINE", "document.path.status[] is 'FINE', but must be 'CONVERGED' or"),
        ("path.loss", "x", "document.path.loss is 'x'"),
        (
            "path.lam_max",
            np.nan,
            "document.path.lam_max is nan, but must be a number of at least 0",
        ),
        ("joint.sampled", 0, "document.joint.sampled is 0, but must be true or false"),
        ("library", "sqlite", "document.library is 'sqlite'"),
        ("scores.0", 1, "document.scores[] is 1, but must be text"),
    ],
)
def test_a_value_that_no_model_has(
    saved: FilePath, tmp_path: FilePath, place: str, value: Any, says: str
) -> None:
    document = document_of(saved)
    *above, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    holder: Any = document
    for key in above:
        holder = holder[key]
    holder[last] = value
    text = json.dumps(document).encode()
    file = rewritten(saved, tmp_path / "x.mgm", {"model.json": text})
    if not says:
        load(file)
        return
    message = refusal(file)
    assert says in message
    assert len(message) < 500


@pytest.mark.parametrize("name", ["rule", "refitted", "ridge", "noisy", "seconds"])
def test_a_report_with_a_field_less(saved: FilePath, tmp_path: FilePath, name: str) -> None:
    document = document_of(saved)
    del document["report"][name]
    changes = {"model.json": json.dumps(document).encode()}
    message = refusal(rewritten(saved, tmp_path / "less.mgm", changes))
    assert f"document.report has no field '{name}'" in message


def test_a_changed_part_does_not_have_its_checksum(saved: FilePath, tmp_path: FilePath) -> None:
    with zipfile.ZipFile(saved) as archive:
        sums = archive.read("checksums.json")
    for name, content in (
        ("node_scales.npy", npy(np.full(4, 2.0))),
        ("model.json", json.dumps(document_of(saved)).encode()),
    ):
        changes = {name: content, "checksums.json": sums}
        message = refusal(rewritten(saved, tmp_path / "x.mgm", changes))
        assert f"its part '{name}' has changed since it was written" in message
        assert list(json.loads(sums)["sha256"]).count(name) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_does_not_block(tmp_path: FilePath) -> None:
    os.mkfifo(tmp_path / "pipe.mgm")
    assert "it is a pipe or a device, not a file" in refusal(tmp_path / "pipe.mgm")


@pytest.mark.parametrize("what", ["columns", "values", "bytes"])
def test_a_document_too_large_for_its_arrays_takes_little_memory(
    saved: FilePath, tmp_path: FilePath, what: str
) -> None:
    document = document_of(saved)
    if what == "columns":
        like = document["schema"]["columns"][1]
        document["schema"]["columns"] = [like | {"name": f"x{k}"} for k in range(20_000)]
    text = json.dumps(document).encode()
    filling = {"values": b"[]," * 10**6, "bytes": b'"x",' * 10**7}.get(what, b"")
    text = text.replace(b'"scores": [', b'"scores": [' + filling)
    file = rewritten(saved, tmp_path / "x.mgm", {"model.json": text})
    del text, filling, document
    tracemalloc.start()
    refusal(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("node_scales", np.array([1.0, 1.0, np.nan, 1.0]), "node_scales holds 1 impossible number"),
        ("path_kkt", np.array([5.0]), "lam = 0.1 claims to have converged, with KKT 5"),
        ("path_lam", np.array([np.nan]), "path_lam holds 1 impossible number"),
        ("bias", np.array([0.0] * 2 + [-np.inf] * 2 + [0.0] * 3), "a column has no possible level"),
        ("path_groups", np.array([0, 99]), "edges that the model does not have"),
        ("path_groups", np.array([3, 0]), "edges in the wrong order"),
        ("path_group_ends", np.array([3]), "does not split the path"),
        ("path_scale", np.array([0.0, 1.0]), "path_scale holds 1 impossible number"),
        ("path_values", np.zeros(2), "'path_values' is float64 2"),
        ("coef", np.diag([0.5] + [0.0] * 5, 1), "coef is not symmetric"),
        ("coef", np.ones((7, 7)), "a column has an edge to itself"),
        ("bias", np.full(7, np.nan), "bias holds 7 impossible numbers"),
    ],
)
def test_parts_that_contradict_each_other(
    saved: FilePath, tmp_path: FilePath, name: str, array: np.ndarray, says: str
) -> None:
    file = rewritten(saved, tmp_path / "x.mgm", {f"{name}.npy": npy(array)})
    assert says in refusal(file)


def test_a_schema_with_other_levels(saved: FilePath, tmp_path: FilePath) -> None:
    document = document_of(saved)
    document["schema"]["columns"][0]["levels"].append("X")
    text = json.dumps(document).encode()
    file = rewritten(saved, tmp_path / "x.mgm", {"model.json": text})
    assert "the array 'bias' is float64 7 but the model needs float64 8" in refusal(file)


# -- anything at all ---------------------------------------------------------------------------


def loads_equal_or_is_refused(file: FilePath) -> bool:
    """Whether the file loads; then it has to be the same model."""
    try:
        back, _ = load(file)
    except ModelFileError:
        return False
    assert list(difference(back, small_model())) == []
    return True


@settings(max_examples=150)
@given(data=st.data())
def test_flipped_bytes_never_change_a_model(
    data: st.DataObject, saved: FilePath, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(saved.read_bytes())
    at = st.integers(0, len(content) - 1)
    # Headers, the directory and the end are where a flip is not caught by a checksum.
    places = at | st.integers(0, 60) | st.integers(len(content) - 2500, len(content) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.just(len(content)) | at)
    file = tmp_path_factory.getbasetemp() / "flipped.mgm"
    file.write_bytes(content[:cut])
    loads_equal_or_is_refused(file)


def places_in(value: Any, so_far: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield so_far
    items: Any = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else items:
        yield from places_in(item, (*so_far, key))


NONSENSE = [
    None,
    True,
    -1,
    10**30,
    0.5,
    float("nan"),
    float("inf"),
    "x",
    "",
    [],
    [[]],
    {},
    {"a": 1},
]


def test_a_document_with_nonsense_anywhere_is_refused_or_loads(
    saved: FilePath, tmp_path: FilePath
) -> None:
    """Right checksums, wrong content: the one sort of damage that a zip archive does not see."""
    document = document_of(saved)
    places = [place for place in places_in(document) if place]
    assert len(places) > 80
    refused = 0
    for k, place in enumerate(places):
        for value in (NONSENSE[k % len(NONSENSE)], NONSENSE[(k + 5) % len(NONSENSE)], _ABSENT):
            changed = copy.deepcopy(document)
            holder = changed
            for key in place[:-1]:
                holder = holder[key]
            if value is _ABSENT:
                del holder[place[-1]]
            else:
                holder[place[-1]] = value
            text = json.dumps(changed).encode()
            try:
                load(rewritten(saved, tmp_path / "x.mgm", {"model.json": text}))
            except ModelFileError:
                refused += 1
    assert refused > len(places)


_ABSENT = object()


def test_a_deeply_nested_document_is_refused(saved: FilePath, tmp_path: FilePath) -> None:
    text = b"[" * 200_000
    assert "damaged" in refusal(rewritten(saved, tmp_path / "x.mgm", {"model.json": text}))


def test_the_refusal_belongs_to_the_family() -> None:
    assert issubclass(ModelFileError, MixedGMError)


# -- ordinal and count columns ---------------------------------------------------------------------


def scored_model() -> FittedModel:
    """One continuous, two ordinal (one quadratic) and a count column."""
    schema = Schema(
        (
            Column("pain", "ordinal", levels=("no", "yes", "very"), scores=(0.0, 1.0, 4.0)),
            Column("stage", "ordinal", levels=(1, 2, 3), thresholds="quadratic"),
            Column("visits", "count", largest=9, zero_term=True),
            Column("age", "continuous"),
        )
    )
    coef = np.array([[0.0, 0.5, 0.0, 0.1], [0.5, 0, 0.2, 0], [0.0, 0.2, 0, 0], [0.1, 0, 0, 0]])
    bias = np.array([0.1, 0.0, 0.5, -np.inf, 0.2, -0.1, 0.3, -0.2, 0.4])
    params = Params(schema.spans, bias, np.ones(1), coef)
    shares = np.concatenate([[0.5, 0.5, 0.0], np.full(3, 1 / 3), np.full(10, 0.1)])
    margins = Margins(np.ones(4), np.ones(4), np.eye(4), shares)
    report = replace(small_model().report, criterion=None)
    return FittedModel(schema, params, np.ones(4), report, "pandas", margins=margins)


ORDINAL = {"object": "Ordinal", "options": {"levels": None, "scores": [1, 0], "thresholds": "free"}}


def hurdle_model() -> FittedModel:
    """A hurdle and a continuous column."""
    schema = Schema((Column("debt", "hurdle", location=250.0), Column("age", "continuous")))
    coef = np.array([[0.0, 0.5, 0.1], [0.5, 0.0, 0.0], [0.1, 0.0, 0.0]])
    params = Params(schema.spans, np.array([0.2, -1.0, 0.1, 0.5]), np.ones(1), coef)
    report = replace(small_model().report, criterion=None)
    return FittedModel(schema, params, np.ones(3), report, "pandas")


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (
            "bias",
            np.array([0.2, -1.0, 0.1, 0.0]),
            "the precision of a hurdle column is not positive",
        ),
        ("bias", np.array([0.2, -1.0, 0.1, -2.0]), "precision of a hurdle column is not positive"),
        ("bias", np.array([0.2, -np.inf, 0.1, 0.5]), "bias holds impossible numbers"),
        ("bias", np.array([0.2, -1.0, np.nan, 0.5]), "bias holds 1 impossible number"),
        ("coef", np.diag([1.0, 1.0], 1), "coef is not symmetric"),
        ("coef", 1.0 - np.eye(3), "a column has an edge to itself"),
        ("node_scales", np.ones(2), "the array 'node_scales' is float64 2 but the model needs"),
        ("schema.columns.0.location", np.inf, "columns[].location is inf, but must be a number"),
        ("schema.columns.0.kind", "count", "'debt' is a count, so it has no location"),
        ("schema.columns.1.location", 2.0, "'age' is continuous, so it has no location"),
        ("schema.columns.0.largest", 5, "'debt' is a hurdle column, so it has no largest"),
    ],
)
def test_a_hurdle_column_that_no_model_has(
    tmp_path: FilePath, place: str, value: Any, says: str
) -> None:
    file = tmp_path / "hurdle.mgm"
    save(hurdle_model(), file)
    assert list(difference(load(file)[0], hurdle_model())) == []
    assert says in refusal(changed_file(file, tmp_path / "x.mgm", place, value))


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("schema.columns.0.scores", [0, 4, 1], "1 comes after 4"),
        ("schema.columns.0.scores", [0, 1], "2 scores were given for 3 levels"),
        ("schema.columns.0.scores", [0, 1, np.inf], "columns[].scores[] is inf"),
        ("schema.columns.0.scores", 5, "columns[].scores is 5, but must be a list"),
        ("schema.columns.0.largest", 5, "'pain' is ordinal, so it has no largest count"),
        ("schema.columns.1.thresholds", "x", "columns[].thresholds is 'x', but must be 'free' or"),
        ("schema.columns.1.thresholds", "free", "the array 'bias' is float64 9 but"),
        ("schema.columns.2.largest", None, "its largest must be from 3 to 100,000"),
        ("schema.columns.2.largest", 2**62, "its largest must be from 3 to 100,000"),
        ("schema.columns.2.zero_term", 1, "columns[].zero_term is 1, but must be true or false"),
        ("schema.columns.2.kind", "continuous", "'visits' is continuous, so it has no largest"),
        ("settings.types", {"mapping": [["pain", ORDINAL]]}, "0 comes after 1"),
        ("bias", np.full(9, -np.inf), "bias holds impossible numbers"),
        ("diagonal", np.zeros(1), "diagonal holds 1 impossible number"),
        ("coef", np.triu(np.ones((4, 4)), 1), "coef is not symmetric"),
        ("coef", np.ones((4, 4)), "a column has an edge to itself"),
        ("coef", np.zeros((5, 5)), "the array 'coef' is float64 5 x 5 but the model needs"),
        ("table_shares", np.full(16, 2.0), "table_shares holds 16 impossible numbers"),
    ],
)
def test_a_scored_column_that_no_model_has(
    tmp_path: FilePath, place: str, value: Any, says: str
) -> None:
    file = tmp_path / "scored.mgm"
    save(scored_model(), file, settings={"types": {"mapping": []}})
    assert list(difference(load(file)[0], scored_model())) == []
    assert says in refusal(changed_file(file, tmp_path / "x.mgm", place, value))


def changed_file(file: FilePath, to: FilePath, place: str, value: Any) -> FilePath:
    """A copy with another array, or with another value in the document."""
    if "." not in place:
        return rewritten(file, to, {f"{place}.npy": npy(value)})
    document = document_of(file)
    *above, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    holder: Any = document
    for key in above:
        holder = holder[key]
    holder[last] = value
    return rewritten(file, to, {"model.json": json.dumps(document).encode()})


def test_counts_without_end_take_little_memory(tmp_path: FilePath) -> None:
    file = tmp_path / "scored.mgm"
    save(scored_model(), file)
    document = document_of(file)
    like = document["schema"]["columns"][2] | {"largest": 10**5}
    document["schema"]["columns"] += [like | {"name": f"x{k}"} for k in range(200)]
    changed = rewritten(file, tmp_path / "x.mgm", {"model.json": json.dumps(document).encode()})
    tracemalloc.start()
    assert "the counts of its columns have too many values" in refusal(changed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


def test_damaged_deviations_are_noticed(tmp_path: FilePath) -> None:
    options = {"moderators": ["age", "group"], "covariates": ["wave"], "lam": 0.06}
    model = mg.MixedGraphicalModel(**options).fit(people())
    own = model.params_.moderation
    bad = replace(own, deviations=tuple(part * np.nan for part in own.deviations))
    fitted = replace(model.fitted_, params=replace(model.params_, moderation=bad), rows=None)
    with pytest.raises(ModelFileError, match="deviation_0 holds 121 impossible numbers"):
        save(fitted, tmp_path / "bad.mgm")
    wrong = replace(own, nodes=(2, 3))
    fitted = replace(model.fitted_, params=replace(model.params_, moderation=wrong), rows=None)
    save(fitted, tmp_path / "wrong.mgm")
    with pytest.raises(ModelFileError, match="moderators are not covariates"):
        load(tmp_path / "wrong.mgm")


# -- finite numbers that no fit finds --------------------------------------------------------------


def absurd(array: np.ndarray) -> Iterator[np.ndarray]:
    """The array with one entry (of a matrix, two) that is far too large or too small."""
    square = array.ndim == 2 and array.shape[0] == array.shape[1]
    places = {0, array.size - 1} | ({array.size // 2} if array.ndim == 1 else {1})
    for at in sorted(places):
        for value in (5e-324, 1e-160, 1e29, 1e155, 1.7e308, -1e155):
            changed = array.copy()
            changed.flat[at] = value
            if square:
                changed.T.flat[at] = value
            yield changed


def answers(model: mg.MixedGraphicalModel, rows: Any) -> Iterator[tuple[str, Any]]:
    """What a loaded model is asked, as numbers."""
    asks = {
        "predict": lambda: model.predict(rows),
        "predict_proba": lambda: np.concatenate(
            [np.ravel(each) for each in model.predict_proba(rows).values()]
        ),
        "score": lambda: model.score(rows),
        "edges": lambda: model.edges()[["norm"]],
        "marginal": lambda: model.marginal(list(rows)[:2]).frame(),
        "mean": lambda: list(model.fitted_.params.linear_terms / model.fitted_.params.precisions),
        "sample": lambda: model.sample(3, random_state=0),
        "log_density": lambda: model.log_density(rows),
        "summary": lambda: len(str(model.summary())),
    }
    for name, ask in asks.items():
        try:
            found = ask()
        except MixedGMError:  # such as no joint distribution
            continue
        if hasattr(found, "columns"):
            found = found if "probability" not in found else found[found["probability"] > 0]
            found = found.select_dtypes("number").to_numpy(float)
        yield name, found


ROWS = {
    "mixed": {"sex": ["F", "M"], "age": [0.5, 1], "größe ☃": [0.5, 2.0], "stage": [1, 2]},
    "scored": {"pain": ["no", "yes"], "stage": [1, 3], "visits": [0, 4], "age": [0.5, -1.0]},
    "hurdle": {"debt": [0.0, 251.0], "age": [0.5, -1.0]},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ROWS)
def test_absurd_numbers_are_refused_or_every_answer_is_finite(
    tmp_path: FilePath, kind: str
) -> None:
    """Files whose numbers have the right signs and symmetry, and are finite."""
    made = {"mixed": small_model, "scored": scored_model, "hurdle": hurdle_model}[kind]()
    file, rows = tmp_path / "model.mgm", pd.DataFrame(ROWS[kind])
    save(replace(made, path=None, scores={}), file)
    with zipfile.ZipFile(file) as archive:
        arrays = {
            name: np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name.endswith(".npy")
        }
    assert all(np.isfinite(found).all() for _, found in answers(mg.load(file), rows))
    n_refused, faults = 0, []
    for name, array in arrays.items():
        for changed in absurd(array) if array.dtype == np.float64 and array.size else ():
            damaged = rewritten(file, tmp_path / "x.mgm", {name: npy(changed)})
            try:
                model = mg.load(damaged)
            except ModelFileError:
                n_refused += 1
                continue
            faults += [
                (name, asked)
                for asked, found in answers(model, rows)
                if not np.isfinite(found).all()
            ]
    assert not faults
    assert n_refused > 30


def test_absurd_parameters_say_what_is_wrong(saved: FilePath, tmp_path: FilePath) -> None:
    changed = rewritten(saved, tmp_path / "x.mgm", {"diagonal.npy": npy(np.array([5e-324, 1.0]))})
    first, second = (column.name for column in mg.load(saved).schema_.continuous)
    said = f"a precision of 4.94066e-324 standard units at '{first}' is not one that"
    assert said in refusal(changed)
    with zipfile.ZipFile(saved) as archive:
        coef = np.load(io.BytesIO(archive.read("coef.npy")))
    coef[0, 1] = coef[1, 0] = 1e50
    changed = rewritten(saved, tmp_path / "x.mgm", {"coef.npy": npy(coef)})
    assert f"standard units at '{first}' - '{second}' is not one that" in refusal(changed)


@pytest.mark.parametrize("name", ["path_scale", "path_centre", "path_values", "path_node_terms"])
def test_absurd_numbers_of_a_path_are_refused(
    saved: FilePath, tmp_path: FilePath, name: str
) -> None:
    with zipfile.ZipFile(saved) as archive:
        array = np.load(io.BytesIO(archive.read(f"{name}.npy")))
    array.flat[0] = 1e155
    changed = rewritten(saved, tmp_path / "x.mgm", {f"{name}.npy": npy(array)})
    assert f"{name} holds 1 impossible number" in refusal(changed)
