"""The text of an option -> the names in it, or names with what belongs to them, by one rule."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import quoted

LIST_RULE = (
    "Lists are separated by commas, and options with lists may be given several times. Double "
    "quotes keep a comma, an equals sign or a colon in a name or a value; a shell needs single "
    """quotes around them: --drop '"height, cm",id' --given 'city="Bath, UK"'."""
)


class _Item(NamedTuple):
    """One item of a list, with what stood in quotes."""

    letters: str
    kept: tuple[bool, ...]

    def part(self, start: int = 0, stop: int | None = None) -> str:
        """Return the letters without the blanks around them that are not in quotes."""
        stop = len(self.letters) if stop is None else stop
        inner = [at for at in range(start, stop) if self.kept[at] or not self.letters[at].isspace()]
        return self.letters[inner[0] : inner[-1] + 1] if inner else ""

    def cuts(self, separator: str) -> list[int]:
        """Return where the item can be cut: beside quotes, else outside, else anywhere."""
        every = [at for at, letter in enumerate(self.letters) if letter == separator]
        outside = [at for at in every if not self.kept[at]]
        return [at for at in outside if any(self.kept[max(at - 1, 0) : at + 2])] or outside or every

    def cut(
        self,
        separator: str,
        wanted: str,
        *,
        before: Collection[str] = (),
        after: Collection[str] = (),
        last: bool = False,
    ) -> tuple[str, str]:
        """Return what is before and after the separator, of several the one that makes sense."""
        pairs = [(self.part(0, at), self.part(at + 1)) for at in self.cuts(separator)]
        pairs = [pair for pair in pairs if all(pair)]
        known = [
            (name, value)
            for name, value in pairs
            if (not before or name in before) and (not after or value in after)
        ]
        if not pairs:
            raise ParameterError(f"{wanted} Got {quoted(self.part())} instead.")
        return (known or pairs)[-1 if last else 0]


def listed(texts: Sequence[str] | str | None) -> list[str]:
    """Split at commas; quotes keep a comma that belongs to a name.

    Examples
    --------
    >>> listed(["age, sex", '"height, cm"'])
    ['age', 'sex', 'height, cm']
    """
    return [item.part() for item in _items(texts, "")]


def cut_items(
    texts: Sequence[str] | str | None,
    separator: str,
    wanted: str,
    *,
    before: Collection[str] = (),
    after: Collection[str] = (),
    last: bool = False,
) -> list[tuple[str, str]]:
    """Split at commas, and every item in two at the separator.

    Where an item has several, quotes tell which one is meant; without them it is the one with a
    known name `before` it and `after` it (where these are given), else the first one, or the `last`
    one. `wanted` is the option and its form, for the error: "--given takes NAME=VALUE,...".

    Examples
    --------
    >>> cut_items(['age=40,"a=b"=x,city="Bath, UK"'], "=", "--given takes NAME=VALUE.")
    [('age', '40'), ('a=b', 'x'), ('city', 'Bath, UK')]
    >>> cut_items(["a=b=x"], "=", "--given takes NAME=VALUE.", before=["a=b"])
    [('a=b', 'x')]
    """
    return [
        item.cut(separator, wanted, before=before, after=after, last=last)
        for item in _items(texts, separator)
    ]


def cut_list(text: str, wanted: str, known: Collection[str]) -> tuple[str, list[str]]:
    """Split NAME=A,B,... into the name and the list; the cut is before a known name.

    Examples
    --------
    >>> cut_list('health="height, cm",weight', "", {"height, cm", "weight"})
    ('health', ['height, cm', 'weight'])
    """
    first, *others = _items(text, "=") or [_Item("", ())]
    name, member = first.cut("=", wanted, after=known)
    return name, [member, *(item.part() for item in others)]


def list_item(name: str) -> str:
    """Return a name as it has to be written in a list.

    Examples
    --------
    >>> print(list_item("age"), list_item("height, cm"))
    age "height, cm"
    """
    plain = "," not in name and not name.startswith('"') and name == name.strip()
    return name if plain else '"' + name.replace('"', '""') + '"'


def _items(texts: Sequence[str] | str | None, separator: str) -> list[_Item]:
    every = [texts] if isinstance(texts, str) else texts or ()
    return [item for text in every for item in _split(text, separator) if item.part()]


def _split(text: str, separator: str) -> list[_Item]:
    """Cut at commas outside quotes; a quote opens where a name or a value begins."""
    items: list[list[tuple[str, bool]]] = [[]]
    inside, begins, at = False, True, 0
    while at < len(text):
        letter = text[at]
        at += 1
        if inside and text[at - 1 : at + 1] == '""':
            items[-1].append((letter, True))
            at += 1
        elif letter == '"' and (inside or begins):
            inside, begins = not inside, False
        elif inside:
            items[-1].append((letter, True))
        elif letter == ",":
            items.append([])
            begins = True
        else:
            items[-1].append((letter, False))
            begins = letter == separator or (begins and letter.isspace())
    if inside:
        raise ParameterError(
            f"the quotes in {quoted(text)} do not close. Within quotes, write a quote twice."
        )
    return [_Item("".join(c for c, _ in item), tuple(k for _, k in item)) for item in items]
