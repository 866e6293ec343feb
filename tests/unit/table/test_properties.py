"""Generated tables: every library gives the same Design, and nothing is lost on the way back."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from mixedgm.base.errors import TableError
from mixedgm.table.checks.check import check_table
from mixedgm.table.decode import decode
from mixedgm.table.encode import apply, learn
from mixedgm.table.schema import Schema

names = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
    unique=True,
)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
numbers = st.floats(-1e9, 1e9).map(lambda value: round(value, 3))


def columns(n_rows):
    """Columns of n_rows values of one type, with at least two distinct values."""
    sorts = [
        st.lists(numbers, min_size=n_rows, max_size=n_rows),
        st.lists(st.integers(-100, 100), min_size=n_rows, max_size=n_rows),
        st.lists(st.booleans(), min_size=n_rows, max_size=n_rows),
        st.lists(texts, min_size=n_rows, max_size=n_rows),
        st.lists(st.sampled_from(["low", "mid", "high"]), min_size=n_rows, max_size=n_rows),
    ]
    return st.one_of(sorts).filter(lambda column: len(set(column)) > 1)


@st.composite
def tables(draw):
    """A table as a dictionary of lists."""
    n_rows = draw(st.integers(2, 12))
    return {name: draw(columns(n_rows)) for name in draw(names)}


def kinds_of(table):
    """Text of any sort as a category, however many levels it has."""
    return ["categorical" if isinstance(each[0], str) else None for each in table.values()]


def quietly(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **options)


def attempt(frame, **options):
    """Return the Design or None, and the text of the error."""
    try:
        return quietly(learn, frame, **options)[0], ""
    except TableError as error:
        return None, str(error)


def frames_of(table):
    categories = {
        name: pl.Enum(sorted(set(values)))
        for name, values in table.items()
        if isinstance(values[0], str)
    }
    objects = dict.fromkeys(categories, object)
    return [
        pd.DataFrame(table),
        pd.DataFrame(table).astype(objects),
        pd.DataFrame(table).convert_dtypes(),
        pd.DataFrame(table).astype(dict.fromkeys(categories, "category")),
        pl.DataFrame(table),
        pl.DataFrame(table, schema_overrides=categories),
        pl.DataFrame(table, schema_overrides=dict.fromkeys(categories, pl.Categorical)),
        pa.table(table),
        pa.table(
            {
                name: pa.array(sorted(set(values))).dictionary_encode().take(
                    [sorted(set(values)).index(value) for value in values]
                )
                if name in categories
                else values
                for name, values in table.items()
            }
        ),
        [list(row) for row in zip(*table.values(), strict=True)],
    ]  # fmt: skip


modest = settings(max_examples=30)


@modest
@given(tables())
def test_every_library_gives_the_same_design(table):
    first, *others = [quietly(learn, frame, types=kinds_of(table))[0] for frame in frames_of(table)]
    for other in others:
        assert [(c.kind, c.levels) for c in other.schema.columns] == [
            (c.kind, c.levels) for c in first.schema.columns
        ]
        np.testing.assert_array_equal(other.numbers, first.numbers)
        np.testing.assert_array_equal(other.codes, first.codes)


@modest
@given(tables())
def test_codes_and_numbers_are_the_table(table):
    design, _ = quietly(learn, pl.DataFrame(table), types=kinds_of(table))
    for at, column in enumerate(design.schema.continuous):
        assert design.numbers[:, at].tolist() == [float(value) for value in table[column.name]]
    for at, column in enumerate(design.schema.categorical):
        assert [column.levels[code] for code in design.codes[:, at]] == table[column.name]
        assert list(column.levels) == sorted(set(table[column.name]))


@modest
@given(tables())
def test_decoding_gives_the_table_back(table):
    for frame in frames_of(table)[:-1]:
        library = type(frame).__module__.partition(".")[0]
        design, _ = quietly(learn, frame, types=kinds_of(table))
        again = decode(design.schema, design.numbers, design.codes, library)
        if library == "pandas":
            assert_frame_equal(again, frame, check_column_type=False)
        else:
            assert again.equals(frame)


@modest
@given(tables())
def test_the_schema_survives_json(table):
    checked = check_table(pl.DataFrame(table), transforms="nonparanormal")
    assume(checked.schema.columns)
    design, _ = quietly(learn, pl.DataFrame(table), transforms="nonparanormal")
    for schema in (checked.schema, design.schema):
        assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    stored = Schema.from_dict(json.loads(json.dumps(design.schema.to_dict())))
    np.testing.assert_array_equal(apply(pl.DataFrame(table), stored).numbers, design.numbers)


@modest
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_new_columns_does_not_matter(table, random):
    design, _ = quietly(learn, pl.DataFrame(table), types=kinds_of(table))
    shuffled = list(table)
    random.shuffle(shuffled)
    again = apply(pd.DataFrame(table)[shuffled], design.schema)
    np.testing.assert_array_equal(again.numbers, design.numbers)
    np.testing.assert_array_equal(again.codes, design.codes)


@modest
@given(tables(), st.data())
def test_missing_values_are_counted_and_dropped(table, data):
    holes = {
        name: data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
        for name, values in table.items()
    }
    gapped = {
        name: [None if hole else value for value, hole in zip(values, holes[name], strict=True)]
        for name, values in table.items()
    }
    complete = ~np.any(list(holes.values()), axis=0)
    assume(not complete.all())
    design, reasons = attempt(
        pl.DataFrame(gapped, strict=False), missing="drop", types=kinds_of(table)
    )
    if design is None:
        assert "constant" in reasons or "missing" in reasons
        return
    checked = check_table(pl.DataFrame(gapped), types=kinds_of(table))
    assert design.kept.tolist() == np.flatnonzero(complete).tolist()
    (error,) = [f for f in checked.findings if f.severity == "error"]
    assert all(str(sum(hole)) in error.what for hole in holes.values() if any(hole))


@modest
@given(tables(), st.data())
def test_weight_zero_is_the_row_absent(table, data):
    n_rows = len(next(iter(table.values())))
    present = data.draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))
    frame = pd.DataFrame(table).convert_dtypes()
    without, reasons = attempt(frame[present], types=kinds_of(table))
    if without is None:
        assert "constant" in reasons or "a minimum of" in reasons
        return
    weights = np.array(present, dtype=float)
    weighted, _ = quietly(learn, frame, sample_weight=weights, types=kinds_of(table))
    np.testing.assert_array_equal(weighted.numbers, without.numbers)
    assert weighted.total_weight == without.total_weight
    kinds = [column.kind for column in weighted.schema.columns]
    assert kinds == [column.kind for column in without.schema.columns]
