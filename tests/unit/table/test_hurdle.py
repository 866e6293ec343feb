"""Columns with a spike at zero: what a table says about them, and the way there and back."""

import numpy as np
import pandas as pd
import pytest

from mixedgm.base.errors import ParameterError, TableError
from mixedgm.table.checks.check import check_table
from mixedgm.table.decode import decode
from mixedgm.table.encode import apply, learn
from mixedgm.table.gaps import filled, read_gaps
from mixedgm.table.read import as_frame
from mixedgm.table.schema import Column, Schema

RNG = np.random.default_rng(0)
N = 200
DEBT = np.where(RNG.random(N) < 0.6, 0.0, RNG.normal(300.0, 50.0, N))
TABLE = pd.DataFrame({"age": RNG.normal(size=N), "debt": DEBT, "sex": RNG.integers(0, 2, N)})
HURDLE = {"debt": "hurdle"}


def errors(table, **options):
    return [str(f) for f in check_table(table, **options).findings if f.severity == "error"]


def test_it_is_proposed_and_never_chosen():
    checked = check_table(TABLE)
    assert {column.name: column.kind for column in checked.schema.columns}["debt"] == "continuous"
    (note,) = [f for f in checked.findings if "spike" in f.what]
    assert note.severity == "note"
    share = np.mean(DEBT == 0.0)
    assert str(note).startswith(f"column 'debt': has a spike at zero ({share:.0%} of the rows)")
    assert 'types={"debt": "hurdle"}' in note.remedy
    assert not [f for f in check_table(TABLE, types=HURDLE).findings if f.column == "debt"]
    rng = np.random.default_rng(1)
    counts = TABLE.assign(debt=rng.poisson(8.0, N) * (rng.random(N) < 0.7))
    assert not [f for f in check_table(counts).findings if "spike" in f.what]
    few = TABLE.assign(debt=np.where(np.arange(N) < 0.05 * N, 0.0, 300 + TABLE["age"]))
    assert not [f for f in check_table(few).findings if "spike" in f.what]


def test_skewed_amounts_have_a_note():
    amounts = np.where(DEBT == 0.0, 0.0, np.random.default_rng(1).lognormal(5.0, 1.0, N))
    (note,) = check_table(TABLE.assign(debt=amounts), types=HURDLE).findings
    assert (note.column, note.severity) == ("debt", "note")
    assert note.what.startswith("skewed where it is not zero")
    assert "np.log1p" in note.remedy
    for shifted in (amounts - 100.0 * (amounts != 0.0), -amounts):  # no logarithm of either
        (note,) = check_table(TABLE.assign(debt=shifted), types=HURDLE).findings
        assert note.remedy.startswith("use a function of it")
    logs = check_table(TABLE.assign(debt=np.log1p(amounts)), types=HURDLE)
    assert not logs.findings
    silent = {"types": HURDLE, "transforms": {"debt": None}}
    assert not check_table(TABLE.assign(debt=amounts), **silent).findings


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["a", "b"] * (N // 2), "types says hurdle, but it holds text"),
        (1.0 + np.arange(N), "types says hurdle, but none of its 200 values is zero"),
        (np.zeros(N), "it is constant: 0 in all 200 rows"),
        (np.arange(N) % 5, "its values besides zero are too few to vary: 1, 2, 3, 4"),
        (np.where(DEBT == 0.0, 0.0, np.inf), "infinite values"),
        (DEBT * 1e80, "too large for double precision"),
    ],
)
def test_columns_that_it_does_not_fit(values, says):
    (message,) = errors(TABLE.assign(debt=values), types=HURDLE)
    assert says in message
    assert "column 'debt'" in message
    assert "To fix" in message


def test_a_transform_is_refused_by_name_and_left_out_of_all():
    (message,) = errors(TABLE, types=HURDLE, transforms={"debt": "nonparanormal"})
    assert "transforms names it, but it is a hurdle column" in message
    design, _ = learn(TABLE, types=HURDLE, transforms="nonparanormal")
    by_name = {column.name: column for column in design.schema.columns}
    assert by_name["debt"].transform is None
    assert by_name["age"].transform is not None


