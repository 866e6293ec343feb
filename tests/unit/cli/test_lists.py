"""Lists, names and values that are typed: quotes, commas, equals signs."""

from __future__ import annotations

import shlex

import pytest

import mixedgm as mg
from mixedgm.cli.console import in_options
from mixedgm.cli.lists import cut_items, list_item, listed
from mixedgm.cli.options import known_values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b", ["a", "b"]),
        (" a , b ,", ["a", "b"]),
        ('"a,b",c', ["a,b", "c"]),
        ('c, "a,b"', ["c", "a,b"]),
        ('" a "', [" a "]),
        ('"say ""hi"""', ['say "hi"']),
        ('5" pipe,b', ['5" pipe', "b"]),
        ("a=b,c:d", ["a=b", "c:d"]),
        ('a,"",b', ["a", "b"]),
        ('5"" pipe', ['5"" pipe']),
    ],
)
def test_lists_are_split_at_commas_outside_quotes(text: str, expected: list[str]) -> None:
    assert listed([text]) == expected


@pytest.mark.parametrize("name", ["a", "a,b", '"a', ' a"b ', 'a,"b"', "a=b", "x y", '5"'])
def test_a_quoted_name_is_read_back(name: str) -> None:
    assert listed([f"first,{list_item(name)},last"]) == ["first", name, "last"]
    assert in_options(f"leave column '{name}' out").startswith("--drop ")
    (_, word) = shlex.split(in_options(f"leave column '{name}' out"))
    assert listed([word]) == [name]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1,b=2", [("a", "1"), ("b", "2")]),
        ('city="Bath, UK"', [("city", "Bath, UK")]),
        ('"city=Bath, UK"', [("city", "Bath, UK")]),
        ('"a=b"=x=y', [("a=b", "x=y")]),
        ('"a=b"="x=y"', [("a=b", "x=y")]),
        ("known=k=x", [("known=k", "x")]),
        ('"known"=k=x', [("known", "k=x")]),
    ],
)
def test_values_are_cut_where_quotes_or_known_names_say(
    text: str, expected: list[tuple[str, str]]
) -> None:
    found = cut_items([text], "=", "--given takes NAME=VALUE.", before={"known=k"})
    assert found == expected


@pytest.mark.parametrize("text", ['"a', 'a="b', '"a""'])
def test_a_quote_that_does_not_close_is_an_error(text: str) -> None:
    with pytest.raises(mg.ParameterError, match="do not close"):
        cut_items([text], "=", "--given takes NAME=VALUE.")


def test_values_with_commas_and_equals_signs() -> None:
    levels = ("Bath, UK", "x=y")
    schema = mg.Schema(
        (
            mg.Column("city", "categorical", levels=levels),
            mg.Column("a=b", "categorical", levels=levels),
            mg.Column("age", "continuous"),
        )
    )
    texts = ['"city=Bath, UK",age = 4', "a=b=x=y"]
    assert known_values(texts, schema) == {"city": "Bath, UK", "age": 4.0, "a=b": "x=y"}
