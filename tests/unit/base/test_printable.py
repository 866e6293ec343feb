"""Text of any origin: nothing hidden, nothing long, and what can be printed left alone."""

import json

import pytest

from mixedgm.base.errors import Finding, ParameterError, TableError, finding_lines, near_matches
from mixedgm.base.printable import (
    bounded,
    cut,
    json_text,
    literal,
    one_line,
    printable,
    quoted,
    width,
)
from tests.support.load import n_calls

HIDDEN = "\x1b\x00\x07\r\n\t\x7f\x9b\xa0\u200b\u202e\u2066\u2028\ufeff\ud800\udcff\U000e0041"


@pytest.mark.parametrize(
    "text", ["plain", "größer", "你好", "😀", "naïve – “x”", "שלום", "e\u0301"]
)
def test_what_can_be_printed_stays(text):
    assert one_line(text) == printable(text) == bounded(text) == cut(text, 20) == text
    assert quoted(text) == repr(text)
    assert json.loads(literal(text)) == text


@pytest.mark.parametrize("character", HIDDEN)
def test_what_cannot_be_printed_is_shown(character):
    text = f"a{character}b"
    assert one_line(text) == f"a{character!r}b".replace("'", "")
    assert one_line(text).isprintable()
    assert quoted(text).isprintable()
    assert json_text(text).isprintable()
    assert json.loads(json_text({"x": [text]}, indent=1)) == {"x": [text]}


def test_line_breaks_stay_in_longer_texts():
    assert printable("a\x1b\nb") == "a\\x1b\nb"


@pytest.mark.parametrize("text", ["abc" * 5000, "你好" * 5000, "e\u0301" * 5000, "x\x1b" * 5000])
def test_long_texts_keep_both_ends(text):
    for size in (8, 60, 500):
        short = cut(text, size)
        assert width(short) <= size
        assert len(short) <= 4 * size
        head, _, tail = short.partition("...")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert abs(width(head) - width(tail)) <= 2
    assert len(quoted(text)) <= 120
    assert n_calls(lambda: [cut(text, 500), quoted(text)]) < 10 * len(text)


def test_values_on_one_line():
    class Odd:
        def __repr__(self):
            return "two\nlines\x1b"

    assert quoted(Odd()) == r"two\nlines\x1b"
    assert quoted(10**100).startswith("1000")
    assert len(quoted(list(range(10**5)))) == 60


def test_errors_are_bounded_and_printable():
    name = "n\x1b[2J" * 100_000
    for error in (
        ParameterError(f"there is no column {name}; try again"),
        ParameterError.must_be("lam", "a number", name),
        TableError([Finding(name, f"it holds {name}", f"leave {name} out") for _ in range(300)]),
    ):
        assert len(str(error)) <= 4000
        assert str(error).replace("\n", "").isprintable()
    assert str(ParameterError(f"{name}. To fix: sleep")).endswith("To fix: sleep")


def test_findings_of_a_sort_are_told_once():
    constant = [
        Finding(f"c{k}", f"it is constant: {k / 7:g} in all 9 rows", "x") for k in range(300)
    ]
    other = [Finding("z", "it is constant", ""), Finding("y", "2 infinite values", "")]
    lines = finding_lines([*constant, *other])
    assert lines[:4] == [str(finding) for finding in constant[:4]]
    assert lines[4] == "... and 296 more columns like it: 'c4', 'c5', 'c6' and 293 more"
    assert lines[5:] == list(map(str, other))
    assert finding_lines(constant[:5]) == list(map(str, constant[:5]))  # "1 more" saves nothing
    severities = [Finding("a", "it is odd", "", "note"), Finding("b", "it is odd", "", "error")]
    assert len(finding_lines(severities, most=1)) == 2
    assert len(str(TableError([*constant, *other])).splitlines()) == 8


def test_hints_among_many_long_names_are_quick():
    names = [f"{'x' * 5000}{k}" for k in range(500)] + [f"column {k}" for k in range(5000)]
    assert near_matches("colum 77", names).startswith("did you mean 'column 77'")
    assert n_calls(lambda: near_matches("x" * 100_000, names)) < 100 * len(names)
