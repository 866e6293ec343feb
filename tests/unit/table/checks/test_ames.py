"""A real table of houses: nearly determined columns, structural gaps, and advice about kinds."""

import pandas as pd
import pytest

from mixedgm.table.checks.check import check_table
from tests.support.shared import shared_data


@pytest.fixture(scope="module")
def findings():
    houses = pd.read_csv(shared_data("ames.csv.gz"))  # pandas takes "None" as missing
    return check_table(houses).findings


def the_one(findings, part):
    (found,) = [f for f in findings if part in str(f)]
    return found


def test_a_sum_and_a_code_with_exceptions_are_found(findings):
    living = the_one(findings, "as a total does from its parts")
    assert living.column == "Gr_Liv_Area"
    assert living.what.startswith("it follows from 'First_Flr_SF', 'Second_Flr_SF' (R^2 0.99")
    code = the_one(findings, "its levels determine the value of")
    assert (code.column, "'BsmtFin_SF_1'" in code.what) == ("BsmtFin_Type_1", True)
    assert not [f for f in findings if "follows from" in f.what and f is not living]


def test_gaps_where_there_is_nothing_are_found(findings):
    gaps = {f.column: f.what for f in findings if "no value there" in f.what}
    assert gaps["Mas_Vnr_Type"].startswith("missing in 1,768 of 1,771 rows with 'Mas_Vnr_Area' = 0")
    assert gaps["Misc_Feature"].startswith("missing in 2,824 of 2,827 rows with 'Misc_Val' = 0 and")


def test_square_feet_are_no_counts_and_rooms_are_ordinal(findings):
    assert not [f for f in findings if "look like" in f.what or "looks like" in f.what]
    hurdle = the_one(findings, "spike at zero").remedy
    assert all(
        f'"{name}": "hurdle"' in hurdle for name in ("Misc_Val", "Pool_Area", "Wood_Deck_SF")
    )
    assert '"TotRms_AbvGrd": "ordinal"' in the_one(findings, "few distinct values").remedy
