"""Reading: every sort of table, files, and things that are no table."""

import gzip
import os
import warnings

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from mixedgm.base.errors import TableError
from mixedgm.table import files
from mixedgm.table.encode import learn
from mixedgm.table.files import read_table
from mixedgm.table.read import Frame, as_frame

DATA = {"a": [1.5, 2.5, 3.5], "b": ["x", "y", "x"]}


@pytest.mark.parametrize(
    ("table", "library"),
    [
        (pd.DataFrame(DATA), "pandas"),
        (pl.DataFrame(DATA), "polars"),
        (pl.DataFrame(DATA).lazy(), "polars"),
        (pa.table(DATA), "pyarrow"),
        (pa.RecordBatch.from_pydict(DATA), "pyarrow"),
        (nw.from_native(pl.DataFrame(DATA)), "polars"),
        (as_frame(pa.table(DATA)), "pyarrow"),
    ],
    ids=["pandas", "polars", "lazy", "pyarrow", "batch", "narwhals", "frame"],
)
def test_frames(table, library):
    frame = as_frame(table)
    assert isinstance(frame, Frame)
    assert (frame.names, frame.shape, frame.library) == (("a", "b"), (3, 2), library)
    assert frame.named


with warnings.catch_warnings():
    warnings.simplefilter("ignore", PendingDeprecationWarning)
    MATRIX = np.matrix("1 2 3")


class NotAnArray:
    def __array__(self, dtype=None, copy=None):
        return np.eye(3)


@pytest.mark.parametrize(
    "table",
    [
        np.eye(3),
        [[1, "a", 0.5], [2, "b", 1.5]],
        np.eye(3, dtype=bool),
        NotAnArray(),
        MATRIX,
    ],
    ids=["float", "rows", "bool", "__array__", "matrix"],
)
def test_arrays_get_made_up_names(table):
    frame = as_frame(table)
    assert frame.names == ("x0", "x1", "x2")
    assert frame.library == "numpy"
    assert not frame.named


def test_masked_entries_are_missing():
    masked = np.ma.masked_array(np.eye(3), mask=np.eye(3, dtype=bool))
    assert np.isnan(as_frame(masked).columns[0][0])


def test_names_become_text():
    assert as_frame(pd.DataFrame(np.eye(2))).names == ("0", "1")


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (np.zeros(3), "Reshape your data"),
        (np.float64(3), "Reshape your data"),
        ([1, 2, 3], "Reshape your data"),
        (pd.Series([1, 2]), "Reshape your data with X.to_frame"),
        (pl.Series([1, 2]), "Reshape your data"),
        (np.zeros((2, 2, 2)), r"2-D array, got an array with shape \(2, 2, 2\)"),
        (sparse.csr_matrix(np.eye(3)), "Sparse data was passed"),
        (sparse.coo_array(np.eye(3)), "Sparse data was passed"),
        ([[1, 2], [1]], "different lengths: 1, 2"),
        ({"a": [1, 2]}, "dict is not one"),
        (None, "NoneType is not one"),
        (pd.DataFrame(DATA).groupby("b"), "DataFrameGroupBy is not one"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else type(value).__name__,
)
def test_things_that_are_no_table(thing, message):
    with pytest.raises(TableError, match=message):
        as_frame(thing)


def _write(folder, ending, table):
    path = folder / f"table{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pandas(table), path)
    else:
        table.to_csv(path, index=False, sep="\t" if ".tsv" in ending else ",")
    return path


@pytest.fixture
def installed(monkeypatch):
    """Call it with the frame libraries that can be found."""

    def only(*libraries):
        monkeypatch.setattr(files, "find_spec", lambda name: name in libraries or None)

    return only


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet"])
def test_files_read_the_same_with_every_library(tmp_path, installed, ending, library):
    installed(library, *(["pyarrow"] if ending == ".parquet" else []))
    table = pd.DataFrame(
        {"a": [1.5, np.nan, 3.5, 4.0], "b": ["None", "y", "y", "NA"], "c": range(4)}
    )
    read = read_table(_write(tmp_path, ending, table))
    assert type(read).__module__.startswith(library)
    frame = as_frame(read)
    assert frame.names == ("a", "b", "c")
    assert [column.null_count() for column in frame.columns[::2]] == [1, 0]
    # "None" is an answer, "NA" is a missing value (a Parquet file knows the difference itself)
    assert frame.columns[1].to_list()[:3] == ["None", "y", "y"]
    assert frame.columns[1].null_count() == (0 if ending == ".parquet" else 1)


def test_a_path_is_a_table(tmp_path):
    path = _write(tmp_path, ".csv", pd.DataFrame(DATA))
    assert as_frame(path).names == ("a", "b")
    assert learn(str(path), missing="drop")[0].codes.ravel().tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.csv", None, "there is no file .*gone.csv"),
        ("empty.csv", b"", "is empty"),
        ("blank.csv", b"\n\n", "no line of column names"),
        ("table.xlsx", b"x", "has to end in .csv"),
        ("noise.parquet", b"not a parquet file", "cannot be read"),
        ("noise.csv.gz", b"not gzip", "cannot be read"),
        ("twice.csv", b"a,b,a\n1,2,3\n", "column 'a': 2 columns have this name in 'twice.csv'"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TableError, match=message):
        read_table(path)


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "x.csv").mkdir()
    for folder in (tmp_path / "x.csv", tmp_path):  # whatever its name ends in
        with pytest.raises(TableError) as caught:
            as_frame(folder)
        assert str(caught.value).startswith(
            f"{str(folder)!r} is a folder. To fix: give the path of a file ending in .csv"
        )
        assert "a table file" not in str(caught.value)


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def only_library(request, installed):
    """One frame library at a time."""
    installed(request.param)


