"""What flags mean: every meaning has its case, and what it proposes is Python that a fit takes."""

import re
from itertools import product

import pytest

import mixedgm as mg
from mixedgm.studies.fit_check.result import MEANINGS, SHARE, ZEROS, advice, column_flag, pair_flag
from tests.support.patients import TYPES, patients

STATISTICS = ["skewness", "kurtosis", "residual sd", "residual mean", "dispersion", "bend"]
STATISTICS += [ZEROS, f"{SHARE} 1"]


@pytest.fixture(scope="module")
def columns():
    options = {"types": TYPES, "transforms": {"dose": "nonparanormal"}, "lam": 0.5}
    model = mg.MixedGraphicalModel(**options).fit(patients(100))
    return {column.name: column for column in model.schema_.columns}


def proposed(text):
    """Arguments that stand in the advice, as Python reads them."""
    found = re.findall(r"\b(transforms|types|require)=(\{[^}]*\}|\[[^\]]*\])", text)
    return {name: eval(value, {"mg": mg}) for name, value in found}  # noqa: S307


@pytest.mark.parametrize(
    ("name", "statistic", "size", "meaning"),
    [
        ("age", "skewness", -5.0, "skewed"),
        ("age", "kurtosis", 5.0, "heavy tails"),
        ("age", "kurtosis", -5.0, "light tails"),
        ("dose", "skewness", 5.0, "not normal"),
        ("age", "residual sd", 5.0, "moved"),
        ("debt", "kurtosis", 5.0, "amounts"),
        ("debt", ZEROS, 5.0, "moved"),
        ("visits", ZEROS, 5.0, "zeros"),
        ("visits", f"{SHARE} 3", 5.0, "counts"),
        ("grade", f"{SHARE} 3", 5.0, "levels"),
        ("visits", "residual sd", 5.0, "more spread"),
        ("pain", "residual sd", -5.0, "less spread"),
        ("ward", "dispersion", 5.0, "too sure"),
        ("ward", "dispersion", -5.0, "too unsure"),
        ("ward", "bend east", -5.0, "not additive"),
        ("ward", "east", -5.0, "moved"),
    ],
)
def test_meanings_of_columns(columns, name, statistic, size, meaning):
    flag = column_flag(columns[name], statistic, size)
    assert flag[:2] == (meaning, name)
    assert flag.advice == advice(meaning, [name])


@pytest.mark.parametrize(
    ("aspect", "ends", "about", "meaning"),
    [
        ("curve", ("age", "pain"), "pain", "curved scores"),
        ("curve", ("age", "pain"), "age", "curved"),
        ("curve", ("dose", "pain"), "dose", "curved scores"),
        # A number that has another spread at every level bends the odds of the levels.
        ("curve", ("age", "ward"), "age", "uneven spread"),
        ("curve", ("pain", "ward"), "pain", "curved scores"),
        ("uneven", ("age", "ward"), "age", "uneven spread"),
        ("uneven", ("dose", "ward"), "dose", "uneven variation"),
        ("uneven", ("age", "visits"), "visits", "uneven variation"),
    ],
)
def test_meanings_of_bent_and_uneven_pairs(columns, aspect, ends, about, meaning):
    pair = tuple(columns[name] for name in ends)
    flag = pair_flag(aspect, pair, (0.3, 0.3), columns[about], edge=True, refit=True)
    assert flag[:2] == (meaning, about)


@pytest.mark.parametrize(
    ("ends", "strengths", "edge", "refit", "meaning"),
    [
        (("age", "pain"), (0.3, 0.1), False, True, "missing edge"),
        (("age", "pain"), (0.3, 0.3), True, True, "not pairwise"),
        (("age", "pain"), (0.3, 0.1), False, False, "missing edge"),
        (("age", "pain"), (0.3, 0.1), True, False, "edge too weak"),
        (("age", "pain"), (-0.3, 0.3), True, False, "edge too weak"),
        (("age", "pain"), (0.1, 0.3), True, False, "edge too strong"),
        # Equal strength is a matter of cells, but one number for two ordered columns has none.
        (("age", "ward"), (0.30, 0.31), True, False, "other cells"),
        (("age", "pain"), (-0.31, -0.30), True, False, "edge too weak"),
    ],
)
def test_meanings_of_relations(columns, ends, strengths, edge, refit, meaning):
    pair = tuple(columns[name] for name in ends)
    flag = pair_flag("relation", pair, strengths, None, edge=edge, refit=refit)
    assert flag[:2] == (meaning, "")
    if meaning == "missing edge":
        assert proposed(flag.advice)["require"] == [ends]


def test_every_meaning_can_occur(columns):
    found = {
        column_flag(column, statistic, size).meaning
        for column, statistic, size in product(columns.values(), STATISTICS, (-5.0, 5.0))
    }
    for one, two in product(columns.values(), repeat=2):
        if one is two:
            continue
        for aspect, about in product(("curve", "uneven"), (one, two)):
            if about.node_kind.is_numeric:
                flag = pair_flag(aspect, (one, two), (0.3, 0.3), about, edge=True, refit=True)
                found.add(flag.meaning)
        for s, edge, refit in product((0.1, 0.31, 0.9), (True, False), (True, False)):
            flag = pair_flag("relation", (one, two), (s, 0.3), None, edge=edge, refit=refit)
            found.add(flag.meaning)
    assert found == MEANINGS.keys()


@pytest.mark.parametrize("meaning", MEANINGS)
@pytest.mark.parametrize("names", [["a"], ['say "ah"', "(b)", "two\nlines"], list("abcdefgh")])
def test_advice_is_two_sentences_with_arguments_that_python_reads(meaning, names):
    text = advice(meaning, names, [(names[0], "other")])
    said, _, to_do = text.partition(" To do: ")
    assert said.endswith(".")
    assert to_do.endswith(".")
    assert text.isprintable()
    given = proposed(text)
    for values in (given.get("transforms"), given.get("types")):
        assert values is None or [*values] == names[:5]
    if "require" in given:
        assert given["require"] == [(names[0], "other")]
