"""Results, notes and errors in -> standard output and standard error, one readable line each."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mixedgm.base.errors import TableWarning, finding_lines
from mixedgm.base.printable import bounded, one_line, printable
from mixedgm.cli.lists import list_item

# Python remedies as the options that do the same here.
_TYPE = r'"((?:[^"\\]|\\.)*)": "(\w+)"'
_TYPES = re.compile(rf"types=\{{({_TYPE}(?:, {_TYPE})*)\}}")
_DECLARED = re.compile(r'types=\{"((?:[^"\\]|\\.)*)": mg\.(Ordinal|Count)\((\w+)=(.*?)\)\}')
_ALL_TYPES = re.compile(r'types="(\w+)"')
_LEAVE_OUT = re.compile(r"leave columns? ('[^']*'(?:, '[^']*')*) out")
_SCORES = r'("(?:[^"\\]|\\.)*"): ("nonparanormal"|None)'
_TRANSFORM = re.compile(rf'transforms=(\{{{_SCORES}(?:, {_SCORES})*\}}|"nonparanormal"|None)')
_TO_NUMBERS = re.compile(r"table(?:\[.*?\])? = .*? (?=turns it into numbers)")
_VALUES = re.compile(r"\bgiven=\{(.*?)\}|\buse model\.at\(\{(.*?)\}\)")
_NAMED_VALUE = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"): \.\.\.")
_NAME = r'"((?:[^"\\]|\\.)*)"'
_ZERO_TERMS = re.compile(rf"types=\{{({_NAME}: mg\.Count\(zero_term=True\)(?:, )?)+\}}")
_MODERATORS = re.compile(rf"moderators=\[({_NAME}(?:,\s+{_NAME})*)\]")
_PAIR = rf"\({_NAME}, {_NAME}\)"
_PAIRS = re.compile(rf"(require|forbid)=\[({_PAIR}(?:, {_PAIR})*)\]")
_FILLED = re.compile(r"table(?:\[.*?\])? = .{,5000}? (?=gives (?:a level|levels) of)")
_ZEROS = re.compile(r"table(?:\[.*?\])? = .{,5000}? (?=with --types .*?hurdle)")
_OTHER_ROWS = re.compile(r"rows alone: table.*?(?=; or )")
_CHOICES = re.compile(r"\b(rule|loss|method|weights|solver)='([\w-]+)'")
_WEIGHTS = re.compile(r"\bsample_weight (?=has|holds|sums|must)")
_OPTIONS = {
    'missing="drop"': "--missing drop",
    'missing="model"': "--missing model",
    "missing='drop'": "--missing drop",
    "parameters='resampled' is for draws; say how many with n_draws.": (
        "--parameters resampled is for draws; say how many with --draws."
    ),
    "parameters='fixed'": "--parameters fixed",
    "parameters='resampled'": "--parameters resampled",
    "missing='model'": "--missing model",
    "per_node=True": "--per-node",
    "or per_node=False": "or leave out --per-node",
    "mixedgm.check_table(table)": "`mixedgm check`",
    "transforms={column: None}": "--transform NAME=none",
    "model.repaired() gives": "--repair takes",
    "limit=": "--limit",
    "burn_in=": "--burn-in",
    "thin=": "--thin",
    'unseen="ignore"': "--unseen ignore",
    ", or mg.Ordinal(...) or mg.Count(...)": "",
    "; verbose=1 shows progress": "",
    "columns=[...]": "--columns",
    "labels=False": "--no-labels",
    "models[group].plot()": "`mixedgm plot`",
    "forbid=": "--forbid",
    "moderators=": "--moderators",
    "mixedgm.compare": "`mixedgm compare`",
    "model.check_fit(table)": "`mixedgm check MODEL TABLE`",
    "check with refit=True": "leave out --as-is",
    "(given=)": "(--given)",
    "(n_sim=)": "(--simulations)",
    "(n_jobs=)": "(--jobs)",
    "check=False": "--no-check",
}
_WIDE = 10_000


@dataclass
class Console:
    """Where one command writes: results to standard output, everything else to standard error."""

    command: str  # its name, for error messages
    quiet: bool = False  # no notes and no progress
    keeps_partial: bool = False  # whether Ctrl-C during a path keeps the part that is solved
    interrupted: bool = False  # whether that has happened
    noted: set[str] = field(default_factory=set)  # what was shown; none is shown twice

    @property
    def shows_progress(self) -> bool:
        """Whether someone is there to watch a progress bar."""
        return not self.quiet and sys.stderr.isatty()

    @property
    def width(self) -> int:
        """Longest line of a table: the terminal's, and no limit for a pipe or a file."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE

    def out(self, text: str) -> None:
        """Write a readable result and end the line."""
        sys.stdout.write(f"{printable(text)}\n")

    def pass_on(self, text: str) -> None:
        """Write data for other programs as it is; a terminal gets it readable."""
        sys.stdout.write(f"{printable(text) if sys.stdout.isatty() else text}\n")

    def say(self, text: str, *, always: bool = False) -> None:
        """Write one line about what is going on."""
        if always or not self.quiet:
            sys.stdout.flush()  # so that a terminal shows both in the order they were written
            sys.stderr.write(f"{one_line(bounded(text))}\n")
            sys.stderr.flush()

    def note(self, text: str, *, always: bool = False) -> None:
        """Write something that the user should know, as one line, once."""
        line = in_options(" ".join(text.split()))
        if line not in self.noted:
            self.say(f"note: {line}", always=always)
        self.noted.add(line)

    def error(self, text: str, kind: str = "error: ") -> None:
        """Write why the command ends here, even when quiet."""
        with suppress(OSError):  # the error may be about a full disk
            sys.stdout.flush()
        name = f"mixedgm {self.command}".rstrip()
        sys.stderr.write(f"{name}: {kind}{bounded(in_options(text))}\n")

    @contextmanager
    def notes(self) -> Iterator[None]:
        """Show warnings that are meant for users as notes; hide deprecations and the like."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.filterwarnings("always", "interrupted", RuntimeWarning)
            warnings.showwarning = self._show
            yield

    def _show(
        self, message: Warning | str, category: type[Warning], *where: Any, **more: Any
    ) -> None:
        if issubclass(category, RuntimeWarning):  # the only one let through: an interrupted path
            if not self.keeps_partial:
                raise KeyboardInterrupt
            self.interrupted = True
        lines = [str(message)]
        if isinstance(message, TableWarning):
            lines = finding_lines(message.findings)
        elif lines[0].startswith("Glyph "):  # one warning of matplotlib for each letter
            lines = ["the font of the pictures lacks some letters, and shows boxes instead"]
        for line in lines:
            self.note(line, always=self.interrupted)

    @contextmanager
    def announcing_compilation(self) -> Iterator[None]:
        """Tell the user when the kernels of a fit are compiled, which takes a while, once.

        Those of queries, samples and rare options come later and take a second or so; a user who
        has read "once" is not told again.
        """
        from numba.core import event

        from mixedgm.fit.precompile import has_kernels

        class Listener(event.Listener):  # type: ignore[misc]
            said = has_kernels()

            def on_start(listener, _: object) -> None:  # noqa: N805
                if not listener.said:
                    listener.said = True
                    self.note("compiling numerical kernels, once; about 10 s")

            def on_end(listener, _: object) -> None:  # noqa: N805
                pass

        with event.install_listener("numba:compile", Listener()):
            yield


def _listed(names: str) -> str:
    """Return quoted names as a list with commas."""
    return ",".join(list_item(item) for item in re.findall(r"'([^']*)'", names))


def _scores(transforms: str) -> str:
    """Return a transform, or a dictionary of them by name, as HOW or as NAME=HOW,...."""
    by_name = re.findall(_SCORES, transforms)
    each = (f"{list_item(json.loads(name))}={_word(how)}" for name, how in by_name)
    return ",".join(each) or _word(transforms)


def _word(transform: str) -> str:
    return transform.strip('"').lower()


def _values(named: str) -> str:
    """Return the names of a dictionary of values still to be given, as NAME=VALUE,...."""
    names = [name[1:-1] for name in _NAMED_VALUE.findall(named)]
    return shlex.quote(",".join(f"{list_item(name)}=VALUE" for name in names))


def _kinds(named: str) -> str:
    """Return a dictionary of kinds by name as NAME=KIND,..."""
    return ",".join(f"{list_item(name)}={kind}" for name, kind in re.findall(_TYPE, named))


def _names(named: str, between: str = ",") -> str:
    """Return the names that stand in double quotes, as an item or a list."""
    return between.join(list_item(json.loads(f'"{name}"')) for name in re.findall(_NAME, named))


def _pairs(named: str) -> str:
    """Return pairs of names that stand in double quotes, as A:B,..."""
    return ",".join(_names(pair[0], ":") for pair in re.finditer(_PAIR, named))


def _declared(match: re.Match[str]) -> str:
    """Return an ordinal or count column with an option as the option that does the same."""
    try:
        name, value = list_item(match[1]), json.loads(match[4])
    except ValueError:  # a list so long that its middle is left out
        return match[0]
    values = ",".join(list_item(str(each)) for each in value) if isinstance(value, list) else value
    return f"--{match[3]} {shlex.quote(f'{name}={values}')}"


def in_options(text: str) -> str:
    """Return a message of the library with its Python remedies written as options.

    Examples
    --------
    >>> in_options('To change it: types={"stage": "categorical"}')
    'To change it: --types stage=categorical'
    >>> in_options('To change it: types={"visits": "count", "falls": "count"}')
    'To change it: --types visits=count,falls=count'
    >>> in_options('To change it: types="ordinal"')
    'To change it: --types ordinal'
    >>> in_options('To fix: types={"pain": mg.Ordinal(levels=["mild", "severe"])}')
    'To fix: --levels pain=mild,severe'
    >>> in_options('To fix: missing="drop" drops the row')
    'To fix: --missing drop drops the row'
    >>> in_options('To do: transforms={"wage": None, "rent": None} keeps the numbers')
    'To do: --transform wage=none,rent=none keeps the numbers'
    >>> in_options("To fix: leave columns 'alley', 'pool' out")
    'To fix: --drop alley,pool'
    >>> in_options('To do: fit with require=[("age", "height")]')
    'To do: fit with --require age:height'
    >>> in_options('or forbid=[("a", "b"), ("c", "b")] if the values exist')
    'or --forbid a:b,c:b if the values exist'
    >>> in_options('To fix: table["a b"] = table["a b"].fillna("none") gives a level of its own')
    'To fix: a word such as none in the empty fields of the file gives a level of its own'
    >>> in_options('To do: fit with types={"falls": mg.Count(zero_term=True)}')
    'To do: fit with --zero-term falls'
    >>> in_options('to try: fit with moderators=["sex", "class"]')
    'to try: fit with --moderators sex,class'
    >>> in_options("fewer of them (n_sim=), or more processes (n_jobs=); in a report, check=False")
    'fewer of them (--simulations), or more processes (--jobs); in a report, --no-check'
    >>> in_options("give a value of 'age', too: given={'age': ...}")
    "give a value of 'age', too: --given age=VALUE"
    """
    text = _TYPES.sub(lambda match: f"--types {shlex.quote(_kinds(match[1]))}", text)
    text = _ALL_TYPES.sub(r"--types \1", text)
    text = _ZERO_TERMS.sub(lambda match: f"--zero-term {shlex.quote(_names(match[0]))}", text)
    text = _DECLARED.sub(_declared, text)
    text = _MODERATORS.sub(lambda match: f"--moderators {shlex.quote(_names(match[1]))}", text)
    text = _PAIRS.sub(lambda match: f"--{match[1]} {shlex.quote(_pairs(match[2]))}", text)
    text = _FILLED.sub("a word such as none in the empty fields of the file ", text)
    text = _ZEROS.sub("0 in the empty fields of the file ", text)
    text = _OTHER_ROWS.sub("rows alone", text)
    text = _LEAVE_OUT.sub(lambda match: f"--drop {shlex.quote(_listed(match[1]))}", text)
    text = _TRANSFORM.sub(lambda match: f"--transform {shlex.quote(_scores(match[1]))}", text)
    text = _TO_NUMBERS.sub("an empty field in the file in place of each word ", text)
    text = _WEIGHTS.sub("--weights-column ", text)
    text = _CHOICES.sub(r"--\1 \2", text)
    text = _VALUES.sub(lambda match: f"--given {_values(match[1] or match[2])}", text)
    for python, option in _OPTIONS.items():
        text = text.replace(python, option)
    return text
