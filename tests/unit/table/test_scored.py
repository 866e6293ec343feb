"""Ordinal and count columns of tables: how they are declared, offered, encoded and decoded."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

import mixedgm as mg
from mixedgm.base.errors import ParameterError, TableError
from mixedgm.families import CountKind
from mixedgm.table.checks.check import check_table
from mixedgm.table.checks.columns import movement_when_doubled
from mixedgm.table.checks.effort import effort
from mixedgm.table.decode import decode
from mixedgm.table.encode import apply, learn
from mixedgm.table.gaps import filled, read_gaps
from mixedgm.table.read import as_frame
from mixedgm.table.schema import Column, Schema

PAIN = ["none", "mild", "severe"]
N = 60


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.normal(50.0, 10.0, N),
            "pain": rng.choice(PAIN, N),
            "stage": rng.integers(1, 5, N),
            "visits": rng.poisson(3.0, N),
            "sex": rng.choice(["f", "m"], N),
        }
    )


TYPES: dict[str, Any] = {
    "pain": mg.Ordinal(levels=PAIN, scores=[0, 1, 4]),
    "stage": mg.Ordinal(thresholds="quadratic"),
    "visits": mg.Count(largest=40, zero_term=True),
}


# -- declarations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mg.Ordinal(scores=[0, 2, 1]), "1 comes after 2"),
        (lambda: mg.Ordinal(scores=[0, np.inf]), "scores must be finite"),
        (lambda: mg.Ordinal(scores=["a", "b"]), "scores must be numbers"),
        (lambda: mg.Ordinal(levels=["a", "b"], scores=[0, 1, 2]), "3 scores were given for 2"),
        (lambda: mg.Ordinal(levels=["a"]), "levels must be at least 2"),
        (lambda: mg.Ordinal(levels=["a", "b", "a"]), "two levels read 'a'"),
        (lambda: mg.Ordinal(levels="ab"), "levels must be a list"),
        (lambda: mg.Ordinal(thresholds="linear"), "'free' or 'quadratic'"),
        (lambda: mg.Count(largest=1), "from 2 to 100,000"),
        (lambda: mg.Count(largest=2, zero_term=True), "from 3 to 100,000"),
        (lambda: mg.Count(largest=9.5), "Got 9.5 instead"),
        (lambda: mg.Count(zero_term=1), "zero_term must be True or False"),
    ],
)
def test_declarations_that_cannot_be(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_declaration_tells_everything_at_once() -> None:
    with pytest.raises(ParameterError) as error:
        mg.Ordinal(levels=["a", "a"], scores=[1, 0], thresholds="none")
    assert all(part in str(error.value) for part in ("read 'a'", "after 1", "thresholds must"))


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        (["b", "a", "c"], "ordinal", 'levels=["a", "b", "c"])}, with the levels from'),
        (["b", "a", "c"], mg.Ordinal(levels=["a", "b"]), "levels that types does not have: 'c'"),
        ([1, 2, 4], mg.Ordinal(scores=[0, 1]), "gives it 2 scores, but it has 3 levels"),
        ([1, 2, 1], mg.Ordinal(thresholds="quadratic"), "cannot be estimated from the levels 1, 2"),
        ([0, 1, -2], "count", "20 values are negative: -2"),
        ([0, 1, 2.5], "count", "20 values are not whole: 2.5"),
        ([0, 1, np.inf], "count", "20 infinite values"),
        ([0, 1, 9], mg.Count(largest=5), "20 values are above the largest, 5, that types gives: 9"),
        ([0, 1, 600_000], "count", "too large: at most 100,000"),
        ([0, 1, 0], "count", "cannot be estimated from 0, 1 alone"),
        ([4, 1, 2], mg.Count(zero_term=True), "it has no zeros"),
        ([0, 1, 2], mg.Count(zero_term=True), "its other counts are 1, 2"),
        ([0, 1, 1], mg.Count(zero_term=True), 'from 0, 1 alone. To fix: types={"x": "categ'),
        (["0", "1", "x"], "count", "types says count, but it holds text"),
        ([0, 3, None], "count", "20 missing values"),
        ([3, 3, 3], "ordinal", "it is constant"),
        ([3, 3, 3], "count", "it is constant"),
        ([0, 1, 2], "counts", "or mg.Ordinal"),
    ],
)
def test_columns_that_cannot_be_what_types_says(column: Any, kind: Any, message: str) -> None:
    frame = pd.DataFrame({"x": column * 20, "y": np.arange(60.0) ** 1.5})
    checked = check_table(frame, types={"x": kind})
    errors = [str(each) for each in checked.findings if each.severity == "error"]
    assert len(errors) == 1
    assert message in errors[0]


def test_counts_may_be_as_large_as_the_largest_that_is_possible() -> None:
    frame = pd.DataFrame({"x": [0, 7, 99_000] * 20, "y": np.arange(60.0) ** 1.5})
    checked = check_table(frame, types={"x": "count"})
    assert [f for f in checked.findings if f.severity == "error"] == []
    assert checked.schema is not None
    assert checked.schema.columns[0].largest == 100_000


def test_transforms_are_for_continuous_columns() -> None:
    checked = check_table(table(), types=TYPES, transforms={"pain": "nonparanormal"})
    assert "transforms names it, but it is ordinal" in str(checked.findings[0])
    assert check_table(table(), types=TYPES, transforms="nonparanormal").findings == ()


# -- kinds -----------------------------------------------------------------------------------------


def ordered(library: str) -> Any:
    codes = np.arange(N) % 3
    if library == "pandas":
        return pd.DataFrame({"x": pd.Categorical.from_codes(codes, PAIN, ordered=True)})
    if library == "polars":
        return pl.DataFrame({"x": pl.Series([PAIN[k] for k in codes], dtype=pl.Enum(PAIN))})
    indices = pa.array(codes, pa.int8())
    return pa.table({"x": pa.DictionaryArray.from_arrays(indices, PAIN, ordered=True)})


@pytest.mark.parametrize(
    ("library", "types", "kind"),
    [
        ("pandas", None, "ordinal"),
        ("pandas", {"x": "categorical"}, "categorical"),
        ("pyarrow", None, "ordinal"),
        ("polars", None, "categorical"),
        ("polars", {"x": "ordinal"}, "ordinal"),
    ],
)
def test_ordered_categories(library: str, types: Any, kind: str) -> None:
    frame = ordered(library)
    design, _ = learn(frame, types=types)
    column = design.schema.columns[0]
    assert (column.kind, column.levels) == (kind, tuple(PAIN))
    back = decode(design.schema, design.numbers, design.codes, library)
    assert type(back) is type(frame)
    assert as_frame(back).columns[0].to_list() == [PAIN[k % 3] for k in range(N)]
    dtype = back["x"].type if library == "pyarrow" else back["x"].dtype
    assert dtype == (frame["x"].type if library == "pyarrow" else frame["x"].dtype)


def test_text_that_begins_with_numbers_has_an_order() -> None:
    ages = ["65 and more", "5-17", "18-64", "0-4"]
    column = check_table(pd.DataFrame({"age": ages * 9}), types={"age": "ordinal"}).schema.columns[
        0
    ]
    assert column.levels == ("0-4", "5-17", "18-64", "65 and more")


def test_a_schema_as_types_gives_everything() -> None:
    schema = check_table(table(), types=TYPES).schema
    again = check_table(table(1).iloc[:40], types=schema).schema
    assert again == schema
    assert [c.largest for c in schema.columns] == [None, None, None, 40, None]


@pytest.mark.parametrize(
    ("few", "types"),
    [([0, 1], mg.Count(largest=9)), ([1, 2], mg.Ordinal(thresholds="quadratic"))],
)
def test_a_part_of_a_table_may_lack_values(few: list[int], types: Any) -> None:
    whole = pd.DataFrame({"x": [*few * 20, 0, 3, 5] * 2, "y": np.arange(86.0) ** 1.1})
    schema = check_table(whole, types={"x": types}).schema
    part = whole[whole["x"].isin(few)]
    for rows in (part, part[part["x"] == few[0]]):
        checked = check_table(rows, types=schema)
        assert checked.schema == schema
        assert [finding.severity for finding in checked.findings] == ["warning"]


# -- the schema ------------------------------------------------------------------------------------


def test_the_schema_travels_and_prints() -> None:
    schema = check_table(table(), types=TYPES).schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert str(schema).splitlines()[2:5] == [
        "pain    ordinal      target  3: none (0) < mild (1) < severe (4)",
        "stage   ordinal      target  4: 1 < 2 < 3 < 4                     quadratic thresholds",
        "visits  count        target  0 to 40                              zero term",
    ]
    assert "none (0) &lt; mild (1)" in schema._repr_html_()
    assert [node.name for node in schema.nodes] == ["age", "pain", "stage", "visits", "sex"]
    plain = check_table(table(), types={"stage": "continuous", "visits": "continuous"}).schema
    assert not {"scores", "thresholds", "largest", "zero_term"} & set(plain.columns[0].to_dict())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "ordinal", "levels": ("a", "b"), "scores": (1.0, 0.0)}, "0 comes after 1"),
        ({"kind": "ordinal", "levels": ("a", "b"), "scores": (1.0,)}, "1 scores were given for 2"),
        ({"kind": "ordinal", "levels": ("a", "b"), "thresholds": "quadratic"}, "at least 3"),
        ({"kind": "ordinal", "levels": ("a", "b"), "largest": 5}, "no largest count"),
        ({"kind": "categorical", "levels": ("a", "b"), "scores": (0.0, 1.0)}, "no scores"),
        ({"kind": "continuous", "zero_term": True}, "no zero term"),
        ({"kind": "count"}, "largest must be from 2"),
        ({"kind": "count", "largest": 10**7}, "to 100,000"),
        ({"kind": "count", "largest": 9, "levels": ("a",)}, "it has no levels"),
    ],
)
def test_columns_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Column("x", **options)


# -- encoding and back -----------------------------------------------------------------------------


def test_codes_are_positions_of_levels_and_counts() -> None:
    frame = table()
    design, findings = learn(frame, types=TYPES)
    assert findings == ()
    assert design.numbers.shape == (N, 1)
    assert design.codes.dtype == np.uint8
    expected = np.column_stack(
        [[PAIN.index(v) for v in frame["pain"]], frame["stage"] - 1, frame["visits"]]
    )
    np.testing.assert_array_equal(design.codes[:, :3], expected)
    pd.testing.assert_frame_equal(
        decode(design.schema, design.numbers, design.codes, "pandas"), frame
    )
    other = decode(design.schema, design.numbers, design.codes, "polars")
    assert other["visits"].to_list() == frame["visits"].tolist()
    assert other["pain"].dtype == pl.Enum(PAIN)
    assert (
        learn(frame, types={**TYPES, "visits": mg.Count(largest=300)})[0].codes.dtype == np.uint16
    )


def test_new_rows_follow_the_rules_of_unseen_levels() -> None:
    design, _ = learn(table(), types=TYPES)
    new = table(3).iloc[:4].assign(pain=["none", "worst", None, "mild"], visits=[0.0, 41, 3, None])
    gaps = read_gaps(as_frame(new), design.schema, unseen="ignore")
    assert gaps.codes[:, 0].tolist() == [0, -2, -1, 1]
    assert gaps.codes[:, 2].tolist() == [0, -2, 3, -1]
    with pytest.raises(TableError) as error:
        read_gaps(as_frame(new), design.schema)
    assert "counts above the largest of the model, 40, in 1 row: 41" in str(error.value)
    assert 'unseen="ignore"' in str(error.value)
    for bad in (-1.0, 2.5):
        with pytest.raises(TableError, match="1 value is negative or not whole"):
            apply(table().iloc[:1].assign(visits=bad), design.schema)
    complete = filled(
        new, as_frame(new), gaps, gaps.numbers, np.where(gaps.codes == -1, 2, gaps.codes)
    )
    assert complete["pain"].tolist() == ["none", "worst", "severe", "mild"]
    assert complete["visits"].tolist() == [0, 41, 3, 2]


# -- findings --------------------------------------------------------------------------------------


def test_kinds_are_offered_with_the_line_that_sets_them() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "likert": rng.integers(1, 6, 400),
            "visits": rng.negative_binomial(2, 0.2, 400),
            "age": rng.integers(18, 90, 400),
            "income": rng.lognormal(10.0, 1.0, 400).round(-2),
            "rating": rng.integers(0, 21, 400),
        }
    )
    checked = check_table(frame)
    assert {column.kind for column in checked.schema.columns} == {"continuous"}
    lines = [str(finding) for finding in checked.findings]
    assert sum('types={"likert": "ordinal"}' in line for line in lines) == 1
    assert [line for line in lines if '"count"' in line] == [
        f"column 'visits': looks like a count (whole numbers up to {frame['visits'].max()}). "
        'To change it: types={"visits": "count"}'
    ]
    frame["falls"] = frame["visits"][::-1].to_numpy()
    assert check_table(frame).findings[-1].remedy == 'types={"visits": "count", "falls": "count"}'
    assert not [
        f for f in check_table(frame, types={"visits": "count"}).findings if f.column == "visits"
    ]


def test_columns_that_follow_from_scores_are_found() -> None:
    frame = table()
    frame["copy"] = frame["stage"] * 2.0
    frame["coarse"] = np.where(frame["stage"] < 3, "low", "high")
    frame["twice"] = frame["stage"]
    types = {**TYPES, "twice": "ordinal"}
    lines = [str(each) for each in check_table(frame, types=types).findings]
    assert len([line for line in lines if "'copy'" in line and "follow from" in line]) == 1
    assert len([line for line in lines if "'twice'" in line]) == 2  # with 'copy', and with 'stage'
    assert len([line for line in lines if "goes with one level of 'coarse'" in line]) == 1


def fitted_terms(shares: np.ndarray[Any, Any], n_values: int) -> np.ndarray[Any, Any]:
    """Maximum likelihood of a truncated count without neighbours, by a general optimiser."""
    counts = np.arange(n_values)
    features = np.column_stack([np.sqrt(counts), counts])
    base, wanted = -gammaln(counts + 1.0), shares @ features[: len(shares)]

    def loss(terms: Any) -> tuple[float, Any]:
        logits = base + features @ terms
        prob = np.exp(logits - logsumexp(logits))
        return logsumexp(logits) - wanted @ terms, prob @ features - wanted

    options = {"gtol": 1e-13, "ftol": 1e-16, "maxiter": 5000}
    best = minimize(loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-12})
    return minimize(loss, best.x, jac=True, method="L-BFGS-B", options=options).x


@pytest.mark.parametrize("largest", [9, 12, 16])
def test_how_far_a_larger_count_moves_the_terms(largest: int) -> None:
    shares = np.array([0.1, 0.2, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])
    wide = np.append(shares, np.zeros(largest + 1 - len(shares)))
    counts = np.sqrt(np.arange(len(shares)))
    spread = float(np.sqrt(shares @ (counts - shares @ counts) ** 2))
    moved = fitted_terms(shares, 2 * largest + 1) - fitted_terms(shares, largest + 1)
    quadratic = abs(moved[1]) * spread**2  # of the standardised square, up to its own spread
    estimate = movement_when_doubled(CountKind(), wide)
    assert 0.3 * quadratic < estimate < 5.0 * quadratic


def test_a_largest_count_that_is_near_is_a_finding() -> None:
    frame = table()
    near = int(frame["visits"].max()) + 1
    findings = check_table(frame, types={**TYPES, "visits": mg.Count(largest=near)}).findings
    assert [f.severity for f in findings] == ["warning"]
    assert f'types={{"visits": mg.Count(largest={2 * near})}}' in findings[0].remedy


def test_a_scored_column_costs_a_predictor_and_its_values() -> None:
    def seconds(kind: str, n: int) -> float:
        levels = tuple(map(str, range(n)))
        columns = [
            Column(f"x{k}", "count", largest=n - 1)
            if kind == "count"
            else Column(f"x{k}", kind, levels=levels)  # type: ignore[arg-type]
            for k in range(40)
        ]
        return effort(columns, 10_000, n_lams=10, speed=1.0).seconds

    assert seconds("ordinal", 8) < 0.5 * seconds("categorical", 8)
    assert seconds("count", 8) == seconds("ordinal", 8)
    assert seconds("count", 800) > 50 * seconds("count", 8)


COLUMNS = {
    "whole": lambda counts: pd.Series(counts),
    "bytes": lambda counts: pd.Series(counts.astype(np.uint8)),
    "decimals": lambda counts: pd.Series(np.where(counts == 2, np.nan, counts)),
    "nullable": lambda counts: pd.Series(np.where(counts == 2, np.nan, counts)).astype("Int64"),
    "objects": lambda counts: pd.Series([int(c) for c in counts], dtype=object),
    "categories": lambda counts: pd.Series(pd.Categorical(counts)),
    "text": lambda counts: pd.Series([None if c == 2 else f"{c} times" for c in counts]),
    "intervals": lambda counts: pd.Series(pd.cut(counts, [-1, 1, 3, 99])),
}


@pytest.mark.filterwarnings("ignore:.*rows dropped because of missing values")
@pytest.mark.parametrize(
    ("column", "library"),
    [
        (column, library)
        for column in COLUMNS
        for library in ("pandas", "polars", "pyarrow", "numpy")
        if column != "intervals" or library in ("pandas", "pyarrow")  # others have none
    ],
)
def test_every_type_of_every_library(column: str, library: str) -> None:
    """Encoded, decoded into all libraries and encoded again; gaps filled and read again."""
    rng = np.random.default_rng(7)
    frame: Any = pd.DataFrame(
        {"x0": COLUMNS[column](rng.poisson(3.0, N)), "x1": rng.normal(size=N)}
    )
    if library == "polars":
        frame = pl.from_pandas(frame)
    elif library == "pyarrow":
        frame = pa.Table.from_pandas(frame, preserve_index=False)
    elif library == "numpy":
        frame = frame.to_numpy(dtype=object)
    for kind in ["ordinal"] if column in ("text", "intervals") else ["ordinal", "count"]:
        design, _ = learn(frame, types={"x0": kind}, missing="drop")
        for like in ("pandas", "polars", "pyarrow", "numpy"):
            back = decode(design.schema, design.numbers, design.codes, like)
            np.testing.assert_array_equal(apply(back, design.schema).codes, design.codes)
        gaps = read_gaps(as_frame(frame), design.schema)
        codes = np.where(gaps.codes < 0, 1, gaps.codes)
        complete = filled(frame, as_frame(frame), gaps, gaps.numbers, codes)
        again = read_gaps(as_frame(complete), design.schema)
        np.testing.assert_array_equal(again.codes, codes)


def test_levels_without_rows_are_possible_where_thresholds_are_quadratic():
    pain = pd.Categorical(["none", "mild", "worst"] * 10, ["none", "mild", "strong", "worst"])
    table = pd.DataFrame({"pain": pain, "x": np.arange(30.0)})
    texts = {
        thresholds: str(mg.check_table(table, types={"pain": mg.Ordinal(thresholds=thresholds)}))
        for thresholds in ("free", "quadratic")
    }
    assert "without rows" in texts["free"]
    assert "without rows" not in texts["quadratic"]
