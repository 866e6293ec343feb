"""A seed -> one command line with odd files and options, run and judged."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from mixedgm import load
from mixedgm.cli import main
from stress.campaign import Campaign, Found
from stress.hostile_files import GOOD, HOSTILE, MODELS, ROWS, make_model, make_table, tidy
from tests.support.command_line import environment

_REAL = 40  # every so many-th case is a process of its own
_LONGEST_ERROR = 4200
_SECONDS = 30.0

_ODD = (
    *("", " ", "-1", "0", "1", "0.5", "nan", "inf", "1e308", "9" * 30, "a", "a,b", "=", ":", '"'),
    *("é", "你好", "😀", "\x1b[31m", "\u202e", "x" * 100_000, "a=b", "a:b", "--", "-", "\t", "\0"),
)


class _Values(NamedTuple):
    """Values of an option: those that make sense, and others; an option may take none at all."""

    good: str = ""
    odd: tuple[str, ...] = ()

    def words(self, option: str, rng: Random) -> list[str]:
        if not self.good:
            return [option]
        good = rng.random() < 0.8 or not self.odd
        return [option, rng.choice(self.good.split("|") if good else self.odd)]


_Options = dict[str, _Values]
_BARE = _Values()
_CHOICE = ("--", "", "x", "\x1b", "é")
_COUNTS = ("-1", "0", "1000000000000", "nan", "1.5", "", "x", "9" * 30)
_NUMBERS = ("0", "1", "-1", "2", "nan", "inf", "1e308", "1e-300", "", "x")
_NAME = _Values("height|weight|group|mood|luck", ("nothing", HOSTILE["height"], *_ODD))
_COUNT = _Values("1|2|3", _COUNTS)
_SHARE = _Values("0.05|0.5|0.3", _NUMBERS)
_LAM = _Values("0.1|0.3|0.5", _NUMBERS)
_PAIR = _Values("height:weight|luck:mood|luck:group,luck:mood", ("height:height", "a:b", *_ODD))
_GIVEN = _Values(
    "group=a|height=1.5|mood=good,luck=0", ("height=x", "height=nan", "group=z", *_ODD)
)

_COLUMNS: _Options = {
    "--types": _Values(
        "height=categorical|luck=continuous|group=ordinal|luck=count", ("height=x", "=", *_ODD)
    ),
    "--levels": _Values("group=a,b|group=b,a", ("mood", "mood=bad", "luck=0,0", *_ODD)),
    "--level-scores": _Values("group=0,1|group=0,4", ("group=1,0", "group=x", "mood=", *_ODD)),
    "--thresholds": _Values("group=free", ("group=quadratic", "group=x", "group", *_ODD)),
    "--largest": _Values("luck=9|luck=100", ("luck=1", "luck=x", "mood=9", "luck=1e9", *_ODD)),
    "--zero-term": _NAME,
    "--transform": _Values("nonparanormal|height=nonparanormal|height=none", ("mood=none", *_ODD)),
    "--missing": _Values("error|drop", _CHOICE),
    "--drop": _NAME,
    "--weights-column": _NAME,
}
_FITTING: _Options = {
    **_COLUMNS,
    "--seed": _Values("0|7", _COUNTS),
    "--lams": _Values("0.5,0.2,0.1|0.3", ("0,0", "a,b", *_NUMBERS)),
    "--n-lams": _Values("3|5", _COUNTS),
    "--lam-min-ratio": _SHARE,
    "--covariates": _NAME,
    "--moderators": _NAME,
    "--require": _PAIR,
    "--forbid": _PAIR,
    "--loss": _Values("likelihood|nodewise|pseudolikelihood", _CHOICE),
    "--rule": _Values("and|or", _CHOICE),
    "--per-node": _BARE,
    "--weights": _Values("calibrated|uniform|adaptive", _CHOICE),
    "--solver": _Values("auto|proximal-newton|proximal-gradient", _CHOICE),
    "--tol": _Values("1e-4|1e-3", _NUMBERS),
    "--max-iter": _Values("5|200", _COUNTS),
    "--jobs": _Values("1|2|-1", ("0", "x", "9" * 30)),
    "--quiet": _BARE,
}
_SELECT = _Values("ebic|bic|aic|cv|holdout", _CHOICE)
_HOW: _Options = {
    "--method": _Values("auto|exact|gibbs", _CHOICE),
    "--limit": _Values("1000|100000", _COUNTS),
    "--seed": _Values("1|2", _COUNTS),
    "--repair": _BARE,
    "--quiet": _BARE,
}
_FORMULAS = _Values("keep|mark", _CHOICE)
_FORMAT: _Options = {"--format": _Values("table|csv|json", _CHOICE), "--formulas": _FORMULAS}
_UNSEEN = _Values("error|ignore")
_NETWORK: _Options = {
    "--layout": _Values("spring|circle|kamada-kawai", _CHOICE),
    "--columns": _Values("height,mood,luck|height,weight", ("height", "nothing", *_ODD)),
    "--max-edges": _COUNT,
    "--minimum": _LAM,
    "--maximum": _LAM,
    "--cut": _LAM,
    "--edge-labels": _BARE,
    "--no-labels": _BARE,
    "--node-group": _Values("a=height,mood|a=height", ("b=nothing", *_ODD)),
    "--node-color": _Values("a=red|a=#123456", ("a=nothing", *_ODD)),
}


@dataclass(frozen=True)
class _Command:
    """What a command takes: files, options, and the endings of what it may write."""

    words: str
    options: _Options
    outputs: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    needs_output: bool = False


_TABLE_ENDINGS = (".csv", ".json", ".txt")
_PICTURES = (".png", ".svg", ".pdf")
_COMMANDS = {
    "check": _Command("table", _COLUMNS),
    "fit": _Command(
        "table",
        {**_FITTING, "--lam": _LAM, "--refit": _BARE, "--no-refit": _BARE, "--select": _SELECT},
        (".mgm",),
        needs_output=True,
    ),
    "select": _Command(
        "table",
        {
            **_FITTING,
            "--criterion": _SELECT,
            "--gamma": _SHARE,
            "--folds": _COUNT,
            "--groups": _NAME,
            "--fraction": _SHARE,
            "--beta": _SHARE,
            "--subsamples": _COUNT,
            "--threshold": _SHARE,
            "--max-false": _SHARE,
            "--lowest": _BARE,
            "--scores": _Values("s.csv|s.json", ("s.txt", "no/s.csv", "")),
            "--plot": _Values("p.png|p.svg", ("p.txt", "no/p.png", "")),
        },
        (".mgm",),
        ("--n-lams", "5"),
    ),
    "path": _Command(
        "table", {**_FITTING, **_FORMAT, "--select": _SELECT}, _TABLE_ENDINGS, ("--n-lams", "5")
    ),
    "edges": _Command(
        "model",
        {**_FORMAT, "--at": _Values("luck=0", _ODD), "--shrunken": _BARE},
        (*_TABLE_ENDINGS, ".graphml", ".dat"),
    ),
    "plot": _Command(
        "model",
        {**_NETWORK, "--kind": _Values("network|path|parameters|selection"), "--at": _GIVEN},
        (*_PICTURES, ".txt"),
        needs_output=True,
    ),
    "predict": _Command(
        "model table",
        {**_FORMAT, "--column": _NAME, "--proba": _BARE, "--unseen": _UNSEEN, "--repair": _BARE},
        _TABLE_ENDINGS,
    ),
    "query": _Command("model", {**_FORMAT, **_HOW, "--given": _GIVEN}, _TABLE_ENDINGS),
    "sample": _Command(
        "model",
        {**_FORMAT, **_HOW, "--given": _GIVEN, "--burn-in": _COUNT, "--thin": _COUNT}
        | {"--rows": _COUNT},
        _TABLE_ENDINGS,
        ("--rows", "9"),
    ),
    "impute": _Command(
        "model table",
        {**_FORMAT, **_HOW, "--draws": _COUNT, "--unseen": _UNSEEN},
        _TABLE_ENDINGS,
    ),
    "bootstrap": _Command(
        "model table",
        {
            "--n-boot": _COUNT,
            "--kind": _Values("nonparametric|case-dropping", _CHOICE),
            "--select": _Values("fixed", _CHOICE),
            "--groups": _NAME,
            "--weights-column": _NAME,
            "--seed": _COUNT,
            "--formulas": _FORMULAS,
            "--checkpoint": _Values("c", ("t.csv", "")),
            "--resume": _BARE,
            "--quiet": _BARE,
        },
        ("",),
        ("--n-boot", "3", "--jobs", "1"),
        needs_output=True,
    ),
    "compare": _Command(
        "table",
        {
            **_FITTING,
            **_NETWORK,
            "--permutations": _Values("3|0", _COUNTS),
            "--penalty": _Values("common", _CHOICE),
            "--lam": _LAM,
            "--blocks": _NAME,
            "--alpha": _SHARE,
            "--groups": _NAME,
            "--formulas": _FORMULAS,
        },
        ("",),
        ("--groups", "group", "--permutations", "2", "--lam", "0.3", "--jobs", "1"),
        needs_output=True,
    ),
}
_QUESTIONS = [
    ["--mean"],
    ["--discrepancy"],
    ["--marginal", "group"],
    ["--marginal", "height,mood"],
    ["--entropy", "group,mood"],
    ["--mutual-information", "height,group"],
    ["--marginal", "nothing"],
    ["--mutual-information", "height"],
    ["--entropy", ""],
    ["--marginal", "\x1b[31m"],
]
_STRANGE = [
    "o\x1b[31m",
    "\u202eo",
    "ö 你 ",
    "a b",
    "-o",
    "o\nb",
    "o" * 300,
    "no/o",
    "o\0",
    "..",
    "",
]


@dataclass
class _Run:
    """One command line, and what came of it."""

    argv: list[str]
    name: str
    table: str
    model: str
    output: Path | None
    before: dict[str, bytes | None]
    code: int | None = None
    out: str = ""
    err: str = ""
    findings: list[str] = field(default_factory=list)


def attempt(seed: int, folder: Path) -> Found:
    """Make a command line from the seed, run it and judge what it did."""
    rng = Random(seed)
    with _inside(folder):
        run = _made(rng, folder)
        if seed % _REAL == 0 and not any("\0" in word for word in run.argv):
            _run_process(run)
        else:
            _run_here(run)
        _judge_texts(run)
        _judge_files(run, folder)
        if run.code == 0 and not run.findings:
            _judge_answer(run)
        tidy(folder)
    ended = {0: "an answer", 2: "an error"}.get(run.code or 0, f"code {run.code}")
    shown = [f"{text} | {_shown(run)}" for text in run.findings]
    return Found(f"{run.name}: {ended}", shown)


def _shown(run: _Run) -> str:
    words = " ".join(repr(word[:60]) for word in run.argv)
    return f"table: {run.table}, model: {run.model}, {words}, {run.err[-300:]!r}"


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


def _made(rng: Random, folder: Path) -> _Run:
    name = rng.choice(list(_COMMANDS))
    about = _COMMANDS[name]
    argv, table, model = [name], "", ""
    if "model" in about.words:
        model = make_model(rng, folder / "m.mgm")
        argv.append("m.mgm")
    if "table" in about.words:
        table, file = make_table(rng, folder, model)
        argv.append(file.name)
    argv += rng.choice(_QUESTIONS) if name == "query" else about.always
    for option in rng.sample(list(about.options), rng.choice([0, 0, 1, 1, 2, 3])):
        argv += about.options[option].words(option, rng)
    if name in ("query", "sample") and model in ("moderated", "covariates"):
        argv += ["--given", "luck=0.5"]
    output = None
    if about.outputs and (about.needs_output or rng.random() < 0.5):
        strange = rng.random() < 0.25
        stem = rng.choice(_STRANGE) if strange else "out"
        word = stem + rng.choice(about.outputs)
        argv += ["-o", word]
        output = folder / word if word else None
        if rng.random() < 0.2 and not strange and about.outputs != ("",):
            (folder / word).write_bytes(b"before")
    if rng.random() < 0.02:
        argv.append(rng.choice([*_ODD, "--nothing", "--help"]))
    return _Run(argv, name, table, model, output, _files(folder))


def _files(folder: Path) -> dict[str, bytes | None]:
    """The content of every file in the folder, None for what is not a regular file."""
    found: dict[str, bytes | None] = {}
    for file in folder.rglob("*"):
        regular = file.is_file() and not file.is_symlink()
        found[str(file.relative_to(folder))] = file.read_bytes() if regular else None
    return found


def _run_here(run: _Run) -> None:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run.code = main(run.argv)
        except SystemExit as end:
            run.code = int(end.code or 0)
        except BaseException:
            run.findings.append(traceback.format_exc()[-1500:])
        out.flush()
        err.flush()
    run.out, run.err = (
        part.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
        for part in (out, err)
    )
    if "matplotlib" in sys.modules:
        import matplotlib.pyplot as plt

        plt.close("all")


def _run_process(run: _Run) -> None:
    words = [sys.executable, "-m", "mixedgm", *run.argv]
    done = subprocess.run(words, env=environment(), capture_output=True, check=False)
    run.code = done.returncode
    run.out, run.err = (part.decode("utf-8", "replace") for part in (done.stdout, done.stderr))


def _judge_texts(run: _Run) -> None:
    if run.code not in (0, 2):
        run.findings.append(f"exit code {run.code}")
    if "Traceback" in run.err:
        run.findings.append("a traceback")
    errors = [line for line in run.err.splitlines() if line.startswith("mixedgm")]
    if run.code == 2 and len(errors) != 1:
        run.findings.append(f"{len(errors)} error messages")
    if run.code == 0 and errors:
        run.findings.append("an error message with exit code 0")
    if len(run.err) > _LONGEST_ERROR:
        run.findings.append(f"{len(run.err):,} characters on standard error")
    readable = run.err if _form(run) == "csv" else run.err + run.out
    hidden = {c for c in readable if not c.isprintable() and c != "\n"}
    if hidden:
        run.findings.append(f"unescaped {hidden!r}")


def _form(run: _Run) -> str:
    """The format of what is on standard output."""
    given = [run.argv[k + 1] for k, word in enumerate(run.argv[:-1]) if word == "--format"]
    usual = "csv" if run.name in ("predict", "sample", "impute") else "table"
    return given[-1] if given else usual


def _judge_files(run: _Run, folder: Path) -> None:
    after = _files(folder)
    made = [name for name in after if name not in run.before]
    changed = [name for name in run.before if after.get(name) != run.before[name]]
    own = "" if run.output is None else os.path.relpath(run.output, folder)
    hidden = [name for name in made if Path(name).name.startswith(".") and name != own]
    if hidden:
        run.findings.append(f"left behind: {hidden}")
    if run.code == 2:
        written = [name for name in made if after[name] is not None and not name.startswith("c/")]
        if written or changed:
            run.findings.append(f"failed, and wrote {written + changed}")
        return
    if [name for name in changed if name != own]:
        run.findings.append(f"changed {changed}")
    if run.output is not None and not run.output.exists() and "--help" not in run.argv:
        run.findings.append("the output is not there")
    for name in made:
        _judge_file(run, folder / name)


def _judge_file(run: _Run, file: Path) -> None:
    """Every file that was written can be read by what reads its kind."""
    starts = {".png": b"\x89PNG", ".pdf": b"%PDF"}
    try:
        if file.suffix in starts and not file.read_bytes().startswith(starts[file.suffix]):
            run.findings.append(f"{file.name} is not what its ending says")
        elif file.suffix in (".svg", ".graphml"):
            ElementTree.parse(file)  # noqa: S314
        elif file.suffix == ".json" and ("--format" not in run.argv or _form(run) == "json"):
            json.loads(file.read_text("utf-8"))
        elif file.suffix == ".mgm":
            load(file)
        elif file.suffix == ".csv":
            _records(file.read_text("utf-8"))
    except Exception:
        run.findings.append(f"{file.name[:80]!r} cannot be read: {traceback.format_exc()[-300:]}")


def _records(text: str) -> list[dict[str, Any]]:
    csv.field_size_limit(2**31 - 1)
    return list(csv.DictReader(io.StringIO(text, newline="")))


def _judge_answer(run: _Run) -> None:
    """Compare with what the library says, where that is simple to say."""
    if "--help" in run.argv:
        return
    if (
        run.name == "edges"
        and run.output is None
        and run.model in MODELS
        and "--at" not in run.argv
    ):
        _judge_edges(run)
    if run.name == "fit" and run.output is not None:
        names = set(load(run.output).schema_.table_names)
        known = {*HOSTILE, *HOSTILE.values(), "odd", *map(str, range(9))}
        if run.table in GOOD and not names <= known:
            run.findings.append(f"columns {sorted(names - known)}")
    if run.name in ("predict", "impute", "sample") and run.output is None:
        _judge_rows(run)
    if run.name == "check" and run.table in GOOD and not run.out.startswith(f"{ROWS} rows, "):
        run.findings.append("the number of rows")


def _judge_edges(run: _Run) -> None:
    form = _form(run)
    if form == "table":
        return
    told = json.loads(run.out) if form == "json" else _records(run.out)
    edges = load("m.mgm").fitted_.edges
    marked = "mark" in run.argv
    same = len(told) == len(edges) and all(
        (marked or record["source"] == edge.source) and np.isclose(float(record["norm"]), edge.norm)
        for record, edge in zip(told, edges, strict=False)
    )
    if not same:
        run.findings.append("other edges than the library's")


def _judge_rows(run: _Run) -> None:
    form = _form(run)
    if form == "table":
        return
    told = json.loads(run.out) if form == "json" else _records(run.out)
    if run.name == "sample":
        wanted = int([run.argv[k + 1] for k, w in enumerate(run.argv) if w == "--rows"][-1])
    elif run.table in GOOD:
        draws = [run.argv[k + 1] for k, w in enumerate(run.argv) if w == "--draws"]
        wanted = ROWS * (int(draws[-1]) if draws else 1)
    else:
        return
    if len(told) != wanted:
        run.findings.append(f"{len(told)} rows instead of {wanted}")
    cells = [cell for record in told for cell in record.values()]
    if run.name != "predict" and any(cell in ("", None) for cell in cells):
        run.findings.append("empty cells")


CAMPAIGN = Campaign(
    "command lines: exit code 0 and a right answer, or 2 and one message",
    cases=1000,
    seconds=_SECONDS,
    attempt=attempt,
)
