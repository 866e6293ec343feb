"""The schema: order of nodes, text, HTML and JSON."""

import json

import numpy as np
import pytest

from mixedgm.base.errors import ModelFileError, ParameterError
from mixedgm.table.schema import Column, Schema
from mixedgm.table.transform import Nonparanormal

SCHEMA = Schema(
    (
        Column("sex", "categorical", levels=("F", "M")),
        Column("age", "continuous", role="covariate"),
        Column("stage", "categorical", levels=(1, 2, 3), ordered=True),
        Column("wage", "continuous", transform=Nonparanormal((1.0, 2.0), (-1.0, 1.0))),
    )
)


def test_nodes_are_continuous_first():
    assert [column.name for column in SCHEMA.nodes] == ["age", "wage", "sex", "stage"]
    assert SCHEMA.names == ("sex", "age", "stage", "wage")
    assert (SCHEMA.n_gaussian, SCHEMA.n_discrete, SCHEMA.n_levels) == (2, 2, (2, 3))
    assert [SCHEMA.node_index(name) for name in SCHEMA.names] == [2, 0, 3, 1]


def test_prints_as_a_small_table():
    assert str(SCHEMA).splitlines() == [
        "column  kind         role       levels      note",
        "sex     categorical  target     2: F, M",
        "age     continuous   covariate",
        "stage   categorical  target     3: 1, 2, 3  ordered",
        "wage    continuous   target                 nonparanormal",
    ]


def test_many_levels_are_shortened():
    column = Column("region", "categorical", levels=tuple(f"region {k}" for k in range(30)))
    line = str(Schema((column,))).splitlines()[1]
    assert "30: region 0, region 1" in line
    assert line.endswith(", ...")
    assert len(line) < 100


def test_one_endless_level_is_cut():
    column = Column("text", "categorical", levels=("x" * 500, "y"))
    assert len(str(Schema((column,))).splitlines()[1]) < 100


def test_html_is_escaped():
    schema = Schema((Column("<b>a&b", "categorical", levels=("<script>", "x")),))
    html = schema._repr_html_()
    assert "&lt;b&gt;a&amp;b" in html
    assert "&lt;script&gt;" in html
    assert "<script>" not in html


def test_json_round_trip_keeps_level_types():
    schema = Schema(
        (
            *SCHEMA.columns,
            Column("flag", "categorical", levels=(False, True), dtype="pandas:bool"),
            Column("half", "categorical", levels=(0.5, 1.0)),
        )
    )
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    types = [type(level) for column in again.categorical for level in column.levels]
    assert types == [str, str, int, int, int, bool, bool, float, float]


def test_unknown_column_names_near_matches():
    with pytest.raises(ParameterError, match=r"no column 'stag'; did you mean 'stage'\?"):
        SCHEMA.node_index("stag")


def test_names_that_are_not_text_stand_for_their_text():
    schema = Schema(tuple(Column(str(name), "continuous") for name in (7, 3, (1, "a"))))
    assert [schema.node_index(name) for name in (7, np.int64(3), "3", (1, "a"))] == [0, 1, 1, 2]
    with pytest.raises(ParameterError, match=r"no column 33; did you mean '3'\?"):
        schema.node_index(33)
    for unknown in (None, ["7", "3"]):
        with pytest.raises(ParameterError, match="there is no column"):
            schema.node_index(unknown)


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({}, "columns"),
        ({"columns": [{"name": "a"}]}, "cannot be read"),
        ({"columns": 3}, "cannot be read"),
        ({"columns": [{**SCHEMA.columns[0].to_dict(), "kind": "odd"}]}, "odd"),
        ({"columns": [{**SCHEMA.columns[0].to_dict(), "levels": [[1]]}]}, "unknown type"),
        ({"columns": [{**SCHEMA.columns[1].to_dict(), "transform": {"name": "log"}}]}, "'log'"),
        (
            {"columns": [{**SCHEMA.columns[1].to_dict(), "transform": {"name": "nonparanormal"}}]},
            "transform",
        ),
    ],
)
def test_a_stored_schema_that_is_none(stored, message):
    with pytest.raises(ModelFileError, match=message):
        Schema.from_dict(stored)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Column("a", "number"),
            "must be 'continuous' or 'hurdle' or 'ordinal' or 'count' or 'categorical'. Got 'numb",
        ),
        (lambda: Column("a", "continuous", "y"), "must be 'target' or 'covariate'"),
        (lambda: Column("a", "continuous", levels=("x",)), "no levels"),
        (lambda: Column("a", "categorical", levels=("1", 1)), "two levels that read the same"),
        (
            lambda: Column(
                "a", "categorical", levels=("x",), transform=SCHEMA.columns[3].transform
            ),
            "no transform",
        ),
        (lambda: Schema((Column("a", "continuous"),) * 2), "unique column names"),
    ],
)
def test_impossible_columns_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