def refusal(path, content):
    path.write_bytes(content)
    with pytest.raises(TableError) as caught:
        read_table(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "separator", "shown", "remedy"),
    [
        ("t.csv", ";", "';', not by commas", "save it with commas, or read it yourself and pass"),
        ("t.csv", "|", "'|', not by commas", "save it with commas, or read it yourself and pass"),
        ("t.csv", "\t", "tabs, not by commas", "save it with commas, name it .tsv, or read it"),
        ("t.tsv", ",", "commas, not by tabs", "save it with tabs, name it .csv, or read it"),
    ],
)
def test_another_separator(tmp_path, name, separator, shown, remedy):
    rows = (("a", "b", "c"), ("1", "2", "x"), ("3", "1", "y"))
    text = "".join(separator.join(row) + "\n" for row in rows)
    message = refusal(tmp_path / name, text.encode())
    assert f"the file {str(tmp_path / name)!r} looks separated by {shown}" in message
    assert f"To fix: {remedy}" in message


def test_decimal_commas(tmp_path):
    message = refusal(tmp_path / "eu.csv", b"a;b;c\n1,5;2,5;x\n1,7;2,9;y\n3,7;1,1;x\n")
    assert "looks separated by ';'" in message


def test_one_column_is_a_table_file(tmp_path):
    (tmp_path / "one.csv").write_text("a b\n1\n2\n")
    assert as_frame(tmp_path / "one.csv").names == ("a b",)


@pytest.mark.usefixtures("only_library")
@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a,b\nr1,2,3\nr2,3,4\n", 2),  # row names without a name
        (b"a,b\n1,2,\n3,4,\n", 2),
        (b"a,b\n\n1,2,3\n", 3),
        (b"a,b\n1,2\n3,4\n5,6,7\n", 4),
    ],
)
def test_more_fields_than_names(tmp_path, content, line):
    path = tmp_path / "long.csv"
    assert refusal(path, content) == (
        f"line {line} of the file {str(path)!r} has 3 fields, but there are 2 column names. "
        "To fix: name every column, and put text that holds the separator in quotes"
    )


@pytest.mark.usefixtures("only_library")
@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("ä,b\n1,2\n3,4\n".encode("latin-1"), r"not UTF-8 text: in line 1, b'\xe4,b\n'"),
        (
            ("a,b\n1,x\n2,y\n" * 9000 + "3,é\n").encode("latin-1"),
            r"not UTF-8 text: in line 27,001, b'3,\xe9\n'",
        ),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16 text, not UTF-8"),
    ],
)
def test_other_encodings(tmp_path, content, what):
    path = tmp_path / "latin.csv"
    assert refusal(path, content) == f"the file {str(path)!r} is {what}. To fix: save it as UTF-8"


def test_quotes_that_are_never_closed(tmp_path):
    path = tmp_path / "t.csv"
    assert refusal(path, b'a,b\n1,"x\ny"\n2,"z\n3,w\n') == (
        f"the quotes that open in line 4 of the file {str(path)!r} are never closed. "
        "To fix: close them, or write a quote inside text twice"
    )


@pytest.mark.usefixtures("only_library")
def test_fields_of_any_length(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1," + b"x" * 1_000_000 + b"\n2,y\n")
    assert [len(value) for value in as_frame(path).columns[1].to_list()] == [1_000_000, 1]


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("1,2,3", True),
        ("5.1,3.5,setosa", True),
        ("id,2001,2002", False),
        ("a,b,c", False),
        ("nan,inf,a", False),
    ],
)
def test_a_first_line_that_reads_like_data_is_mentioned(tmp_path, header, told):
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n1,2,x\n3,4,y\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert as_frame(path).names == tuple(header.split(","))
    assert [str(warning.message) for warning in caught] == told * [
        f"the first line of {str(path)!r} was taken as column names, but reads like data: "
        f"{', '.join(map(repr, header.split(',')))}. To change it: add a line of column names at "
        "the top, if there is none"
    ]


@pytest.mark.parametrize("sort", ["pipe", "loop", "long", "zero"])
def test_paths_that_are_no_files(tmp_path, sort):
    path = tmp_path / {"long": "x" * 300, "zero": "a\0"}.get(sort, "t")
    path = path.with_name(f"{path.name}.csv")
    if sort == "pipe":
        os.mkfifo(path)
    if sort == "loop":
        path.symlink_to(path.name)
    told = {"pipe": "is not a regular file", "loop": "cannot be read: Too many levels"}
    with pytest.raises(TableError, match=told.get(sort, "cannot be read: ")):
        read_table(path)


def test_byte_order_mark_and_gzip(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress("\ufeffa,b\n1,x\n".encode()))
    assert as_frame(path).names == ("a", "b")


def test_without_any_frame_library_the_extra_is_named(tmp_path, installed):
    path = _write(tmp_path, ".csv", pd.DataFrame(DATA))
    installed()
    with pytest.raises(TableError, match=r'pip install "mixedgm\[frames\]"'):
        read_table(path)
