"""A frame and a folder -> tables in parts: whole, odd, or failing while they are read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import dataset, parquet

Outcome = Literal["equal", "told", "refused", "family"]
"""The answer of the whole table; an error or a warning; an error; an answer or an error."""


@dataclass(frozen=True)
class Parts:
    """What is given as a table, made anew for every question, and what must become of it."""

    make: Callable[[], Any]
    outcome: Outcome
    word: str = ""
    """That an error or a warning must contain."""


Sort = Callable[[pd.DataFrame, Path, np.random.Generator], Parts]


class UserFunctionError(Exception):
    """Raised by what a user wrote."""


def cut(frame: pd.DataFrame, rng: np.random.Generator) -> list[pd.DataFrame]:
    """The rows in two to four parts, in their order."""
    ends = np.sort(rng.choice(np.arange(10, len(frame) - 10), int(rng.integers(1, 4)), False))
    both = zip([0, *ends], [*ends, len(frame)], strict=True)
    return [frame.iloc[a:b].reset_index(drop=True) for a, b in both]


def _written(parts: list[Any], folder: Path, name: str = "part") -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for at, part in enumerate(parts):
        table = part if isinstance(part, pa.Table) else _arrow(part)
        files.append(folder / f"{name}-{at}.parquet")
        parquet.write_table(table, files[-1], row_group_size=40)
    return files


def _arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def _given(files: list[Path], rng: np.random.Generator) -> Callable[[], Any]:
    """The files as a folder, a pattern, a list or a dataset."""
    folder = files[0].parent
    ways: tuple[Callable[[], Any], ...] = (
        lambda: folder,
        lambda: str(folder / "*.parquet"),
        lambda: list(files),
        lambda: [str(file) for file in files],
        lambda: dataset.dataset(folder, format="parquet"),
        lambda: pl.scan_parquet(folder / "*.parquet"),
    )
    return ways[int(rng.integers(len(ways)))]


def _is_scan(given: Callable[[], Any]) -> bool:
    try:
        return isinstance(given(), pl.LazyFrame)
    except pa.ArrowInvalid:  # a dataset reads the schema at once
        return False


def _of_files(
    change: Callable[[list[Any], np.random.Generator], list[Any]], outcome: Outcome
) -> Sort:
    """A sort of Parquet files: parts are changed before they are written."""

    def make(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
        files = _written(change(cut(frame, rng), rng), folder / "parts")
        return Parts(_given(files, rng), outcome)

    return make


# -- parts that are good, or odd -------------------------------------------------------------------


def _with_empty(parts: list[Any], rng: np.random.Generator) -> list[Any]:
    parts.insert(int(rng.integers(len(parts) + 1)), parts[0].iloc[:0])
    return parts


def _reordered(parts: list[Any], rng: np.random.Generator) -> list[Any]:
    parts[-1] = parts[-1][rng.permutation(parts[-1].columns)]
    return parts


def _dictionaries(parts: list[Any], rng: np.random.Generator) -> list[Any]:
    parts[-1] = parts[-1].assign(site=parts[-1]["site"].astype("category"))
    return parts


def _one_lacks(parts: list[Any], rng: np.random.Generator) -> list[Any]:
    at = int(rng.integers(len(parts)))
    parts[at] = parts[at].drop(columns=str(rng.choice(parts[at].columns)))
    return parts


def _one_has_more(parts: list[Any], rng: np.random.Generator) -> list[Any]:
    at = int(rng.integers(len(parts)))
    parts[at] = parts[at].assign(more=np.arange(len(parts[at])) * 0.7)
    return parts


def _other_type(parts: list[Any], rng: np.random.Generator) -> list[Any]:
    at, name = int(rng.integers(len(parts))), str(rng.choice(["height", "visits", "site"]))
    types: tuple[Callable[[Any], Any], ...] = (
        lambda s: s.astype(str),
        lambda s: s.astype("category"),
        lambda s: pd.to_datetime(np.arange(len(s))),
        lambda s: np.arange(len(s)) % 2 == 0,
        lambda s: [None] * len(s),
        lambda s: [[1, 2]] * len(s),
        lambda s: np.full(len(s), np.inf),
        lambda s: np.arange(len(s), dtype=np.int8),
    )
    parts[at] = parts[at].assign(**{name: types[int(rng.integers(len(types)))](parts[at][name])})
    return parts


def _all_gaps(parts: list[Any], rng: np.random.Generator) -> list[Any]:
    parts[-1] = parts[-1].assign(height=np.nan)
    return parts


def _column_twice(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    parts = [_arrow(part) for part in cut(frame, rng)]
    at = int(rng.integers(len(parts)))
    name = str(rng.choice(["height", "site"]))  # which no other message names
    parts[at] = parts[at].append_column(name, parts[at][name][::-1])
    files = _written(parts, folder / "parts")
    return Parts(lambda: list(files), "told", name)


def _file_twice(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    files = _written(cut(frame, rng), folder / "parts")
    again = files[int(rng.integers(len(files)))]
    ways = (again, again.parent / ".." / "parts" / again.name, str(again))
    twice = [*files, ways[int(rng.integers(3))]]
    return Parts(lambda: twice, "told", again.name)


def _hive(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    for site, part in frame.groupby("site"):
        _written([part.drop(columns="site")], folder / "parts" / f"site={site}")
    return Parts(lambda: folder / "parts", "family")


def _odd_hive(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    """The folders' column is in the files, too; or its values or its folders are odd."""
    top, kind = folder / "parts", int(rng.integers(6))
    values = {0: ("north", "south"), 1: ("", "b"), 2: ("__HIVE_DEFAULT_PARTITION__", "b")}.get(
        kind, ("a%20b", "1")
    )
    half = frame.iloc[: len(frame) // 2], frame.iloc[len(frame) // 2 :]
    for value, part in zip(values, half, strict=True):
        kept = part if kind in (0, 3) else part.drop(columns="site")
        _written([kept], top / f"site={value}")
    if kind == 4:
        _written([frame], top, "beside")
    if kind == 5:
        _written([frame], top / "other=1")
    return Parts(lambda: top, "family")


# -- parts that fail -------------------------------------------------------------------------------


def _damaged(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    files = _written(cut(frame, rng), folder / "parts")
    file = files[int(rng.integers(len(files)))]
    whole = file.read_bytes()
    kind = int(rng.integers(5))
    if kind == 0:
        file.write_bytes(whole[: int(rng.integers(len(whole) - 8))])
    elif kind == 1:
        file.write_bytes(b"")
    elif kind == 2:
        file.write_bytes(b"PAR1" + rng.bytes(500) + b"PAR1")
    elif kind == 3:
        file.write_text("height,site\n1,a\n")
    else:  # pages whose bytes are others: the format need not notice
        at = int(rng.integers(4, len(whole) // 2))
        file.write_bytes(whole[:at] + rng.bytes(20) + whole[at + 20 :])
        return Parts(_given(files, rng), "family")
    given = _given(files, rng)
    if _is_scan(given):  # polars does not name files, and skips empty ones
        return Parts(given, "refused" if file.stat().st_size else "family")
    return Parts(given, "refused", file.name)


def _gone(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    """Files that were there when the table was described."""
    kind = int(rng.integers(3))

    def make() -> Any:
        files = _written(cut(frame, np.random.default_rng(1)), folder / "parts")
        table: Any = (
            dataset.dataset(folder / "parts", format="parquet"),
            pl.scan_parquet(folder / "parts" / "*.parquet"),
            list(files),
        )[kind]
        files[-1].unlink()
        return table

    return Parts(make, "family" if kind == 1 else "refused")


def _no_files(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    empty, text, fake = folder / "empty", folder / "text", folder / "fake"
    empty.mkdir()
    text.mkdir()
    (text / "table.csv").write_text("a,b\n1,2\n")
    (fake / "part.parquet").mkdir(parents=True)
    things: tuple[Any, ...] = (
        empty,
        text,
        fake,
        str(empty / "*.parquet"),
        [str(folder / "none.parquet")],
        [folder / f"{'n' * 5000}.parquet"],
        str(folder / ("n" * 5000)),
        f"{folder}/{'n' * 5000}*.parquet",
        [str(folder / "bad\0name.parquet")],
        str(folder / "bad\0name"),
        str(folder / "[*.parquet"),
    )
    given = things[int(rng.integers(len(things)))]
    return Parts(lambda: given, "refused")


# -- lazy frames -----------------------------------------------------------------------------------


def _raising(batch: pl.DataFrame) -> pl.DataFrame:
    raise UserFunctionError("\x1b[31mthe user's own")


def _lazy(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    lazy = pl.from_pandas(frame).lazy()
    plain: tuple[Callable[[], Any], ...] = (
        lambda: lazy,
        lambda: lazy.with_row_index("row").drop("row"),
        lambda: lazy.filter(pl.col("height").is_not_null()),
        lambda: pl.concat([lazy.slice(0, 50), lazy.slice(50)]),
    )
    return Parts(plain[int(rng.integers(len(plain)))], "equal")


def _failing_lazy(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    lazy = pl.from_pandas(frame).lazy()
    schema = lazy.collect_schema()
    wrong: tuple[Callable[[], Any], ...] = (
        lambda: lazy.select(pl.col("nowhere"), "height"),
        lambda: lazy.with_columns(pl.col("site").cast(pl.Int64)),
        lambda: lazy.with_columns(pl.col("site").cast(pl.Enum(["north"]))),
        lambda: lazy.with_columns(pl.col("height") + pl.col("site")),
        lambda: lazy.map_batches(_raising, schema=schema),
        lambda: lazy.map_batches(lambda b: b.with_columns(height=pl.lit("x")), schema=schema),
        lambda: lazy.map_batches(lambda b: b.drop("height"), schema=schema),
        lambda: lazy.map_batches(lambda b: None, schema=schema),  # type: ignore[arg-type]
        lambda: lazy.with_columns(pl.col("height").map_elements(lambda x: 1 / 0, pl.Float64)),
        lambda: pl.scan_parquet(folder / "nowhere.parquet"),
        lambda: pl.scan_csv(folder / "nowhere.csv"),
        lambda: pl.concat([lazy, lazy.drop("site")]),
        lambda: pl.concat([lazy, lazy.with_columns(pl.col("height").cast(pl.String))]),
        lambda: lazy.filter(pl.col("height") > "a"),
        lambda: lazy.limit(0),
        lambda: lazy.select([]),
    )
    return Parts(wrong[int(rng.integers(len(wrong)))], "refused")


# -- datasets and Dask frames ----------------------------------------------------------------------


def _datasets(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    tables = [_arrow(part) for part in cut(frame, rng)]
    other = tables[0].set_column(0, "height", pa.array(["x"] * len(tables[0])))
    whole: Outcome = "equal"
    things: tuple[tuple[Callable[[], Any], Outcome], ...] = (
        (lambda: dataset.dataset(tables), whole),
        (lambda: dataset.dataset([dataset.dataset(t) for t in tables]), whole),
        (lambda: dataset.dataset(tables[0].slice(0, 0)), "refused"),
        (lambda: dataset.dataset(pa.table({})), "refused"),
        (lambda: dataset.dataset(tables).filter(dataset.field("height") > 1e9), "refused"),
        (lambda: _mixed_dataset(tables[0], other, folder), "family"),
        (lambda: dataset.dataset(tables[0].to_batches()), "family"),
    )
    make, outcome = things[int(rng.integers(len(things)))]
    return Parts(make, outcome)


def _mixed_dataset(first: pa.Table, other: pa.Table, folder: Path) -> Any:
    shutil.rmtree(folder / "mixed", ignore_errors=True)
    _written([first, other], folder / "mixed")
    return dataset.dataset(folder / "mixed", format="parquet")


def _dask(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    import dask.dataframe as dd
    from dask import delayed

    parts, kind = cut(frame, rng), int(rng.integers(7))

    def broken(part: pd.DataFrame) -> pd.DataFrame:
        raise UserFunctionError("a partition cannot be made")

    def own(part: pd.DataFrame) -> pd.DataFrame:
        return part

    def make() -> Any:
        meta = frame.iloc[:0]
        good = [delayed(own)(part) for part in parts]
        if kind == 0:
            return dd.from_pandas(frame, npartitions=3)
        if kind == 1:
            return dd.from_delayed([*good, delayed(own)(meta)], meta=meta, verify_meta=False)
        if kind == 2:
            return dd.from_delayed([*good, delayed(broken)(meta)], meta=meta, verify_meta=False)
        if kind == 3:  # what it says of its columns is not so
            return dd.from_delayed(good, meta=meta.drop(columns="site"), verify_meta=False)
        if kind == 4:
            lie = [delayed(own)(part.drop(columns="height")) for part in parts[1:]]
            return dd.from_delayed([good[0], *lie], meta=meta, verify_meta=False)
        if kind == 5:
            words = parts[0].assign(height="x")
            return dd.from_delayed([*good, delayed(own)(words)], meta=meta, verify_meta=False)
        return dd.from_delayed([*good, delayed(own)("no frame")], meta=meta, verify_meta=False)

    outcomes: tuple[Outcome, ...] = (
        "equal",
        "equal",
        "refused",
        "family",
        "refused",
        "family",
        "refused",
    )
    return Parts(make, outcomes[kind])


def _frames(frame: pd.DataFrame, folder: Path, rng: np.random.Generator) -> Parts:
    """Lists of what is no file: frames, tables, files of other formats, mixtures."""
    parts = cut(frame, rng)
    file = _written(parts, folder / "parts")[0]
    csv = folder / "part.csv"
    parts[0].to_csv(csv, index=False)
    things: tuple[Callable[[], Any], ...] = (
        lambda: parts,
        lambda: tuple(parts),
        lambda: [_arrow(part) for part in parts],
        lambda: [pl.from_pandas(part).lazy() for part in parts],
        lambda: [file, csv],
        lambda: [file, parts[0]],
        lambda: [file, None],
        lambda: {file},
        lambda: iter([file]),
        lambda: (part for part in parts),
        lambda: dict(enumerate(parts)),
        lambda: [],
    )
    return Parts(things[int(rng.integers(len(things)))], "family")


SORTS: dict[str, Sort] = {
    "files": _of_files(lambda parts, rng: parts, "equal"),
    "an empty part": _of_files(_with_empty, "equal"),
    "columns in another order": _of_files(_reordered, "equal"),
    "dictionaries": _of_files(_dictionaries, "family"),
    "a part lacks a column": _of_files(_one_lacks, "family"),
    "a part has one more": _of_files(_one_has_more, "family"),
    "other types": _of_files(_other_type, "family"),
    "a part of gaps": _of_files(_all_gaps, "family"),
    "a column twice": _column_twice,
    "a file twice": _file_twice,
    "hive": _hive,
    "odd hive": _odd_hive,
    "damaged": _damaged,
    "gone": _gone,
    "no files": _no_files,
    "lazy": _lazy,
    "failing lazy": _failing_lazy,
    "datasets": _datasets,
    "dask": _dask,
    "lists": _frames,
}
