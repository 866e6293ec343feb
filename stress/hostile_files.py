"""A random generator and a folder -> table and model files, good, odd, damaged or not there."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from mixedgm import MixedGraphicalModel
from tests.support.command_line import survey, write_csv

ROWS = 60
GOOD = ("good", "gaps", "bom", "gzip", "parquet", "crlf", "hostile names")
"""Tables that have the columns of the good model, or of that with hostile names."""

HOSTILE = {
    "height": "he\x1b[31might",
    "weight": "\u202eweight\u200b",
    "group": "=1+2$a$<b>&\"'",
    "mood": "two\nlines\r" + "x" * 5000,
    "luck": "\x00luck\x9b 你好 é 😀",
}
"""Names that could do harm on a terminal, in a spreadsheet, in XML or in a picture."""


def table_columns(hostile: bool = False) -> dict[str, list[object]]:
    columns = {name: list(values) for name, values in survey(ROWS).items()}
    if not hostile:
        return columns
    columns["group"] = [{"a": "@a\x1b]0;x\x07", "b": "b\u2066"}[str(v)] for v in columns["group"]]
    return {HOSTILE[name]: values for name, values in columns.items()}


@cache
def _csv(hostile: bool = False) -> bytes:
    import csv
    import io

    columns, file = table_columns(hostile), io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue().encode("utf-8", "replace")


@cache
def model_bytes(sort: str) -> bytes:
    """A model file of a small fit; made once in a process."""
    import tempfile
    import warnings

    import pandas as pd

    options = {
        "good": {},
        "one lam": {"lam": 0.3},
        "moderated": {"moderators": ["luck"], "lam": 0.1},
        "nodewise": {"loss": "nodewise", "lam": 0.2},
        "covariates": {"covariates": ["luck"]},
        "hostile names": {},
    }[sort]
    frame = pd.DataFrame(table_columns(sort == "hostile names"))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(folder) / "m.mgm"
        MixedGraphicalModel(n_jobs=1, **options).fit(frame).save(file)
        return file.read_bytes()


MODELS = ("good", "one lam", "moderated", "nodewise", "covariates", "hostile names")


def make_model(rng: Random, file: Path) -> str:
    """Write a model file, mostly a good one; return its sort."""
    if rng.random() < 0.85:
        sort = rng.choice(MODELS)
        file.write_bytes(model_bytes(sort))
        return sort
    whole = bytearray(model_bytes("good"))
    at = rng.randrange(len(whole))
    flipped = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
    damage: dict[str, Callable[[], object]] = {
        "missing": lambda: None,
        "empty": lambda: file.write_bytes(b""),
        "text": lambda: file.write_bytes(_csv()),
        "random": lambda: file.write_bytes(rng.randbytes(3000)),
        "cut": lambda: file.write_bytes(whole[:at]),
        "flipped": lambda: file.write_bytes(flipped),
        "folder": file.mkdir,
        "link to nothing": lambda: file.symlink_to("nowhere"),
    }
    sort = rng.choice(list(damage))
    damage[sort]()
    return f"damaged: {sort}"


def make_table(rng: Random, folder: Path, model: str = "") -> tuple[str, Path]:
    """Write a table, mostly one that suits the model; return its sort and its path."""
    suits = [s for s in GOOD if not model or (s == "hostile names") == (model == "hostile names")]
    sort = rng.choice(suits if rng.random() < 0.7 else list(_TABLES))
    if sort == "parquet":
        import pandas as pd

        file = folder / "t.parquet"
        pd.DataFrame(table_columns()).to_parquet(file)
        return sort, file
    content = _TABLES[sort](rng)
    ending = {"gzip": ".csv.gz", "broken gzip": ".csv.gz", "no parquet": ".parquet"}
    ending |= {"broken parquet": ".parquet", "other ending": ".xlsx", "tabs": ".tsv"}
    file = folder / f"t{ending.get(sort, '.csv')}"
    if sort == "folder":
        file.mkdir()
    elif sort == "pipe":
        os.mkfifo(file)
    elif sort == "link to itself":
        file.symlink_to(file.name)
    elif sort == "unreadable":
        file.write_bytes(_csv())
        file.chmod(0)
    elif sort == "long name":
        file = folder / f"{'n' * 5000}.csv"
    elif content is not None:
        file.write_bytes(content)
    return sort, file


def _gaps(rng: Random) -> bytes:
    columns = table_columns()
    for values in columns.values():
        for _ in range(3):
            values[rng.randrange(ROWS)] = rng.choice(["", "NA", "null"])
    return _written(columns)


def _written(columns: dict[str, list[object]]) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return write_csv(Path(folder) / "t.csv", columns).read_bytes()


def _with_column(values: Callable[[int], object]) -> bytes:
    return _written({**table_columns(), "odd": [values(k) for k in range(ROWS)]})


def _wide(rng: Random) -> bytes:
    names = [f"c{k}" for k in range(200)]
    lines = [names, *([f"{rng.random():.3f}" for _ in names] for _ in range(3))]
    return "\n".join(map(",".join, lines)).encode()


_TABLES: dict[str, Callable[[Random], bytes | None]] = {
    "good": lambda _: _csv(),
    "gaps": _gaps,
    "bom": lambda _: b"\xef\xbb\xbf" + _csv(),
    "gzip": lambda _: gzip.compress(_csv()),
    "crlf": lambda _: _csv().replace(b"\n", b"\r\n"),
    "hostile names": lambda _: _csv(hostile=True),
    "missing": lambda _: None,
    "empty": lambda _: b"",
    "blank lines": lambda _: b"\n\n\n",
    "only a header": lambda _: b"a,b,c\n",
    "one row": lambda _: b"a,b,c\n1,2,x\n",
    "one column": lambda _: b"a\n1\n2\n3\n4\n",
    "random bytes": lambda rng: rng.randbytes(5000),
    "zeros": lambda _: b"\0" * 3000,
    "long lines": lambda _: _csv() + b"1,2,3,4,5,6,7\n",
    "short lines": lambda _: _csv() + b"1,2\n3\n",
    "latin-1": lambda _: "größe,b\n1,ä\n2,é\n".encode("latin-1"),
    "utf-16": lambda _: _csv().decode().encode("utf-16"),
    "utf-16 without mark": lambda _: _csv().decode().encode("utf-16-le"),
    "same names": lambda _: b"a,a,b\n1,2,3\n4,5,6\n7,8,1\n",
    "no names": lambda _: b"".join(b"%d.5,%d,%d\n" % (k, k % 7, k % 3) for k in range(40)),
    "a million letters": lambda _: b"a,b\n1,x\n2," + b"y" * 1_000_000 + b"\n3,x\n4,x\n",
    "a million letters in a name": lambda _: b"a," + b"n" * 1_000_000 + b"\n1,2\n2,1\n3,5\n",
    "a million letters, no comma": lambda _: b"z" * 1_000_000,
    "wide": _wide,
    "zero byte": lambda _: b"a,b\n1,x\0y\n2,z\n3,z\n4,x\0y\n",
    "open quote": lambda _: _csv() + b'"never closed,1,2\n',
    "semicolons": lambda _: _csv().replace(b",", b";"),
    "tabs": lambda _: _csv(),
    "broken gzip": lambda _: gzip.compress(_csv())[:-20],
    "gzip without ending": lambda _: gzip.compress(_csv()),
    "no parquet": lambda _: _csv(),
    "broken parquet": lambda _: b"PAR1" + _csv(),
    "other ending": lambda _: _csv(),
    "folder": lambda _: None,
    "pipe": lambda _: None,
    "link to itself": lambda _: None,
    "unreadable": lambda _: None,
    "long name": lambda _: None,
    "stray word": lambda _: _with_column(lambda k: "n.a." if k == 7 else k * 0.37),
    "identifiers": lambda _: _with_column(lambda k: f"id-{k}\x1b[2J"),
    "constant": lambda _: _with_column(lambda k: "same"),
    "huge numbers": lambda _: _with_column(lambda k: (k + 1) * 1e300),
    "infinite": lambda _: _with_column(lambda k: "inf" if k == 3 else k),
    "dates": lambda _: _with_column(lambda k: f"2020-01-{k % 28 + 1:02d}"),
    "copy": lambda _: _with_column(lambda k: table_columns()["height"][k]),
}


def tidy(folder: Path) -> None:
    """Make everything in the folder deletable again."""
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):
            file.chmod(0o700)