def test_how_much_is_counted_from_the_mean_of_what_is_not_zero():
    weights = np.arange(N) % 4
    design, _ = learn(TABLE, types=HURDLE, sample_weight=weights)
    debt = design.schema.nodes[1]
    used = DEBT != 0.0
    assert debt.location == pytest.approx(np.average(DEBT[used], weights=weights[used]), rel=1e-12)
    repeated, _ = learn(TABLE.loc[np.repeat(np.arange(N), weights)], types=HURDLE)
    assert repeated.schema.nodes[1].location == pytest.approx(debt.location, rel=1e-12)
    gappy = TABLE.assign(age=TABLE["age"].where(np.arange(N) > 20))
    with pytest.warns(UserWarning, match="dropped"):
        dropped, _ = learn(gappy, types=HURDLE, missing="drop")
    assert dropped.schema.nodes[1].location == pytest.approx(DEBT[21:][used[21:]].mean())


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_there_and_back(library):
    design, _ = learn(TABLE, types=HURDLE)
    assert design.numbers[:, 1].tolist() == DEBT.tolist()
    assert design.codes[:, 0].tolist() == (DEBT != 0.0).tolist()
    assert Schema.from_dict(design.schema.to_dict()) == design.schema
    back = decode(design.schema, design.numbers, design.codes, library)
    column = back[:, 1] if library == "numpy" else back["debt"]
    assert np.asarray(column, dtype=float).tolist() == DEBT.tolist()
    again = apply(back, design.schema)
    assert again.numbers.tolist() == design.numbers.tolist()
    assert again.codes.tolist() == design.codes.tolist()


def test_whole_numbers_stay_whole():
    whole = TABLE.assign(debt=np.rint(DEBT).astype(np.int64))
    design, _ = learn(whole, types=HURDLE)
    pd.testing.assert_frame_equal(
        decode(design.schema, design.numbers, design.codes, "pandas"), whole
    )


def test_new_data():
    design, _ = learn(TABLE, types=HURDLE)
    assert apply(TABLE.assign(debt=-1e6), design.schema).numbers[0, 1] == -1e6
    for values, says in (
        ("none", "numbers are expected"),
        (np.inf, "infinite"),
        (1e80, "too large"),
    ):
        with pytest.raises(TableError, match=says):
            apply(TABLE.assign(debt=values), design.schema)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
@pytest.mark.parametrize("rows", [2, 4])
def test_gaps_are_filled(library, rows):
    design, _ = learn(TABLE, types=HURDLE)
    gappy = TABLE.iloc[:4].copy()
    gappy.loc[: rows - 1, "debt"] = np.nan
    X: object = gappy if library == "pandas" else gappy.to_numpy()
    if library == "polars":
        X = pytest.importorskip("polars").from_pandas(gappy)
    elif library == "pyarrow":
        X = pytest.importorskip("pyarrow").Table.from_pandas(gappy, preserve_index=False)
    frame = as_frame(X)
    gaps = read_gaps(frame, design.schema)
    assert gaps.missing.tolist() == [[False, row < rows, False] for row in range(4)]
    assert gaps.codes[:rows, 0].tolist() == [-1] * rows
    numbers, codes = design.numbers[:4].copy(), design.codes[:4].copy()
    numbers[:, 1], codes[:, 0] = [0.0, 250.0, 0.0, 260.0], [0, 1, 0, 1]
    done = filled(X, frame, gaps, numbers, codes)
    found = np.asarray(done[:, 1] if library == "numpy" else done["debt"], dtype=float)
    assert found[:rows].tolist() == [0.0, 250.0, 0.0, 260.0][:rows]
    assert found[rows:].tolist() == DEBT[rows:4].tolist()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"levels": (1, 2)}, "is a hurdle column, so it has no levels"),
        ({"largest": 4}, "no largest count"),
        ({"scores": (0.0, 1.0)}, "no scores"),
        ({"location": np.nan}, "not finite"),
    ],
)
def test_impossible_columns(options, says):
    with pytest.raises(ParameterError, match=says):
        Column("debt", "hurdle", **options)
    with pytest.raises(ParameterError, match="so it has no location"):
        Column("age", "continuous", location=3.0)


def test_a_schema_prints_and_says_what_its_values_are():
    schema = learn(TABLE, types=HURDLE)[0].schema
    assert "debt    hurdle" in str(schema)
    assert schema.nodes[1].value_names == ("zero", "not zero")
    assert "hurdle" in schema._repr_html_()
    assert [column.name for column in schema.discrete] == ["debt", "sex"]


@pytest.mark.parametrize("location", [0.0, -0.0, 250.0])
def test_a_location_is_stored_with_its_sign(location):
    again = Column.from_dict(Column("debt", "hurdle", location=location).to_dict())
    assert np.array(again.location).tobytes() == np.array(location).tobytes()
