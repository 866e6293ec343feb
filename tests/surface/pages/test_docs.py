"""The documentation: its examples run, the output it shows is true, what it names exists.

A ``python`` block runs; a ``text`` block right below it is its output.  Blocks of one page run in
order and share their names.  Numbers in the output may differ by one per cent or 0.001: another
processor adds in another order.
"""

import ast
import contextlib
import inspect
import io
import math
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import pytest

import mixedgm as mg
from mixedgm.cli.main import build_parser
from mixedgm.objective.contract import Smooth
from mixedgm.penalty.group_lasso import GroupLasso
from mixedgm.rows.contract import Rows
from mixedgm.select.evidence import Criterion
from mixedgm.solve.loop import Solver, State
from mixedgm.solve.problem import Problem

ROOT = Path(__file__).resolve().parents[3]
SRC = ROOT / "src" / "mixedgm"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> Iterator[SimpleNamespace]:
    """Yield fenced blocks: language, content, line, and the output shown right below."""
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for this, after in pairwise([*found, None]):
        assert this is not None
        shown = None
        if (
            after is not None
            and after[1] == "text"
            and not text[this.end() : after.start()].strip()
        ):
            shown = after[2]
        line = text.count("\n", 0, this.start(2))
        yield SimpleNamespace(language=this[1], content=this[2], line=line, shown=shown)


def same(shown: str, got: str) -> bool:
    """Whether two texts agree in their words, and in their numbers up to a small difference."""
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", got).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(got), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=0.01, abs_tol=0.001) for a, b in pairs)


WITH_EXAMPLES = [page for page in PAGES if any(b.language == "python" for b in blocks(page))]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=title)
def test_examples_run_and_show_their_output(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.language != "python":
            continue
        out = io.StringIO()
        code = compile("\n" * block.line + block.content, title(page), "exec")
        # In one process: others would import the package and load its kernels first.
        with contextlib.redirect_stdout(out), joblib.parallel_config("sequential"):
            exec(code, names)
        got = out.getvalue()
        where = f"{title(page)}, block of line {block.line + 1}"
        assert same(block.shown or "", got), f"{where} shows\n{block.shown}\nbut prints\n{got}"


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize(
    ("shown", "got", "expected"),
    [
        ("16 edges  0.335", "16 edges\n0.3351", True),
        ("KKT 2.8e-07", "KKT 9.1e-06", True),
        ("16 edges", "17 edges", False),
        ("-0.16", "0.16", False),
        ("16 edges", "16 nodes", False),
        ("1 2", "1", False),
    ],
)
def test_the_comparison_sees_a_difference(shown: str, got: str, expected: bool) -> None:
    assert same(shown, got) is expected


def test_the_first_screen_names_two_commands_that_set_themselves_up() -> None:
    screen = "".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines(True)[:24])
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"\nmake {target} " in screen
        assert f"\n{target}: $(STAMP)  ##" in rules


def test_commands_in_the_pages_are_commands() -> None:
    parser = build_parser()
    lines = [
        (title(page), line.strip())
        for page in PAGES
        for block in blocks(page)
        if block.language == "sh"
        for line in block.content.replace("\\\n", " ").splitlines()
        if line.strip().startswith("mixedgm ")
    ]
    assert len(lines) > 5
    for where, line in lines:
        words = shlex.split(line.partition(" > ")[0], comments=True)[1:]
        if {"--help", "--version"} & set(words):
            continue
        try:
            parser.parse_args(words)
        except SystemExit:
            pytest.fail(f"{where}: `{line}` is refused")


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for file, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / file if file else page
        if "://" in file or (target.exists() and anchor in {"", *headings(target)}):
            continue
        broken.append(f"{file}#{anchor}")
    assert broken == []


def headings(page: Path) -> set[str]:
    """The anchors of a page, as a browser of the repository makes them."""
    if page.suffix != ".md":
        return set()
    lines = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_modules_named_in_the_pages_exist(page: Path) -> None:
    named = re.findall(
        r"`((?:src/mixedgm/|tests/)?[a-z_]+(?:/[a-z_]+)*/[a-z_]+\.py)`", page.read_text()
    )
    places = (ROOT, SRC)
    assert [name for name in named if not any((place / name).is_file() for place in places)] == []


# -- docs/architecture.md and docs/api.md say what the code says ----------------------------------


def signature(name: str, function: Any) -> str:
    names = [n for n in inspect.signature(function).parameters if n != "self"]
    return f"{name}({', '.join(names)})"


@pytest.mark.parametrize("contract", [Rows, Smooth, GroupLasso, Problem, Solver, State, Criterion])
def test_contracts_are_stated_as_they_are(contract: type) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    public = {name: member for name, member in vars(contract).items() if not name.startswith("_")}
    functions = {n: m for n, m in public.items() if inspect.isfunction(m)}
    wanted = [signature(name, function) for name, function in functions.items()]
    wanted += [name for name, member in public.items() if isinstance(member, property)]
    assert wanted
    assert [each for each in wanted if each not in page] == []


def test_every_room_is_on_the_map() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.name for path in SRC.iterdir() if path.name not in ("__pycache__", "py.typed")}
    missing = [
        r for r in sorted(rooms) if not re.search(rf"^  {re.escape(r)}/? ", page, re.MULTILINE)
    ]
    assert missing == []


def test_the_reference_names_everything_public() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    methods = [
        name
        for cls in mg.MixedGraphicalModel.__mro__
        if cls.__module__.startswith("mixedgm.")
        for name, member in vars(cls).items()
        if not name.startswith("_") and (callable(member) or hasattr(member, "fn"))
    ]
    methods = [n for n in methods if not n.endswith("_request")]  # scikit-learn's, not ours
    assert {"fit", "edges", "predict", "predict_proba", "save"} <= set(methods)
    attributes = [word for word in vars(fitted_example()) if word.endswith("_")]
    missing = [
        name for name in [*mg.__all__, *methods, *attributes] if not re.search(rf"\b{name}\b", page)
    ]
    assert missing == []


def test_the_reference_has_the_true_defaults() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", page, re.MULTILINE))
    defaults = inspect.signature(mg.MixedGraphicalModel.__init__).parameters.values()
    stated = {name: ast.literal_eval(value) for name, value in rows.items()}
    assert stated == {p.name: p.default for p in defaults if p.name != "self"}


def fitted_example() -> mg.MixedGraphicalModel:
    import pandas as pd

    table = pd.DataFrame({"a": [0.0, 1.0, 2.5, 3.0], "b": [1.0, 0.0, 4.0, 2.0]})
    return mg.MixedGraphicalModel(lam=1.0, types={"a": "continuous", "b": "continuous"}).fit(table)
